//! Every I/O operation fails once, or from then on: nothing reported durable is lost. A full disk is
//! reported, survived, and left without help.

use std::collections::BTreeSet;

use super::crash::Random;
use super::{Host, open, small};
use crate::{Fault, FaultyStorage, JobKind, Journal, Options, Position, Recovery, State};

fn tiny() -> Options {
    Options { segment_bytes: 16 << 10, checkpoint_bytes: 32 << 10, ..small() }
}

/// A run with every kind of operation. Returns what was reported durable, and what was perhaps settled.
fn scenario(storage: &FaultyStorage) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let mut settled = BTreeSet::new();
    let mut promised = BTreeSet::new();
    let Ok(mut host) = Host::open(storage, tiny()) else {
        return (promised, settled);
    };
    let mut published: Vec<(u64, Position)> = Vec::new();
    for round in 0..24 {
        for _ in 0..3 {
            published.push(host.publish(1500, true));
        }
        if round % 6 == 5 {
            let old: Vec<_> = host.live.keys().copied().take(14).collect();
            for number in old {
                settled.insert(number);
                host.settle(number);
            }
            host.checkpoint();
        }
        host.run(storage);
        let durable = host.journal.durable();
        promised.extend(published.iter().filter(|it| it.1 < durable).map(|it| it.0));
    }
    let snapshot = super::encode(&host.live);
    host.journal.close(snapshot);
    host.run(storage);
    (promised, settled)
}

#[test]
fn nothing_durable_is_lost_whichever_operation_fails() {
    let whole = FaultyStorage::new(1);
    let (all, _) = scenario(&whole);
    let operations = whole.operations();
    assert!(operations > 80 && all.len() == 72, "{operations} operations");
    for fault in [Fault::Io, Fault::Full] {
        for sticky in [false, true] {
            for at in 0..operations {
                let storage = FaultyStorage::new(at + 1);
                storage.fail_at(at, fault, sticky);
                let (promised, settled) = scenario(&storage);
                storage.crash();
                let context = format!("{fault:?} at {at}, sticky {sticky}");
                let (_, live, _) =
                    open(&storage, tiny()).unwrap_or_else(|why| panic!("{context}: {why}"));
                for number in promised.difference(&settled) {
                    assert!(live.contains_key(number), "{context}: {number} is lost");
                }
            }
        }
    }
}

#[test]
fn recovery_itself_may_fail_at_any_operation_and_be_tried_again() {
    let storage = FaultyStorage::new(3);
    let (promised, settled) = {
        storage.fail_at(70, Fault::Io, true);
        scenario(&storage)
    };
    storage.crash();
    for at in 0.. {
        let before = storage.operations();
        storage.fail_at(before + at, Fault::Io, true);
        let result = open(&storage, tiny());
        storage.crash();
        if let Ok((_, live, _)) = result {
            assert!(promised.difference(&settled).all(|number| live.contains_key(number)));
            return;
        }
    }
}

#[test]
fn a_failed_flush_is_never_tried_again() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    host.publish(100, true);
    host.run(&storage);
    let durable = host.journal.durable();
    host.publish(100, true);
    storage.fail_sync(true);
    host.run(&storage);
    storage.heal();
    assert!(matches!(host.journal.state(), State::Failed(why) if why.contains("00000001.segment")));
    for _ in 0..10_000 {
        host.publish(1000, true);
        assert!(host.journal.next_job().is_none());
    }
    host.checkpoint();
    host.journal.retry();
    host.run(&storage);
    assert_eq!(host.journal.durable(), durable);
    assert!(!host.journal.checkpoint_due());
    assert!(host.journal.stats().backlog_bytes < 1 << 20);
}

/// Publishes until there is no space; the reserve still takes settles.
fn fill(host: &mut Host, storage: &FaultyStorage) {
    for _ in 0..1_000 {
        if *host.journal.state() == State::Full {
            return;
        }
        host.publish(5_000, true);
        host.run(storage);
        if host.journal.checkpoint_due() {
            host.checkpoint();
            host.run(storage);
        }
    }
    panic!("there is always space");
}

#[test]
fn settles_still_work_without_space_and_give_space_back() {
    let storage = FaultyStorage::new(1);
    storage.set_capacity(Some(20 * (64 << 10) + 30_000));
    let mut host = Host::open(&storage, small()).unwrap();
    for _ in 0..3 {
        fill(&mut host, &storage);
        let numbers: Vec<_> = host.live.keys().copied().collect();
        assert!(numbers.len() > 100, "{} messages in 20 segments", numbers.len());
        for number in numbers {
            let position = host.settle(number);
            host.run(&storage);
            assert!(host.journal.durable() > position, "a settle waits for space");
            host.checkpoint_if_due();
            host.run(&storage);
        }
        for _ in 0..3 {
            host.journal.retry();
            host.checkpoint_if_due();
            host.run(&storage);
        }
        assert_eq!(*host.journal.state(), State::Ready);
    }
    storage.crash();
    assert_eq!(open(&storage, small()).unwrap().1, host.live);
}

