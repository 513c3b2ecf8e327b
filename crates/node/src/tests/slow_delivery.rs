//! Those who are behind: what waits for them is handed out a part at a time, and when they have it nothing is
//! left of that.

use super::direct_host::TestHost;
use angarium_engine::{Bound, Quota, Request, SlowConsumerPolicy};
use std::time::Duration;

/// As many as hear the same messages, and take none before they wait on the disk.
fn spooling(count: usize, messages: usize) -> (TestHost, Vec<usize>) {
    let mut host = TestHost::new(|options| {
        options.outbox_bytes_max = 256 << 10;
        options.quota = Quota::default().with_slow_consumer_policy(SlowConsumerPolicy::Spool);
        options.spill.bytes_max = 1 << 30;
    });
    let publisher = host.connect("");
    let slow: Vec<usize> = (0..count).map(|_| host.connect("")).collect();
    for client in &slow {
        host.send(*client, "SUB s 1\r\n");
        host.takes(*client, 0);
    }
    let message = format!("PUB s 10000\r\n{:10000}\r\n", "");
    for _ in 0..messages {
        host.send(publisher, &message);
        host.turns();
    }
    (host, slow)
}

#[test]
fn a_piece_that_comes_from_the_disk_is_handed_out_in_many_turns() {
    let (mut host, slow) = spooling(40, 4_500);
    let slots: Vec<_> = slow.iter().map(|client| host.clients[*client].slot.unwrap()).collect();
    let mut most = 0;
    for _ in 0..60 {
        // All of them take what there is, and wait for the same piece.
        for slot in &slots {
            while let count @ 1.. = host.node.outgoing(*slot).len() {
                host.node.sent(*slot, count);
            }
        }
        host.node.end_turn(host.now);
        let jobs: Vec<_> = std::iter::from_fn(|| host.node.spill_mut().next_job()).collect();
        for job in jobs {
            host.node.spill_mut().done(host.spill_store.run(job, &host.spill));
        }
        loop {
            let unsent = || slots.iter().map(|slot| host.node.unsent(*slot)).sum::<usize>();
            let before = unsent();
            host.node.end_turn(host.now);
            let unsent = || slots.iter().map(|slot| host.node.unsent(*slot)).sum::<usize>();
            most = most.max(unsent() - before);
            if !host.node.has_work() {
                break;
            }
        }
        host.node.take_dirty(&mut Vec::new());
    }
    assert!((300_000..700_000).contains(&most), "{most} bytes in one context");
}

/// A host, and in it one that listens to `s`, with that bound and policy, and takes nothing; and one who
/// publishes.
fn stalled(most: u64, slow_consumer_policy: SlowConsumerPolicy) -> (TestHost, usize, usize) {
    stalled_on("SUB s 1\r\n", most, slow_consumer_policy)
}

/// The same with other subscriptions.
fn stalled_on(
    subscriptions: &str,
    most: u64,
    slow_consumer_policy: SlowConsumerPolicy,
) -> (TestHost, usize, usize) {
    let mut host = TestHost::new(|options| {
        options.quota = Quota::default().with(Bound::UnsentBytes, most);
        options.quota.slow_consumer_policy = Some(slow_consumer_policy);
    });
    let (slow, publisher) = (host.connect(""), host.connect(""));
    host.send(slow, subscriptions);
    host.takes(slow, 0);
    (host, slow, publisher)
}

