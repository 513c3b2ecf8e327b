//! Faults and recovery: crashes and restarts, disks that fail, are full or damaged, connections
//! that are cut or stall.

use super::World;
use super::broker::Broker;
use super::happening::{Fault, Happening, Stage};
use crate::canary::Canary;
use crate::history::{DISK_FULL, Event};
use angarium_journal::{Fault as DiskFault, State, Storage};
use angarium_node::clear_spill;
use std::time::Duration;

/// Longest time that the node is down, in microseconds.
const DOWN_MAX: u64 = 800_000;
/// Time until a close is tried again while the journal is not ready, in microseconds.
const CLOSE_PAUSE: u64 = 100_000;
/// Most times in a row that power fails while the node starts.
const START_CRASHES_MAX: u64 = 2;
/// The alignment of blocks in the journal, in bytes.
const BLOCK_BYTES: u64 = 4096;

impl World {
    /// Draws the times of all faults.
    pub(super) fn schedule_faults(&mut self) {
        let faults = self.plan.faults.clone();
        let counts = [
            (faults.crashes, Fault::Crash),
            (faults.closes, Fault::Close),
            (faults.sync_errors, Fault::SyncErrors),
            (faults.disk_fulls, Fault::DiskFull),
            (faults.cuts, Fault::Cut),
            (faults.stalls, Fault::Stall),
        ];
        for (count, fault) in counts {
            for _ in 0..count {
                let at = self.random.below(self.plan.duration);
                let is_in_work = self.random.percent(60) && fault == Fault::Crash;
                let fault = if is_in_work { Fault::CrashInWork } else { fault };
                self.schedule(at, Happening::Fault(fault));
            }
        }
        self.schedule_spill_faults();
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        if self.stage != Stage::Working && !matches!(fault, Fault::CloseNow) {
            return;
        }
        match fault {
            Fault::Crash => self.crash(),
            Fault::CrashInWork if self.broker.is_none() => {}
            Fault::CrashInWork => {
                let after = self.random.below(4);
                let operation = self.disk.operations() + after;
                self.disk.fail_at(operation, DiskFault::Io, true);
                self.power_fails_at = Some(operation);
            }
            Fault::Close => self.shut_down(),
            // The node crashed meanwhile; its successor is not to be closed.
            Fault::CloseNow if !self.is_shutting_down => {}
            Fault::CloseNow => self.close_now(),
            Fault::SyncErrors => {
                if self.broker.is_some() {
                    self.note(Event::Fault("flushes fail"));
                    self.disk.fail_sync(true);
                    let pause = self.random.below(2_000_000);
                    self.schedule(pause, Happening::Fault(Fault::Crash));
                }
            }
            Fault::DiskFull => {
                self.note(Event::Fault(DISK_FULL));
                let used = self.disk.used();
                self.disk.set_capacity(Some(used));
                let pause = self.random.below(3_000_000);
                self.schedule(pause, Happening::Fault(Fault::DiskSpace));
            }
            Fault::DiskSpace => self.disk.set_capacity(Some(self.plan.sizes.disk_bytes)),
            Fault::SpillFails | Fault::SpillFull | Fault::SpillCorrupted | Fault::SpillHeals => {
                self.spill_fault(fault);
            }
            Fault::Cut => {
                if let Some(link) = self.any_link() {
                    self.cut(link);
                }
            }
            Fault::Stall => self.stall(),
        }
    }

    fn any_link(&mut self) -> Option<u64> {
        let links: Vec<u64> = self.links.keys().copied().collect();
        (!links.is_empty()).then(|| *self.random.pick(&links))
    }

    fn stall(&mut self) {
        let Some(number) = self.any_link() else { return };
        let until = self.now.plus(Duration::from_micros(self.random.magnitude(8_000_000)));
        let is_up = self.random.percent(50);
        let Some(link) = self.links.get_mut(&number) else { return };
        let pipe = if is_up { &mut link.up } else { &mut link.down };
        pipe.stalled_until = until.max(pipe.stalled_until);
    }

    // ---- going down ----

    /// Crashes the node with everything under way; the disk keeps a random part of what was not
    /// flushed.
    pub(super) fn crash(&mut self) {
        if self.broker.take().is_some() {
            self.power_fails_at = None;
            self.note(Event::Crashed);
            self.disk.crash();
            self.went_down();
        }
    }

    /// Starts to close the node in order: asks clients to disconnect and gives them some time.
    pub(super) fn shut_down(&mut self) {
        let Some(broker) = self.broker.as_mut() else { return };
        if *broker.storage() != State::Ready || self.power_fails_at.is_some() {
            return;
        }
        broker.shut_down(self.now);
        self.is_shutting_down = true;
        self.want_turns();
        let pause = self.random.below(2_000_000);
        self.schedule(pause, Happening::Fault(Fault::CloseNow));
    }

