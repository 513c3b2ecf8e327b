//! NATS clients that do not keep up, and what becomes of their messages.

use super::administer;
use super::host::EGRESS_BYTES_MAX;
use super::takers::{CONNECT, Got, World};
use crate::{LagInfo, Options};
use angarium_engine::{Bound, Quota, Request, SlowConsumerPolicy};
use angarium_journal::Storage;
use angarium_protocol::Peer;
use angarium_protocol::nats::codec::ServerOp;
use std::time::Duration;

/// What is to be unsent at most.
const UNSENT_MAX: u64 = 4 * EGRESS_BYTES_MAX as u64;

fn everybody(slow_consumer_policy: SlowConsumerPolicy) -> impl FnOnce(&mut Options) {
    move |options| options.quota.slow_consumer_policy = Some(laggard)
}

/// A world with a client that takes nothing, subscribed to `subject`, and a publisher.
fn behind(slow_consumer_policy: SlowConsumerPolicy, subject: &str) -> (World, usize, usize) {
    let mut world = World::new(everybody(laggard));
    let (slow, publisher) = (world.connect(""), world.connect(""));
    world.send(slow, &format!("SUB {subject} 1\r\n"));
    world.takes(slow, 0);
    (world, slow, publisher)
}

#[track_caller]
fn in_order(numbers: &[u64]) {
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
}

#[test]
fn one_that_is_to_be_disconnected_is() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::Disconnect, "s");
    world.publish(publisher, "s", 0..200);
    assert!(!world.is_connected(slow));
}

#[test]
fn one_that_is_given_up_is_noted_once_and_gets_nothing_more() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::Disconnect, "s");
    let slot = world.clients[slow].slot.unwrap();
    let message = format!("PUB s 1000\r\n{:1000}\r\n", "");
    for _ in 0..40 {
        world.send(publisher, &message.repeat(5));
    }
    let unsent = world.node.unsent(slot);
    assert!((UNSENT_MAX as usize..UNSENT_MAX as usize + 2_000).contains(&unsent), "{unsent}");
    // There is room for some again, but it has missed others.
    world.node.sent(slot, 10_000);
    world.send(publisher, &message.repeat(5));
    assert_eq!(world.node.unsent(slot), unsent - 10_000);
    assert_eq!(world.node.world.laggards, [slot]);
    world.node.end_turn(world.now);
    let listed = world.node.connection(world.now, slot).unwrap();
    assert_eq!(listed.session.state, "closing");
    world.turns();
    assert!(!world.is_connected(slow));
}

#[test]
fn drop_new_keeps_the_oldest() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::DropNew, "s");
    world.publish(publisher, "s", 0..200);
    world.takes(slow, usize::MAX);
    world.publish(publisher, "s", 200..201);
    let got = world.got(slow, "1");
    let kept = got.numbers.len() as u64 - 1;
    assert_eq!(kept + got.missed, 200);
    assert!(kept * 1_000 <= UNSENT_MAX + 1_000, "{kept}");
    assert_eq!(got.numbers[..kept as usize], (0..kept).collect::<Vec<u64>>());
    assert_eq!(got.numbers.last(), Some(&200));
}

#[test]
fn drop_oldest_keeps_the_newest_and_what_was_begun() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::DropOldest, "s");
    world.publish(publisher, "s", 0..3);
    world.clients[slow].takes = 1_500;
    world.turn();
    world.takes(slow, 0);
    world.publish(publisher, "s", 3..200);
    assert!(world.node.outgoing(world.clients[slow].slot.unwrap()).len() <= 70_000);
    world.takes(slow, usize::MAX);
    world.publish(publisher, "s", 200..201);
    let got = world.got(slow, "1");
    in_order(&got.numbers);
    assert_eq!(got.numbers[0], 0);
    assert_eq!(got.numbers[got.numbers.len() - 20..], (181..201).collect::<Vec<u64>>());
    assert_eq!(got.numbers.len() as u64 + got.missed, 201);
    assert!(got.missed > 100, "{got:?}");
    assert_eq!(world.node.engine().counters().missed, got.missed, "each is counted once");
}

