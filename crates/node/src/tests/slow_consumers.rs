//! NATS clients that do not keep up, and what becomes of their messages.

use super::administer;
use super::direct_host::{CONNECT, Got, TestHost};
use super::host::EGRESS_BYTES_MAX;
use crate::{Options, SlowConsumerInfo};
use angarium_engine::{Bound, Quota, Request, SlowConsumerPolicy};
use angarium_journal::Storage;
use angarium_protocol::Peer;
use angarium_protocol::nats::codec::ServerOp;
use std::time::Duration;

/// What is to be unsent at most.
pub(super) const UNSENT_MAX: u64 = 4 * EGRESS_BYTES_MAX as u64;

fn everybody(slow_consumer_policy: SlowConsumerPolicy) -> impl FnOnce(&mut Options) {
    move |options| options.quota.slow_consumer_policy = Some(slow_consumer_policy)
}

/// A host with a client that takes nothing, subscribed to `subject`, and a publisher.
pub(super) fn behind(
    slow_consumer_policy: SlowConsumerPolicy,
    subject: &str,
) -> (TestHost, usize, usize) {
    let mut host = TestHost::new(everybody(slow_consumer_policy));
    let (slow, publisher) = (host.connect(""), host.connect(""));
    host.send(slow, &format!("SUB {subject} 1\r\n"));
    host.takes(slow, 0);
    (host, slow, publisher)
}

#[track_caller]
pub(super) fn in_order(numbers: &[u64]) {
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
}

#[test]
fn one_that_is_to_be_disconnected_is() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Disconnect, "s");
    host.publish(publisher, "s", 0..200);
    assert!(!host.is_connected(slow));
}

#[test]
fn one_that_is_given_up_is_noted_once_and_gets_nothing_more() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Disconnect, "s");
    let slot = host.clients[slow].slot.unwrap();
    let message = format!("PUB s 1000\r\n{:1000}\r\n", "");
    for _ in 0..40 {
        host.send(publisher, &message.repeat(5));
    }
    let unsent = host.node.unsent(slot);
    assert!((UNSENT_MAX as usize..UNSENT_MAX as usize + 2_000).contains(&unsent), "{unsent}");
    // There is room for some again, but it has missed others.
    host.node.sent(slot, 10_000);
    host.send(publisher, &message.repeat(5));
    assert_eq!(host.node.unsent(slot), unsent - 10_000);
    assert_eq!(host.node.effects.given_up, [slot]);
    host.node.end_turn(host.now);
    let listed = host.node.connection(host.now, slot).unwrap();
    assert_eq!(listed.info.state, "closing");
    host.turns();
    assert!(!host.is_connected(slow));
}

#[test]
fn drop_new_keeps_the_oldest() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::DropNew, "s");
    host.publish(publisher, "s", 0..200);
    host.takes(slow, usize::MAX);
    host.publish(publisher, "s", 200..201);
    let got = host.got(slow, "1");
    let kept = got.numbers.len() as u64 - 1;
    assert_eq!(kept + got.missed, 200);
    assert!(kept * 1_000 <= UNSENT_MAX + 1_000, "{kept}");
    assert_eq!(got.numbers[..kept as usize], (0..kept).collect::<Vec<u64>>());
    assert_eq!(got.numbers.last(), Some(&200));
}

#[test]
fn drop_oldest_keeps_the_newest_and_what_was_begun() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::DropOldest, "s");
    host.publish(publisher, "s", 0..3);
    host.clients[slow].takes = 1_500;
    host.turn();
    host.takes(slow, 0);
    host.publish(publisher, "s", 3..200);
    assert!(host.node.outgoing(host.clients[slow].slot.unwrap()).len() <= 70_000);
    host.takes(slow, usize::MAX);
    host.publish(publisher, "s", 200..201);
    let got = host.got(slow, "1");
    in_order(&got.numbers);
    assert_eq!(got.numbers[0], 0);
    assert_eq!(got.numbers[got.numbers.len() - 20..], (181..201).collect::<Vec<u64>>());
    assert_eq!(got.numbers.len() as u64 + got.missed, 201);
    assert!(got.missed > 100, "{got:?}");
    assert_eq!(host.node.engine().counters().missed, got.missed, "each is counted once");
}

