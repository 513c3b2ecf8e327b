//! Rot in what was flushed last, told from a write that was cut off: by what was written in the same boot of
//! the machine, and by the mark that an idle broker writes.

use std::collections::BTreeSet;

use super::{Host, open, small};
use crate::files::segment_name;
use crate::format::BLOCK_ALIGN;
use crate::{FaultyStorage, Position, check, repair};

/// A log whose last flush has four blocks of three records each. Returns the blocks with their records.
fn log(storage: &FaultyStorage) -> (Host, Vec<(Position, Vec<u64>)>) {
    let mut host = Host::open(storage, small()).unwrap();
    host.publish(100, true);
    host.run(storage);
    let mut blocks = Vec::new();
    for _ in 0..4 {
        host.journal.reserve(3 * 4_000, 3);
        let records: Vec<_> = (0..3).map(|_| host.publish(4_000, true)).collect();
        let block = Position(records[0].1.0 - 64);
        blocks.push((block, records.into_iter().map(|it| it.0).collect()));
    }
    host.run(storage);
    assert!(blocks.iter().all(|it| it.0.segment() == 1 && it.0.offset() % BLOCK_ALIGN as u32 == 0));
    (host, blocks)
}

fn flip(storage: &FaultyStorage, block: Position, at: u64) {
    storage.flip(&segment_name(block.segment()), u64::from(block.offset()) + at, 1);
}

#[track_caller]
fn left(storage: &FaultyStorage) -> BTreeSet<u64> {
    open(storage, small()).unwrap().1.into_keys().collect()
}

#[test]
fn after_a_kill_rot_in_the_last_flush_is_damage_and_costs_one_record() {
    let whole = FaultyStorage::new(1);
    let (host, blocks) = log(&whole);
    for (block, records) in &blocks {
        for (at, lost) in [(100, 0), (4_200, 1)] {
            let storage = whole.copy();
            flip(&storage, *block, at);
            let why = open(&storage, small()).map(drop).unwrap_err();
            let name = format!("00000001.segment at offset {}", block.offset());
            assert!(why.contains(&name) && why.contains("since this machine started"), "{why}");
            let report = check(&storage).unwrap();
            assert_eq!(report.problems.len(), 1, "{report:?}");
            repair(&storage, &report).unwrap();
            let expected = host.live.keys().copied().filter(|number| *number != records[lost]);
            assert_eq!(left(&storage), expected.collect(), "{block} at {at}");
        }
    }
}

#[test]
fn after_power_was_lost_what_may_have_been_flushed_is_said_with_counts() {
    let whole = FaultyStorage::new(1);
    let (_, blocks) = log(&whole);
    for (number, (block, _)) in blocks.iter().enumerate() {
        let storage = whole.copy();
        storage.reboot();
        flip(&storage, *block, 4_200);
        let behind = 3 - number;
        let mut counts = vec!["a block of 3 records, 2 of which are whole".to_owned()];
        if behind > 0 {
            counts.push(format!("{behind} whole blocks with {} records", 3 * behind));
        }
        let notes = check(&storage).unwrap().notes;
        let (journal, live, _) = open(&storage, small()).unwrap();
        assert_eq!(notes, journal.notes());
        assert!(counts.iter().all(|count| notes[0].contains(count)), "{notes:?}: {counts:?}");
        assert_eq!(live.len(), 1 + 3 * number);
    }
}

#[test]
fn a_flush_that_was_proven_shows_rot_after_power_was_lost_too() {
    let whole = FaultyStorage::new(1);
    let (mut host, blocks) = log(&whole);
    assert!(host.journal.is_unproven());
    host.journal.prove_flush();
    host.run(&whole);
    assert!(!host.journal.is_unproven());
    // The mark is no record, and needs none.
    host.journal.prove_flush();
    assert!(host.journal.next_job().is_none());
    whole.reboot();
    for (block, records) in &blocks {
        let storage = whole.copy();
        flip(&storage, *block, 4_200);
        let why = open(&storage, small()).map(drop).unwrap_err();
        assert!(why.contains("it was flushed once"), "{why}");
        repair(&storage, &check(&storage).unwrap()).unwrap();
        let expected = host.live.keys().copied().filter(|number| *number != records[1]);
        assert_eq!(left(&storage), expected.collect());
    }
    assert_eq!(open(&whole, small()).unwrap().0.notes(), [""; 0]);
}

#[test]
fn a_write_that_a_kill_cut_off_is_no_damage() {
    let whole = FaultyStorage::new(1);
    let (_, blocks) = log(&whole);
    let (last, _) = blocks[3];
    for pages in 0..3 {
        let storage = whole.copy();
        let from = last.offset() as usize + pages * BLOCK_ALIGN;
        storage.edit("00000001.segment", |bytes| bytes[from..].fill(0));
        let (journal, live, _) = open(&storage, small()).unwrap();
        assert_eq!(live.len(), 10, "{pages} pages of the last block");
        assert_eq!(journal.notes().len(), usize::from(pages > 0), "{:?}", journal.notes());
    }
}