#[test]
fn a_pong_stays_where_it_was() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::DropOldest, "s");
    world.publish(publisher, "s", 0..10);
    world.send(slow, "PING\r\n");
    world.publish(publisher, "s", 10..200);
    world.takes(slow, usize::MAX);
    let text = String::from_utf8_lossy(&world.clients[slow].input).into_owned();
    assert!(text.contains("PONG\r\n"));
    in_order(&world.got(slow, "1").numbers);
}

#[test]
fn spooled_messages_come_in_order_and_all_of_them() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    world.publish(publisher, "s", 0..4_000);
    assert!(world.node.outgoing(world.clients[slow].slot.unwrap()).len() < 70_000);
    assert!(!world.spill.list().unwrap().is_empty());
    assert_eq!(world.node.spill_stats().laggards, 1);
    world.takes(slow, 5_000);
    world.publish(publisher, "s", 4_000..4_100);
    world.takes(slow, usize::MAX);
    world.publish(publisher, "s", 4_100..4_200);
    let got = world.got(slow, "1");
    assert_eq!(got, Got { numbers: (0..4_200).collect(), missed: 0 });
    let stats = world.node.spill_stats();
    assert_eq!((stats.laggards, stats.bytes), (0, 0));
    assert!(world.spill.list().unwrap().is_empty());
}

#[test]
fn what_many_wait_for_is_stored_once() {
    let mut world = World::new(everybody(SlowConsumerPolicy::Spool));
    let publisher = world.connect("");
    let slow: Vec<usize> = (0..10).map(|_| world.connect("")).collect();
    for client in &slow {
        world.send(*client, "SUB a.* 1\r\nSUB a.b 2\r\n");
        world.takes(*client, 0);
    }
    world.publish(publisher, "a.b", 0..2_000);
    let used = world.spill.used();
    assert!(used < 4 << 20, "{used} bytes for 2 MB");
    for client in &slow {
        world.takes(*client, usize::MAX);
        for sid in ["1", "2"] {
            let expected = Got { numbers: (0..2_000).collect(), missed: 0 };
            assert_eq!(world.got(*client, sid), expected, "{client} {sid}");
        }
    }
    assert!(world.spill.list().unwrap().is_empty());
}

#[test]
fn what_comes_at_once_is_stored_once_for_all_who_wait() {
    let mut world = World::new(|options| {
        everybody(SlowConsumerPolicy::Spool)(options);
        options.limits.handed_at_once = 4 << 20;
    });
    let publisher = world.connect("");
    let slow: Vec<usize> = (0..10).map(|_| world.connect("")).collect();
    for client in &slow {
        world.send(*client, "SUB s 1\r\n");
        world.takes(*client, 0);
    }
    let publish = |number| format!("PUB s 1000\r\n{number:0>1000}\r\n");
    for first in (0..2_000_u64).step_by(10) {
        let read: String = (first..first + 10).map(publish).collect();
        world.send(publisher, &read);
        world.turns();
    }
    let stored = world.node.spill_stats().messages;
    assert!((1_500..=2_000).contains(&stored), "{stored} records");
    for client in &slow {
        world.takes(*client, usize::MAX);
        let expected = Got { numbers: (0..2_000).collect(), missed: 0 };
        assert_eq!(world.got(*client, "1"), expected, "{client}");
    }
}

#[test]
fn beyond_the_spools_limit_the_oldest_are_missed_and_told_of() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    world.publish(publisher, "s", 0..16_000);
    assert!(world.spill.used() <= 10 << 20, "{}", world.spill.used());
    world.takes(slow, usize::MAX);
    world.publish(publisher, "s", 16_000..16_001);
    let got = world.got(slow, "1");
    in_order(&got.numbers);
    assert_eq!(got.numbers.len() as u64 + got.missed, 16_001);
    assert!(got.missed > 3_000 && got.numbers.contains(&15_999), "{}", got.missed);
    assert_eq!(world.node.engine().counters().missed, got.missed, "each is counted once");
}

