//! How far a start searches behind the end of the log for proof that it was flushed: it reads little and
//! misses nothing.

use super::{Host, encode, open};
use crate::files::segment_name;
use crate::format::BLOCK_ALIGN;
use crate::{FaultyStorage, Options, Position, Storage};

const MIB: usize = 1 << 20;

/// Segments that are much larger than the part that is searched in prepared ones.
fn large() -> Options {
    Options {
        segment_bytes: 16 << 20,
        checkpoint_bytes: 32 << 20,
        backlog_bytes_max: 64 << 20,
        first_segment_bytes: 16 << 20,
    }
}

/// A log of flushed blocks with one record each, of these lengths; and the records' positions.
fn log(storage: &FaultyStorage, lengths: &[usize]) -> (Host, Vec<Position>) {
    let mut host = Host::open(storage, large()).unwrap();
    let mut publish = |length| {
        let (_, position) = host.publish(length, true);
        host.run(storage);
        position
    };
    let positions = lengths.iter().map(|length| publish(*length)).collect();
    (host, positions)
}

/// Bytes that a start reads.
fn read_at_start(storage: &FaultyStorage) -> u64 {
    let before = storage.read_bytes();
    open(storage, large()).unwrap();
    storage.read_bytes() - before
}

/// Bytes of the segment in which the log ends, from there on.
fn rest(storage: &FaultyStorage, host: &Host) -> u64 {
    let end = host.journal.durable();
    storage.size(&segment_name(end.segment())).unwrap() - u64::from(end.offset())
}

/// What a start may read beside the log and the rest of its segment: a flush and a block of each of two
/// prepared segments, and a few first pages.
const BESIDE: u64 = 2 * 9 * MIB as u64 + (256 << 10);

#[test]
fn a_start_after_a_crash_reads_little_of_prepared_segments() {
    let storage = FaultyStorage::new(1);
    let (host, _) = log(&storage, &[1000]);
    storage.crash();
    let read = read_at_start(&storage);
    let bound = rest(&storage, &host) + BESIDE;
    assert!(read <= bound, "{read} bytes read, {bound} expected");
    // It did search them.
    assert!(read > 16 * MIB as u64, "{read}");
}

#[test]
fn a_start_after_a_crash_reads_little_of_reused_segments() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, large()).unwrap();
    while host.journal.durable().segment() < 8 {
        for _ in 0..8 {
            let (number, _) = host.publish(700_000, true);
            host.settle(number);
        }
        host.run(&storage);
        host.checkpoint_if_due();
        host.run(&storage);
    }
    let ready = segment_name(host.journal.durable().segment() + 1);
    let begins = storage.content(&ready).unwrap()[..4].to_vec();
    assert_eq!(begins, *b"AGJB", "{ready} is a file used before");
    host.checkpoint();
    host.run(&storage);
    storage.crash();
    let read = read_at_start(&storage);
    let bound = rest(&storage, &host) + BESIDE;
    assert!(read <= bound, "{read} bytes read, {bound} expected");
}

#[test]
fn an_orderly_shutdown_needs_no_search() {
    let storage = FaultyStorage::new(1);
    let (mut host, _) = log(&storage, &[1000]);
    host.journal.close(encode(&host.live));
    host.run(&storage);
    assert!(read_at_start(&storage) < 256 << 10);
}

/// Damage to a block's bytes; the second argument is how many it has.
type Rot = fn(&mut [u8], usize);

const ROTS: [(&str, Rot); 5] = [
    ("a bit of the magic", |bytes, _| bytes[1] ^= 4),
    ("a bit of the length", |bytes, _| bytes[30] ^= 4),
    ("a bit of a record", |bytes, _| bytes[80] ^= 4),
    ("a page of zeros", |bytes, _| bytes[..BLOCK_ALIGN].fill(0)),
    ("a page of noise", |bytes, _| bytes[..BLOCK_ALIGN].fill(0xa7)),
];

#[test]
fn a_missing_first_block_of_a_segment_is_noticed_whatever_its_damage() {
    // The last one is larger than the search of a segment without a sign of a block.
    for bytes in [100, 900_000, 12 * MIB] {
        let storage = FaultyStorage::new(1);
        // The first two fill a segment each.
        let fills = large().segment_bytes as usize - 72;
        let (_, positions) = log(&storage, &[fills, fills, bytes, 100]);
        let first = positions[2];
        assert_eq!((first.segment(), first.offset()), (3, 64), "{bytes}");
        for (what, rot) in ROTS {
            let damaged = storage.copy();
            damaged.edit("00000003.segment", |content| rot(content, bytes));
            open(&damaged, large()).map(drop).expect_err(&format!("{what} of {bytes}"));
        }
        if bytes < MIB {
            let damaged = storage.copy();
            let end = (bytes + 72).next_multiple_of(BLOCK_ALIGN);
            damaged.edit("00000003.segment", |content| content[..end].fill(0));
            open(&damaged, large()).map(drop).expect_err("nothing is left of it");
        }
    }
}

#[test]
fn a_missing_large_block_is_noticed_by_the_remains_of_its_header() {
    let storage = FaultyStorage::new(1);
    log(&storage, &[12 * MIB, 12 * MIB, 100]);
    storage.edit("00000002.segment", |bytes| {
        bytes[1] ^= 4;
        bytes[BLOCK_ALIGN..12 * MIB].fill(0);
    });
    open(&storage, large()).map(drop).expect_err("it was flushed once");
}

#[test]
fn the_last_block_of_a_torn_flush_is_proof_enough() {
    let storage = FaultyStorage::new(1);
    let (mut host, positions) = log(&storage, &[15 * MIB, 500_000, 400_000]);
    let flushed = positions[2];
    // A flush of the largest size, the first in the second segment. Only its last block reached the disk,
    // and the block flushed before it is damaged.
    let blocks: Vec<_> = (0..8).map(|_| host.publish(MIB - BLOCK_ALIGN, true).1).collect();
    host.run(&storage);
    let (first, last) = (blocks[0], blocks[7]);
    assert_eq!((first.segment(), last.segment()), (2, 2));
    storage.edit("00000002.segment", |bytes| bytes[..last.offset() as usize - 64].fill(0));
    storage.reboot();
    let torn = storage.copy();
    storage.flip("00000001.segment", u64::from(flushed.offset()) + 100, 1);
    let why = open(&storage, large()).map(drop).expect_err("it was flushed once");
    assert!(why.contains("00000001.segment at offset"), "{why}");
    // Without the damage it is an ordinary crash.
    assert_eq!(open(&torn, large()).unwrap().1.len(), 3);
}

#[test]
fn a_block_left_behind_in_a_later_segment_is_never_used() {
    let storage = FaultyStorage::new(1);
    log(&storage, &[100]);
    for life in 0..4 {
        let mut host = Host::open(&storage, large()).unwrap();
        assert_eq!(host.live.len(), 1, "life {life}");
        // Each time, of two blocks that were never flushed only the second one reached the disk; in the
        // end, none did.
        let (_, lost) = host.publish(200_000, false);
        host.run(&storage);
        if life < 3 {
            host.publish(1_000_000, false);
            host.run(&storage);
            storage.reboot();
            let at = lost.offset() as usize - 64;
            storage.edit("00000001.segment", |bytes| bytes[at..at + 200_000].fill(0));
        }
    }
    let live = open(&storage, large()).unwrap().1;
    assert_eq!(live.keys().copied().collect::<Vec<_>>(), [1, 2]);
}
