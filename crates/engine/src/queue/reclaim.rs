//! Messages of purged and deleted queues: they are invisible, count for nothing, and their memory
//! and references are released a part at a time.
//!
//! A snapshot in progress holds what left since it began with its queue. What left before has no
//! queue: its references end with this process.

use super::lane::Lane;
use super::page::Page;
use crate::Effects;
use crate::engine::Engine;
use crate::queue::entry::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// What one lane of a queue had.
#[derive(Debug)]
struct Departed {
    /// Counted up.
    serial: u64,
    /// The number of its queue, or of none that ever was.
    queue: u64,
    /// Whether that survives a restart.
    durable: bool,
    /// It is not given back before [`Departures::let_go`].
    waits: bool,
    lane: Lane,
}

/// All that has left, in that order.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    lanes: VecDeque<Departed>,
    next: u64,
}

impl Departures {
    /// Takes in what a lane of a queue had.
    pub(crate) fn add(&mut self, queue: u64, durable: bool, lane: Lane, waits: bool) {
        if !lane.is_empty() {
            self.lanes.push_back(Departed { serial: self.next, queue, durable, waits, lane });
            self.next += 1;
        }
    }

    /// The number of the lane that is next to come.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Lanes with these numbers, which waited, may be given back.
    pub(crate) fn let_go(&mut self, serials: &Range<u64>) {
        let waiting = self.lanes.iter_mut().filter(|lane| serials.contains(&lane.serial));
        waiting.for_each(|lane| lane.waits = false);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// The snapshot that begins now does not have it in any queue.
    pub(crate) fn disown(&mut self) {
        for departed in &mut self.lanes {
            // Queues are counted from below, and end long before.
            departed.queue = u64::MAX - departed.serial;
        }
    }

    /// Its messages in memory.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.lanes.iter().flat_map(|departed| departed.lane.entries())
    }

    /// Its pages, and whether their queues survive a restart.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (&Page, bool)> {
        self.lanes.iter().flat_map(|it| it.lane.pages.iter().map(|page| (page, it.durable)))
    }

    /// The first lane from a serial number on: that number, its queue's, and the lane.
    pub(crate) fn lane_from(&mut self, serial: u64) -> Option<(u64, u64, &mut Lane)> {
        let index = self.lanes.partition_point(|departed| departed.serial < serial);
        let departed = self.lanes.get_mut(index)?;
        Some((departed.serial, departed.queue, &mut departed.lane))
    }

    /// Counts what survives a restart as references that do not.
    pub(crate) fn count_durable(&self, references: &mut BTreeMap<u32, u64>, with_entries: bool) {
        let mut count = |segment, more| *references.entry(segment).or_default() += more;
        let entries = with_entries.then(|| self.entries()).into_iter().flatten();
        for entry in entries.filter(|entry| entry.durable) {
            count(entry.position.segment(), 1);
        }
        for (page, durable) in self.pages() {
            if durable {
                count(page.position.segment(), 1);
            }
            for in_segment in page.segments.iter().filter(|count| count.durable > 0) {
                count(in_segment.segment, in_segment.durable.into());
            }
        }
    }
}

impl Engine {
    /// Releases up to `messages` of them.
    #[cold]
    #[inline(never)]
    pub(crate) fn give_back_some<F: Effects>(&mut self, most: usize, fx: &mut F) {
        for _ in 0..most {
            let lanes = &mut self.agenda.departures.lanes;
            let Some(at) = lanes.iter().position(|lane| !lane.waits) else { return };
            let first = &mut lanes[at];
            let (queue, durable) = (first.queue, first.durable);
            if let Some(entry) = first.lane.take_any() {
                self.snapshot_first(queue, &entry);
                self.release_entry(&entry, fx);
            } else if let Some(page) = first.lane.pages.pop_front() {
                self.drop_page(durable, &page, fx);
            } else {
                self.agenda.departures.lanes.remove(at);
            }
        }
    }

    /// Gives all of it back in one go, at recovery.
    pub(crate) fn give_all_back<F: Effects>(&mut self, fx: &mut F) {
        while !self.agenda.departures.is_empty() {
            self.give_back_some(self.options.limits.given_back_at_once, fx);
        }
    }
}