#[test]
fn a_pong_stays_where_it_was() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::DropOldest, "s");
    host.publish(publisher, "s", 0..10);
    host.send(slow, "PING\r\n");
    host.publish(publisher, "s", 10..200);
    host.takes(slow, usize::MAX);
    let text = String::from_utf8_lossy(&host.clients[slow].input).into_owned();
    assert!(text.contains("PONG\r\n"));
    in_order(&host.got(slow, "1").numbers);
}

#[test]
fn spooled_messages_come_in_order_and_all_of_them() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    host.publish(publisher, "s", 0..4_000);
    assert!(host.node.outgoing(host.clients[slow].slot.unwrap()).len() < 70_000);
    assert!(!host.spill.list().unwrap().is_empty());
    assert_eq!(host.node.spill().stats().slow_consumers, 1);
    host.takes(slow, 5_000);
    host.publish(publisher, "s", 4_000..4_100);
    host.takes(slow, usize::MAX);
    host.publish(publisher, "s", 4_100..4_200);
    let got = host.got(slow, "1");
    assert_eq!(got, Got { numbers: (0..4_200).collect(), missed: 0 });
    let stats = host.node.spill().stats();
    assert_eq!((stats.slow_consumers, stats.bytes), (0, 0));
    assert!(host.spill.list().unwrap().is_empty());
}

#[test]
fn what_many_wait_for_is_stored_once() {
    let mut host = TestHost::new(everybody(SlowConsumerPolicy::Spool));
    let publisher = host.connect("");
    let slow: Vec<usize> = (0..10).map(|_| host.connect("")).collect();
    for client in &slow {
        host.send(*client, "SUB a.* 1\r\nSUB a.b 2\r\n");
        host.takes(*client, 0);
    }
    host.publish(publisher, "a.b", 0..2_000);
    let used = host.spill.used();
    assert!(used < 4 << 20, "{used} bytes for 2 MB");
    for client in &slow {
        host.takes(*client, usize::MAX);
        for sid in ["1", "2"] {
            let expected = Got { numbers: (0..2_000).collect(), missed: 0 };
            assert_eq!(host.got(*client, sid), expected, "{client} {sid}");
        }
    }
    assert!(host.spill.list().unwrap().is_empty());
}

#[test]
fn what_comes_at_once_is_stored_once_for_all_who_wait() {
    let mut host = TestHost::new(|options| {
        everybody(SlowConsumerPolicy::Spool)(options);
        options.limits.handed_at_once = 4 << 20;
    });
    let publisher = host.connect("");
    let slow: Vec<usize> = (0..10).map(|_| host.connect("")).collect();
    for client in &slow {
        host.send(*client, "SUB s 1\r\n");
        host.takes(*client, 0);
    }
    let publish = |number| format!("PUB s 1000\r\n{number:0>1000}\r\n");
    for first in (0..2_000_u64).step_by(10) {
        let read: String = (first..first + 10).map(publish).collect();
        host.send(publisher, &read);
        host.turns();
    }
    let stored = host.node.spill().stats().messages;
    assert!((1_500..=2_000).contains(&stored), "{stored} records");
    for client in &slow {
        host.takes(*client, usize::MAX);
        let expected = Got { numbers: (0..2_000).collect(), missed: 0 };
        assert_eq!(host.got(*client, "1"), expected, "{client}");
    }
}

#[test]
fn beyond_the_spools_limit_the_oldest_are_missed_and_told_of() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    host.publish(publisher, "s", 0..16_000);
    assert!(host.spill.used() <= 10 << 20, "{}", host.spill.used());
    host.takes(slow, usize::MAX);
    host.publish(publisher, "s", 16_000..16_001);
    let got = host.got(slow, "1");
    in_order(&got.numbers);
    assert_eq!(got.numbers.len() as u64 + got.missed, 16_001);
    assert!(got.missed > 3_000 && got.numbers.contains(&15_999), "{}", got.missed);
    assert_eq!(host.node.engine().counters().missed, got.missed, "each is counted once");
}

