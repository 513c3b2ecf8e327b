//! Every block of 4 KiB of a broker's small store is damaged in turn, pages of its long queue's index
//! among them, and every file removed: that costs exactly the messages whose records lay there.
//! Checkpoints that are lost with the beginning of the log are rebuilt.

use super::host::{Host, Said};
use super::small_journal;
use crate::{Options, rebuild};
use angarium_engine::limits::Limits;
use angarium_engine::{Request, ShardId};
use angarium_journal::{FaultyStorage, Remains, Storage, check, repair};
use std::collections::BTreeSet;

const BLOCK_BYTES: usize = 4096;
/// The kind of a page's record.
const PAGE: u8 = 5;
/// Messages published, and of these how many are acknowledged.
const MESSAGES: usize = 200;
const SETTLED: usize = 40;

type MakeOptions = fn(usize, usize) -> Options;

/// Long queues with few messages.
fn options(shard: usize, shards: usize) -> Options {
    let limits = Limits {
        resident_bytes_max: 8 << 10,
        queue_resident_bytes_max: 4 << 10,
        page_entries: 16,
        ..Limits::default()
    };
    let local_users = vec!["user".to_owned()];
    let (journal, shard) = (small_journal(), ShardId(shard as u8));
    Options { limits, journal, local_users, shard, shards, ..Options::alone([1; 32]) }
}

/// The same without a checkpoint.
fn without_checkpoint(shard: usize, shards: usize) -> Options {
    let mut options = options(shard, shards);
    options.journal.checkpoint_bytes = 1 << 30;
    options
}

fn body(number: usize) -> Vec<u8> {
    let mut body = format!("<{number:06}>").into_bytes();
    body.resize(500, b'.');
    body
}

fn number_of(body: &[u8]) -> usize {
    std::str::from_utf8(&body[1..7]).unwrap().parse().unwrap()
}

/// A queue of which a part is acknowledged, written in small blocks.
fn store(options: MakeOptions) -> FaultyStorage {
    let mut host = Host::on(FaultyStorage::new(1), 1, options);
    let client = host.client();
    host.declare(client, "q");
    for number in 0..MESSAGES {
        host.publish(client, "q", &body(number), true);
        if number % 7 == 0 {
            host.settle_down();
        }
    }
    host.settle_down();
    let consumer = host.client();
    host.consume(consumer, "q", SETTLED as u16);
    host.send_ack_up_to(consumer, SETTLED as u64);
    // The last flush is proven.
    host.pass(2_000);
    host.nodes.clear();
    host.disk.copy()
}

/// Where the records of messages lie: file, first byte, end, number. The last one of each counts.
fn places(disk: &FaultyStorage) -> Vec<(String, usize, usize, usize)> {
    let mut found = std::collections::BTreeMap::new();
    for name in disk.list().unwrap().into_iter().filter(|name| name.ends_with(".segment")) {
        let bytes = disk.content(&name).unwrap();
        for at in 0..bytes.len().saturating_sub(500) {
            if bytes[at] == b'<' && bytes[at + 7] == b'>' {
                let end = at + 500;
                let length =
                    |from: usize| u32::from_le_bytes(bytes[from..from + 4].try_into().unwrap());
                let start = (at.saturating_sub(200)..at)
                    .find(|from| from + 8 + length(*from) as usize == end);
                let number = number_of(&bytes[at..]);
                found.insert(
                    number,
                    (name.clone(), start.expect("a record begins before"), end, number),
                );
            }
        }
    }
    found.into_values().collect()
}

/// Repairs until nothing is wrong, as `angarium journal repair` does.
fn mend(disk: &FaultyStorage, context: &str) -> Vec<String> {
    let mut said = Vec::new();
    for _ in 0..5 {
        let report = check(disk).unwrap();
        if report.problems.is_empty() {
            return said;
        }
        said.extend(match report.needs_rebuild() {
            true => rebuild(disk, &Options::alone([0; 32])).unwrap(),
            false => repair(disk, &report).unwrap_or_else(|why| panic!("{context}: {why}")),
        });
    }
    panic!("{context}: the repairs do not end: {said:?}");
}

/// The numbers of the messages in a queue, in order, and the notes of the start.
fn left(disk: FaultyStorage, queue: &str, options: MakeOptions) -> (Vec<usize>, Host) {
    let mut host = Host::on(disk, 1, options);
    let all = || ".*".to_owned();
    let (user, vhost) = ("user".to_owned(), "/".to_owned());
    let permit =
        Request::SetPermissions { user, vhost, configure: all(), write: all(), read: all() };
    host.operate("/", permit).unwrap();
    let client = host.client();
    host.get(client, queue, MESSAGES + 1);
    let bodies = host.heard(client).into_iter().filter_map(|said| match said {
        Said::Delivered(body, _) => Some(number_of(&body)),
        _ => None,
    });
    (bodies.collect(), host)
}

