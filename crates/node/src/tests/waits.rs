//! Publishers of direct messages, all or some of whose listeners are behind, and those who store more than
//! the disk takes.

use super::broker::{Broker, DIRECT_BYTES_MAX, EGRESS_BYTES_MAX};
use super::host::Host;
use crate::WaitsFor;
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

/// A publisher on shard 0 sends to one who is behind and then to one who is not, wherever they are: it
/// waits for a moment at most. Without the latter it waits.
fn check_wait(slow: usize, quick: usize) {
    let mut broker = slow_and_quick(2, slow, (quick, "q"));
    let message = message();
    while broker.is_read("p") {
        broker.say("p", &message);
    }
    broker.pass(Duration::from_millis(2));
    assert!(!broker.is_read("p"), "{slow} {quick}: nobody else hears it");
    broker.set_deaf("slow", false);
    broker.set_deaf("slow", true);
    let many = EGRESS_BYTES_MAX / 1000 + 2;
    for _ in 0..6 {
        assert!(broker.is_read("p"), "{slow} {quick}");
        broker.say("p", &format!("{}PUB q 1\r\nx\r\n", message.repeat(many)));
        broker.pass(Duration::from_millis(2));
    }
    assert_eq!(broker.heard("quick").matches("MSG q").count(), 6, "{slow} {quick}");
    assert!(!broker.is_connected("slow"), "{slow} {quick}: its own bound");
}

#[test]
fn a_publisher_that_others_hear_waits_for_nobody_long() {
    for (slow, quick) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        check_wait(slow, quick);
    }
}

/// A publisher sends to one who reads on, and then to one who does not: it waits for a moment at most, the
/// first time too.
fn check_first_wait(slow: usize, quick: usize) {
    let mut broker = slow_and_quick(3, slow, (quick, "q"));
    let message = message();
    broker.play("p> PUB q 1|x");
    let mut moments = 0;
    for _ in 0..3 * EGRESS_BYTES_MAX / 1000 {
        broker.say("p", &message);
        if !broker.is_read("p") {
            moments += 1;
            broker.pass(Duration::from_millis(2));
        }
        assert!(broker.is_read("p"), "{slow} {quick}");
    }
    assert!(moments > 0, "{slow} {quick}");
}

#[test]
fn a_publisher_that_others_have_heard_waits_for_nobody_long() {
    for (slow, quick) in [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)] {
        check_first_wait(slow, quick);
    }
}

/// Two hear a publisher, each on a shard of its own. One does not read on, and too much is on its way to the
/// other one, which has had some before or nothing yet: the publisher waits for that one alone.
fn check_wait_of_two_shards(slow: usize, quick: usize, has_had_some: bool) {
    let mut broker = slow_and_quick(3, slow, (quick, "s"));
    let message = message();
    if has_had_some {
        for _ in 0..EGRESS_BYTES_MAX / 1000 + 3 {
            broker.say("p", &message);
        }
        assert!(broker.is_read("p"), "{slow} {quick}");
    }
    broker.holds = true;
    let mut sent = 0;
    while broker.is_read("p") && sent < 1_000 {
        broker.send("p", &message);
        for shard in [slow, 0] {
            broker.turn();
            broker.carry_to(shard);
        }
        sent += 1;
    }
    assert!(!broker.is_read("p"), "{slow} {quick}: too much is on its way");
    broker.holds = false;
    broker.turn();
    broker.pass(Duration::from_millis(2));
    assert!(broker.is_read("p"), "{slow} {quick}, {has_had_some}");
}

#[test]
fn a_publisher_waits_of_two_shards_for_the_one_that_takes_on() {
    for (slow, quick) in [(1, 2), (2, 1)] {
        for has_had_some in [false, true] {
            check_wait_of_two_shards(slow, quick, has_had_some);
        }
    }
}

/// What may become of messages that somebody does not take, and who hears `s` so.
const POLICIES: [&str; 4] = ["", "$LAGGARD.drop-new.", "$LAGGARD.drop-oldest.", "$LAGGARD.spool."];
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