#[test]
fn a_spool_without_a_disk_is_told_of() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    host.spill.set_capacity(Some(0));
    host.publish(publisher, "s", 0..4_000);
    host.takes(slow, usize::MAX);
    host.publish(publisher, "s", 4_000..4_001);
    let got = host.got(slow, "1");
    in_order(&got.numbers);
    assert_eq!(got.numbers.len() as u64 + got.missed, 4_001);
    assert!(host.node.spill().stats().failures > 0);
}

#[test]
fn who_drains_gets_what_waits_before_the_answer() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    host.publish(publisher, "s", 0..3_000);
    // Enough is read that it is listened to again, and most still waits.
    host.clients[slow].takes = 60_000;
    host.turn();
    host.takes(slow, 0);
    // While it listens, a question is answered at once: a client may ask to see whether we live.
    host.send(slow, "PING\r\n");
    host.send(slow, "UNSUB 1\r\nPING\r\n");
    host.publish(publisher, "s", 3_000..3_100);
    host.takes(slow, usize::MAX);
    let text = String::from_utf8_lossy(&host.clients[slow].input).into_owned();
    let ends: Vec<usize> = text.match_indices("PONG\r\n").map(|(at, _)| at).collect();
    assert_eq!(ends.len(), 2);
    assert!(ends[0] < text.len() / 2);
    assert!(text.ends_with("PONG\r\n"), "nothing comes after the answer");
    assert!(host.got(slow, "1").numbers.into_iter().eq(0..3_000));
    host.send(slow, "PING\r\n");
    host.turns();
    assert!(host.clients[slow].input.ends_with(b"PONG\r\nPONG\r\n"));
}

#[test]
fn who_asks_much_while_it_drains_waits_and_is_answered_each_time() {
    const READS: usize = 40;
    const PINGS: usize = 1_000;
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    host.publish(publisher, "s", 0..3_000);
    host.clients[slow].takes = 60_000;
    host.turn();
    host.takes(slow, 0);
    // The first answer has INFO behind it.
    host.send(slow, "PING\r\n");
    host.send(slow, "UNSUB 1\r\n");
    let slot = host.clients[slow].slot.unwrap();
    let mut reads = 0;
    while reads < READS && host.node.wants_read(slot) {
        host.send(slow, &"PING\r\n".repeat(PINGS));
        host.turns();
        reads += 1;
    }
    assert!(reads < 4, "{reads} reads were taken");
    host.pass(Duration::from_secs(600));
    host.takes(slow, usize::MAX);
    assert!(host.got(slow, "1").numbers.into_iter().eq(0..3_000));
    let pongs = "PONG\r\n".repeat(reads * PINGS);
    assert!(host.clients[slow].input.ends_with(pongs.as_bytes()));
    assert!(host.node.wants_read(slot));
}

#[test]
fn one_that_is_told_to_go_gets_no_more_from_the_spool() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    host.publish(publisher, "s", 0..2_000);
    host.send(slow, "NONSENSE\r\n");
    host.takes(slow, usize::MAX);
    assert!(!host.is_connected(slow));
    assert!(host.got(slow, "1").numbers.len() < 100);
    assert_eq!(host.node.spill().stats().slow_consumers, 0);
}

#[test]
fn a_new_login_gets_nothing_of_the_one_before() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    host.publish(publisher, "s", 0..2_000);
    // It began without CONNECT: the first one keeps its subscriptions.
    host.send(slow, &format!("{CONNECT}}}\r\n{CONNECT}}}\r\n"));
    host.takes(slow, usize::MAX);
    assert!(host.is_connected(slow));
    assert!(host.got(slow, "1").numbers.len() < 100);
    assert_eq!(host.node.spill().stats().slow_consumers, 0);
}

