//! Publishers of direct messages whose subscribers are slow, and clients that store more than the disk takes.

use super::broker::{Broker, DIRECT_BYTES_MAX, EGRESS_BYTES_MAX};
use super::host::Host;
use crate::WaitsFor;
use crate::flow::publisher_stall::STALL_MAX;
use angarium_protocol::amqp091::codec::Method;
use std::time::Duration;

/// A message to those who listen to `s`.
fn message() -> String {
    message_to("s")
}

fn message_to(subject: &str) -> String {
    format!("PUB {subject} 1000\r\n{}\r\n", "x".repeat(1000))
}

/// A publisher on shard 0; on theirs, one who listens to `s` and does not read, and one who reads.
fn slow_and_quick(shards: usize, slow: usize, (quick, subject): (usize, &str)) -> Broker {
    let mut broker = Broker::new(shards);
    broker.connect("p", 0);
    broker.play(&format!("slow@{slow}> SUB s 1"));
    broker.play(&format!("quick@{quick}> SUB {subject} 1"));
    broker.set_deaf("slow", true);
    broker
}

#[test]
fn a_publisher_waits_for_those_on_another_shard_who_are_all_behind() {
    let mut broker = Broker::new(2);
    broker.connect("p", 0);
    broker.play("slow@1> SUB s 1");
    broker.set_deaf("slow", true);
    let message = message();
    let mut sent = 0;
    while broker.is_read("p") {
        broker.say("p", &message);
        sent += 1;
        assert!(sent < 40, "it goes on");
    }
    assert!(sent * 1000 > EGRESS_BYTES_MAX);
    broker.set_deaf("slow", false);
    assert!(broker.is_read("p"));
    assert_eq!(broker.heard("slow").matches("MSG s").count(), sent);
    // One who keeps up is enough to go on; who is too far behind is not waited for.
    broker.play("quick@1> SUB s 1");
    broker.set_deaf("slow", true);
    for _ in 0..200 {
        assert!(broker.is_read("p"));
        broker.say("p", &message);
    }
    assert_eq!(broker.heard("quick").matches("MSG s").count(), 200);
    broker.set_deaf("slow", false);
    assert!(!broker.is_connected("slow"));
}

/// A publisher on shard 0 sends to a slow subscriber on shard `slow` and, on another subject, to one that
/// reads: it is stalled for [`STALL_MAX`] at a time and no longer.
fn check_bound(slow: usize, quick: usize) {
    let mut broker = slow_and_quick(2, slow, (quick, "q"));
    let many = EGRESS_BYTES_MAX / 1000 + 2;
    for round in 0..5 {
        assert!(broker.is_read("p"), "{slow} {quick}, {round}");
        broker.say("p", &format!("{}PUB q 1\r\nx\r\n", message().repeat(many)));
        broker.say("p", "PUB s 1\r\nx\r\n");
        // Later nobody waits for it: it is nearer to its bound than to its high-water mark.
        assert!(!broker.is_read("p") || round > 0, "{slow} {quick}, {round}");
        broker.pass(STALL_MAX);
    }
    assert_eq!(broker.heard("quick").matches("MSG q").count(), 5, "{slow} {quick}");
    assert!(!broker.is_connected("slow"), "{slow} {quick}: its own bound");
}

#[test]
fn a_stall_is_bounded() {
    for (slow, quick) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        check_bound(slow, quick);
    }
}

/// What may become of messages that somebody does not take, and who hears `s` so.
const POLICIES: [&str; 4] =
    ["", "$SLOW_CONSUMER.drop-new.", "$SLOW_CONSUMER.drop-oldest.", "$SLOW_CONSUMER.spool."];
/// The shards of two listeners, where the publisher is on shard 0.
const PLACES: [(usize, usize); 6] = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1)];

/// A publisher on shard 0; one who listens by this policy, and one who reads. Neither is deaf yet.
fn with_policy(policy: &str, (one, quick): (usize, usize), is_quick_first: bool) -> Broker {
    let mut broker = Broker::new(3);
    broker.connect("p", 0);
    let mut listeners = [format!("one@{one}> SUB {policy}s 1"), format!("quick@{quick}> SUB s 1")];
    if is_quick_first {
        listeners.reverse();
    }
    listeners.iter().for_each(|listener| broker.play(listener));
    broker
}

/// Sends messages, `at_once` together, until the publisher is stalled or has sent twice the bound; says
/// whether it is stalled.
fn send_until_stalled(broker: &mut Broker, at_once: usize) -> bool {
    let messages = message().repeat(at_once);
    for _ in 0..2 * DIRECT_BYTES_MAX / messages.len() {
        if !broker.is_read("p") {
            return true;
        }
        broker.say("p", &messages);
        broker.pass(Duration::from_millis(2));
    }
    !broker.is_read("p")
}

