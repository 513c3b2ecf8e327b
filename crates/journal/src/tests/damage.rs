//! Damaged files: a torn tail is dropped, anything else is reported.

use std::collections::BTreeMap;

use super::{Host, SETTLE, encode, open, payload, read, small};
use crate::files::segment_name;
use crate::format::{self, BLOCK_ALIGN};
use crate::{FaultyStorage, Position, Remains, Storage, check, repair};

/// A log of `blocks` flushed blocks of three records each; with each block's place, its numbers.
fn log(storage: &FaultyStorage, blocks: usize, length: usize) -> (Host, Vec<(Position, Vec<u64>)>) {
    let mut host = Host::open(storage, small()).unwrap();
    let mut written = Vec::new();
    for _ in 0..blocks {
        host.journal.reserve(3 * length, 3);
        let records: Vec<_> = (0..3).map(|_| host.publish(length, true)).collect();
        host.run(storage);
        let first = records[0].1.0;
        let start = Position(first / BLOCK_ALIGN as u64 * BLOCK_ALIGN as u64);
        written.push((start, records.into_iter().map(|it| it.0).collect()));
    }
    (host, written)
}

fn refusal(storage: &FaultyStorage) -> String {
    open(storage, small()).map(|_| ()).expect_err("the start must be refused")
}

#[test]
fn a_torn_tail_is_dropped_wherever_it_is_cut() {
    let storage = FaultyStorage::new(1);
    let (host, blocks) = log(&storage, 12, 3000);
    let (last, numbers) = blocks.last().unwrap();
    let (before, _) = blocks[blocks.len() - 2];
    let name = segment_name(last.segment());
    for cut in (0..3 * BLOCK_ALIGN).step_by(512) {
        let torn = storage.copy();
        let at = last.offset() as usize + cut;
        torn.edit(&name, |bytes| bytes[at..at + 3 * BLOCK_ALIGN].fill(0));
        let (mut journal, live, _) = open(&torn, small()).unwrap();
        let whole = cut >= 64 + 3 * 3008;
        let lost = |number: &u64| !whole && numbers.contains(number);
        let kept: BTreeMap<_, _> =
            host.live.iter().filter(|it| !lost(it.0)).map(|(a, b)| (*a, *b)).collect();
        assert_eq!(live, kept, "cut at {cut}");
        assert!(check(&torn).unwrap().problems.is_empty());
        // The next process writes over it, and its own log is whole.
        let position = journal.append(&[&payload(9999, 100)], true);
        assert!(position > before);
        while let Some(job) = journal.next_job() {
            journal.finished(job.run(&torn));
        }
        assert!(open(&torn, small()).unwrap().1.contains_key(&9999));
    }
}

#[test]
fn a_flipped_bit_before_valid_blocks_refuses_the_start_and_names_the_place() {
    let storage = FaultyStorage::new(1);
    let (_, blocks) = log(&storage, 12, 3000);
    for (block, _) in &blocks[..blocks.len() - 2] {
        // In the magic, segment, sequence number, length, checksum, a record's header, a record.
        for offset in [0, 9, 17, 29, 61, 66, 5000] {
            let damaged = storage.copy();
            damaged.flip(&segment_name(block.segment()), u64::from(block.offset()) + offset, 0x10);
            let why = refusal(&damaged);
            let expected =
                format!("{} at offset {}", segment_name(block.segment()), block.offset());
            assert!(why.contains(&expected), "{why}: not {expected}");
            let found = &check(&damaged).unwrap().problems[0];
            let found = (found.name.as_str(), found.offset);
            assert_eq!(found, (&*segment_name(block.segment()), block.offset().into()));
            assert!(why.contains("angarium journal check"), "{why}");
        }
    }
}

#[test]
fn a_repair_gives_up_the_damaged_record_alone() {
    let storage = FaultyStorage::new(1);
    let (host, blocks) = log(&storage, 30, 3000);
    for (at, (block, numbers)) in blocks[..blocks.len() - 2].iter().enumerate() {
        let damaged = storage.copy();
        damaged.flip(&segment_name(block.segment()), u64::from(block.offset()) + 100, 1);
        let report = check(&damaged).unwrap();
        assert_eq!(report.problems.len(), 1, "{report:?}");
        // Before it, the rest of a segment may be blank.
        let from = block.offset() + 64;
        let lost = format!("2 records in it are whole, what lay at the offsets {from} to");
        let mended = repair(&damaged, &report).unwrap();
        assert!(mended.last().unwrap().contains(&lost), "{mended:?}");
        assert!(check(&damaged).unwrap().problems.is_empty(), "block {at}");
        let mut kept = host.live.clone();
        let (given_up, other) = (kept.remove(&numbers[0]).unwrap(), kept[&numbers[1]]);
        let (journal, live, _) = open(&damaged, small()).unwrap();
        assert_eq!(live, kept, "block {at}");
        assert!(journal.is_mended());
        // A reader learns that it is given up.
        let records = read(&journal, vec![given_up, other], &damaged).unwrap();
        assert_eq!((records[0].len(), records[1].len()), (0, 3000));
    }
}

