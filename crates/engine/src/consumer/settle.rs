//! Settling deliveries: accepted, requeued at their place, or discarded.

use crate::consumer::deferred_settle::{Fate, Manner};
use crate::consumer::unsettled::{Delivered, Taker, Unsettled};
use crate::engine::Engine;
use crate::interface::limits::{ANNOTATION_BYTES_MAX, QUEUE_ANNOTATION_BYTES_MAX};
use crate::interface::refusal::refuse;
use crate::queue::entry::Entry;
use crate::queue::notes::joined;
use crate::queue::stored::Stored;
use crate::storage::record;
use crate::storage::record::{Kind, Record, Requeued};
use crate::{
    Annotations, ChannelId, DeathReason, DiscardReason, Effects, Outcome, Position, Refusal,
    Return, Settle, Time,
};

/// Settled messages of one queue that one record holds at most.
const RECORD_SETTLES_MAX: u32 = 1024;
/// Requeued messages that one record holds at most.
const RECORD_REQUEUES_MAX: usize = 1024;

impl Engine {
    /// Settles deliveries. Refused: unknown tag (`PreconditionFailed`).
    #[inline]
    pub fn settle<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        settle: Settle,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        self.settle_annotated(now, id, settle, &[], fx)
    }

    /// Settles deliveries, and gives those that go back `annotations`: opaque bytes which come with their
    /// further deliveries ([`crate::Annotations::changed`]). Refused: unknown tag (`PreconditionFailed`),
    /// more than [`ANNOTATION_BYTES_MAX`] (`LimitExceeded`).
    #[inline]
    pub fn settle_annotated<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        settle: Settle,
        annotations: &[u8],
        fx: &mut F,
    ) -> Result<(), Refusal> {
        let (bytes, most) = (annotations.len(), ANNOTATION_BYTES_MAX);
        if bytes > most {
            refuse!(LimitExceeded, "annotations of {bytes} bytes; the limit is {most}");
        }
        if self.is_away() {
            return self.settle_at_home(id, settle, annotations, fx);
        }
        let slot = self.channel_slot(id).ok_or_else(|| Engine::no_channel(id))?;
        if let Some(transaction) = self.transaction_of(slot, settle.transaction)? {
            return self.hold_settle(now, slot, transaction, settle, annotations, fx);
        }
        self.carry_out_settle(now, slot, settle, annotations, fx)?;
        self.run_overdue(now, fx);
        Ok(())
    }

    /// Settles one delivery, or all within a range of tags.
    pub(crate) fn carry_out_settle<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        settle: Settle,
        annotations: &[u8],
        fx: &mut F,
    ) -> Result<(), Refusal> {
        self.check_tag(slot, settle)?;
        let manner = Manner { fate: Fate::Same(settle.outcome), annotations };
        if settle.first != settle.last {
            self.settle_range(now, slot, settle.first..=settle.last, manner, fx);
        } else if let Some(delivered) = self.clients.channels[slot].unsettled.take(settle.first) {
            self.settle_one(now, Some(slot), delivered, manner, fx);
        }
        Ok(())
    }

    /// Requeues all deliveries of a channel; those that a transaction settles are not among them.
    pub(crate) fn recover<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let manner = Fate::Same(Outcome::REQUEUE).plain();
        self.settle_range(now, slot, 0..=u64::MAX, manner, fx);
    }

    /// Refuses tags that are not there to be settled.
    #[inline]
    pub(crate) fn check_tag(&mut self, slot: u32, settle: Settle) -> Result<(), Refusal> {
        if !settle.must_exist {
            return Ok(());
        }
        let channel = &mut self.clients.channels[slot];
        let Settle { first, last, .. } = settle;
        let is_known = if first == last {
            channel.unsettled.contains(last)
        } else {
            last < channel.next_tag
                && channel.unsettled.next_from(first).is_some_and(|next| next <= last)
        };
        if !is_known {
            refuse!(PreconditionFailed, "unknown delivery tag {last}");
        }
        Ok(())
    }

    /// Gives credit back, where the channel is still there, and does with the message what was asked.
    #[inline]
    pub(crate) fn settle_one<F: Effects>(
        &mut self,
        now: Time,
        slot: Option<u32>,
        delivered: Delivered,
        manner: Manner<'_>,
        fx: &mut F,
    ) {
        let outcome = manner.fate.of(&delivered);
        let Delivered { entry, queue: queue_slot, queue_number, taker, .. } = delivered;
        if let Some(slot) = slot {
            self.give_credit_back(slot, taker, entry.bytes);
        }
        let Some(queue) =
            self.queues.get_mut(queue_slot).filter(|queue| queue.number == queue_number)
        else {
            // The queue is gone, and its references with it, except this one.
            let is_lost = outcome != Outcome::Accept;
            self.counters.discarded.add(DiscardReason::QueueDeleted, u64::from(is_lost));
            self.snapshot_first(queue_number, &entry);
            self.drop_entry(entry, fx);
            return;
        };
        queue.ended(entry.bytes);
        if queue.groups.is_some()
            && let Some(Taker { slot, incarnation, .. }) = taker
        {
            self.group_settled(queue_slot, slot, incarnation);
        }
        if self.queues[queue_slot].own.is_some() {
            self.place_is_free(queue_slot, entry.seq);
        }
        match outcome {
            Outcome::Accept => {
                self.queues[queue_slot].counters.accepted += 1;
                self.counters.accepted += 1;
                self.forget(queue_slot, entry, fx);
            }
            Outcome::Return(how) => {
                if !manner.annotations.is_empty() {
                    self.annotate(queue_slot, &entry, manner.annotations);
                }
                self.give_back(now, queue_slot, entry, how, taker, fx);
            }
            Outcome::Discard => {
                self.dead_letter(now, queue_slot, entry, DeathReason::Rejected, fx);
            }
        }
    }

    /// A delivery of `bytes` to the consumer is no longer out.
    #[inline]
    fn give_credit_back(&mut self, slot: u32, taker: Option<Taker>, bytes: u32) {
        if let Some(Taker { slot: whose, incarnation, .. }) = taker {
            let channel = &mut self.clients.channels[slot];
            channel.account.give_back(bytes);
            let is_held_up = channel.is_held_up;
            if let Some(consumer) = self.clients.consumers.get_mut(whose)
                && consumer.incarnation == incarnation
            {
                consumer.account.give_back(bytes);
                if !consumer.is_able && !is_held_up {
                    self.reconsider(whose);
                }
            }
        }
        self.reconsider_channel(slot);
    }

    /// Puts a message back to its place, or lets it go if its deliveries failed too often.
    fn give_back<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        mut entry: Entry,
        how: Return,
        taker: Option<Taker>,
        fx: &mut F,
    ) {
        let requeues = entry.requeues.saturating_add(how.failed.into());
        self.snapshot_first_in_slot(slot, &entry);
        entry.mark = self.storage.mark;
        entry.redelivered = true;
        let is_final = how.elsewhere
            && taker.is_some_and(|taker| !self.bar(slot, entry.seq, taker))
            && self.queues[slot].options.dead_letter_exchange.is_some();
        if is_final {
            entry.requeues = requeues;
            return self.dead_letter(now, slot, entry, DeathReason::Rejected, fx);
        }
        let queue = &mut self.queues[slot];
        let limit = queue.delivery_limit(self.options.limits.delivery_limit);
        if how.failed && limit.is_some_and(|limit| requeues > limit) {
            // It keeps its count: until the dead letter is stored it is as if it were out still.
            self.dead_letter(now, slot, entry, DeathReason::DeliveryLimit, fx);
            return;
        }
        entry.requeues = requeues;
        queue.counters.requeued += 1;
        self.counters.requeued += 1;
        let expires = entry.expires;
        if entry.durable && how.failed {
            let (queue, seq) = (queue.number, entry.seq);
            self.agenda.requeued.push(Requeued { queue, seq, requeues });
        }
        let (lane, seq) = (entry.lane, entry.seq);
        if !self.agenda.purges.is_empty() {
            self.agenda.purges.keep(queue.number, seq);
        }
        queue.give_back(entry);
        self.note_return(slot, lane, seq);
        let is_first = true;
        self.after_push(now, slot, is_first, expires, fx);
    }

    /// Keeps what a consumer adds to a message that goes back, unless its queue has very much of that.
    #[cold]
    fn annotate(&mut self, slot: u32, entry: &Entry, more: &[u8]) {
        let queue = &mut self.queues[slot];
        let notes = queue.notes.get_or_insert_default();
        if notes.changed_bytes() + more.len() as u64 > QUEUE_ANNOTATION_BYTES_MAX {
            return;
        }
        notes.annotate(entry.seq, entry.durable, more);
        if entry.durable {
            self.agenda.annotated.push((queue.number, entry.seq));
        }
    }

    /// Writes what was added to messages. Nobody waits for it to be flushed.
    #[cold]
    fn record_annotated<F: Effects>(&mut self, fx: &mut F) {
        for (number, seq) in std::mem::take(&mut self.agenda.annotated) {
            let Some(queue) = self.queues.numbered(number) else { continue };
            let changed = queue.notes.as_ref().and_then(|notes| notes.changed(seq));
            if let Some(changed) = changed {
                let record = Record::Annotated { queue: number, seq, changed };
                record.write(&mut self.scratch.record);
                fx.append(&[&self.scratch.record], false);
            }
        }
    }

    /// What the broker knows about a message of a queue.
    #[inline]
    pub(crate) fn annotations_of(
        &self,
        slot: u32,
        stored: &Stored<'_>,
        entry: &Entry,
    ) -> Annotations {
        let mut annotations = stored.annotations(entry.requeues);
        if let Some(notes) = &self.queues[slot].notes
            && let Some(changed) = notes.changed(entry.seq)
        {
            annotations.changed = joined(&annotations.changed, changed);
        }
        annotations
    }

    /// An entry whose message memory does not hold any more has left its queue for good.
    #[inline]
    pub(crate) fn forget<F: Effects>(&mut self, slot: u32, entry: Entry, fx: &mut F) {
        if let Some(queue) = self.queues.get_mut(slot)
            && queue.notes.is_some()
        {
            queue.forget_note(entry.seq);
        }
        self.end_handed(slot, entry.seq, fx);
        if entry.durable {
            self.snapshot_first_in_slot(slot, &entry);
            self.note_settled(slot, entry.seq, fx);
        }
        self.drop_entry(entry, fx);
    }

    /// Gives back what an entry holds in memory and in the journal.
    #[inline]
    pub(crate) fn drop_entry<F: Effects>(&mut self, entry: Entry, fx: &mut F) {
        self.storage.resident -= entry.resident_cost();
        self.release_entry(&entry, fx);
    }

    /// Gives back what an entry holds in the journal.
    #[inline]
    pub(crate) fn release_entry<F: Effects>(&mut self, entry: &Entry, fx: &mut F) {
        if entry.durable {
            fx.release(entry.position, 1);
        } else if entry.is_stored() {
            self.release_transient(entry.position, 1, fx);
        }
    }

    /// A durable message is gone; the record that says so is written at the end of the turn.
    #[inline]
    fn note_settled<F: Effects>(&mut self, slot: u32, seq: u64, fx: &mut F) {
        let Some(queue) = self.queues.get_mut(slot) else { return };
        if queue.settled.is_empty() {
            self.agenda.unrecorded.push(slot);
        }
        queue.settled.insert(seq);
        queue.settled_count += 1;
        if queue.settled_count >= RECORD_SETTLES_MAX && !self.storage.in_group {
            self.record_settled_of(slot, false, fx);
        }
    }

    /// Writes how often messages went back, so that one that breaks its consumers is given up also
    /// where the broker goes down in between. Nobody waits for it to be flushed.
    fn record_requeued<F: Effects>(&mut self, fx: &mut F) {
        let requeued = std::mem::take(&mut self.agenda.requeued);
        for messages in requeued.chunks(RECORD_REQUEUES_MAX) {
            Record::Requeued { messages: messages.to_vec() }.write(&mut self.scratch.record);
            fx.append(&[&self.scratch.record], false);
        }
    }

    /// Writes what went back and what was settled.
    pub(crate) fn record_settled<F: Effects>(&mut self, fx: &mut F) {
        self.record_requeued(fx);
        if !self.agenda.annotated.is_empty() {
            self.record_annotated(fx);
        }
        let mut slots = std::mem::take(&mut self.agenda.unrecorded);
        for slot in &slots {
            self.record_settled_of(*slot, false, fx);
        }
        slots.clear();
        self.agenda.unrecorded = slots;
    }

    /// Records what was settled; returns the position that has to be flushed.
    pub(crate) fn record_settled_durably<F: Effects>(&mut self, fx: &mut F) -> Option<Position> {
        let slots = std::mem::take(&mut self.agenda.unrecorded);
        slots.into_iter().filter_map(|slot| self.record_settled_of(slot, true, fx)).max()
    }

    /// Writes what was settled of one queue.
    pub(crate) fn record_settled_of<F: Effects>(
        &mut self,
        slot: u32,
        wants_flush: bool,
        fx: &mut F,
    ) -> Option<Position> {
        let queue = self.queues.get_mut(slot)?;
        if queue.settled.is_empty() {
            return None;
        }
        let mut writer = record::start(&mut self.scratch.record, Kind::Settled);
        writer.u64(queue.number);
        writer.varint(queue.settled.len() as u64);
        for (first, last) in queue.settled.iter() {
            writer.varint(first);
            writer.varint(last - first);
        }
        queue.settled.clear();
        queue.settled_count = 0;
        Some(fx.append(&[&self.scratch.record], wants_flush))
    }

    /// Durable messages that are out of their queues, with the numbers of these: delivered and not
    /// settled, or on their way to be dead letters.
    pub(crate) fn durable_out(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let delivered = self.unsettled().flat_map(Unsettled::durable);
        let delivered = delivered.map(|it| (it.queue_number, &it.entry));
        delivered.chain(self.dying().filter(|(_, entry)| entry.durable)).chain(self.sessions.lent())
    }

    /// All deliveries that were not settled.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = &Unsettled> {
        let settling = self.agenda.settling.iter().map(|settling| &settling.deliveries);
        let held = self.clients.transactions.iter().map(|(_, open)| &open.held.deliveries);
        let delivered = self.clients.channels.iter().map(|(_, channel)| &channel.unsettled);
        delivered.chain(held).chain(settling)
    }
}
