//! The disk on which direct messages wait for slow clients, and what goes wrong with it.

use super::disk_work::Flight;
use super::faults::Fault;
use super::{Happening, World};
use crate::canary::Canary;
use crate::history::{Event, SPOOL_FAILS, SPOOL_FULL, SPOOL_ROTS};
use angarium_journal::{Fault as DiskFault, Storage};
use angarium_node::{SpillDone, SpillJob};

/// Longest time for which nothing can be written, in microseconds.
const BROKEN_MAX: u64 = 3_000_000;
/// How many in a hundred files are damaged at once.
const ROTTEN_PERCENT: u64 = 50;
/// Most jobs in a row before which something is damaged.
const ROTS_MAX: u64 = 4;

impl World {
    /// Draws the times of all faults.
    pub(super) fn schedule_spool_faults(&mut self) {
        let spool = self.plan.spool.clone();
        for (count, fault) in [
            (spool.failures, Fault::SpoolFails),
            (spool.fulls, Fault::SpoolFull),
            (spool.rots, Fault::SpoolRots),
        ] {
            for _ in 0..count {
                let at = self.spool_random.below(self.plan.duration);
                self.schedule(at, Happening::Fault(fault));
            }
        }
    }

    pub(super) fn spool_fault(&mut self, fault: Fault) {
        match fault {
            Fault::SpoolFails => {
                self.note(Event::Fault(SPOOL_FAILS));
                let (after, is_lasting) =
                    (self.spool_random.below(4), self.spool_random.percent(50));
                let disk = &self.spill_disk;
                disk.fail_at(disk.operations() + after, DiskFault::Io, is_lasting);
            }
            Fault::SpoolFull => {
                self.note(Event::Fault(SPOOL_FULL));
                self.spill_disk.set_capacity(Some(self.spill_disk.used()));
            }
            Fault::SpoolRots => {
                self.note(Event::Fault(SPOOL_ROTS));
                self.spool_rots = self.spool_random.between(1, ROTS_MAX);
                return;
            }
            _ => return self.heal_spool(),
        }
        let pause = self.spool_random.below(BROKEN_MAX);
        self.schedule(pause, Happening::Fault(Fault::SpoolHeals));
    }

    /// A job is about to be done, before which something may be damaged.
    pub(super) fn spool(&mut self, job: SpillJob) -> Option<SpillDone> {
        if self.canary == Some(Canary::SpoolRots) {
            self.rot_spool();
        } else if self.spool_rots > 0 {
            self.spool_rots -= 1;
            self.rot_spool();
        }
        let broker = self.broker.as_mut()?;
        Some(broker.spill(job, &self.spill_disk))
    }

    /// Flips a bit in some files and cuts others short.
    fn rot_spool(&mut self) {
        let random = &mut self.spool_random;
        let disk = &self.spill_disk;
        for name in disk.list().unwrap_or_default() {
            let size = disk.size(&name).unwrap_or(0);
            if size == 0 || !random.percent(ROTTEN_PERCENT) {
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

    /// Ends what is wrong, but for what has been damaged.
    pub(super) fn heal_spool(&mut self) {
        self.spool_rots = 0;
        self.spill_disk.heal();
        self.spill_disk.set_capacity(None);
    }

    /// How much longer work takes because it is for this disk.
    pub(super) fn spool_delay(&mut self, flight: &Flight) -> u64 {
        let slowest = self.plan.spool.slowness_max;
        let is_slow = slowest > 0 && matches!(flight, Flight::Spill(..));
        if is_slow { self.spool_random.magnitude(slowest) } else { 0 }
    }
}
