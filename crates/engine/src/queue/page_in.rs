//! Takes in what the host has read back: messages, a page, or a dead letter. What is asked for, and
//! when, is in `page_out.rs`.

use super::blob::Blob;
use super::entries::Cursor;
use super::entry::{ENTRY_COST, Entry, Fetch};
use super::page::PageEntry;
use crate::engine::Engine;
use crate::interface::limits::Limits;
use crate::interface::limits::MESSAGE_BYTES;
use crate::queue::page_out::{Loading, Wanted};
use crate::storage::record;
use crate::storage::record::Record;
use crate::{DeathReason, Effects, LoadId, Loaded, Position, Time};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::vec;

/// How often all queues together take in what one may ([`Limits::loaded_at_once`]) in one turn; the
/// last part may exceed it.
pub(crate) const PARTS_MAX: usize = 4;

/// Loads that were answered and are taken in over several turns. Until the last of its messages is, a load
/// counts as one that was not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Arrivals(VecDeque<Arrival>);

/// One of them, and what is left of it.
#[derive(Debug)]
struct Arrival {
    id: LoadId,
    messages: vec::IntoIter<Arc<[u8]>>,
}

impl Arrivals {
    /// Nothing is left to be taken in.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The loads, and how many messages of each are left.
    #[cfg(test)]
    pub(crate) fn left(&self) -> impl Iterator<Item = (LoadId, usize)> {
        self.0.iter().map(|arrival| (arrival.id, arrival.messages.len()))
    }
}

impl Engine {
    /// Takes in the records of a load.
    pub fn finish_load<F: Effects>(&mut self, now: Time, id: LoadId, records: Loaded, fx: &mut F) {
        match records {
            Ok(messages) if self.is_taken_in_by_turns(id) => {
                self.storage.arrivals.0.push_back(Arrival { id, messages: messages.into_iter() });
            }
            records => self.take_load(now, id, records, fx),
        }
    }

    /// Whether it is for a queue, which may be one of many that have asked for something.
    fn is_taken_in_by_turns(&self, id: LoadId) -> bool {
        self.storage.loads.get(&id).is_some_and(|loading| {
            matches!(loading.wanted, Wanted::Messages { .. } | Wanted::Page { .. })
        })
    }

    /// How many of the messages that are left of a load its queue takes in before others get
    /// their turn, if not all. A queue that is held to a rate takes in no more than it may hand
    /// out.
    fn part_of(&self, id: LoadId, messages: &[Arc<[u8]>]) -> Option<usize> {
        let loading = self.storage.loads.get(&id)?;
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
            part = messages.iter().take(part).take_while(fits).count();
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
        for _ in 0..self.storage.arrivals.0.len() {
            let Some(mut arrival) = self.storage.arrivals.0.pop_front() else { return };
            let queue = self.storage.loads.get(&arrival.id).map(|loading| loading.queue);
            // The next load of a queue waits for the one before.
            if taken >= most || !had.insert(queue) {
                self.storage.arrivals.0.push_back(arrival);
                continue;
            }
            let part = self.part_of(arrival.id, arrival.messages.as_slice());
            taken += part.unwrap_or_else(|| self.count_of(&arrival));
            if self.take_part_in(now, &mut arrival, part, fx) {
                self.storage.arrivals.0.push_back(arrival);
            }
        }
    }

    /// As how many messages all of it counts: a page as the most that a queue takes in.
    fn count_of(&self, arrival: &Arrival) -> usize {
        match self.storage.loads.get(&arrival.id).map(|loading| &loading.wanted) {
            Some(Wanted::Page { .. }) => self.options.limits.loaded_at_once,
            _ => arrival.messages.len(),
        }
    }

    /// Takes in `messages` messages of a load, or all of it. Returns whether more is left.
    fn take_part_in<F: Effects>(
        &mut self,
        now: Time,
        arrival: &mut Arrival,
        part: Option<usize>,
        fx: &mut F,
    ) -> bool {
        let (Some(part), Some(loading)) = (part, self.storage.loads.get_mut(&arrival.id)) else {
            let messages = std::mem::take(&mut arrival.messages);
            self.take_load(now, arrival.id, Ok(messages.collect()), fx);
            return false;
        };
        let Wanted::Messages { lane, seqs } = &mut loading.wanted else {
            unreachable!("only messages are taken in by parts");
        };
        let (slot, lane, seqs) = (loading.queue, *lane, seqs.drain(..part).collect::<Vec<_>>());
        let messages = arrival.messages.by_ref().take(part).collect();
        let before = self.storage.resident;
        self.messages_loaded(slot, lane, &seqs, Ok(messages), fx);
        self.take_off(arrival.id, self.storage.resident - before);
        self.serve_loaded(now, slot, fx);
        true
    }

    /// What has come into memory is not on its way any more.
    fn take_off(&mut self, id: LoadId, bytes: u64) {
        let loading = self.storage.loads.get_mut(&id).expect("the caller looked it up");
        let queue = self.queues.get_mut(loading.queue).expect("a part was taken in for it");
        let bytes = bytes.min(loading.bytes);
        loading.bytes -= bytes;
        queue.loading_bytes -= bytes;
        self.storage.loading_bytes -= bytes;
    }