#[test]
fn a_spool_without_a_disk_is_told_of() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    world.spill.set_capacity(Some(0));
    world.publish(publisher, "s", 0..4_000);
    world.takes(slow, usize::MAX);
    world.publish(publisher, "s", 4_000..4_001);
    let got = world.got(slow, "1");
    in_order(&got.numbers);
    assert_eq!(got.numbers.len() as u64 + got.missed, 4_001);
    assert!(world.node.spill_stats().failures > 0);
}

#[test]
fn who_drains_gets_what_waits_before_the_answer() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    world.publish(publisher, "s", 0..3_000);
    // Enough is read that it is listened to again, and most still waits.
    world.clients[slow].takes = 60_000;
    world.turn();
    world.takes(slow, 0);
    // While it listens, a question is answered at once: a client may ask to see whether we live.
    world.send(slow, "PING\r\n");
    world.send(slow, "UNSUB 1\r\nPING\r\n");
    world.publish(publisher, "s", 3_000..3_100);
    world.takes(slow, usize::MAX);
    let text = String::from_utf8_lossy(&world.clients[slow].input).into_owned();
    let ends: Vec<usize> = text.match_indices("PONG\r\n").map(|(at, _)| at).collect();
    assert_eq!(ends.len(), 2);
    assert!(ends[0] < text.len() / 2);
    assert!(text.ends_with("PONG\r\n"), "nothing comes after the answer");
    assert!(world.got(slow, "1").numbers.into_iter().eq(0..3_000));
    world.send(slow, "PING\r\n");
    world.turns();
    assert!(world.clients[slow].input.ends_with(b"PONG\r\nPONG\r\n"));
}

#[test]
fn who_asks_much_while_it_drains_waits_and_is_answered_each_time() {
    const READS: usize = 40;
    const PINGS: usize = 1_000;
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    world.publish(publisher, "s", 0..3_000);
    world.clients[slow].takes = 60_000;
    world.turn();
    world.takes(slow, 0);
    // The first answer has INFO behind it.
    world.send(slow, "PING\r\n");
    world.send(slow, "UNSUB 1\r\n");
    let slot = world.clients[slow].slot.unwrap();
    let mut reads = 0;
    while reads < READS && world.node.wants_read(slot) {
        world.send(slow, &"PING\r\n".repeat(PINGS));
        world.turns();
        reads += 1;
    }
    assert!(reads < 4, "{reads} reads were taken");
    world.pass(Duration::from_secs(600));
    world.takes(slow, usize::MAX);
    assert!(world.got(slow, "1").numbers.into_iter().eq(0..3_000));
    let pongs = "PONG\r\n".repeat(reads * PINGS);
    assert!(world.clients[slow].input.ends_with(pongs.as_bytes()));
    assert!(world.node.wants_read(slot));
}

#[test]
fn one_that_is_told_to_go_gets_no_more_from_the_spool() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    world.publish(publisher, "s", 0..2_000);
    world.send(slow, "NONSENSE\r\n");
    world.takes(slow, usize::MAX);
    assert!(!world.is_connected(slow));
    assert!(world.got(slow, "1").numbers.len() < 100);
    assert_eq!(world.node.spill_stats().laggards, 0);
}

#[test]
fn a_new_login_gets_nothing_of_the_one_before() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    world.publish(publisher, "s", 0..2_000);
    world.send(slow, &format!("{CONNECT}}}\r\n"));
    world.takes(slow, usize::MAX);
    assert!(world.is_connected(slow));
    assert!(world.got(slow, "1").numbers.len() < 100);
    assert_eq!(world.node.spill_stats().laggards, 0);
}

#[test]
fn one_that_goes_frees_its_spool() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    world.publish(publisher, "s", 0..4_000);
    world.holds_jobs = true;
    world.publish(publisher, "s", 4_000..6_000);
    let slot = world.clients[slow].slot.take().unwrap();
    world.node.disconnected(world.now, slot);
    world.holds_jobs = false;
    world.turns();
    assert!(world.spill.list().unwrap().is_empty());
    assert_eq!(world.node.spill_stats().bytes, 0);
}

