//! What a connection may ask for in one turn.

use super::broker::Broker;
use crate::SHARD_BATCH_BYTES;
use crate::shard::message::ShardBatch;
use angarium_engine::{ShardId, Time};

#[test]
fn a_thousand_subscriptions_at_once_take_many_turns_and_all_are_made() {
    let mut broker = Broker::new(1);
    for name in ["a", "b"] {
        broker.connect(name, 0);
    }
    broker.say("a", "CONNECT {\"verbose\":true,\"user\":\"user\",\"pass\":\"secret\"}\r\n");
    broker.heard("a");
    let mut asked: String =
        (0..1000).map(|number| format!("SUB s.{number} {number}\r\n")).collect();
    asked += "PUB s.999 2\r\nhi\r\n";
    broker.send("a", &asked);
    let mut turns = 0;
    let mut said = String::new();
    while broker.nodes[0].has_work() {
        assert!(!broker.is_read("a"), "what it says next would overtake what waits");
        // Another one is served in between.
        broker.send("b", "PING\r\n");
        broker.turn();
        assert_eq!(broker.heard("b"), "PONG\r\n");
        said += &broker.heard("a");
        turns += 1;
    }
    assert!((40..80).contains(&turns), "{turns}");
    assert!(broker.is_read("a"));
    let (answers, message) = said.split_at(1001 * "+OK\r\n".len());
    assert_eq!(answers, "+OK\r\n".repeat(1001));
    assert_eq!(message, "MSG s.999 999 2\r\nhi\r\n");
}

/// A client on shard 0 subscribes often to what another one publishes in one read; a third is there too.
#[track_caller]
fn check_many_hear(shards: usize, in_groups: bool) {
    const SUBSCRIPTIONS: usize = 200;
    const MESSAGES: usize = 300;
    let mut broker = Broker::new(shards);
    for (name, shard) in [("listener", 0), ("other", 0), ("publisher", shards - 1)] {
        broker.connect(name, shard);
    }
    let group = |number: usize| if in_groups { format!("g{number}") } else { String::new() };
    let subscribe = |number| format!("SUB s.* {} {number}\r\n", group(number));
    broker.say("listener", &(0..SUBSCRIPTIONS).map(subscribe).collect::<String>());
    let publish = |number| format!("PUB s.{} 3\r\n{number:03}\r\n", number / 50 % 2);
    broker.send("publisher", &(0..MESSAGES).map(publish).collect::<String>());
    let (mut turns, mut heard) = (0, String::new());
    while turns == 0 || broker.has_work() {
        broker.send("other", "PING\r\n");
        broker.turn();
        assert!(broker.heard("other").starts_with("PONG\r\n"));
        heard += &broker.heard("listener");
        turns += 1;
    }
    assert!((10..200).contains(&turns), "{turns} turns with {shards} shards");
    let mut bodies = vec![Vec::new(); SUBSCRIPTIONS];
    let mut lines = heard.lines();
    while let (Some(line), Some(body)) = (lines.next(), lines.next()) {
        let number: usize = line.split(' ').nth(2).unwrap().parse().unwrap();
        bodies[number].push(body.parse::<usize>().unwrap());
    }
    let is_all = |heard: &Vec<usize>| heard.iter().copied().eq(0..MESSAGES);
    assert!(bodies.iter().all(is_all), "not all, or not in order");
}

#[test]
fn what_many_hear_takes_many_turns_and_all_of_it_comes() {
    for (shards, in_groups) in [(1, false), (1, true), (2, false), (2, true)] {
        check_many_hear(shards, in_groups);
    }
}