/// Appends the live records of a sparse segment again.
fn compact(host: &mut Host) {
    let Some(segment) = host.journal.sparse_segment() else { return };
    let there: Vec<_> = host.live.iter().filter(|it| it.1.segment() == segment).collect();
    let there: Vec<(u64, Position)> = there.into_iter().map(|it| (*it.0, *it.1)).collect();
    for (number, before) in there {
        let position = host.journal.append(&[&super::payload(number, 5_000)], false);
        host.journal.retain(position, 1);
        host.journal.release(before, 1);
        host.live.insert(number, position);
    }
}

#[test]
fn a_full_disk_is_left_once_a_part_of_every_segment_is_settled() {
    for settled_of_12 in [4, 6, 9] {
        let storage = FaultyStorage::new(1);
        storage.set_capacity(Some(20 * (64 << 10) + 30_000));
        let mut host = Host::open(&storage, small()).unwrap();
        fill(&mut host, &storage);
        let numbers: Vec<_> = host.live.keys().copied().collect();
        for number in numbers.into_iter().filter(|number| number % 12 < settled_of_12) {
            host.settle(number);
        }
        host.run(&storage);
        let mut seconds = 0;
        while *host.journal.state() == State::Full {
            seconds += 1;
            assert!(seconds < 30, "{settled_of_12} of 12 are settled, and it is full for ever");
            host.journal.retry();
            host.run(&storage);
            for _ in 0..5 {
                if host.journal.checkpoint_due() {
                    compact(&mut host);
                    host.checkpoint();
                    host.run(&storage);
                }
            }
        }
        assert_eq!(open(&storage, small()).unwrap().1, host.live);
    }
}

#[test]
fn space_that_comes_back_is_found_by_trying_again() {
    let storage = FaultyStorage::new(1);
    storage.set_capacity(Some(6 * (64 << 10)));
    let mut host = Host::open(&storage, small()).unwrap();
    fill(&mut host, &storage);
    // Nothing is tried before `retry`.
    assert!(host.journal.next_job().is_none());
    // Records that do not fit the reserve wait; none is reported durable.
    for _ in 0..100 {
        host.publish(5_000, true);
    }
    host.run(&storage);
    host.journal.retry();
    host.run(&storage);
    assert_eq!(*host.journal.state(), State::Full);
    let last = host.publish(10, true).1;
    assert!(host.journal.durable() < last);
    storage.set_capacity(None);
    host.journal.retry();
    host.run(&storage);
    assert_eq!(*host.journal.state(), State::Ready);
    assert!(host.journal.durable() > last);
    storage.crash();
    assert_eq!(open(&storage, small()).unwrap().1, host.live);
}

#[test]
fn a_checkpoint_without_space_keeps_the_older_one_and_takes_the_reserve() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    for _ in 0..40 {
        host.publish(5_000, true);
    }
    host.run(&storage);
    storage.set_capacity(Some(storage.used()));
    host.checkpoint();
    host.run(&storage);
    assert_eq!(*host.journal.state(), State::Full);
    let numbers: Vec<_> = host.live.keys().copied().collect();
    for number in numbers {
        host.settle(number);
    }
    host.run(&storage);
    assert!(host.journal.checkpoint_due());
    host.checkpoint();
    host.run(&storage);
    host.journal.retry();
    host.run(&storage);
    assert_eq!(*host.journal.state(), State::Ready);
    assert!(open(&storage, small()).unwrap().1.is_empty());
}

#[test]
fn more_than_the_disk_takes_is_congestion() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    let backlog = |journal: &Journal| journal.stats().backlog_bytes;
    while !host.journal.congested() {
        host.publish(1000, true);
    }
    assert!(backlog(&host.journal) > small().backlog_bytes_max);
    host.run(&storage);
    assert!(!host.journal.congested());
    assert_eq!(backlog(&host.journal), 0);
}

#[test]
fn only_one_job_of_a_kind_is_out_and_late_results_are_taken() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    host.publish(1000, true);
    host.run(&storage);
    host.publish(1000, true);
    host.checkpoint();
    let flush = host.journal.next_job().unwrap();
    assert_eq!(flush.kind(), JobKind::Flush);
    // The checkpoint waits for the flush before it.
    assert!(host.journal.next_job().is_none());
    host.journal.close(super::encode(&host.live));
    host.journal.finished(flush.run(&storage));
    let checkpoint = host.journal.next_job().unwrap();
    assert_eq!(checkpoint.kind(), JobKind::Checkpoint);
    host.journal.finished(checkpoint.run(&storage));
    assert!(Recovery::open(&storage, small()).unwrap().clean());
}

