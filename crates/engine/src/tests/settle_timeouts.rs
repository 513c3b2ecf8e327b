//! Deliveries that are not settled in time: which channel fails, what goes back, and that no more is out than
//! credit allows.

use super::{TestHost, check_in};
use crate::interface::limits::Limits;
use std::time::Duration;

/// The default is 1 s.
fn host() -> TestHost {
    let settle_timeout = Duration::from_secs(1);
    TestHost::with(Limits { settle_timeout, ..Limits::default() })
}

fn failed(millis: u64, queue: &str) -> String {
    format!(
        "> a failed PreconditionFailed: delivery acknowledgement on channel 1 timed out. Timeout value used: \
         {millis} ms (consumer-timeout of the consumer or queue, or settle-timeout). Queue: {queue}"
    )
}

#[test]
fn a_channel_that_holds_a_delivery_too_long_is_closed_and_all_of_it_goes_back() {
    let failed = failed(1000, "q");
    let host = check_in(
        host(),
        &format!(
            "a queue q
             > a queue q 0 0
             a publish - q 1
             a publish - q 2
             a publish - q 3
             a consume q c credit=2
             > a consuming c
             > a deliver c #1 1
             > a deliver c #2 2
             time 600
             a accept 1
             > a deliver c #3 3
             a publish - q 4
             b passive q
             > b queue q 1 1
             time 399
             b passive q
             > b queue q 1 1
             time 1
             {failed}
             b passive q
             > b queue q 3 0
             b consume q d
             > b consuming d
             > b deliver d #1 2 redelivered count=1
             > b deliver d #2 3 redelivered count=1
             > b deliver d #3 4"
        ),
    );
    assert_eq!(host.engine.counters().settle_timeouts, 1);
}

/// The queue's and the consumer's own time-outs, where they have one, and what holds then.
#[track_caller]
fn check_timeout(queue: &str, consumer: &str, millis: u64) {
    let mut host = host();
    host.run(&format!("a queue q {queue}"));
    host.run("a publish - q 1");
    host.run(&format!("a consume q c {consumer}"));
    assert_eq!(host.run(&format!("time {}", millis - 1)), [""; 0], "{queue} {consumer}");
    let expected = failed(millis, "q");
    assert_eq!(host.run("time 1"), [expected.trim_start_matches("> ")], "{queue} {consumer}");
}

#[test]
fn the_consumer_says_how_long_or_else_its_queue() {
    check_timeout("", "", 1000);
    check_timeout("timeout=200", "", 200);
    check_timeout("timeout=5000", "", 5000);
    check_timeout("timeout=200", "timeout=3000", 3000);
    check_timeout("", "timeout=50", 50);
}

#[test]
fn a_message_that_was_asked_for_singly_is_settled_in_time_too() {
    let failed = failed(1000, "q");
    check_in(
        host(),
        &format!(
            "a queue q
             > a queue q 0 0
             a publish - q 1
             a get q
             > a deliver  #1 1
             > a got, 0 left
             time 1000
             {failed}
             b passive q
             > b queue q 1 0"
        ),
    );
}

#[test]
fn what_is_settled_at_once_or_in_an_open_transaction_is_not_late() {
    let failed = failed(1000, "q");
    check_in(
        host(),
        &format!(
            "a queue q
             > a queue q 0 0
             b consume q c presettled
             > b consuming c
             a publish - q 1
             > b deliver c #1 1
             b cancel c
             > b ok
             a transactions
             > a ok
             b publish - q 2
             b publish - q 3
             a get q
             > a deliver  #1 2
             > a got, 1 left
             a accept 1
             time 5000
             a get q
             > a deliver  #2 3
             > a got, 0 left
             time 1000
             {failed}
             b passive q
             > b queue q 2 0"
        ),
    );
}

#[test]
fn a_closed_channel_has_nothing_that_could_be_late() {
    check_in(
        host(),
        "a queue q
         > a queue q 0 0
         a publish - q 1
         a get q
         > a deliver  #1 1
         > a got, 0 left
         a close
         time 5000
         b passive q
         > b queue q 1 0",
    );
}
