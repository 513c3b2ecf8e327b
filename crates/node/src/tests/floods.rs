//! Publishers whose messages come to nothing, beside others.

use super::broker::Broker;
use std::time::Duration;

const MOMENT: Duration = Duration::from_millis(1);

/// About `bytes` of messages to `s`.
fn messages(bytes: usize) -> String {
    let message = format!("PUB s 100\r\n{}\r\n", "x".repeat(100));
    message.repeat(bytes / message.len())
}

/// A client publishes `bytes` at once to `s`, just after another client sent something if that has
/// `company`; says whether it is read from right after that.
fn is_read_on(listens_to: &str, company: bool, bytes: usize) -> bool {
    let mut broker = Broker::new(1);
    for name in ["flood", "other"] {
        broker.connect(name, 0);
    }
    broker.say("other", &format!("SUB {listens_to} 1\r\n"));
    broker.pass(2 * MOMENT);
    if company {
        broker.say("other", "PING\r\n");
    }
    broker.say("flood", &messages(bytes));
    let is_read = broker.is_read("flood");
    broker.pass(MOMENT);
    assert!(broker.is_read("flood"), "only for a moment");
    is_read
}

#[test]
fn what_nobody_gets_waits_for_those_who_get_something() {
    for (what, listens_to, company, bytes, is_read) in [
        ("a flood beside others", "other", true, 64 << 10, false),
        ("a flood without others", "other", false, 64 << 10, true),
        ("what is heard", "s", true, 64 << 10, true),
        ("a few messages", "other", true, 16 << 10, true),
    ] {
        assert_eq!(is_read_on(listens_to, company, bytes), is_read, "{what}");
    }
}

#[test]
fn floods_do_not_wait_for_each_other() {
    let mut broker = Broker::new(1);
    for name in ["one", "two"] {
        broker.connect(name, 0);
    }
    broker.pass(2 * MOMENT);
    for name in ["one", "two", "one"] {
        broker.say(name, &messages(64 << 10));
        assert!(broker.is_read(name), "{name}");
    }
}
