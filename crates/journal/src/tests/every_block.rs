//! Every block of 4 KiB of a small store is damaged in turn, and every file removed: that costs nothing, or
//! exactly the records that lay there, which are named.

use std::collections::BTreeMap;

use super::{Host, encode, open, payload, read, small};
use crate::files::parse_segment_name;
use crate::format::{BLOCK_ALIGN, RECORD_HEADER_BYTES};
use crate::{FaultyStorage, Options, Position, Storage, check, repair};

fn tiny() -> Options {
    Options { segment_bytes: 32 << 10, ..small() }
}

fn length(number: u64) -> usize {
    [100, 6000, 9, 2500][number as usize % 4]
}

/// A store with segments before and behind its checkpoint, groups in one block, and messages that are
/// settled.
fn store(is_closed: bool) -> (FaultyStorage, BTreeMap<u64, Position>) {
    let storage = FaultyStorage::new(7);
    let mut host = Host::open(&storage, tiny()).unwrap();
    for round in 0..14 {
        host.journal.reserve(12_000, 4);
        for _ in 0..4 {
            host.publish(length(host.next), true);
        }
        if round == 8 {
            let settled: Vec<u64> = host.live.keys().copied().take(10).collect();
            for number in settled {
                host.settle(number);
            }
        }
        host.run(&storage);
        if round == 9 {
            host.checkpoint();
            host.run(&storage);
        }
    }
    // As an idle broker does.
    host.journal.prove_flush();
    host.run(&storage);
    if is_closed {
        host.journal.close(encode(&host.live));
        host.run(&storage);
    }
    (storage, host.live)
}

/// Repairs until nothing is wrong; returns what was said, of problems and notes too.
fn mend(storage: &FaultyStorage, context: &str) -> String {
    let mut said = String::new();
    for _ in 0..5 {
        let report = check(storage).unwrap();
        said += &format!("{report:?}\n");
        if report.problems.is_empty() {
            return said;
        }
        said +=
            &repair(storage, &report).unwrap_or_else(|why| panic!("{context}: {why}")).join("\n");
    }
    panic!("{context}: the repairs do not end: {said}");
}

/// What is left of the messages, by number, after repairs and a start.
fn left(storage: &FaultyStorage, context: &str) -> Vec<u64> {
    let (journal, live, _) = open(storage, tiny()).unwrap_or_else(|why| panic!("{context}: {why}"));
    let mut left = Vec::new();
    for (number, position) in live {
        let records = read(&journal, vec![position], storage)
            .unwrap_or_else(|why| panic!("{context}: the reader stops: {why}"));
        // One that was given up has no bytes.
        if !records[0].is_empty() {
            assert_eq!(*records[0], *payload(number, length(number)), "{context}");
            left.push(number);
        }
    }
    left
}

/// Messages whose records touch these bytes of a segment.
fn there(live: &BTreeMap<u64, Position>, name: &str, from: u64, to: u64) -> Vec<u64> {
    let id = parse_segment_name(name);
    let touches = |number: u64, position: Position| {
        let start = u64::from(position.offset());
        let end = start + (RECORD_HEADER_BYTES + length(number)) as u64;
        Some(position.segment()) == id && start < to && end > from
    };
    live.iter().filter(|it| touches(*it.0, *it.1)).map(|it| *it.0).collect()
}

fn check_loss(
    storage: &FaultyStorage,
    live: &BTreeMap<u64, Position>,
    held: &[u64],
    name: &str,
    context: &str,
) {
    let before = open(&storage.copy(), tiny()).map(|(journal, ..)| journal.notes().join("\n"));
    let said = mend(storage, context) + &before.unwrap_or_else(|why| why);
    let left = left(storage, context);
    let lost: Vec<u64> = live.keys().copied().filter(|number| !left.contains(number)).collect();
    assert_eq!(lost, held, "{context}: {said}");
    assert!(lost.is_empty() || said.contains(name), "{context}: {name} is not named in {said}");
}

#[test]
fn every_damaged_block_costs_at_most_what_it_held() {
    for is_closed in [false, true] {
        let (storage, live) = store(is_closed);
        assert!(live.len() > 40);
        for name in storage.list().unwrap() {
            let bytes = storage.content(&name).unwrap();
            for (page, content) in bytes.chunks(BLOCK_ALIGN).enumerate() {
                let from = page * BLOCK_ALIGN;
                for fill in if is_closed { [0, 0xff] } else { [0xff, 0x5a] } {
                    if content.iter().all(|byte| *byte == fill) {
                        continue;
                    }
                    let damaged = storage.copy();
                    damaged.edit(&name, |bytes| bytes[from..from + content.len()].fill(fill));
                    let to = (from + content.len()) as u64;
                    let held = there(&live, &name, from as u64, to);
                    let context =
                        format!("{name} from {from} filled with {fill}, closed {is_closed}");
                    check_loss(&damaged, &live, &held, &name, &context);
                }
            }
        }
    }
}

#[test]
fn every_missing_file_costs_at_most_what_it_held() {
    for is_closed in [false, true] {
        let (storage, live) = store(is_closed);
        for name in storage.list().unwrap() {
            let damaged = storage.copy();
            damaged.remove(&name).unwrap();
            let held = there(&live, &name, 0, u64::MAX);
            check_loss(
                &damaged,
                &live,
                &held,
                &name,
                &format!("{name} is removed, closed {is_closed}"),
            );
        }
    }
}