/// Publishes messages of `sizes` in reads of `read_bytes`, between which the connection keeps no more than
/// `kept_max`.
#[track_caller]
fn check_cut(sizes: impl Iterator<Item = usize>, read_bytes: usize, kept_max: usize) {
    let mut broker = Broker::new(1);
    for name in ["publisher", "listener"] {
        broker.connect(name, 0);
    }
    broker.say("listener", "SUB s 1\r\n");
    for name in ["publisher", "listener"] {
        broker.heard(name);
    }
    let (mut said, mut expected) = (String::new(), String::new());
    for (number, size) in sizes.enumerate() {
        let body = format!("{number:0width$}", width = size.max(8));
        said += &format!("PUB s {}\r\n{body}\r\n", body.len());
        expected += &format!("MSG s 1 {}\r\n{body}\r\n", body.len());
    }
    let mut found = String::new();
    for read in said.as_bytes().chunks(read_bytes) {
        broker.send("publisher", str::from_utf8(read).expect("bodies are digits"));
        let kept = broker.kept("publisher");
        assert!(kept <= kept_max, "{kept} bytes kept");
        broker.settle_down();
        found += &broker.heard("listener");
    }
    assert!(found == expected, "reads of {read_bytes}");
}

#[test]
fn messages_cut_anywhere_are_completed_without_keeping_what_is_whole() {
    let small = || (0..2_000).map(|number| number * 7 % 1_500);
    for read_bytes in [1_000, 4_096, 50_000] {
        check_cut(small(), read_bytes, 8_192);
    }
    check_cut((0..60).map(|number| number * 5), 1, 8_192);
    for read_bytes in [10, 1_448, 20_000] {
        check_cut([100, 60_000, 5, 30_000, 1_500, 0, 9].into_iter(), read_bytes, 1 << 18);
    }
}

#[test]
fn what_is_much_for_another_shard_goes_a_part_at_a_time() {
    const MESSAGES: usize = 20_000;
    let mut broker = Broker::new(2);
    for (name, shard) in [("l", 1), ("p", 0)] {
        broker.connect(name, shard);
    }
    broker.say("l", "SUB s.* 1\r\n");
    // Each to another subject than the last, so that a batch is not more than the listener may have unsent.
    let message = |at| format!("PUB s.{} 8\r\n{at:08}\r\n", at % 2);
    let all: Vec<String> = (0..MESSAGES).map(message).collect();
    for read in all.chunks(1_000) {
        broker.send("p", &read.concat());
    }
    let mut batches = Vec::new();
    while let Some((to, batch)) = broker.nodes[0].next_batch() {
        assert_eq!(to, ShardId(1));
        assert!(batch.weight() < (64 << 10) + 100, "{} bytes", batch.weight());
        batches.push(batch);
    }
    assert!(batches.len() > 4, "{} batches", batches.len());
    for batch in batches {
        broker.nodes[1].arrived(Time(2_000_000_000), ShardId(0), batch);
        broker.settle_down();
    }
    let heard = broker.heard("l");
    let numbers: Vec<usize> =
        heard.lines().skip(1).step_by(2).map(|line| line.parse().unwrap()).collect();
    assert!(numbers.into_iter().eq(0..MESSAGES), "{} came", heard.lines().count() / 2);
}

#[test]
fn who_subscribes_much_keeps_another_shard_for_a_moment_at_a_time() {
    let mut broker = Broker::new(2);
    broker.connect("l", 0);
    let all: String = (0..3_000).map(|number| format!("SUB s.{number} {number}\r\n")).collect();
    broker.holds = true;
    broker.send("l", &all);
    while broker.nodes[0].has_work() {
        broker.turn();
    }
    let mut batches = Vec::new();
    while let Some((_, _, batch)) = broker.batches.pop_front() {
        batches.push(batch);
    }
    let most = batches.iter().map(|batch| batch.news).max().unwrap();
    assert!(most < 520, "{most} at once");
    let weights: usize = batches.iter().map(ShardBatch::weight).sum();
    assert!(weights > 6 * SHARD_BATCH_BYTES, "no more than six turns: {weights}");
    for batch in batches {
        broker.nodes[1].arrived(Time(2_000_000_000), ShardId(0), batch);
    }
    broker.holds = false;
    broker.settle_down();
    broker.connect("p", 1);
    broker.say("p", "PUB s.2999 2\r\nhi\r\n");
    assert!(broker.heard("l").ends_with("MSG s.2999 2999 2\r\nhi\r\n"));
}