#[test]
fn a_lost_segment_refuses_the_start_and_can_be_given_up() {
    let storage = FaultyStorage::new(1);
    let (host, _) = log(&storage, 30, 3000);
    let last = host.journal.durable().segment();
    assert!(last >= 4);
    for id in 1..last {
        type Change = fn(&FaultyStorage, &str);
        let changes: [Change; 3] = [
            |storage, name| storage.remove(name).unwrap(),
            |storage, name| storage.edit(name, |bytes| bytes.truncate(20_000)),
            |storage, name| storage.edit(name, |bytes| bytes.clear()),
        ];
        for change in changes {
            let damaged = storage.copy();
            change(&damaged, &segment_name(id));
            refusal(&damaged);
            for _ in 0..3 {
                let report = check(&damaged).unwrap();
                repair(&damaged, &report).unwrap();
            }
            assert_eq!(check(&damaged).unwrap().problems, []);
            let (_, live, _) = open(&damaged, small()).unwrap();
            let elsewhere = host.live.iter().filter(|it| it.1.segment() != id);
            for (number, _) in elsewhere {
                assert!(live.contains_key(number), "{number} was not in segment {id}");
            }
        }
    }
}

const COPIES: [&str; 2] = ["checkpoint-00000001", "checkpoint-00000001.copy"];

/// A log whose beginning is gone, with a checkpoint.
fn log_without_beginning(storage: &FaultyStorage) -> Host {
    let (mut host, _) = log(storage, 30, 3000);
    let numbers: Vec<_> = host.live.keys().copied().take(60).collect();
    for number in numbers {
        host.settle(number);
    }
    host.run(storage);
    host.checkpoint();
    host.run(storage);
    for _ in 0..60 {
        host.publish(3000, true);
        host.run(storage);
    }
    host
}

#[test]
fn damage_to_one_copy_of_the_checkpoint_costs_nothing() {
    let storage = FaultyStorage::new(1);
    let host = log_without_beginning(&storage);
    let whole = storage.content(COPIES[0]).unwrap();
    for name in COPIES {
        let flips = (0..whole.len()).step_by(701).map(Some).chain([None]);
        for flipped in flips {
            let damaged = storage.copy();
            match flipped {
                Some(offset) => damaged.flip(name, offset as u64, 4),
                None => damaged.remove(name).unwrap(),
            }
            let report = check(&damaged).unwrap();
            let named = report.problems.iter().map(|it| &it.what).chain(&report.notes);
            assert!(named.into_iter().any(|what| what.contains(name)), "{report:?}");
            let repaired = damaged.copy();
            repair(&repaired, &report).unwrap();
            assert_eq!(check(&repaired).unwrap().problems, []);
            let (journal, live, _) = open(&damaged, small()).unwrap();
            assert_eq!(live, host.live, "{name} at {flipped:?}");
            let text = journal.notes().join("");
            assert!(text.contains(name) && text.contains("nothing is lost"), "{text}");
            // The start has written it again.
            assert_eq!(damaged.content(name).as_ref(), Some(&whole));
            assert_eq!(open(&damaged, small()).unwrap().0.notes(), [""; 0]);
        }
    }
}

#[test]
fn two_damaged_copies_of_the_checkpoint_are_whole_together() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    for _ in 0..800 {
        host.publish(100, true);
    }
    host.run(&storage);
    host.checkpoint();
    host.run(&storage);
    storage.edit(COPIES[0], |bytes| bytes[5000..8000].fill(0));
    storage.edit(COPIES[1], |bytes| bytes[..30].fill(0xff));
    assert_eq!(check(&storage).unwrap().problems.len(), 2);
    let (journal, live, _) = open(&storage, small()).unwrap();
    assert_eq!(live, host.live);
    assert!(journal.notes()[0].contains("together"), "{:?}", journal.notes());
}

