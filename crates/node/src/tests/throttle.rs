//! Publishers whose messages come to nothing, beside others.

use super::broker::Broker;
use super::host::Host;
use crate::WaitsFor;
use crate::flow::throttle::Slowed;
use angarium_engine::{QueueOptions, Request};
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

/// A broker of `shards` shards with a queue `one` of a single message at most, and a queue `all`.
fn with_queues(shards: usize) -> Host {
    let mut host = Host::new(shards);
    for (name, length_max) in [("one", Some(1)), ("all", None)] {
        let options = Some(QueueOptions { length_max, ..QueueOptions::default() });
        let declare = Request::DeclareQueue { name: name.to_owned(), options };
        host.operate("/", declare).expect("operators may");
    }
    host
}

/// Messages of some 64 KiB at once.
fn send_much(host: &mut Host, client: usize, queue: &str) {
    host.publish_many(client, queue, &[7; 1_000], false, 64);
}

/// What the other client does just before.
#[derive(Clone, Copy, Debug)]
enum Company {
    Nothing,
    Publishes,
    /// That stays on its own shard.
    Beats,
}

/// A client of AMQP on `shard` publishes much to `queue`, where another is on shard `beside`; says
/// whether it is read from right after that.
fn is_read_by_way_of_home(shard: usize, beside: usize, does: Company, queue: &str) -> bool {
    let mut host = with_queues(3);
    let (flood, other) = (host.client_on(shard), host.client_on(beside));
    host.pass(100);
    match does {
        Company::Nothing => {}
        Company::Publishes => host.publish(other, "all", b"message", false),
        Company::Beats => host.heartbeat(other),
    }
    host.settle_down();
    send_much(&mut host, flood, queue);
    host.settle_down();
    let is_read = host.wants_read(flood);
    host.pass(100);
    assert!(host.wants_read(flood), "only for a moment");
    assert!(host.wants_read(other));
    is_read
}

#[test]
fn what_comes_to_nothing_at_home_waits_wherever_its_publisher_is() {
    use Company::{Beats, Nothing, Publishes};
    for shard in [0, 1] {
        for queue in ["nowhere", "one"] {
            for (beside, does, is_read) in [
                (0, Publishes, false),
                (1, Publishes, false),
                (2, Publishes, false),
                (shard, Beats, false),
                (2, Beats, true),
                (2, Nothing, true),
            ] {
                let found = is_read_by_way_of_home(shard, beside, does, queue);
                assert_eq!(found, is_read, "{queue} from {shard} beside {beside}: {does:?}");
            }
        }
        assert!(is_read_by_way_of_home(shard, 2, Publishes, "all"), "from {shard}: kept");
    }
}

/// For how long a client is not read from that sends much to `queue`, where a drain has 32 MiB a second.
#[track_caller]
fn check_pause(queue: &str, consumes: bool, does: Company, pause: Duration) {
    let mut host = with_queues(1);
    host.node().flow.slowed = Slowed::new(32 << 20);
    let (publisher, other, consumer) = (host.client(), host.client(), host.client());
    if consumes {
        host.consume(consumer, queue, 1);
    }
    host.wait(10 * MOMENT);
    if let Company::Publishes = does {
        host.publish(other, "all", b"message", false);
    }
    send_much(&mut host, publisher, queue);
    host.settle_down();
    let tick = Duration::from_micros(1);
    for (wait, is_read) in [(pause.saturating_sub(tick), pause.is_zero()), (tick, true)] {
        host.wait(wait);
        assert_eq!(host.wants_read(publisher), is_read, "{queue} after {wait:?}: {does:?}");
    }
}

#[test]
fn who_outruns_consumers_waits_longer_where_others_wait_for_it() {
    let longer = Duration::from_micros(3_906);
    check_pause("one", true, Company::Nothing, MOMENT);
    check_pause("one", true, Company::Publishes, longer);
    check_pause("nowhere", false, Company::Nothing, Duration::ZERO);
    check_pause("nowhere", false, Company::Publishes, longer);
}

#[test]
fn floods_by_way_of_home_do_not_wait_for_each_other() {
    let mut host = with_queues(3);
    let floods = [1, 1, 2].map(|shard| host.client_on(shard));
    // The first time home has not said yet what they are.
    for flood in floods {
        send_much(&mut host, flood, "one");
        host.settle_down();
    }
    host.wait(Duration::from_millis(2));
    for flood in floods.into_iter().cycle().take(7) {
        send_much(&mut host, flood, "one");
        assert!(host.wants_read(flood), "{flood}: at once");
        host.settle_down();
        assert!(host.wants_read(flood), "{flood}");
    }
}

#[test]
fn a_flood_by_way_of_home_waits_before_home_has_said_so_again_and_no_longer_than_it_is_one() {
    let mut host = with_queues(2);
    let (flood, other) = (host.client_on(1), host.client_on(0));
    host.publish(other, "all", b"message", false);
    host.settle_down();
    send_much(&mut host, flood, "one");
    host.settle_down();
    host.wait(MOMENT);
    assert!(host.wants_read(flood));
    send_much(&mut host, flood, "one");
    assert!(!host.wants_read(flood), "home has not seen it yet");
    host.settle_down();
    host.wait(10 * MOMENT);
    host.publish(other, "all", b"message", false);
    host.settle_down();
    send_much(&mut host, flood, "all");
    host.settle_down();
    assert!(host.wants_read(flood), "it floods no more");
}

#[test]
fn who_outruns_consumers_at_home_waits_before_home_has_said_so_again_and_no_longer_than_it_does() {
    let mut host = with_queues(2);
    let (publisher, consumer) = (host.client_on(1), host.client_on(0));
    host.consume(consumer, "one", 1);
    send_much(&mut host, publisher, "one");
    host.settle_down();
    for _ in 0..3 {
        host.wait(MOMENT);
        assert!(host.wants_read(publisher));
        send_much(&mut host, publisher, "one");
        assert_eq!(
            host.waits_for(publisher),
            Some(WaitsFor::Consumers),
            "home has not seen it yet"
        );
        host.settle_down();
    }
    host.wait(MOMENT);
    host.publish(publisher, "one", b"message", false);
    assert!(host.wants_read(publisher), "little may be anything");
    host.settle_down();
    host.wait(10 * MOMENT);
    send_much(&mut host, publisher, "all");
    assert!(host.wants_read(publisher), "it outruns nobody any more");
}