#[test]
fn one_that_goes_frees_its_spool() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    host.publish(publisher, "s", 0..4_000);
    host.holds_jobs = true;
    host.publish(publisher, "s", 4_000..6_000);
    let slot = host.clients[slow].slot.take().unwrap();
    host.node.disconnected(host.now, slot);
    host.holds_jobs = false;
    host.turns();
    assert!(host.spill.list().unwrap().is_empty());
    assert_eq!(host.node.spill().stats().bytes, 0);
}

#[test]
fn a_subscription_has_its_own_policy() {
    let mut host = TestHost::new(everybody(SlowConsumerPolicy::DropNew));
    let (slow, publisher) = (host.connect(""), host.connect(""));
    host.send(
        slow,
        "SUB s 1\r\nSUB $SLOW_CONSUMER.spool.s 2\r\nSUB $SLOW_CONSUMER.drop-oldest.s 3\r\n",
    );
    host.takes(slow, 0);
    host.publish(publisher, "s", 0..3_000);
    host.takes(slow, usize::MAX);
    host.publish(publisher, "s", 3_000..3_001);
    let [new, spool, oldest] = ["1", "2", "3"].map(|sid| host.got(slow, sid));
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
    let mut host = TestHost::new(everybody(SlowConsumerPolicy::DropNew));
    let (slow, publisher) = (host.connect(""), host.connect(""));
    host.send(slow, "SUB $SLOW_CONSUMER.disconnect.s 2\r\n");
    host.takes(slow, 0);
    host.publish(publisher, "s", 0..3_000);
    assert!(!host.is_connected(slow));
}