/// Sends so many messages at a time, until the publisher waits or it is too many; says whether it waits.
fn send_until_it_waits(broker: &mut Broker, at_once: usize) -> bool {
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

/// The same where that one does not read and is far behind, while the other one has read everything.
fn with_one_far_behind(policy: &str, places: (usize, usize), is_quick_first: bool) -> Broker {
    let mut broker = with_policy(policy, places, is_quick_first);
    broker.set_deaf("one", true);
    assert!(!send_until_it_waits(&mut broker, 1), "{policy} {places:?}: the quick one reads");
    broker
}

/// Both are behind, and one of them never reads on: the publisher goes on once the other one does.
#[test]
fn a_publisher_whose_listeners_are_all_behind_waits_for_the_first_that_reads_on() {
    for (policy, places, is_quick_first) in cases() {
        let mut broker = with_policy(policy, places, is_quick_first);
        for (at_once, first) in [(1, "one"), (1, "quick"), (7, "one"), (7, "quick")] {
            broker.set_deaf("one", true);
            broker.set_deaf("quick", true);
            let case = format!("{policy} {places:?} {is_quick_first}, {at_once}, {first}");
            assert!(send_until_it_waits(&mut broker, at_once), "{case}");
            broker.set_deaf(first, false);
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

/// One never reads and is far behind. The other one is as much protected as if it were alone: the publisher
/// waits for it, and it is not disconnected.
#[test]
fn who_reads_on_is_waited_for_whoever_else_does_not() {
    for (policy, places, is_quick_first) in cases() {
        let mut broker = with_one_far_behind(policy, places, is_quick_first);
        for is_stalled in [false, true] {
            broker.set_deaf("quick", true);
            let waits = send_until_it_waits(&mut broker, 1);
            assert!(broker.is_connected("quick"), "{policy} {places:?}, {is_stalled}");
            assert!(waits, "{policy} {places:?}, {is_stalled}");
            broker.set_deaf("quick", false);
            // Nobody waits for the slow one any longer.
            for _ in 0..6 {
                broker.pass(Duration::from_millis(500));
            }
        }
    }
}

/// The same where that one has what it does not take on the disk, and reads a little.
#[test]
fn who_spools_and_reads_slowly_does_not_say_how_fast_others_are_to_be() {
    for places in PLACES {
        let mut broker = with_one_far_behind("$LAGGARD.spool.", places, true);
        broker.set_deaf("quick", true);
        let message = message();
        for _ in 0..100 {
            broker.take("one", EGRESS_BYTES_MAX / 24);
            if broker.is_read("p") {
                broker.say("p", &message);
            }
            broker.pass(Duration::from_millis(2));
        }
        assert!(broker.is_connected("quick"), "{places:?}");
    }
}

/// One was not waited for any longer, and the publisher waits for the other one: it goes on once that one
/// reads which took nothing for so long.
#[test]
fn who_was_not_waited_for_and_reads_on_lets_a_publisher_go_on() {
    for policy in ["$LAGGARD.drop-new.", "$LAGGARD.drop-oldest."] {
        for places in PLACES {
            let mut broker = with_one_far_behind(policy, places, false);
            broker.set_deaf("quick", true);
            assert!(send_until_it_waits(&mut broker, 1), "{policy} {places:?}");
            for _ in 0..3 {
                broker.pass(Duration::from_millis(500));
                broker.take("quick", 1);
            }
            assert!(!broker.is_read("p"), "{policy} {places:?}");
            broker.set_deaf("one", false);
            assert!(broker.is_read("p"), "{policy} {places:?}");
        }
    }
}

/// Two who do not read hear a publisher on subjects of their own, one after the other, and somebody else on
/// a third one: that one never waits for more than a moment, whether it hears little or much.
fn check_wait_for_neither((first, second): (usize, usize), quick: usize, messages: usize) {
    let case = format!("{first} {second} {quick}, {messages}");
    let mut broker = slow_and_quick(3, first, (quick, "q"));
    broker.play(&format!("other@{second}> SUB t 1"));
    broker.set_deaf("other", true);
    let to = |subject, count| message_to(subject).repeat(count);
    let many = EGRESS_BYTES_MAX / 1000 + 2;
    for round in 0..3 {
        for text in [to("q", messages), to("s", many), to("t", many)] {
            assert!(broker.is_read("p"), "{case}, {round}");
            broker.say("p", &text);
            broker.pass(Duration::from_millis(2));
        }
    }
    assert_eq!(broker.heard("quick").matches("MSG q").count(), 3 * messages, "{case}");
}

#[test]
fn who_hears_a_publisher_of_two_laggards_waits_for_neither() {
    for places in PLACES {
        for quick in [0, 1] {
            for messages in [1, 2 * EGRESS_BYTES_MAX / 1000] {
                check_wait_for_neither(places, quick, messages);
            }
        }
    }
}

/// One who does not read and one who does hear a publisher on subjects of their own, and both are behind: it
/// goes on once the latter reads.
#[test]
fn who_is_behind_in_the_same_moment_lets_a_publisher_go_on() {
    for (slow, quick) in PLACES {
        let mut broker = slow_and_quick(3, slow, (quick, "q"));
        broker.set_deaf("quick", true);
        let to_all =
            ["s", "q"].map(|to| message_to(to).repeat(EGRESS_BYTES_MAX / 1000 + 2)).concat();
        for _ in 0..2 {
            broker.say("p", &to_all);
            broker.pass(Duration::from_millis(2));
        }
        assert!(!broker.is_read("p"), "{slow} {quick}: both are behind");
        broker.set_deaf("quick", false);
        broker.pass(Duration::from_millis(2));
        assert!(broker.is_read("p"), "{slow} {quick}");
    }
}

/// One has what it hears on the disk, and the publisher waits for another one: it goes on once the first has
/// taken everything.
#[test]
fn who_has_taken_what_was_spooled_lets_a_publisher_go_on() {
    for places in PLACES {
        let mut broker = with_one_far_behind("$LAGGARD.spool.", places, false);
        broker.set_deaf("quick", true);
        assert!(send_until_it_waits(&mut broker, 1), "{places:?}");
        broker.set_deaf("one", false);
        assert!(broker.is_read("p"), "{places:?}");
    }
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

#[test]
fn who_heard_a_publisher_is_not_taken_to_hear_the_next_one_in_its_place() {
    for shard in [0, 1] {
        let mut broker = Broker::new(2);
        broker.connect("p", 0);
        broker.play(&format!("slow@{shard}> SUB s 1"));
        broker.play(&format!("quick@{shard}> SUB q 1"));
        broker.play("p> PUB q 1|x");
        broker.disconnect("p");
        broker.connect("r", 0);
        broker.set_deaf("slow", true);
        let message = message();
        while broker.is_read("r") {
            broker.say("r", &message);
        }
        broker.pass(Duration::from_millis(2));
        assert!(!broker.is_read("r"), "{shard}");
    }
}

/// A publisher is told to wait when it has gone already: the next one in its place does not.
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
