//! Takes in what the host has read back: messages, a page, or a dead letter. What is asked for, and
//! when, is in `page_out.rs`.

use super::blob::{Blob, ENTRY_COST};
use super::dead_letter::Dying;
use super::entries::Cursor;
use super::entry::{Entry, Fetch};
use super::page_out::{Loading, Wanted};
use crate::engine::Engine;
use crate::interface::limits::{Limits, MESSAGE_BYTES};
use crate::storage::record;
use crate::storage::record::Record;
use crate::{DeathReason, Effects, LoadId, Loaded, Position, Time};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::vec;

/// How often all queues together take in what one may ([`Limits::loaded_at_once`]) in one turn; the
/// last part may exceed it.
pub(crate) const PARTS_MAX: usize = 4;

/// A load that was answered and is taken in over several turns. Until the last of its messages is, it
/// counts as one that was not answered yet.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) loading: Loading,
    /// What is left of it.
    pub(crate) messages: vec::IntoIter<Arc<[u8]>>,
}

impl Engine {
    /// Takes in the records of a load.
    pub fn finish_load<F: Effects>(&mut self, now: Time, id: LoadId, records: Loaded, fx: &mut F) {
        let Some(loading) = self.storage.loads.remove(&id) else { return };
        match records {
            // Its queue may be one of many that have asked for something.
            Ok(messages) if loading.wanted.is_for_consumers() => {
                let messages = messages.into_iter();
                self.storage.arrivals.push_back(Arrival { loading, messages });
            }
            records => self.take_load(now, loading, records, fx),
        }
    }

    /// How many of the messages that are left of a load its queue takes in before others get
    /// their turn, if not all. A queue that is held to a rate takes in no more than it may hand
    /// out.
    fn part_of(&self, Arrival { loading, messages }: &Arrival) -> Option<usize> {
        let Wanted::Messages { seqs, .. } = &loading.wanted else { return None };
        let queue = self.queues.get(loading.queue).filter(|it| it.number == loading.number)?;
        let limits = &self.options.limits;
        let mut part = limits.loaded_at_once;
        if queue.share.is_paced {
            let mut left = queue.share.bytes_max(limits.backlog_bytes_per_second);
            let fits = |record: &&Arc<[u8]>| {
                let is_left = left > 0;
                left = left.saturating_sub(record.len() as u64 + MESSAGE_BYTES);
                is_left
            };
            part = messages.as_slice().iter().take(part).take_while(fits).count();
        }
        (seqs.len() > part).then_some(part)
    }