#[test]
fn small_records_that_wait_for_a_segment_are_not_padded_one_by_one() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, tiny()).unwrap();
    let (first, _) = host.publish(1500, true);
    host.run(&storage);
    storage.set_capacity(Some(storage.used()));
    while *host.journal.state() == State::Ready || host.journal.stats().backlog_bytes == 0 {
        host.publish(1500, true);
        host.run(&storage);
    }
    let before = host.journal.stats().backlog_bytes;
    host.settle(first);
    for _ in 0..1000 {
        host.journal.append(&[&(first | super::SETTLE).to_le_bytes()], false);
        host.run(&storage);
    }
    let after = host.journal.stats().backlog_bytes;
    assert!(after - before < 64 << 10, "{} bytes for a thousand settles", after - before);
    storage.set_capacity(None);
    host.journal.retry();
    host.run(&storage);
    assert_eq!(host.journal.stats().backlog_bytes, 0);
}

/// After every step the journal is `Full`, or everything that needs a flush is durable. Once space is back
/// and `retry` is called, it is `Ready`.
fn never_stops_unreported(seed: u64) {
    let storage = FaultyStorage::new(seed);
    let mut random = Random(seed);
    let mut host = Host::open(&storage, tiny()).unwrap();
    for step in 0..150 {
        let full = *host.journal.state() == State::Full;
        match random.below(12) {
            0 if !full => drop(host.publish(20_000 + random.below(60_000) as usize, true)),
            0..5 if !full => drop(host.publish(random.below(6_000) as usize, true)),
            5..8 => {
                let oldest: Vec<_> = host.live.keys().copied().take(8).collect();
                for number in oldest {
                    host.settle(number);
                }
            }
            8 => host.checkpoint(),
            9 => storage.set_capacity(Some(storage.used() + (random.below(5) << 14))),
            10 => {
                let at = storage.operations() + random.below(6);
                storage.fail_at(at, Fault::Full, random.below(4) == 0);
            }
            11 if random.below(4) == 0 => {
                storage.heal();
                storage.set_capacity(None);
            }
            _ => host.journal.retry(),
        }
        host.run(&storage);
        while host.journal.checkpoint_due() {
            host.checkpoint();
            host.run(&storage);
        }
        match host.journal.state() {
            State::Ready => {
                let waiting = host.journal.stats().backlog_bytes;
                assert_eq!(waiting, 0, "seed {seed}, step {step}: a backlog without a report");
            }
            State::Full => {}
            // A flush that finds no space is an error like any other.
            State::Failed(_) => break,
        }
    }
    if matches!(host.journal.state(), State::Failed(_)) {
        return;
    }
    storage.heal();
    storage.set_capacity(None);
    for _ in 0..3 {
        host.journal.retry();
        host.run(&storage);
        while host.journal.checkpoint_due() {
            host.checkpoint();
            host.run(&storage);
        }
    }
    assert_eq!(*host.journal.state(), State::Ready, "seed {seed}");
    assert_eq!(host.journal.stats().backlog_bytes, 0, "seed {seed}");
    storage.crash();
    assert_eq!(open(&storage, tiny()).unwrap().1, host.live, "seed {seed}");
}

#[test]
fn a_lack_of_space_is_reported_and_ends_with_it() {
    for seed in 1..1_000 {
        never_stops_unreported(seed);
    }
}

#[test]
fn a_large_record_finds_space_that_free_segments_gave_back() {
    let storage = FaultyStorage::new(1);
    storage.set_capacity(Some(12 * (64 << 10)));
    let mut host = Host::open(&storage, small()).unwrap();
    fill(&mut host, &storage);
    for number in host.live.keys().copied().collect::<Vec<_>>() {
        host.settle(number);
    }
    host.run(&storage);
    host.checkpoint();
    host.run(&storage);
    // Without asking the disk again, through segments that are not needed.
    assert_eq!(*host.journal.state(), State::Ready);
    let large = host.publish(90_000, true).1;
    host.run(&storage);
    assert!(host.journal.durable() > large, "used segments make room for it");
    assert_eq!(*host.journal.state(), State::Ready);
}

#[test]
fn a_removal_without_space_is_tried_again() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    for _ in 0..8 {
        host.publish(90_000, true);
    }
    host.run(&storage);
    for number in host.live.keys().copied().collect::<Vec<_>>() {
        host.settle(number);
    }
    host.checkpoint();
    // Flush, checkpoint; then segments of unusual size are removed.
    let mut jobs = 0;
    while let Some(job) = host.journal.next_job() {
        if job.kind() == JobKind::Space {
            storage.fail_at(storage.operations(), Fault::Full, false);
        }
        jobs += 1;
        host.journal.finished(job.run(&storage));
    }
    assert!(jobs < 10, "it is not tried again before `retry`");
    assert_eq!(*host.journal.state(), State::Full);
    storage.heal();
    let used = storage.used();
    host.journal.retry();
    host.run(&storage);
    assert_eq!(*host.journal.state(), State::Ready);
    assert!(storage.used() < used);
}
