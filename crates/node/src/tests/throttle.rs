//! Publishers that outrun consumers, alone and beside others.

use super::host::Host;
use crate::WaitsFor;
use crate::flow::throttle::Slowed;
use angarium_engine::{QueueOptions, Request};
use std::time::Duration;

const MOMENT: Duration = Duration::from_millis(1);

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

/// For how long a client is not read from that sends much to `queue`, where a drain has 32 MiB a second.
#[track_caller]
fn check_pause(consumes: bool, has_company: bool, pause: Duration) {
    let mut host = with_queues(1);
    host.node().flow.slowed = Slowed::new(32 << 20);
    let (publisher, other, consumer) = (host.client(), host.client(), host.client());
    if consumes {
        host.consume(consumer, "one", 1);
    }
    host.wait(10 * MOMENT);
    if has_company {
        host.publish(other, "all", b"message", false);
    }
    send_much(&mut host, publisher, "one");
    host.settle_down();
    let tick = Duration::from_micros(1);
    for (wait, is_read) in [(pause.saturating_sub(tick), pause.is_zero()), (tick, true)] {
        host.wait(wait);
        assert_eq!(host.wants_read(publisher), is_read, "after {wait:?}, company: {has_company}");
    }
}

#[test]
fn a_publisher_that_outruns_consumers_waits_longer_beside_others() {
    check_pause(true, false, MOMENT);
    check_pause(true, true, Duration::from_micros(3_906));
    check_pause(false, true, Duration::ZERO);
}

#[test]
fn a_publisher_that_outruns_consumers_at_home_waits_before_home_says_so_again() {
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