#[test]
fn a_subscription_has_its_own_policy() {
    let mut world = World::new(everybody(SlowConsumerPolicy::DropNew));
    let (slow, publisher) = (world.connect(""), world.connect(""));
    world.send(slow, "SUB s 1\r\nSUB $LAGGARD.spool.s 2\r\nSUB $LAGGARD.drop-oldest.s 3\r\n");
    world.takes(slow, 0);
    world.publish(publisher, "s", 0..3_000);
    world.takes(slow, usize::MAX);
    world.publish(publisher, "s", 3_000..3_001);
    let [new, spool, oldest] = ["1", "2", "3"].map(|sid| world.got(slow, sid));
    assert_eq!(spool, Got { numbers: (0..3_001).collect(), missed: 0 });
    for got in [&new, &oldest] {
        in_order(&got.numbers);
        assert_eq!(got.numbers.len() as u64 + got.missed, 3_001);
    }
    assert_eq!(new.numbers[..10], (0..10).collect::<Vec<u64>>());
    assert_eq!(oldest.numbers[oldest.numbers.len() - 2..], [2_999, 3_000]);
}

#[test]
fn a_subscription_that_wants_to_be_disconnected_is() {
    let mut world = World::new(everybody(SlowConsumerPolicy::DropNew));
    let (slow, publisher) = (world.connect(""), world.connect(""));
    world.send(slow, "SUB $LAGGARD.disconnect.s 2\r\n");
    world.takes(slow, 0);
    world.publish(publisher, "s", 0..3_000);
    assert!(!world.is_connected(slow));
}