#[test]
fn a_lost_checkpoint_is_never_an_empty_journal() {
    let storage = FaultyStorage::new(1);
    let (mut host, _) = log(&storage, 30, 3000);
    host.checkpoint();
    host.run(&storage);
    type Change = fn(&mut Vec<u8>);
    let changes: [Change; 5] = [
        |bytes| bytes[0] ^= 4,
        |bytes| bytes[60] ^= 4,
        |bytes| bytes.clear(),
        |bytes| bytes.truncate(55),
        |bytes| bytes.truncate(bytes.len() - 1),
    ];
    for change in changes {
        let damaged = storage.copy();
        for name in COPIES {
            damaged.edit(name, change);
        }
        let why = refusal(&damaged);
        assert!(why.contains(COPIES[0]) && why.contains("angarium journal check"), "{why}");
        // The log is there from its beginning: nothing is lost.
        let report = check(&damaged).unwrap();
        repair(&damaged, &report).unwrap();
        assert_eq!(open(&damaged, small()).unwrap().1, host.live);
    }
}

#[test]
fn a_missing_beginning_is_called_by_the_file_that_is_missing() {
    let storage = FaultyStorage::new(1);
    log(&storage, 30, 3000);
    let first = segment_name(1);
    let blank = storage.copy();
    blank.edit(&first, |bytes| bytes[..3 * BLOCK_ALIGN].fill(0));
    storage.remove(&first).unwrap();
    for (damaged, expected) in [(storage, "missing"), (blank, "no block header")] {
        let found = &check(&damaged).unwrap().problems[0];
        assert_eq!((&found.name, found.offset), (&first, 0));
        assert!(found.what.starts_with(expected), "{found:?}");
    }
}

/// Every whole record of a log, as [`open`] takes them; what is settled is not in it.
fn remains(storage: &FaultyStorage) -> (Remains, BTreeMap<u64, Position>) {
    let (mut found, mut settled) = (BTreeMap::new(), Vec::new());
    let remains = Remains::read(storage, |position, record| {
        let number = u64::from_le_bytes(record[..8].try_into().unwrap());
        if number & SETTLE == 0 {
            found.insert(number, position);
        } else {
            settled.push(number & !SETTLE);
        }
    });
    found.retain(|number, _| !settled.contains(number));
    (remains.unwrap(), found)
}

#[test]
fn without_checkpoint_and_beginning_what_is_whole_is_rebuilt() {
    let storage = FaultyStorage::new(1);
    let host = log_without_beginning(&storage);
    let removed = storage.copy();
    for name in COPIES {
        removed.remove(name).unwrap();
        storage.flip(name, 60, 1);
    }
    assert!(refusal(&removed).contains("beginning of the journal is missing"));
    for damaged in [removed, storage] {
        refusal(&damaged);
        let report = check(&damaged).unwrap();
        assert!(report.needs_rebuild(), "{report:?}");
        repair(&damaged, &report).unwrap_err();
        let (remains, found) = remains(&damaged);
        let mut references: BTreeMap<u32, u64> = BTreeMap::new();
        for position in found.values() {
            *references.entry(position.segment()).or_default() += 1;
        }
        remains.write(&damaged, encode(&found), &references).unwrap();
        let report = check(&damaged).unwrap();
        assert_eq!((report.problems, report.notes), (Vec::new(), Vec::new()));
        let mut again = Host::open(&damaged, small()).unwrap();
        assert_eq!(again.live, found);
        assert!(host.live.iter().all(|(number, position)| found.get(number) == Some(position)));
        // Appends go on, and so do checkpoints.
        again.publish(3000, true);
        again.run(&damaged);
        again.checkpoint();
        again.run(&damaged);
        assert_eq!(open(&damaged, small()).unwrap().1, again.live);
    }
}

#[test]
fn what_a_crash_left_behind_the_end_does_not_remain() {
    let storage = FaultyStorage::new(1);
    let (mut host, _) = log(&storage, 11, 3000);
    let before = host.live.len();
    // Two blocks of one flush, the first of which is cut off.
    let blocks = [0, 1].map(|_| {
        host.journal.reserve(9000, 3);
        let first = host.publish(3000, true).1;
        host.publish(3000, true);
        host.publish(3000, true);
        Position(first.0 - 64)
    });
    host.run(&storage);
    assert_eq!(blocks[1].0 - blocks[0].0, 3 * BLOCK_ALIGN as u64);
    storage.reboot();
    storage.flip(&segment_name(blocks[0].segment()), blocks[0].offset().into(), 1);
    let mut next = Host::open(&storage, small()).unwrap();
    assert_eq!(next.live.len(), before);
    next.next = 9000;
    next.publish(100, true);
    next.run(&storage);
    assert_eq!(remains(&storage).1, next.live);
}

