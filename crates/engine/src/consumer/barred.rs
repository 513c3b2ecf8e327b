//! Messages that some consumers of their queue do not get any more, because these have returned them: they
//! wait apart from the others, each for the first consumer that may have it, at its place among the others.

use super::dispatch::{HeldUp, Step};
use super::unsettled::Taker;
use crate::engine::{Clients, Engine};
use crate::interface::limits::MESSAGE_BYTES;
use crate::queue::entry::Fetch;
use crate::queue::notes::{ConsumerKey, Waiting};
use crate::queue::page_out::Wanted;
use crate::{DeathReason, Effects, Time};

impl Clients {
    /// What tells a consumer from all others.
    pub(crate) fn consumer_key(&self, slot: u32) -> Option<ConsumerKey> {
        let incarnation = self.consumers.get(slot)?.incarnation;
        Some(ConsumerKey { slot, incarnation })
    }

    pub(crate) fn has_consumer(&self, key: &ConsumerKey) -> bool {
        self.consumer_key(key.slot) == Some(*key)
    }
}

impl Engine {
    /// A consumer does not get a message any more that it had; says whether another one of its queue may.
    pub(super) fn bar(&mut self, slot: u32, seq: u64, taker: Taker) -> bool {
        let Engine { queues, clients, .. } = self;
        let queue = &mut queues[slot];
        let notes = queue.notes.get_or_insert_default();
        let key = ConsumerKey { slot: taker.slot, incarnation: taker.incarnation };
        let barred = notes.bar(seq, key, |key| clients.has_consumer(key));
        let mut others = queue.consumers.iter().filter_map(|slot| clients.consumer_key(*slot));
        others.any(|other| barred.binary_search(&other).is_err())
    }

    /// Hands out the first message that a consumer may have and others may not, if it comes before what the
    /// queue serves otherwise.
    #[cold]
    #[inline(never)]
    pub(super) fn hand_out_barred<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) -> Step {
        let queue = &self.queues[slot];
        let front = queue.front_place();
        let is_next = |at: &Waiting| front.is_none_or(|front| *at < front);
        let Some(notes) = &queue.notes else { return Step::None };
        if !queue.gets.is_empty() {
            return match notes.first().filter(is_next) {
                Some(at) => self.hand_out_at(now, slot, at, None, fx),
                None => Step::None,
            };
        }
        let mut index = 0;
        while let Some(&candidate) = self.queues[slot].able.get(index) {
            let key = self.clients.consumer_key(candidate);
            let notes = self.queues[slot].notes.as_deref();
            let at = notes.zip(key).and_then(|(notes, key)| notes.first_for(key));
            let Some(at) = at.filter(is_next) else {
                index += 1;
                continue;
            };
            let entry = self.queues[slot].lanes[at.lane()].find(at.seq);
            let bytes = entry.map_or(0, |entry| entry.bytes);
            match self.held_up(candidate, bytes, fx) {
                None => return self.hand_out_at(now, slot, at, Some(candidate), fx),
                Some(HeldUp::Itself) => {
                    self.queues[slot].able.remove(index);
                    self.clients.consumers[candidate].is_able = false;
                }
                Some(HeldUp::Channel) => {
                    self.hold_up(slot, None, index, candidate);
                    index = 0;
                }
            }
        }
        Step::None
    }

    /// Hands a message out to a consumer, or answers a get with it.
    fn hand_out_at<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        at: Waiting,
        taker: Option<u32>,
        fx: &mut F,
    ) -> Step {
        let queue = &mut self.queues[slot];
        let Some(entry) = queue.lanes[at.lane()].find(at.seq) else { return Step::None };
        if entry.expires <= now {
            self.expire_barred(now, slot, at.seq, fx);
            return Step::Done(MESSAGE_BYTES);
        }
        if entry.is_unreadable() {
            self.unbar(slot, at.seq);
            return Step::Done(MESSAGE_BYTES);
        }
        if entry.is_cold() {
            if entry.fetch == Fetch::Idle {
                entry.fetch = Fetch::Asked;
                let (bytes, position) = (entry.bytes.into(), entry.position);
                let wanted = Wanted::Messages { lane: at.lane(), seqs: vec![at.seq] };
                self.load(slot, bytes, wanted, vec![position], fx);
            }
            return Step::Waits;
        }
        let bytes = u64::from(entry.bytes);
        let entry = queue.remove(at.seq).expect("it was found just now");
        match taker {
            Some(taker) => self.hand_out_stored(now, taker, entry, fx),
            None => self.answer_get(now, slot, entry, fx),
        }
        Step::Done(MESSAGE_BYTES + bytes)
    }

    /// A message that is not the front of its queue has expired.
    pub(crate) fn expire_barred<F: Effects>(&mut self, now: Time, slot: u32, seq: u64, fx: &mut F) {
        let queue = &mut self.queues[slot];
        let Some(entry) = queue.remove(seq) else { return };
        self.unasked_steps += 1;
        queue.counters.expired += 1;
        self.counters.expired += 1;
        self.dead_letter(now, slot, entry, DeathReason::Expired, fx);
    }

    /// A message that cannot be read is among the others again, where its queue stops.
    fn unbar(&mut self, slot: u32, seq: u64) {
        let Some(mut entry) = self.queues[slot].remove(seq) else { return };
        self.snapshot_first_in_slot(slot, &entry);
        entry.mark = self.storage.mark;
        let queue = &mut self.queues[slot];
        if let Some(notes) = &mut queue.notes {
            notes.forget(seq);
        }
        queue.give_back(entry);
    }
}