#[test]
fn one_that_is_behind_is_heard() {
    let most = 40 * super::host::EGRESS_BYTES_MAX as u64;
    for slow_consumer_policy in [
        SlowConsumerPolicy::DropNew,
        SlowConsumerPolicy::DropOldest,
        SlowConsumerPolicy::Disconnect,
        SlowConsumerPolicy::Spool,
    ] {
        let (mut host, slow, publisher) = stalled(most, slow_consumer_policy);
        let other = host.connect("");
        host.send(other, "SUB other 1\r\n");
        let slot = host.clients[slow].slot.unwrap();
        let mut number = 0;
        while host.node.unsent(slot) < 8 * super::host::EGRESS_BYTES_MAX && number < 3_000 {
            host.publish(publisher, "s", number..number + 10);
            number += 10;
        }
        host.send(slow, "PUB other 2\r\nme\r\nUNSUB 1\r\n");
        host.turns();
        let text = String::from_utf8_lossy(&host.clients[other].input).into_owned();
        assert!(text.ends_with("MSG other 1 2\r\nme\r\n"), "{slow_consumer_policy:?}: {text}");
        assert_eq!(host.node.engine().subjects_subscribed_to(slot), 0, "{slow_consumer_policy:?}");
    }
}

#[test]
fn one_that_takes_nothing_is_given_up_for_its_silence_and_one_that_takes_a_little_is_there() {
    for takes in [0, 1] {
        let (mut host, slow, publisher) = stalled(1 << 20, SlowConsumerPolicy::DropNew);
        host.publish(publisher, "s", 0..2_000);
        let slot = host.clients[slow].slot.unwrap();
        for _ in 0..8 * 60 {
            if takes > 0 {
                host.node.sent(slot, takes);
            }
            host.pass(Duration::from_secs(1));
        }
        let reason = host.node.end_reason(slot);
        let expected = (takes == 0).then_some("Stale Connection");
        assert_eq!(reason, expected, "takes {takes} bytes a second");
    }
}

#[test]
fn nobody_waits_for_one_that_has_been_silent_for_two_seconds() {
    for takes in [0, 1] {
        let (mut host, slow, publisher) = stalled(8 << 20, SlowConsumerPolicy::Disconnect);
        host.publish(publisher, "s", 0..2_000);
        let slot = host.clients[slow].slot.unwrap();
        let publisher_slot = host.clients[publisher].slot.unwrap();
        for look in 0..10 {
            host.publish(publisher, "s", 0..1);
            let is_stalled = !host.node.wants_read(publisher_slot);
            assert_eq!(is_stalled, look < 5 || takes > 0, "{takes} in look {look}");
            if takes > 0 {
                host.node.sent(slot, takes);
            }
            host.pass(Duration::from_millis(500));
        }
    }
}

#[test]
fn one_that_was_choked_goes_on_when_its_oldest_messages_are_dropped() {
    let (mut host, slow, publisher) = stalled(1 << 20, SlowConsumerPolicy::DropOldest);
    let slot = host.clients[slow].slot.unwrap();
    let mut number = 0;
    let mut publish = |host: &mut TestHost| {
        host.publish(publisher, "s", number..number + 1);
        number += 1;
        assert!(number < 20_000);
    };
    while host.node.unsent(slot) < 900_000 {
        publish(&mut host);
    }
    while !host.node.is_choked(slot) {
        host.send(slow, &"PING\r\n".repeat(1_000));
    }
    // The host had read it just before.
    host.send(slow, "SUB t 2\r\n");
    while host.node.is_choked(slot) {
        publish(&mut host);
    }
    host.takes(slow, usize::MAX);
    host.pass(Duration::from_secs(5));
    let count = host.node.engine().subjects_subscribed_to(slot);
    assert_eq!(count, 2, "it is read from: {}", host.node.wants_read(slot));
}

#[test]
fn one_that_has_caught_up_keeps_no_room_for_what_it_was_behind() {
    let (mut host, slow, publisher) = stalled(8 << 20, SlowConsumerPolicy::DropOldest);
    host.publish(publisher, "s", 0..9_000);
    let slot = host.clients[slow].slot.unwrap();
    let kept = |host: &TestHost| host.node.effects.outbox[slot.0 as usize].room_and_copied().0;
    assert!(kept(&host) > 7 << 20);
    host.takes(slow, usize::MAX);
    host.publish(publisher, "s", 0..1);
    assert_eq!(host.node.unsent(slot), 0);
    assert!(kept(&host) < 80 << 10, "{} bytes", kept(&host));
}