#[test]
fn a_scan_finds_every_whole_record_of_a_damaged_segment() {
    let storage = FaultyStorage::new(1);
    let (host, blocks) = log(&storage, 12, 3000);
    let (block, numbers) = &blocks[3];
    for at in [0, 29, 100] {
        let damaged = storage.copy();
        damaged.flip(&segment_name(block.segment()), u64::from(block.offset()) + at, 1);
        let (mut found, id) = (Vec::new(), block.segment());
        let scan = host.journal.scan(&[id, 77]);
        scan.run(&damaged, |_, record| {
            found.push(u64::from_le_bytes(record[..8].try_into().unwrap()));
        })
        .unwrap();
        let lost = |number: &u64| at == 100 && *number == numbers[0];
        let there = host.live.iter().filter(|it| it.1.segment() == id && !lost(it.0));
        assert_eq!(found, there.map(|it| *it.0).collect::<Vec<_>>(), "at {at}");
    }
}

#[test]
fn a_checkpoint_is_read_back_before_the_older_one_goes() {
    let storage = FaultyStorage::new(1);
    let (mut host, _) = log(&storage, 10, 3000);
    host.checkpoint();
    host.run(&storage);
    host.checkpoint();
    storage.corrupt_next_replace();
    host.run(&storage);
    let why = format!("{:?}", host.journal.state());
    assert!(why.contains("checkpoint-00000002") && why.contains("reads back"), "{why}");
    assert!(storage.content(COPIES[0]).is_some() && storage.content(COPIES[1]).is_some());
    let (journal, live, _) = open(&storage, small()).unwrap();
    assert_eq!(live, host.live);
    assert!(journal.notes()[0].contains("checkpoint-00000002"), "{:?}", journal.notes());
}

#[test]
fn a_live_segment_before_the_checkpoint_must_be_there_and_its_damage_is_reported() {
    let storage = FaultyStorage::new(1);
    let (mut host, _) = log(&storage, 30, 3000);
    host.journal.close(encode(&host.live));
    host.run(&storage);
    let damaged = storage.copy();
    damaged.remove(&segment_name(2)).unwrap();
    assert!(refusal(&damaged).contains("00000002.segment"));

    // It is not read at the start; reading the record is an error.
    storage.flip(&segment_name(2), 200, 1);
    let report = check(&storage).unwrap();
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    assert_eq!(
        (report.problems[0].name.as_str(), report.problems[0].offset),
        ("00000002.segment", 0)
    );
    let (journal, live, clean) = open(&storage, small()).unwrap();
    assert!(clean);
    let broken = live.values().find(|position| position.segment() == 2).unwrap();
    let why = read(&journal, vec![*broken], &storage).unwrap_err();
    assert!(why.contains("00000002.segment at offset 64"), "{why}");
}

#[test]
fn a_misplaced_block_or_another_version_is_not_taken() {
    let storage = FaultyStorage::new(1);
    let (_, blocks) = log(&storage, 12, 3000);
    let (from, to) = (blocks[2].0, blocks[3].0);
    let name = segment_name(1);
    let block = storage.content(&name).unwrap()[from.offset() as usize..][..12_288].to_vec();
    let damaged = storage.copy();
    damaged.edit(&name, |bytes| {
        bytes[to.offset() as usize..][..12_288].copy_from_slice(&block);
    });
    assert!(refusal(&damaged).contains(&format!("offset {}", to.offset())));

    // A flipped bit in the version's place is damage.
    let (last, _) = blocks.last().unwrap();
    let (name, at) = (segment_name(last.segment()), last.offset() as usize);
    let flipped = storage.copy();
    flipped.flip(&segment_name(blocks[4].0.segment()), u64::from(blocks[4].0.offset()) + 4, 8);
    assert!(refusal(&flipped).contains("checksum wrong"));

    let later = storage.copy();
    later.edit(&name, |bytes| {
        bytes[at + 4] = 9;
        format::reseal(&mut bytes[at..]);
    });
    is_of_another_version(&later);
}