    /// Closes the node in order: drops remaining connections and closes the journal.
    fn close_now(&mut self) {
        let Some(broker) = self.broker.as_mut() else { return };
        if *broker.storage() != State::Ready || self.power_fails_at.is_some() {
            // Tried again later: the node takes no new clients meanwhile.
            self.schedule(CLOSE_PAUSE, Happening::Fault(Fault::CloseNow));
            return;
        }
        self.is_shutting_down = false;
        for place in std::mem::take(&mut self.by_place).into_keys() {
            broker.nodes[place.shard].disconnected(self.now, place.slot);
        }
        broker.settle_down(self.now);
        let flights: Vec<u64> = self.flights.keys().copied().collect();
        for number in flights {
            self.work(number);
            self.worked(number);
        }
        if let Some(mut broker) = self.broker.take() {
            broker.close(self.now, &self.disk);
            // Without the last flush it was no orderly close.
            let is_clean = *broker.storage() == State::Ready;
            self.note(if is_clean { Event::Closed } else { Event::Crashed });
            // After an orderly close, a power failure may lose nothing.
            self.disk.crash();
            self.went_down();
        }
    }

    /// What follows each end of the node.
    fn went_down(&mut self) {
        self.leave_claimants(false);
        self.is_shutting_down = false;
        self.flights.clear();
        self.by_place.clear();
        self.turns_due.clear();
        self.routes_due.clear();
        self.deadlines_at.clear();
        let numbers: Vec<u64> = self.links.keys().copied().collect();
        for number in numbers {
            if let Some(link) = self.links.get_mut(&number) {
                link.place = None;
            }
            let pause = self.random.below(300_000);
            self.schedule(pause, Happening::ClientLost(number));
        }
        let pause = self.random.below(DOWN_MAX);
        self.schedule(pause, Happening::Restart);
    }

    // ---- coming up ----

    /// Starts a node on the disk. Power may fail meanwhile, and the disk may be damaged.
    pub(super) fn restart(&mut self) -> Result<(), String> {
        if self.broker.is_some() {
            return Ok(());
        }
        if self.canary == Some(Canary::LogCut) {
            self.cut_log();
        }
        if self.plan.faults.bit_flip && self.flipped.is_none() && self.random.percent(50) {
            self.flip_bit()?;
        }
        for _ in 0..START_CRASHES_MAX {
            if self.random.percent(15) {
                let operation = self.disk.operations() + self.random.below(12);
                self.disk.fail_at(operation, DiskFault::Io, true);
                let outcome = self.recover();
                let has_failed = self.disk.operations() > operation;
                if outcome.is_ok() && has_failed {
                    return Err("the node started although its disk failed".to_owned());
                }
                self.disk.crash();
            }
        }
        match self.recover() {
            Ok(mut broker) => {
                self.note(Event::Recovered);
                broker.open(self.now)?;
                self.broker = Some(broker);
                self.highest = Default::default();
                self.want_turns();
                Ok(())
            }
            Err(why) => self.judge_refusal(&why),
        }
    }

    fn recover(&mut self) -> Result<Broker, String> {
        let seed = self.random.draw();
        self.heal_spill();
        clear_spill(&self.spill_disk).map_err(|error| error.to_string())?;
        Broker::recover(self.options(seed), &self.disk, self.now)
    }

    /// A node may only refuse to start where a bit was flipped, and must name the file.
    fn judge_refusal(&mut self, why: &str) -> Result<(), String> {
        match &self.flipped {
            Some(name) if why.contains(name.as_str()) => {
                self.stage = Stage::Refused;
                Ok(())
            }
            Some(name) => {
                Err(format!("a bit was flipped in {name}, and the node fails with: {why}"))
            }
            None => Err(format!("the node does not start: {why}")),
        }
    }

    /// Flips a bit in a block that the next start reads and later blocks record as flushed.
    /// (Damage in the last flush cannot be told from a torn flush; damage before the checkpoint is
    /// found when the record is read.)
    fn flip_bit(&mut self) -> Result<(), String> {
        let report = angarium_journal::check(&self.disk)?;
        let start = report.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.start.0);
        let (first, last) = ((start >> 32) as u32, (report.flushed.0 >> 32) as u32);
        let sealed = report.segments.iter().filter(|segment| {
            let id = segment.name.split('.').next().and_then(|digits| digits.parse().ok());
            id.is_some_and(|id: u32| id > first && id < last && segment.blocks > 0)
        });
        let sealed: Vec<String> = sealed.map(|segment| segment.name.clone()).collect();
        if sealed.is_empty() {
            return Ok(());
        }
        let name = self.random.pick(&sealed).clone();
        let size = self.disk.size(&name).map_err(|error| error.to_string())?;
        let offset = self.random.below(size);
        let bit = 1 << self.random.below(8);
        self.note(Event::Fault("a bit is flipped"));
        self.disk.flip(&name, offset, bit);
        self.flipped = Some(name);
        Ok(())
    }

    /// The canary `LogCut`: cuts a block out of the log and moves the rest up.
    fn cut_log(&mut self) {
        let Ok(names) = self.disk.list() else { return };
        for name in names.iter().filter(|name| name.ends_with(".segment")) {
            self.disk.edit(name, |bytes| {
                let block = BLOCK_BYTES as usize;
                if bytes.len() > 3 * block && bytes[2 * block] != 0 && bytes[block] != 0 {
                    bytes.drain(block..2 * block);
                    bytes.extend(std::iter::repeat_n(0, block));
                }
            });
        }
    }
}