#[test]
fn the_nearest_word_counts() {
    let disconnect = |options: &mut Options| {
        options.quota = Quota::default()
            .with_slow_consumer_policy(SlowConsumerPolicy::Disconnect)
            .with(Bound::UnsentBytes, UNSENT_MAX);
    };
    // What the listener, the user and CONNECT say, and whether the client stays.
    for (listener, user, own, stays) in [
        (None, None, "", false),
        (Some(SlowConsumerPolicy::DropNew), None, "", true),
        (Some(SlowConsumerPolicy::DropNew), Some(SlowConsumerPolicy::Disconnect), "", false),
        (None, Some(SlowConsumerPolicy::DropOldest), "", true),
        (None, Some(SlowConsumerPolicy::DropNew), r#","slow_consumer_policy":"disconnect""#, false),
        (None, None, r#","slow_consumer_policy":"spool""#, true),
    ] {
        let mut host = TestHost::new(disconnect);
        if let Some(slow_consumer_policy) = user {
            let (user, quota) = (
                "ann".to_owned(),
                Quota::default().with_slow_consumer_policy(slow_consumer_policy),
            );
            let set = Request::SetQuota { user, quota };
            administer(&mut host.node, host.now, "/", set);
        }
        let peer = Peer { slow_consumer_policy: listener, ..Peer::default() };
        let slow = host.connect_from(peer, &format!(r#","user":"ann","pass":""{own}"#));
        let publisher = host.connect("");
        host.send(slow, "SUB s 1\r\n");
        host.takes(slow, 0);
        host.publish(publisher, "s", 0..200);
        assert_eq!(host.is_connected(slow), stays, "{listener:?} {user:?} {own}");
    }
}

#[test]
fn a_changed_quota_holds_for_who_is_connected() {
    let mut host = TestHost::new(everybody(SlowConsumerPolicy::Disconnect));
    let slow = host.connect(r#","user":"ann","pass":"""#);
    let publisher = host.connect("");
    host.send(slow, "SUB s 1\r\n");
    host.takes(slow, 0);
    let quota = Quota::default()
        .with_slow_consumer_policy(SlowConsumerPolicy::DropNew)
        .with(Bound::UnsentBytes, 10_000);
    let set = Request::SetQuota { user: "ann".to_owned(), quota };
    administer(&mut host.node, host.now, "/", set);
    host.publish(publisher, "s", 0..200);
    assert!(host.is_connected(slow));
    assert!(host.node.outgoing(host.clients[slow].slot.unwrap()).len() < 12_000);
}

#[test]
fn a_stalled_spooler_holds_nobody_up() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Spool, "s");
    host.publish(publisher, "s", 0..200);
    assert!(host.node.wants_read(host.clients[publisher].slot.unwrap()));
    host.pass(Duration::from_secs(10));
    assert!(host.is_connected(slow));
}

#[test]
fn a_publisher_beyond_its_rate_waits_and_loses_nothing() {
    for by_user in [false, true] {
        let bound = if by_user { Bound::Messages } else { Bound::ConnectionMessages };
        let quota = Quota::default().with(bound, 100);
        let mut host = TestHost::new(|_| {});
        let set = Request::SetQuota { user: "ann".to_owned(), quota };
        administer(&mut host.node, host.now, "/", set);
        let login = r#","user":"ann","pass":"""#;
        let (subscriber, other) = (host.connect(""), host.connect(""));
        let publishers = [host.connect(login), host.connect(login)];
        host.send(subscriber, "SUB a 1\r\nSUB b 2\r\nSUB c 3\r\n");
        let batch = |subject: &str| -> String {
            (0..60).map(|number| format!("PUB {subject} 5\r\n{number:05}\r\n")).collect()
        };
        host.send(publishers[0], &batch("a"));
        host.send(publishers[1], &batch("b"));
        host.send(other, &batch("c"));
        host.turns();
        let got =
            |host: &TestHost| ["1", "2", "3"].map(|sid| host.got(subscriber, sid).numbers.len());
        assert_eq!(got(&host)[2], 60, "others do not notice");
        // What came at once was taken; more of it is not read.
        host.send(publishers[0], &batch("a"));
        host.send(publishers[1], &batch("b"));
        host.turns();
        let wants =
            publishers.map(|publisher| host.node.wants_read(host.clients[publisher].slot.unwrap()));
        assert_eq!(wants, [false, false]);
        let [a, b, _] = got(&host);
        let expected = if by_user { 60..=70 } else { 120..=190 };
        assert!(expected.contains(&(a + b)), "{a} {b}");
        host.pass(Duration::from_secs(4));
        assert_eq!(got(&host), [120, 120, 60], "by user: {by_user}");
        assert!(host.node.stats().throttled >= 2);
        let quota = Quota::default();
        let set = Request::SetQuota { user: "ann".to_owned(), quota };
        host.send(publishers[0], &batch("a").repeat(10));
        host.turns();
        administer(&mut host.node, host.now, "/", set);
        host.turns();
        assert_eq!(got(&host)[0], 720, "a bound that is taken away holds nobody up");
    }
}

#[test]
fn an_episode_names_the_policy_by_which_messages_went() {
    for (prefix, policy) in [
        ("", SlowConsumerPolicy::DropNew),
        ("$SLOW_CONSUMER.drop-oldest.", SlowConsumerPolicy::DropOldest),
        ("$SLOW_CONSUMER.spool.", SlowConsumerPolicy::Spool),
        ("$SLOW_CONSUMER.disconnect.", SlowConsumerPolicy::Disconnect),
    ] {
        let mut host = TestHost::new(everybody(SlowConsumerPolicy::DropNew));
        let (slow, publisher) = (host.connect(""), host.connect(""));
        host.send(slow, &format!("SUB {prefix}s 1\r\n"));
        host.takes(slow, 0);
        host.publish(publisher, "s", 0..3_000);
        host.takes(slow, usize::MAX);
        host.pass(Duration::from_secs(2));
        let events: Vec<_> = std::iter::from_fn(|| host.node.next_slow_consumer_event()).collect();
        assert_eq!([0, 1].map(|at| events[at].policy), [policy; 2], "{events:?}");
    }
}

/// What a client heard on a subscription, subject and body.
fn advisories(host: &TestHost, client: usize) -> Vec<(String, String)> {
    let mut heard = Vec::new();
    let mut rest = &host.clients[client].input[..];
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
fn listed(host: &TestHost, client: usize) -> Option<SlowConsumerInfo> {
    let slot = host.clients[client].slot.unwrap();
    let row = host.node.connection(host.now, slot).unwrap();
    let unsent = host.node.unsent(slot) as u64;
    assert_eq!((row.figures.unsent_bytes, row.figures.traffic.subjects), (unsent, 1));
    row.lag
}

#[test]
fn an_episode_is_told_when_it_begins_and_when_it_ends() {
    for (policy, count, expected) in [
        (SlowConsumerPolicy::DropNew, 200, ["\"missed\":", "\"spooled\":0,"]),
        (SlowConsumerPolicy::DropOldest, 200, ["\"missed\":", "\"spooled\":0,"]),
        (SlowConsumerPolicy::Spool, 4_000, ["\"missed\":0,", "\"spooled\":"]),
    ] {
        let (mut host, slow, publisher) = behind(policy, "s");
        let observer = host.connect("");
        host.send(observer, "SUB $SYS.ADVISORY.SLOW_CONSUMER.* 1\r\n");
        host.publish(publisher, "s", 0..count);
        let heard = advisories(&host, observer);
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert_eq!(heard[0].0, "$SYS.ADVISORY.SLOW_CONSUMER.BEGAN");
        host.pass(Duration::from_secs(2));
        assert_eq!(advisories(&host, observer).len(), 1, "it goes on");
        assert_eq!(host.node.slow_consumer_episodes(), (1, 1));
        let row = listed(&host, slow).unwrap();
        assert_eq!((row.policy, row.missed + row.spooled > 50), (policy, true), "{row:?}");
        assert_eq!(listed(&host, observer), None);
        host.takes(slow, usize::MAX);
        host.pass(Duration::from_secs(2));
        let heard = advisories(&host, observer);
        assert_eq!(heard.len(), 2, "{heard:?}");
        let (subject, body) = &heard[1];
        assert_eq!(subject, "$SYS.ADVISORY.SLOW_CONSUMER.ENDED");
        let policy_field = format!("\"policy\":\"{}\"", policy.name());
        for part in expected.into_iter().chain([policy_field.as_str(), "\"disconnected\":false"]) {
            assert!(body.contains(part), "{part} in {body}");
        }
        let events: Vec<_> = std::iter::from_fn(|| host.node.next_slow_consumer_event()).collect();
        assert_eq!(events.iter().map(|e| e.has_begun).collect::<Vec<_>>(), [true, false]);
        assert!(events[1].missed + events[1].spooled > 50, "{events:?}");
        assert_eq!(host.node.slow_consumer_episodes(), (0, 1));
        assert_eq!(listed(&host, slow), None);
        host.takes(slow, 0);
        host.publish(publisher, "s", count..2 * count);
        assert_eq!(host.node.slow_consumer_episodes(), (1, 2));
    }
}

#[test]
fn who_is_disconnected_is_told_of_in_its_virtual_host_alone() {
    let (mut host, slow, publisher) = behind(SlowConsumerPolicy::Disconnect, "s");
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
        administer(&mut host.node, host.now, "/", request);
    }
    let observer = host.connect("");
    let stranger = host.connect(r#","user":"other:ann","pass":"""#);
    for client in [observer, stranger] {
        host.send(client, "SUB $SYS.ADVISORY.> 1\r\n");
    }
    host.publish(publisher, "s", 0..200);
    assert!(!host.is_connected(slow));
    let heard = advisories(&host, observer);
    let subjects: Vec<&str> = heard.iter().map(|(subject, _)| subject.as_str()).collect();
    assert_eq!(
        subjects,
        ["$SYS.ADVISORY.SLOW_CONSUMER.BEGAN", "$SYS.ADVISORY.SLOW_CONSUMER.ENDED"]
    );
    assert!(heard[1].1.contains("\"disconnected\":true"), "{heard:?}");
    assert_eq!(advisories(&host, stranger), []);
    assert_eq!(host.node.slow_consumer_episodes(), (0, 1));
}