/// Not even a checkpoint says so, as after kill -9 of a young broker.
#[test]
fn blocks_of_another_version_are_no_empty_journal() {
    let storage = FaultyStorage::new(1);
    let (_, blocks) = log(&storage, 30, 3000);
    assert!(blocks.last().unwrap().0.segment() > 2);
    for first in [0, 1] {
        let later = storage.copy();
        for (block, _) in blocks.iter().filter(|it| it.0.segment() > first) {
            later.edit(&segment_name(block.segment()), |bytes| {
                bytes[block.offset() as usize + 4] = 9;
                format::reseal(&mut bytes[block.offset() as usize..]);
            });
        }
        is_of_another_version(&later);
    }
}

/// Neither damaged nor repaired nor changed.
fn is_of_another_version(storage: &FaultyStorage) {
    let why = refusal(storage);
    assert!(why.contains("format version 9") && !why.contains("journal check"), "{why}");
    let names = storage.list().unwrap();
    let before: Vec<_> = names.iter().map(|name| storage.content(name)).collect();
    let report = check(storage).unwrap();
    assert!(report.problems.iter().any(|it| it.what.contains("format version 9")), "{report:?}");
    assert!(repair(storage, &report).unwrap_err().contains("format version 9"));
    let after: Vec<_> = names.iter().map(|name| storage.content(name)).collect();
    assert!(before == after, "repair changed something");
}

#[test]
fn a_checkpoint_of_another_version_is_called_that() {
    let storage = FaultyStorage::new(1);
    log_without_beginning(&storage);
    // With the checksum where every version has it, and without.
    for is_sealed in [true, false] {
        let later = storage.copy();
        for name in COPIES {
            later.edit(name, |bytes| {
                bytes[4] = 9;
                if is_sealed {
                    crate::checkpoint::reseal(bytes);
                }
            });
        }
        is_of_another_version(&later);
    }
}

#[test]
fn what_a_repair_gave_up_is_not_a_problem_later() {
    type Damage = fn(&FaultyStorage, Position);
    let damages: [Damage; 3] = [
        |storage, block| storage.flip(&segment_name(block.segment()), block.offset().into(), 1),
        |storage, block| storage.remove(&segment_name(block.segment())).unwrap(),
        |storage, block| {
            storage.edit(&segment_name(block.segment()), |bytes| bytes.truncate(30_000));
        },
    ];
    let whole = FaultyStorage::new(1);
    let (_, blocks) = log(&whole, 30, 3000);
    let last = blocks.last().unwrap().0;
    for (kind, damage) in damages.iter().enumerate() {
        for (block, _) in &blocks[..blocks.len() - 2] {
            let storage = whole.copy();
            damage(&storage, *block);
            for _ in 0..3 {
                repair(&storage, &check(&storage).unwrap()).unwrap();
            }
            let mut host = Host::open(&storage, small()).unwrap();
            host.journal.close(encode(&host.live));
            host.run(&storage);
            let report = check(&storage).unwrap();
            assert_eq!(report.problems, [], "{block}");
            // Of a flipped bit in a header nothing is lost; what a whole segment or the end held is not
            // known.
            let given_up: u64 = report.segments.iter().map(|segment| segment.given_up).sum();
            let is_last = block.segment() == last.segment();
            assert!(given_up > 0 || kind < 2 || is_last, "{block}: {report:?}");
        }
    }
}

#[test]
fn a_live_segment_that_was_filled_up_is_not_a_problem_later() {
    let storage = FaultyStorage::new(1);
    let (mut host, _) = log(&storage, 30, 3000);
    host.journal.close(encode(&host.live));
    host.run(&storage);
    for there in [None, Some(0), Some(20_000)] {
        let damaged = storage.copy();
        match there {
            None => damaged.remove(&segment_name(2)).unwrap(),
            Some(there) => damaged.edit(&segment_name(2), |bytes| bytes.truncate(there)),
        }
        assert!(!check(&damaged).unwrap().problems.is_empty());
        for _ in 0..2 {
            repair(&damaged, &check(&damaged).unwrap()).unwrap();
        }
        let report = check(&damaged).unwrap();
        assert_eq!(report.problems, []);
        assert!(report.segments[1].given_up > 0 && report.segments[1].live.is_some());
        assert!(open(&damaged, small()).unwrap().2, "it was closed in order");
    }
}

#[test]
fn without_a_checkpoint_live_references_are_unknown() {
    let storage = FaultyStorage::new(1);
    let (mut host, _) = log(&storage, 3, 3000);
    assert!(check(&storage).unwrap().segments.iter().all(|segment| segment.live.is_none()));
    host.checkpoint();
    host.run(&storage);
    assert_eq!(check(&storage).unwrap().segments[0].live, Some(9));
}
