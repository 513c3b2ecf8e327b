//! What comes in one read is heard as if each message had come by itself, however many of them are handed on
//! at once.

use super::broker::{Broker, EGRESS_BYTES_MAX};
use super::draw_from;
use crate::shard::links::UNDERWAY_BYTES_MAX;
use std::collections::BTreeMap;
use std::time::Duration;

/// What clients listen to: the same and different names, groups, ends, policies, several at one client.
const LISTENERS: [(&str, &str); 10] = [
    ("spools", "SUB $SLOW_CONSUMER.spool.a 1\r\nSUB b 2\r\n"),
    ("mixed", "SUB a 1\r\nSUB $SLOW_CONSUMER.drop-oldest.a 2\r\n"),
    ("alone", "SUB a 1\r\n"),
    ("alike", "SUB a 1\r\n"),
    ("other", "SUB a 1\r\nSUB b 2\r\n"),
    ("twice", "SUB a 7\r\nSUB a 8\r\n"),
    ("ends", "SUB a 1\r\nUNSUB 1 5\r\nSUB b 2\r\nUNSUB 2 33\r\n"),
    ("drops", "SUB $SLOW_CONSUMER.drop-oldest.a 1\r\nSUB b 2\r\n"),
    ("groups", "SUB b g 1\r\nSUB c g 2\r\n"),
    ("more", "SUB c 1\r\n"),
];

/// What a publisher says: messages in rows to one subject or another, mostly alike.
fn said(seed: u64) -> Vec<String> {
    let mut draw = draw_from(seed);
    let (mut subject, mut size) = ("a", 10);
    let say = |number: u64| {
        if draw(20) == 0 {
            subject = ["a", "b", "c", "none"][draw(4) as usize];
        }
        if draw(10) == 0 {
            size = draw(300) as usize;
        }
        let body = format!("{number:0size$}");
        let bytes = body.len();
        match draw(30) {
            0 => "PING\r\n".to_owned(),
            1 => format!("PUB {subject} reply {bytes}\r\n{body}\r\n"),
            2 => format!("pub\t{subject}  {bytes}\r\n{body}\r\n"),
            3 => format!("HPUB {subject} 18 {}\r\nNATS/1.0\r\nk: v\r\n\r\n{body}\r\n", bytes + 18),
            _ => format!("PUB {subject} {bytes}\r\n{body}\r\n"),
        }
    };
    (0..150).map(say).collect()
}

/// What each client receives by each subscription when a publisher sends `said`, in one read or in many; and
/// what the engines have counted.
fn heard(
    said: &[String],
    (shards, overlap): (usize, bool),
    at_once: bool,
) -> (BTreeMap<(String, String), String>, [u64; 4]) {
    let mut broker = Broker::new(shards);
    for (at, (name, subscriptions)) in LISTENERS.into_iter().enumerate() {
        broker.connect(name, at % shards);
        broker.say(name, subscriptions);
    }
    if overlap {
        broker.say("more", "SUB * 2\r\n");
    }
    broker.connect("publisher", 0);
    if at_once {
        broker.say("publisher", &said.concat());
    } else {
        said.iter().for_each(|one| broker.say("publisher", one));
    }
    let mut heard: BTreeMap<(String, String), String> = BTreeMap::new();
    for (name, _) in LISTENERS.into_iter().chain([("publisher", "")]) {
        let text = broker.heard(name);
        for message in text.split("\r\nMSG ").flat_map(|text| text.split("\r\nHMSG ")) {
            let message = message.trim_start_matches("MSG ");
            let sid = message.split(' ').nth(1).unwrap_or_default().to_owned();
            *heard.entry((name.to_owned(), sid)).or_default() += &format!("{message}|");
        }
    }
    let mut counted = [0; 4];
    for node in &broker.nodes {
        let counters = node.engine().counters();
        let of = [
            counters.emitted,
            counters.direct_delivered,
            counters.missed,
            counters.direct_undelivered,
        ];
        counted.iter_mut().zip(of).for_each(|(sum, more)| *sum += more);
    }
    (heard, counted)
}

#[test]
fn what_comes_at_once_is_heard_as_what_comes_one_by_one() {
    for seed in 0..40 {
        let said = said(seed);
        for broker in [(1, false), (1, true), (2, false), (3, false)] {
            let (expected, expected_counted) = heard(&said, broker, false);
            let (found, counted) = heard(&said, broker, true);
            for (whose, expected) in &expected {
                let found = found.get(whose).map(String::as_str);
                assert_eq!(found, Some(expected.as_str()), "seed {seed}, {broker:?}, {whose:?}");
            }
            assert_eq!(counted, expected_counted, "seed {seed}, {broker:?}");
        }
    }
}

/// Messages of `bytes` bytes to `s`, in one read.
fn row(messages: usize, bytes: usize) -> String {
    format!("PUB s {bytes}\r\n{:x<bytes$}\r\n", "").repeat(messages)
}

/// A publisher, and who listens to `s` on another shard.
fn listener_elsewhere() -> Broker {
    let mut broker = Broker::new(2);
    broker.connect("publisher", 0);
    broker.connect("listener", 1);
    broker.say("listener", "SUB s 1\r\n");
    broker
}

#[test]
fn what_crosses_at_once_is_taken_off_what_is_underway() {
    let mut broker = listener_elsewhere();
    let mut heard = 0;
    for _ in 0..3 * UNDERWAY_BYTES_MAX / (10 * 1_000) {
        broker.say("publisher", &row(10, 1_000));
        heard += broker.heard("listener").lines().count() as u64 / 2;
    }
    assert_eq!(heard, 3 * UNDERWAY_BYTES_MAX / 1_000 / 10 * 10);
    assert!(broker.is_read("publisher"));
}

#[test]
fn a_publisher_of_rows_waits_for_who_is_behind_on_another_shard() {
    let mut broker = listener_elsewhere();
    broker.set_deaf("listener", true);
    // The first one of a read finds room, and so do more than one; the next read finds out.
    for _ in 0..2 {
        broker.say("publisher", &row(1 + EGRESS_BYTES_MAX / 1_000 * 5 / 8, 1_000));
        assert!(broker.is_read("publisher"));
    }
    broker.say("publisher", &row(1, 1_000));
    assert!(!broker.is_read("publisher"));
    broker.set_deaf("listener", false);
    assert!(broker.is_read("publisher"));
}

#[test]
fn a_listener_on_another_shard_has_room_for_what_is_on_its_way_when_its_publisher_stops() {
    let mut broker = listener_elsewhere();
    broker.set_deaf("listener", true);
    let mut sent = 0;
    while broker.is_read("publisher") && broker.is_connected("listener") {
        // The listener's shard has not had a turn yet when the next of these is read.
        broker.play("hold");
        while broker.is_read("publisher") && sent < UNDERWAY_BYTES_MAX {
            broker.say("publisher", &row(4, 1_000));
            sent += 4 * 1_000;
        }
        broker.play("carry");
    }
    broker.set_deaf("listener", false);
    broker.pass(Duration::from_secs(1));
    assert_eq!(broker.heard("listener").lines().count() as u64 / 2 * 1_000, sent);
}
