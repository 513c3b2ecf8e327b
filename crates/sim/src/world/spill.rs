//! The spill disk and its faults.

use super::World;
use super::happening::{Fault, Flight, Happening};
use crate::canary::Canary;
use crate::history::{Event, SPILL_CORRUPTED, SPILL_FAILS, SPILL_FULL};
use angarium_journal::{Fault as DiskFault, Storage};
use angarium_node::{SpillDone, SpillJob};

/// Longest time for which writes fail, in microseconds.
const BROKEN_MAX: u64 = 3_000_000;
/// Percentage of files that are damaged at a time.
const DAMAGED_PERCENT: u64 = 50;
/// Most jobs in a row before which something is damaged.
const CORRUPTIONS_MAX: u64 = 4;

impl World {
    /// Draws the times of all faults.
    pub(super) fn schedule_spill_faults(&mut self) {
        let spill = self.plan.spill.clone();
        for (count, fault) in [
            (spill.failures, Fault::SpillFails),
            (spill.fulls, Fault::SpillFull),
            (spill.corruptions, Fault::SpillCorrupted),
        ] {
            for _ in 0..count {
                let at = self.spill_random.below(self.plan.duration);
                self.schedule(at, Happening::Fault(fault));
            }
        }
    }

    pub(super) fn spill_fault(&mut self, fault: Fault) {
        match fault {
            Fault::SpillFails => {
                self.note(Event::Fault(SPILL_FAILS));
                let (after, is_lasting) =
                    (self.spill_random.below(4), self.spill_random.percent(50));
                let disk = &self.spill_disk;
                disk.fail_at(disk.operations() + after, DiskFault::Io, is_lasting);
            }
            Fault::SpillFull => {
                self.note(Event::Fault(SPILL_FULL));
                self.spill_disk.set_capacity(Some(self.spill_disk.used()));
            }
            Fault::SpillCorrupted => {
                self.note(Event::Fault(SPILL_CORRUPTED));
                self.spill_corruptions = self.spill_random.between(1, CORRUPTIONS_MAX);
                return;
            }
            _ => return self.heal_spill(),
        }
        let pause = self.spill_random.below(BROKEN_MAX);
        self.schedule(pause, Happening::Fault(Fault::SpillHeals));
    }

    /// Runs a spill job; files may be damaged before it.
    pub(super) fn run_spill_job(&mut self, job: SpillJob) -> Option<SpillDone> {
        if self.canary == Some(Canary::SpillCorrupted) {
            self.corrupt_spill();
        } else if self.spill_corruptions > 0 {
            self.spill_corruptions -= 1;
            self.corrupt_spill();
        }
        let broker = self.broker.as_mut()?;
        Some(broker.spill(job, &self.spill_disk))
    }

    /// Flips a bit in some files and truncates others.
    fn corrupt_spill(&mut self) {
        let random = &mut self.spill_random;
        let disk = &self.spill_disk;
        for name in disk.list().unwrap_or_default() {
            let size = disk.size(&name).unwrap_or(0);
            if size == 0 || !random.percent(DAMAGED_PERCENT) {
                continue;
            }
            let at = random.below(size);
            if random.percent(50) {
                disk.flip(&name, at, 1 << random.below(8));
            } else {
                disk.edit(&name, |bytes| bytes.truncate(at as usize));
            }
        }
    }

    /// Ends the faults; damaged files stay damaged.
    pub(super) fn heal_spill(&mut self) {
        self.spill_corruptions = 0;
        self.spill_disk.heal();
        self.spill_disk.set_capacity(None);
    }

    /// Extra time of work on this disk, in microseconds.
    pub(super) fn spill_delay(&mut self, flight: &Flight) -> u64 {
        let slowest = self.plan.spill.slowness_max;
        let is_slow = slowest > 0 && matches!(flight, Flight::Spill(..));
        if is_slow { self.spill_random.magnitude(slowest) } else { 0 }
    }
}