#[test]
fn the_nearest_word_counts() {
    let disconnect = |options: &mut Options| {
        options.quota = Quota::default()
            .with_laggard(SlowConsumerPolicy::Disconnect)
            .with(Bound::UnsentBytes, UNSENT_MAX);
    };
    // What the listener, the user and CONNECT say, and whether the client stays.
    for (listener, user, own, stays) in [
        (None, None, "", false),
        (Some(SlowConsumerPolicy::DropNew), None, "", true),
        (Some(SlowConsumerPolicy::DropNew), Some(SlowConsumerPolicy::Disconnect), "", false),
        (None, Some(SlowConsumerPolicy::DropOldest), "", true),
        (None, Some(SlowConsumerPolicy::DropNew), r#","laggard":"disconnect""#, false),
        (None, None, r#","laggard":"spool""#, true),
    ] {
        let mut world = World::new(disconnect);
        if let Some(laggard) = user {
            let (user, quota) = ("ann".to_owned(), Quota::default().with_laggard(laggard));
            let set = Request::SetQuota { user, quota };
            administer(&mut world.node, world.now, "/", set);
        }
        let peer = Peer { slow_consumer_policy: listener, ..Peer::default() };
        let slow = world.connect_from(peer, &format!(r#","user":"ann","pass":""{own}"#));
        let publisher = world.connect("");
        world.send(slow, "SUB s 1\r\n");
        world.takes(slow, 0);
        world.publish(publisher, "s", 0..200);
        assert_eq!(world.is_connected(slow), stays, "{listener:?} {user:?} {own}");
    }
}

#[test]
fn a_changed_quota_holds_for_who_is_connected() {
    let mut world = World::new(everybody(SlowConsumerPolicy::Disconnect));
    let slow = world.connect(r#","user":"ann","pass":"""#);
    let publisher = world.connect("");
    world.send(slow, "SUB s 1\r\n");
    world.takes(slow, 0);
    let quota =
        Quota::default().with_laggard(SlowConsumerPolicy::DropNew).with(Bound::UnsentBytes, 10_000);
    let set = Request::SetQuota { user: "ann".to_owned(), quota };
    administer(&mut world.node, world.now, "/", set);
    world.publish(publisher, "s", 0..200);
    assert!(world.is_connected(slow));
    assert!(world.node.outgoing(world.clients[slow].slot.unwrap()).len() < 12_000);
}

#[test]
fn a_stalled_spooler_holds_nobody_up() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    world.publish(publisher, "s", 0..200);
    assert!(world.node.wants_read(world.clients[publisher].slot.unwrap()));
    world.pass(Duration::from_secs(10));
    assert!(world.is_connected(slow));
}

#[test]
fn a_publisher_beyond_its_rate_waits_and_loses_nothing() {
    for by_user in [false, true] {
        let bound = if by_user { Bound::Messages } else { Bound::ConnectionMessages };
        let quota = Quota::default().with(bound, 100);
        let mut world = World::new(|_| {});
        let set = Request::SetQuota { user: "ann".to_owned(), quota };
        administer(&mut world.node, world.now, "/", set);
        let login = r#","user":"ann","pass":"""#;
        let (subscriber, other) = (world.connect(""), world.connect(""));
        let publishers = [world.connect(login), world.connect(login)];
        world.send(subscriber, "SUB a 1\r\nSUB b 2\r\nSUB c 3\r\n");
        let batch = |subject: &str| -> String {
            (0..60).map(|number| format!("PUB {subject} 5\r\n{number:05}\r\n")).collect()
        };
        world.send(publishers[0], &batch("a"));
        world.send(publishers[1], &batch("b"));
        world.send(other, &batch("c"));
        world.turns();
        let got =
            |world: &World| ["1", "2", "3"].map(|sid| world.got(subscriber, sid).numbers.len());
        assert_eq!(got(&world)[2], 60, "others do not notice");
        // What came at once was taken; more of it is not read.
        world.send(publishers[0], &batch("a"));
        world.send(publishers[1], &batch("b"));
        world.turns();
        let wants = publishers
            .map(|publisher| world.node.wants_read(world.clients[publisher].slot.unwrap()));
        assert_eq!(wants, [false, false]);
        let [a, b, _] = got(&world);
        let expected = if by_user { 60..=70 } else { 120..=190 };
        assert!(expected.contains(&(a + b)), "{a} {b}");
        world.pass(Duration::from_secs(4));
        assert_eq!(got(&world), [120, 120, 60], "by user: {by_user}");
        assert!(world.node.stats().throttled >= 2);
        let quota = Quota::default();
        let set = Request::SetQuota { user: "ann".to_owned(), quota };
        world.send(publishers[0], &batch("a").repeat(10));
        world.turns();
        administer(&mut world.node, world.now, "/", set);
        world.turns();
        assert_eq!(got(&world)[0], 720, "a bound that is taken away holds nobody up");
    }
}

#[test]
fn an_episode_names_the_policy_by_which_messages_went() {
    for (prefix, policy) in [
        ("", SlowConsumerPolicy::DropNew),
        ("$LAGGARD.drop-oldest.", SlowConsumerPolicy::DropOldest),
        ("$LAGGARD.spool.", SlowConsumerPolicy::Spool),
        ("$LAGGARD.disconnect.", SlowConsumerPolicy::Disconnect),
    ] {
        let mut world = World::new(everybody(SlowConsumerPolicy::DropNew));
        let (slow, publisher) = (world.connect(""), world.connect(""));
        world.send(slow, &format!("SUB {prefix}s 1\r\n"));
        world.takes(slow, 0);
        world.publish(publisher, "s", 0..3_000);
        world.takes(slow, usize::MAX);
        world.pass(Duration::from_secs(2));
        let events: Vec<_> = std::iter::from_fn(|| world.node.next_lag_event()).collect();
        assert_eq!([0, 1].map(|at| events[at].policy), [policy; 2], "{events:?}");
    }
}

/// What a client heard on a subscription, subject and body.
fn advisories(world: &World, client: usize) -> Vec<(String, String)> {
    let mut heard = Vec::new();
    let mut rest = &world.clients[client].input[..];
    while let Some((op, used)) = ServerOp::decode(rest, usize::MAX).unwrap() {
        rest = &rest[used..];
        if let ServerOp::Message(message) = op {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            heard.push((text(message.subject), text(message.body)));
        }
    }
    heard
}

/// What a listing says of a client's lag.
fn listed(world: &World, client: usize) -> Option<LagInfo> {
    let slot = world.clients[client].slot.unwrap();
    let row = world.node.connection(world.now, slot).unwrap();
    assert_eq!((row.unsent_bytes, row.subjects), (world.node.unsent(slot) as u64, 1));
    row.lag
}

#[test]
fn an_episode_is_told_when_it_begins_and_when_it_ends() {
    for (policy, count, expected) in [
        (SlowConsumerPolicy::DropNew, 200, ["\"missed\":", "\"spooled\":0,"]),
        (SlowConsumerPolicy::DropOldest, 200, ["\"missed\":", "\"spooled\":0,"]),
        (SlowConsumerPolicy::Spool, 4_000, ["\"missed\":0,", "\"spooled\":"]),
    ] {
        let (mut world, slow, publisher) = behind(policy, "s");
        let observer = world.connect("");
        world.send(observer, "SUB $SYS.ADVISORY.LAGGARD.* 1\r\n");
        world.publish(publisher, "s", 0..count);
        let heard = advisories(&world, observer);
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert_eq!(heard[0].0, "$SYS.ADVISORY.LAGGARD.BEGAN");
        world.pass(Duration::from_secs(2));
        assert_eq!(advisories(&world, observer).len(), 1, "it goes on");
        assert_eq!(world.node.lag_episodes(), (1, 1));
        let row = listed(&world, slow).unwrap();
        assert_eq!((row.policy, row.missed + row.spooled > 50), (policy, true), "{row:?}");
        assert_eq!(listed(&world, observer), None);
        world.takes(slow, usize::MAX);
        world.pass(Duration::from_secs(2));
        let heard = advisories(&world, observer);
        assert_eq!(heard.len(), 2, "{heard:?}");
        let (subject, body) = &heard[1];
        assert_eq!(subject, "$SYS.ADVISORY.LAGGARD.ENDED");
        let policy_field = format!("\"policy\":\"{}\"", policy.name());
        for part in expected.into_iter().chain([policy_field.as_str(), "\"disconnected\":false"]) {
            assert!(body.contains(part), "{part} in {body}");
        }
        let events: Vec<_> = std::iter::from_fn(|| world.node.next_lag_event()).collect();
        assert_eq!(events.iter().map(|e| e.has_begun).collect::<Vec<_>>(), [true, false]);
        assert!(events[1].missed + events[1].spooled > 50, "{events:?}");
        assert_eq!(world.node.lag_episodes(), (0, 1));
        assert_eq!(listed(&world, slow), None);
        world.takes(slow, 0);
        world.publish(publisher, "s", count..2 * count);
        assert_eq!(world.node.lag_episodes(), (1, 2));
    }
}

#[test]
fn who_is_disconnected_is_told_of_in_its_virtual_host_alone() {
    let (mut world, slow, publisher) = behind(SlowConsumerPolicy::Disconnect, "s");
    for request in [
        Request::CreateVhost { name: "other".to_owned() },
        Request::SetPermissions {
            user: "ann".to_owned(),
            vhost: "other".to_owned(),
            configure: String::new(),
            write: String::new(),
            read: ".*".to_owned(),
        },
    ] {
        administer(&mut world.node, world.now, "/", request);
    }
    let observer = world.connect("");
    let stranger = world.connect(r#","user":"other:ann","pass":"""#);
    for client in [observer, stranger] {
        world.send(client, "SUB $SYS.ADVISORY.> 1\r\n");
    }
    world.publish(publisher, "s", 0..200);
    assert!(!world.is_connected(slow));
    let heard = advisories(&world, observer);
    let subjects: Vec<&str> = heard.iter().map(|(subject, _)| subject.as_str()).collect();
    assert_eq!(subjects, ["$SYS.ADVISORY.LAGGARD.BEGAN", "$SYS.ADVISORY.LAGGARD.ENDED"]);
    assert!(heard[1].1.contains("\"disconnected\":true"), "{heard:?}");
    assert_eq!(advisories(&world, stranger), []);
    assert_eq!(world.node.lag_episodes(), (0, 1));
}