/// What one client takes of memory that takes nothing while much is published in messages of `bytes`, and how
/// many bytes are copied within its output for one read of its publisher at most.
fn room_and_copied(bytes: usize, subscriptions: &str) -> (usize, usize) {
    let (mut host, slow, publisher) =
        stalled_on(subscriptions, 2 << 20, SlowConsumerPolicy::DropOldest);
    let slot = host.clients[slow].slot.unwrap();
    let read = format!("PUB s {bytes}\r\n{:bytes$}\r\n", "").repeat((16 << 10) / (bytes + 14));
    let (mut room_max, mut copied_max, mut before) = (0, 0, 0);
    for _ in 0..6 * (2 << 20) / read.len() {
        host.send(publisher, &read);
        host.turns();
        let (room, copied) = host.node.effects.outbox[slot.0 as usize].room_and_copied();
        room_max = room_max.max(room);
        copied_max = copied_max.max(copied - std::mem::replace(&mut before, copied));
    }
    assert!(host.node.engine().counters().missed > 0);
    (room_max, copied_max)
}

#[test]
fn one_that_drops_its_oldest_takes_little_more_than_its_bound_and_copies_little() {
    for (bytes, subscriptions) in [
        (1, "SUB s 1\r\n"),
        (1, "SUB s 1\r\nSUB s 2\r\nSUB * 3\r\n"),
        (1_000, "SUB s 1\r\n"),
        (1_000, "SUB s 1\r\nSUB s 2\r\n"),
        (8_000, "SUB s 1\r\n"),
    ] {
        let (room, copied) = room_and_copied(bytes, subscriptions);
        assert!(room < (2 << 20) * 115 / 100, "{bytes}: {room} bytes");
        assert!(copied < 256 << 10, "{bytes}: {copied} bytes were copied");
    }
}

#[test]
fn a_message_that_may_be_dropped_moves_nothing_of_what_waits_before_it() {
    let subscriptions = "SUB s 1\r\nSUB $SLOW_CONSUMER.drop-oldest.u 2\r\n";
    let (mut host, slow, publisher) =
        stalled_on(subscriptions, 8 << 20, SlowConsumerPolicy::DropNew);
    host.publish(publisher, "s", 0..7_000);
    host.publish(publisher, "u", 7_000..7_001);
    let slot = host.clients[slow].slot.unwrap();
    let (_, copied) = host.node.effects.outbox[slot.0 as usize].room_and_copied();
    assert!(copied < 1 << 20, "{copied} bytes were copied");
    // Each that comes goes to the place of an older one, however much of what may not go is between them.
    host.publish(publisher, "s", 0..2_000);
    host.publish(publisher, "u", 7_001..7_100);
    host.takes(slow, usize::MAX);
    host.publish(publisher, "u", 7_100..7_101);
    let got = host.got(slow, "2");
    assert_eq!(got.numbers.len() as u64 + got.missed, 101);
}

#[test]
fn a_higher_rate_holds_for_those_that_wait_already() {
    for bound in [Bound::Bytes, Bound::ConnectionBytes] {
        let mut host = TestHost::new(|_| {});
        let client = host.connect("");
        let set = |host: &mut TestHost, rate: u64| {
            let quota = Quota::default().with(bound, rate);
            let user = host
                .node
                .connections_in(host.now, 0..usize::MAX)
                .next()
                .unwrap()
                .info
                .user
                .to_owned();
            super::administer(&mut host.node, host.now, "/", Request::SetQuota { user, quota });
            host.turns();
        };
        set(&mut host, 1);
        host.send(client, &"PUB s 0\r\n\r\n".repeat(300));
        host.turns();
        let slot = host.clients[client].slot.unwrap();
        assert!(!host.node.wants_read(slot));
        set(&mut host, 1_000_000);
        host.pass(Duration::from_secs(1));
        assert!(host.node.wants_read(slot), "{bound:?}");
    }
}