/// Checks that the damage cost those messages and no other.
fn check_loss(damaged: FaultyStorage, lost: &BTreeSet<usize>, options: MakeOptions, context: &str) {
    let said = mend(&damaged, context);
    let (got, mut host) = left(damaged, "q", options);
    let found: BTreeSet<usize> = got.iter().copied().collect();
    assert_eq!(found.len(), got.len(), "{context}: twice");
    // What was acknowledged comes again if the record of that lay there.
    let live: BTreeSet<usize> = found.into_iter().filter(|it| *it >= SETTLED).collect();
    let expected = (SETTLED..MESSAGES).filter(|number| !lost.contains(number)).collect();
    assert_eq!(live, expected, "{context}: {said:?}");
    let given_up: u64 = host.node().take_given_up().iter().map(|it| it.messages).sum();
    assert!(given_up <= lost.len() as u64, "{context}: {given_up} given up");
}

/// Damages every block and removes every file in turn.
fn check_all(options: MakeOptions) {
    let whole = store(options);
    let places = places(&whole);
    assert_eq!(places.len(), MESSAGES);
    let mut pages = 0;
    Remains::read(&whole, |_, record| pages += usize::from(record[1] == PAGE)).unwrap();
    assert!(pages > 5, "{pages} pages");
    let lost = |name: &str, from: usize, to: usize| {
        let there = places.iter().filter(|it| it.0 == name && it.1 < to && it.2 > from);
        there.map(|place| place.3).collect()
    };
    check_loss(whole.copy(), &BTreeSet::new(), options, "nothing");
    for name in whole.list().unwrap() {
        let bytes = whole.content(&name).unwrap();
        for (at, content) in bytes.chunks(BLOCK_BYTES).enumerate() {
            if content.iter().all(|byte| *byte == 0) {
                continue;
            }
            let (from, to) = (at * BLOCK_BYTES, at * BLOCK_BYTES + content.len());
            let damaged = whole.copy();
            damaged.edit(&name, |bytes| bytes[from..to].fill(0x5a));
            check_loss(damaged, &lost(&name, from, to), options, &format!("{name} from {from}"));
        }
        let damaged = whole.copy();
        damaged.remove(&name).unwrap();
        let all = lost(&name, 0, usize::MAX);
        check_loss(damaged, &all, options, &format!("{name} is missing"));
    }
}

#[test]
fn a_damaged_block_or_missing_file_costs_the_messages_in_it() {
    check_all(options);
}

#[test]
fn without_a_checkpoint_definitions_may_lie_there_too() {
    check_all(without_checkpoint);
}

#[test]
fn lost_checkpoints_are_rebuilt_from_what_is_whole() {
    let mut host = Host::new(1);
    let client = host.client();
    host.declare(client, "keep");
    host.declare(client, "churn");
    for number in 0..1_000 {
        host.publish(client, "churn", &body(number), true);
        host.get(client, "churn", 1);
        if number % 25 == 24 && number > 400 {
            host.publish(client, "keep", &body(number), true);
        }
    }
    host.pass(2_000);
    host.nodes.clear();
    for is_missing in [false, true] {
        let disk = host.disk.copy();
        let names = disk.list().unwrap();
        let segments = names.iter().filter(|name| name.ends_with(".segment")).count();
        let last =
            names.iter().filter_map(|name| name.strip_suffix(".segment")?.parse().ok()).max();
        assert!(last > Some(segments + 1), "segments were given back: {names:?}");
        for name in names.iter().filter(|name| name.starts_with("checkpoint-")) {
            match is_missing {
                true => disk.remove(name).unwrap(),
                false => disk.flip(name, 200, 1),
            }
        }
        let refused = crate::Node::recover(options(0, 1), &disk, host.now).map(drop).unwrap_err();
        assert!(refused.contains("angarium journal check"), "{refused}");
        let said = mend(&disk, "lost checkpoints").join("\n");
        assert!(said.contains("queue 'keep'") && said.contains("is lost: make it again"), "{said}");
        let (kept, again) = left(disk, "keep", options);
        assert_eq!(kept, (424..1_000).step_by(25).collect::<Vec<_>>(), "{said}");
        // It goes on from there.
        let (kept, _) = left(again.disk.copy(), "keep", options);
        assert_eq!(kept, [0; 0]);
    }
}