    fn take_load<F: Effects>(&mut self, now: Time, id: LoadId, records: Loaded, fx: &mut F) {
        let Some(loading) = self.storage.loads.remove(&id) else { return };
        self.storage.loading_bytes -= loading.bytes;
        if let Wanted::Delayed { turns } = loading.wanted {
            return self.delayed_loaded(now, &turns, records, fx);
        }
        if let Wanted::Relocation { segment, positions } = loading.wanted {
            return self.relocation_loaded(segment, &positions, records, fx);
        }
        let slot = loading.queue;
        let is_there = match self.queues.get_mut(slot) {
            Some(queue) if queue.number == loading.number => {
                queue.loads -= 1;
                queue.loading_bytes -= loading.bytes;
                true
            }
            _ => false,
        };
        match loading.wanted {
            Wanted::DeadLetter { entry, .. } if !is_there => {
                self.snapshot_first(loading.number, &entry);
                self.drop_entry(*entry, fx);
            }
            _ if !is_there => return,
            Wanted::Messages { lane, seqs } => self.messages_loaded(slot, lane, &seqs, records, fx),
            Wanted::Page { lane, position } => self.page_loaded(slot, lane, position, records, fx),
            Wanted::DeadLetter { entry, reason } => {
                self.dead_letter_loaded(now, slot, *entry, reason, records, fx);
            }
            Wanted::MovingPage(page) => self.moving_page_loaded(slot, *page, records, fx),
            Wanted::Delayed { .. } | Wanted::Relocation { .. } => {}
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
            let blob = messages.get(index);
            let blob = blob.and_then(|record| checked_message(record, &self.options.limits));
            let queue = self.queues.get_mut(slot).expect("the caller looked it up");
            let Some(blob) = blob else {
                if let Some(entry) = queue.lanes[lane].find(*seq) {
                    entry.fetch = Fetch::Failed;
                    self.counters.unreadable += 1;
                }
                continue;
            };
            if let Some(cost) = queue.lanes[lane].warm(*seq, blob, &mut next) {
                queue.resident += cost;
                self.storage.resident += cost;
            }
        }
    }

    /// Asks for messages of a load that failed as a whole, where they are in the queue still.
    fn ask_again<F: Effects>(&mut self, slot: u32, lane: usize, seqs: &[u64], fx: &mut F) {
        let queue = self.queues.get_mut(slot).expect("the caller looked it up");
        let number = queue.number;
        let mut bytes = 0;
        let (mut left, mut positions) = (Vec::new(), Vec::new());
        for seq in seqs {
            let Some(entry) = queue.lanes[lane].find(*seq).filter(|entry| entry.is_cold()) else {
                continue;
            };
            bytes += u64::from(entry.bytes) + ENTRY_COST;
            left.push(*seq);
            positions.push(entry.position);
        }
        if !left.is_empty() {
            let wanted = Wanted::Messages { lane, seqs: left };
            self.load(slot, Loading { queue: slot, number, bytes, wanted }, positions, fx);
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
        let queue = self.queues.get_mut(slot).expect("the caller looked it up");
        if !queue.has_page(lane, position) {
            return;
        }
        let records = records.unwrap_or_default();
        let entries = match records.first().map(|record| Record::parse(record)) {
            Some(Ok(Record::Page { queue: number, entries, .. })) if number == queue.number => {
                entries
            }
            _ => {
                queue.lanes[lane].pages_mut()[0].fetch = Fetch::Failed;
                self.counters.unreadable += 1;
                return;
            }
        };
        let known = queue.lanes[lane].pages().next().expect("it was found just now");
        let settled = &queue.settled_in_pages;
        let (live, gone): (Vec<PageEntry>, Vec<PageEntry>) = entries
            .into_iter()
            .filter(|entry| entry.durable || !known.recovered)
            .partition(|entry| known.holds(entry.seq) && !settled.contains(entry.seq));
        let mut live: Vec<Entry> = live
            .iter()
            .map(|entry| Entry::from_page(entry, lane as u8, self.storage.mark))
            .collect();
        for entry in &mut live {
            entry.redelivered |= entry.seq < queue.recovered_before;
            if let Some(requeues) = queue.requeued_in_pages.remove(&entry.seq) {
                entry.went_back(requeues);
            }
        }
        let bytes: u64 = live.iter().map(|entry| u64::from(entry.bytes)).sum();
        let count = live.len() as u64;
        let page = queue.lanes[lane].open_page(position, live).expect("it was found just now");
        // Which of its messages are settled, and their bytes, was not known until now.
        queue.ready = queue.ready + count - u64::from(page.count);
        queue.ready_bytes = queue.ready_bytes + bytes - page.bytes;
        queue.forget_settled_in(&page);
        let durable = queue.durable;
        for entry in gone {
            fx.release(entry.position, 1);
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
        let queue = self.queues.get_mut(slot).expect("the caller looked it up");
        queue.unsettled -= 1;
        let blob = records.ok();
        let blob = blob.and_then(|records| checked_message(records.first()?, &self.options.limits));
        match blob {
            Some(blob) => {
                let dying = self.dying_for(slot, &entry, reason);
                self.dead_letter_blob(now, slot, &blob, dying, entry, fx);
            }
            None => {
                self.counters.unreadable += 1;
                let number = queue.number;
                self.snapshot_first(number, &entry);
                let entry = Entry { fetch: Fetch::Failed, mark: self.storage.mark, ..entry };
                let queue = self.queues.get_mut(slot).expect("the caller looked it up");
                queue.give_back(entry);
            }
        }
    }
}

/// The message in a record, if it is sound.
pub(crate) fn checked_message(record: &Arc<[u8]>, limits: &Limits) -> Option<Blob> {
    Blob::at_end_of(record, record::message_of(record).ok()?, limits.large_body_bytes)
}