    /// Takes in some of what has arrived, for each queue of one load; where those are many, of what came
    /// first.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_some_in<F: Effects>(&mut self, now: Time, fx: &mut F) {
        let most = PARTS_MAX * self.options.limits.loaded_at_once;
        let (mut had, mut taken) = (BTreeSet::new(), 0);
        for _ in 0..self.storage.arrivals.len() {
            let Some(mut arrival) = self.storage.arrivals.pop_front() else { return };
            // The next load of a queue waits for the one before.
            if taken >= most || !had.insert(arrival.loading.queue) {
                self.storage.arrivals.push_back(arrival);
            } else if let Some(part) = self.part_of(&arrival) {
                taken += part;
                self.take_part_in(now, &mut arrival, part, fx);
                self.storage.arrivals.push_back(arrival);
            } else {
                let Arrival { loading, messages } = arrival;
                // A page counts as the most that a queue takes in.
                let is_page = matches!(loading.wanted, Wanted::Page { .. });
                taken += if is_page { self.options.limits.loaded_at_once } else { messages.len() };
                self.take_load(now, loading, Ok(messages.collect()), fx);
            }
        }
    }

    /// Takes in the next `part` messages of a load.
    fn take_part_in<F: Effects>(
        &mut self,
        now: Time,
        Arrival { loading, messages }: &mut Arrival,
        part: usize,
        fx: &mut F,
    ) {
        let Wanted::Messages { lane, seqs } = &mut loading.wanted else {
            unreachable!("only messages are taken in by parts");
        };
        let (slot, before) = (loading.queue, self.storage.resident);
        let seqs: Vec<u64> = seqs.drain(..part).collect();
        let messages = messages.by_ref().take(part).collect();
        self.messages_loaded(slot, *lane, &seqs, Ok(messages), fx);
        // What has come into memory is not on its way any more.
        let bytes = (self.storage.resident - before).min(loading.bytes);
        loading.bytes -= bytes;
        self.queues[slot].loading_bytes -= bytes;
        self.storage.loading_bytes -= bytes;
        self.serve_loaded(now, slot, fx);
    }

    fn take_load<F: Effects>(&mut self, now: Time, loading: Loading, records: Loaded, fx: &mut F) {
        self.storage.loading_bytes -= loading.bytes;
        if let Wanted::Delayed { keys } = loading.wanted {
            return self.delayed_loaded(now, &keys, records, fx);
        }
        if let Wanted::Relocation { segment, positions } = loading.wanted {
            return self.relocation_loaded(segment, &positions, records, fx);
        }
        if let Wanted::Browsed(load) = loading.wanted {
            return self.browsed_loaded(now, *load, records, fx);
        }
        if let Wanted::Replayed(load) = loading.wanted {
            return self.replayed_loaded(now, *load, records, fx);
        }
        if let Wanted::Beside(load) = loading.wanted {
            return self.loaded_beside(*load, records, fx);
        }
        if let Wanted::Log(load) = loading.wanted {
            return self.log_page_loaded(*load, records, fx);
        }
        let slot = loading.queue;
        let queue = self.queues.get_mut(slot).filter(|queue| queue.number == loading.number);
        let Some(queue) = queue else {
            if let Wanted::DeadLetter { entry, .. } = loading.wanted {
                self.snapshot_first(loading.number, &entry);
                self.drop_entry(*entry, fx);
            }
            return;
        };
        queue.loads -= 1;
        queue.loading_bytes -= loading.bytes;
        match loading.wanted {
            Wanted::Messages { lane, seqs } => self.messages_loaded(slot, lane, &seqs, records, fx),
            Wanted::Page { lane, position } => self.page_loaded(slot, lane, position, records, fx),
            wanted @ Wanted::LostPage { .. } => self.page_searched(slot, &wanted, records, fx),
            Wanted::DeadLetter { entry, reason } => {
                self.dead_letter_loaded(now, slot, *entry, reason, records, fx);
            }
            Wanted::MovingPage(page) => self.moving_page_loaded(slot, *page, records, fx),
            Wanted::Delayed { .. }
            | Wanted::Relocation { .. }
            | Wanted::Browsed(_)
            | Wanted::Replayed(_)
            | Wanted::Beside(_)
            | Wanted::Log(_) => {}
        }
        self.serve_loaded(now, slot, fx);
    }

    /// Goes on with a queue that has more in memory than before.
    fn serve_loaded<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        self.enforce_limits(now, slot, fx);
        self.run_overdue(now, fx);
        self.refill(slot, fx);
        self.watch_head(slot);
        self.mark_dirty(slot);
    }

    fn messages_loaded<F: Effects>(
        &mut self,
        slot: u32,
        lane: usize,
        seqs: &[u64],
        records: Loaded,
        fx: &mut F,
    ) {
        if records.is_err() && seqs.len() > 1 {
            // One of them cannot be read, which says nothing about the others.
            let (first, second) = seqs.split_at(seqs.len() / 2);
            self.ask_again(slot, lane, first, fx);
            self.ask_again(slot, lane, second, fx);
            return;
        }
        let messages = records.unwrap_or_default();
        let mut next = Cursor::default();
        for (index, seq) in seqs.iter().enumerate() {
            let record = messages.get(index);
            let blob = record.and_then(|record| checked_message(record, &self.options.limits));
            let queue = &mut self.queues[slot];
            if let Some(blob) = blob {
                let cost = queue.lanes[lane].warm(*seq, blob, &mut next);
                queue.resident += cost;
                self.storage.resident += cost;
            } else if let Some(entry) = queue.lanes[lane].find(*seq) {
                if record.is_some_and(|record| record.is_empty()) {
                    self.give_up(slot, *seq, fx);
                    continue;
                }
                entry.fetch = Fetch::Failed;
                self.counters.unreadable += 1;
            }
        }
    }

    /// Asks for messages of a load that failed as a whole, where they are in the queue still.
    fn ask_again<F: Effects>(&mut self, slot: u32, lane: usize, seqs: &[u64], fx: &mut F) {
        let messages = &mut self.queues[slot].lanes[lane];
        let mut bytes = 0;
        let (mut left, mut positions) = (Vec::new(), Vec::new());
        for seq in seqs {
            let Some(entry) = messages.find(*seq).filter(|entry| entry.is_cold()) else { continue };
            bytes += u64::from(entry.bytes) + ENTRY_COST;
            left.push(*seq);
            positions.push(entry.position);
        }
        if !left.is_empty() {
            self.load(slot, bytes, Wanted::Messages { lane, seqs: left }, positions, fx);
        }
    }

    fn page_loaded<F: Effects>(
        &mut self,
        slot: u32,
        lane: usize,
        position: Position,
        records: Loaded,
        fx: &mut F,
    ) {
        let queue = &mut self.queues[slot];
        let first = queue.lanes.get_mut(lane).and_then(|lane| lane.pages.front_mut());
        let Some(known) = first.filter(|page| page.position == position) else { return };
        let records = records.unwrap_or_default();
        let entries = match records.first().map(|record| Record::parse(record)) {
            Some(Ok(Record::Page { queue: number, entries, .. })) if number == queue.number => {
                entries
            }
            _ => {
                let is_given_up = records.first().is_some_and(|record| record.is_empty());
                return self.search_page(slot, lane, position, is_given_up, fx);
            }
        };
        let settled = &queue.settled_in_pages;
        let (live, gone): (Vec<Entry>, Vec<Entry>) = entries
            .into_iter()
            .filter(|entry| entry.durable || !known.recovered)
            .partition(|entry| known.holds(entry.seq) && !settled.contains(entry.seq));
        let durable = queue.durable;
        if queue.lanes.len() > 1 {
            for entry in &gone {
                queue.settled_in_pages.remove_range(entry.seq, entry.seq);
            }
        }
        let page = self.take_page_in(slot, lane, position, live);
        for entry in gone {
            self.release_entry(&entry, fx);
        }
        self.release_page(durable, &page, fx);
    }

    fn dead_letter_loaded<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        entry: Entry,
        reason: DeathReason,
        records: Loaded,
        fx: &mut F,
    ) {
        let queue = &mut self.queues[slot];
        queue.ended(entry.bytes);
        let records = records.unwrap_or_default();
        let record = records.first();
        match record.and_then(|record| checked_message(record, &self.options.limits)) {
            Some(blob) => {
                let dying = Dying::of(queue, &entry, reason);
                self.dead_letter_blob(now, slot, &blob, dying, entry, fx);
            }
            None if record.is_some_and(|record| record.is_empty()) => {
                self.snapshot_first_in_slot(slot, &entry);
                self.note_given_up(slot, entry.position, 1);
                self.drop_entry(entry, fx);
            }
            None => {
                self.counters.unreadable += 1;
                self.snapshot_first_in_slot(slot, &entry);
                let entry = Entry { fetch: Fetch::Failed, mark: self.storage.mark, ..entry };
                let queue = &mut self.queues[slot];
                if reason == DeathReason::MaxLength {
                    queue.dropped = queue.dropped.saturating_sub(1);
                }
                self.agenda.purges.keep(queue.number, entry.seq);
                queue.give_back(entry);
            }
        }
    }
}

/// The message in a record, if it is sound.
pub(crate) fn checked_message(record: &Arc<[u8]>, limits: &Limits) -> Option<Blob> {
    Blob::at_end_of(record, record::message_of(record).ok()?, limits.large_body_bytes)
}
