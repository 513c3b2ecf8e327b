//! Power loss at random moments: what was reported durable is there, nothing is invented, groups are whole.

use std::collections::BTreeMap;

use super::{Host, open, payload, read, small};
use crate::{FaultyStorage, Job, Position};

/// What must be there after a crash, and what may be.
#[derive(Default)]
struct Promises {
    /// Number to position of its publish.
    published: BTreeMap<u64, Position>,
    /// Number to position of its settle.
    settled: BTreeMap<u64, Position>,
    /// Groups: numbers that are there all or none.
    groups: Vec<(Vec<u64>, Position)>,
}

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

impl Promises {
    fn check(&self, live: &BTreeMap<u64, Position>, durable: Position, context: &str) {
        for (number, position) in &self.published {
            let settle = self.settled.get(number);
            if *position < durable && settle.is_none() {
                assert!(live.contains_key(number), "{context}: {number} is lost");
            }
            if settle.is_some_and(|settle| *settle < durable) {
                assert!(!live.contains_key(number), "{context}: {number} is back");
            }
        }
        for number in live.keys() {
            assert!(self.published.contains_key(number), "{context}: {number} is invented");
        }
        for (group, _) in &self.groups {
            let there = group.iter().filter(|&number| live.contains_key(number)).count();
            let settled = group.iter().any(|number| self.settled.contains_key(number));
            assert!(settled || there == 0 || there == group.len(), "{context}: a group is torn");
        }
    }
}

/// One run of a broker: publishes, settles, groups, checkpoints, jobs that end late or never.
fn live_until_crash(
    host: &mut Host,
    storage: &FaultyStorage,
    random: &mut Random,
    promises: &mut Promises,
) -> Position {
    let mut out: Vec<Job> = Vec::new();
    for _ in 0..random.below(300) {
        match random.below(12) {
            0..4 => {
                let length =
                    if random.below(20) == 0 { 90_000 } else { random.below(3000) as usize };
                let (number, position) = host.publish(length, random.below(3) > 0);
                promises.published.insert(number, position);
            }
            4 | 5 if !host.live.is_empty() => {
                let at = random.below(host.live.len() as u64) as usize;
                let number = *host.live.keys().nth(at).unwrap();
                let position = host.settle(number);
                promises.settled.insert(number, position);
            }
            6 => {
                let count = random.below(5) as usize + 2;
                let length = random.below(9000) as usize + 8;
                host.journal.reserve(length * count, count);
                let group: Vec<_> = (0..count).map(|_| host.publish(length, true)).collect();
                promises.published.extend(group.iter().copied());
                let last = group.last().unwrap().1;
                promises.groups.push((group.into_iter().map(|it| it.0).collect(), last));
            }
            7 => match random.below(16) {
                0 | 1 => host.checkpoint(),
                2 | 3 => host.begin_checkpoint(),
                4..9 => host.finish_checkpoint(),
                _ => {}
            },
            8 | 9 => out.extend(host.journal.next_job()),
            _ if !out.is_empty() => {
                let at = random.below(out.len() as u64) as usize;
                let done = out.swap_remove(at).run(storage);
                host.journal.finished(done);
            }
            _ => {}
        }
    }
    let durable = host.journal.durable();
    // Some of the running jobs reach the disk without a report.
    for job in out {
        if random.below(2) == 0 {
            drop(job.run(storage));
        }
    }
    durable
}

#[test]
fn nothing_durable_is_lost_in_crash_after_crash() {
    crash_after_crash(0..40);
}

#[test]
#[ignore = "the same for an hour's worth of seeds"]
fn nothing_durable_is_lost_in_many_crashes() {
    crash_after_crash(40..5_000);
}

fn crash_after_crash(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let storage = FaultyStorage::new(seed * 7919 + 1);
        let mut random = Random(seed);
        let mut promises = Promises::default();
        for life in 0..6 {
            let context = format!("seed {seed} life {life}");
            let mut host =
                Host::open(&storage, small()).unwrap_or_else(|why| panic!("{context}: {why}"));
            host.next = promises.published.keys().next_back().map_or(1, |last| last + 1);
            let durable = live_until_crash(&mut host, &storage, &mut random, &mut promises);
            storage.crash();
            let (journal, live, _) =
                open(&storage, small()).unwrap_or_else(|why| panic!("{context}: {why}"));
            promises.check(&live, durable, &context);
            let positions: Vec<_> = live.values().copied().collect();
            let records = read(&journal, positions, &storage).unwrap();
            for (number, record) in live.keys().zip(records) {
                assert_eq!(*record, *payload(*number, record.len()), "{context}");
            }
            // What did not survive counts as never published.
            promises.published.retain(|number, _| live.contains_key(number));
            promises.settled.clear();
            promises.groups.clear();
            storage.crash();
        }
    }
}

#[test]
fn a_block_left_behind_the_end_is_never_used_later() {
    let storage = FaultyStorage::new(1);
    let mut host = Host::open(&storage, small()).unwrap();
    host.publish(100, true);
    host.run(&storage);
    let (_, lost) = host.publish(100, false);
    host.run(&storage);
    host.publish(100, false);
    host.run(&storage);
    // Of two blocks never flushed the second alone reached the disk, before power was lost.
    storage.reboot();
    let at = lost.offset() as usize - 64;
    storage.edit("00000001.segment", |bytes| bytes[at..at + 4096].fill(0));
    let mut host = Host::open(&storage, small()).unwrap();
    assert_eq!(host.live.len(), 1);
    // The next process writes a block as long as the lost one: right before the one left behind.
    host.publish(100, true);
    host.run(&storage);
    storage.crash();
    assert_eq!(open(&storage, small()).unwrap().1, host.live);
}

#[test]
fn what_only_the_page_cache_has_is_written_again_before_it_counts() {
    for seed in 1..30 {
        let storage = FaultyStorage::new(seed);
        let mut host = Host::open(&storage, small()).unwrap();
        host.publish(100, true);
        host.run(&storage);
        host.publish(3000, true);
        storage.fail_sync(true);
        host.run(&storage);
        storage.heal();
        // The process restarts, the machine does not: it reads bytes that the disk may not have.
        let mut host = Host::open(&storage, small()).unwrap();
        assert_eq!(host.live.len(), 2);
        host.publish(100, true);
        host.run(&storage);
        storage.crash();
        assert_eq!(open(&storage, small()).unwrap().1, host.live, "seed {seed}");
    }
}