/// One subscriber does not read, the other one does: the publisher is not stalled.
#[test]
fn one_subscriber_that_keeps_up_is_enough_to_go_on() {
    for (policy, places, is_quick_first) in cases() {
        let mut broker = with_policy(policy, places, is_quick_first);
        broker.set_deaf("one", true);
        assert!(!send_until_stalled(&mut broker, 1), "{policy} {places:?} {is_quick_first}");
        // The other one is protected as if it were alone.
        broker.set_deaf("quick", true);
        assert!(send_until_stalled(&mut broker, 1), "{policy} {places:?} {is_quick_first}");
        assert!(broker.is_connected("quick"), "{policy} {places:?} {is_quick_first}");
    }
}

/// Both subscribers are slow: the publisher goes on once one of them reads.
#[test]
fn a_publisher_whose_listeners_are_all_behind_waits_for_the_first_that_reads_on() {
    for (policy, places, is_quick_first) in cases() {
        let mut broker = with_policy(policy, places, is_quick_first);
        for (at_once, first) in [(1, "one"), (1, "quick"), (7, "one"), (7, "quick")] {
            broker.set_deaf("one", true);
            broker.set_deaf("quick", true);
            let case = format!("{policy} {places:?} {is_quick_first}, {at_once}, {first}");
            assert!(send_until_stalled(&mut broker, at_once), "{case}");
            broker.set_deaf(first, false);
            // Nobody waits for one that spools.
            if first == "one" && policy.contains("spool") {
                broker.pass(STALL_MAX);
            }
            assert!(broker.is_read("p"), "{case}");
            broker.set_deaf("one", false);
            broker.set_deaf("quick", false);
        }
    }
}

fn cases() -> impl Iterator<Item = (&'static str, (usize, usize), bool)> {
    POLICIES.into_iter().flat_map(|policy| {
        let of_place =
            move |places| [false, true].map(|is_quick_first| (policy, places, is_quick_first));
        PLACES.into_iter().flat_map(of_place)
    })
}

/// Too much is on its way to both shards where a publisher is heard, and one of them has it wait for one who
/// does not read: it goes on once the other one has taken what it was sent.
#[test]
fn a_publisher_waits_for_all_shards_that_are_behind() {
    for (slow, quick) in [(1, 2), (2, 1)] {
        let mut broker = slow_and_quick(3, slow, (quick, "s"));
        let message = message();
        broker.holds = true;
        while broker.is_read("p") {
            broker.send("p", &message);
            broker.turn();
        }
        for shard in [slow, 0, quick, 0] {
            broker.turn();
            broker.carry_to(shard);
        }
        broker.pass(Duration::from_millis(2));
        assert!(broker.is_read("p"), "{slow} {quick}");
    }
}

/// A publisher is stalled when it has gone already: the next one in its slot is not.
#[test]
fn that_one_is_to_wait_does_not_reach_the_next_one_in_its_place() {
    for is_told_first in [false, true] {
        let mut broker = Broker::new(2);
        broker.connect("p", 0);
        broker.play("slow@1> SUB s 1");
        broker.set_deaf("slow", true);
        let message = message();
        broker.holds = true;
        for _ in 0..EGRESS_BYTES_MAX / 1000 + 3 {
            broker.send("p", &message);
        }
        broker.turn();
        broker.carry_to(1);
        if is_told_first {
            broker.turn();
        }
        broker.replace("p", "q");
        broker.holds = false;
        broker.settle_down();
        broker.set_deaf("slow", false);
        broker.settle_down();
        for _ in 0..3 {
            broker.say("q", "PUB s 1\r\nx\r\n");
            broker.pass(Duration::from_secs(5));
            assert!(broker.is_read("q"), "{is_told_first}");
        }
    }
}

#[test]
fn a_publisher_goes_on_when_those_who_were_behind_have_gone() {
    let mut broker = Broker::new(2);
    broker.connect("p", 0);
    broker.play("slow@1> SUB s 1");
    broker.set_deaf("slow", true);
    let message = message();
    while broker.is_read("p") {
        broker.say("p", &message);
    }
    broker.disconnect("slow");
    assert!(broker.is_read("p"));
    // A publisher in the place of one that waited does not wait itself.
    broker.play("next@1> SUB s 1");
    broker.set_deaf("next", true);
    while broker.is_read("p") {
        broker.say("p", &message);
    }
    broker.disconnect("p");
    broker.connect("r", 0);
    assert!(broker.is_read("r"));
    broker.play("r> PUB s 1|x");
}

#[test]
fn who_stores_by_transactions_waits_for_the_journal_too() {
    for shards in [1, 3] {
        let mut host = Host::new(shards);
        let client = host.client();
        host.declare(client, "q");
        host.send(client, 1, &Method::TxSelect {});
        host.settle_down();
        host.holds_jobs = true;
        let mut commits = 0;
        while host.wants_read(client) && commits < 60 {
            for _ in 0..4 {
                host.publish(client, "q", &[7; 10_000], false);
            }
            host.send(client, 1, &Method::TxCommit {});
            host.settle_down();
            commits += 1;
        }
        assert!((2..60).contains(&commits), "{shards} shards: {commits} transactions");
        assert_eq!(host.waits_for(client), Some(WaitsFor::Disk), "{shards} shards");
    }
}
