//! Messages of shared queues on their way to members, and back where a member's session ends.
//!
//! A message that is handed over moves into the session's own queue, and gets its place there. One record
//! says so where that queue is stored: no crash takes the place away again, or has the message in two
//! queues. It is handed over only once the session's holder can be sent it, so that no more is at a session
//! than its client takes at once.
//!
//! A session that ends with its holder has no stored queue. The message is lent to it then: it stays the
//! shared queue's for the journal until it is settled, so that a crash gives it to another member. One that
//! is to be delivered exactly once is not lent: no other member may get it.

use super::{Handed, Session, Sessions};
use crate::consumer::deferred_settle::Fate;
use crate::consumer::dispatch::HeldUp;
use crate::consumer::unsettled::Delivered;
use crate::engine::Engine;
use crate::interface::limits::MESSAGE_BYTES;
use crate::queue::entry::{Entry, Fetch, NOWHERE};
use crate::storage::record::Record;
use crate::{Effects, Time};
use std::sync::Arc;

/// Messages that a session may have of shared queues.
const HANDED_MAX: usize = 1_024;

/// The way of a message from one queue to another, by their slots.
#[derive(Clone, Copy)]
struct Move {
    from: u32,
    to: u32,
    /// The number of the session that it is handed over to; 0: it goes back.
    session: u64,
    /// Another member gets it if that session ends.
    returns: bool,
}

impl Session {
    /// Messages that are lent to it, with the numbers of their queues.
    pub(crate) fn lent_mut(&mut self) -> impl Iterator<Item = (u64, &mut Entry)> {
        self.handed.values_mut().filter_map(|it| Some((it.queue, &mut **it.lent.as_mut()?)))
    }
}

impl Sessions {
    /// Messages that are lent, with the numbers of their queues.
    pub(crate) fn lent(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let handed = self.iter().flat_map(|(_, session)| session.handed.values());
        handed.filter_map(|it| Some((it.queue, &**it.lent.as_ref()?)))
    }
}

impl Handed {
    /// As a record or a snapshot has it.
    pub(super) fn restored(queue: u64, returns: bool) -> Handed {
        Handed { queue, returns, lent: None }
    }
}

impl Engine {
    /// Hands the first message of a shared queue, which is in memory and has `bytes`, to the member whose
    /// turn it is; returns what that counts for. `None`: nobody can take it.
    pub(crate) fn hand_over_next<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        bytes: u32,
        fx: &mut F,
    ) -> Option<u64> {
        let (session, target) = self.next_member(slot, bytes, fx)?;
        let entry = self.queues[slot].pop()?;
        let blob = entry.message.as_ref()?;
        let returns = !(self.options.conventions.is_exactly_once)(&blob.stored().content);
        let queue = &self.queues[slot];
        let (from, number) = (queue.number, self.sessions[session].number);
        let stores = self.queues[target].stores;
        let lends = entry.durable && !stores && returns;
        let mut lent = lends.then(|| Box::new(entry.without_message()));
        if let Some(lent) = &mut lent {
            // A snapshot that is being taken does not look where it goes.
            self.snapshot_first_in_slot(slot, lent);
            lent.mark = self.storage.mark;
            self.note_handed_out(slot, lent);
        }
        if let Some(own) = &mut self.queues[target].own {
            own.has_shared = true;
        }
        let place = self.queues[target].next_seq;
        self.sessions[session].handed.insert(place, Handed { queue: from, returns, lent });
        self.move_entry(now, Move { from: slot, to: target, session: number, returns }, &entry, fx);
        if lends {
            self.storage.resident -= entry.resident_cost();
        } else {
            self.forget(slot, entry, fx);
        }
        self.account_session(session);
        // It goes out in this turn, where nothing holds it up.
        self.serve_queue(now, target, fx);
        Some(MESSAGE_BYTES + u64::from(bytes))
    }

    /// The member whose turn it is to take a message of `bytes`: its session and the queue of that.
    fn next_member<F: Effects>(&mut self, slot: u32, bytes: u32, fx: &F) -> Option<(u32, u32)> {
        loop {
            let number = self.queues[slot].shared.as_ref()?.next_able()?;
            let session = self.sessions.numbered(number);
            let target = session.and_then(|it| self.queue_with_room(it, bytes, fx));
            let shared = self.queues[slot].shared.as_mut()?;
            if let (Some(session), Some(target)) = (session, target) {
                shared.took(number);
                return Some((session, target));
            }
            shared.is_not_able(number);
        }
    }

    /// The queue of a session, if its holder can be sent a message of `bytes` beyond those that wait there.
    fn queue_with_room<F: Effects>(&mut self, session: u32, bytes: u32, fx: &F) -> Option<u32> {
        let slot = self.queues.slot_of(self.sessions[session].queue)?;
        let queue = &self.queues[slot];
        let consumer = *queue.consumers.first()?;
        let ready = queue.ready;
        match self.held_up(consumer, bytes, fx) {
            None => {}
            Some(HeldUp::Itself) => return None,
            Some(HeldUp::Channel) => {
                let channel = self.clients.consumers[consumer].channel;
                self.clients.channels[channel].is_held_up = true;
                return None;
            }
        }
        let consumer = &self.clients.consumers[consumer];
        let room = consumer.up_to - consumer.delivered;
        let has_few = self.sessions[session].handed.len() < HANDED_MAX;
        (consumer.is_started && has_few && ready < room).then_some(slot)
    }

    /// Puts what a queue had into another one, at the end; the caller lets go of it where it was.
    fn move_entry<F: Effects>(&mut self, now: Time, way: Move, entry: &Entry, fx: &mut F) {
        let Move { from, to, session, returns } = way;
        let number = self.queues[from].number;
        let queue = &mut self.queues[to];
        let durable = entry.durable && queue.stores;
        let place = queue.next_seq;
        queue.next_seq += 1;
        queue.counters.published += 1;
        let waits_for_flush = durable && queue.own.as_ref().is_some_and(|it| it.waits_for_flush);
        let keeps_position = durable || (!entry.durable && entry.is_stored());
        let moved = Entry {
            seq: place,
            position: if keeps_position { entry.position } else { NOWHERE },
            message: entry.message.clone(),
            requeues: 0,
            durable,
            fetch: Fetch::Idle,
            lane: 0,
            mark: self.storage.mark,
            ..*entry
        };
        if durable {
            let record = Record::HandedOver {
                queue: number,
                seq: entry.seq,
                session,
                returns,
                to: queue.number,
                entries: vec![moved.without_message()],
            };
            record.write(&mut self.scratch.record);
            let position = fx.append(&[&self.scratch.record], waits_for_flush);
            fx.write_soon();
            fx.retain(entry.position, 1);
            if waits_for_flush {
                self.note_unflushed(to, position, place);
            }
        } else if keeps_position {
            self.retain_transient(entry.position, fx);
        }
        self.storage.resident += moved.resident_cost();
        let queue = &mut self.queues[to];
        let (is_first, expires) = (queue.ready == 0, moved.expires);
        queue.push(moved);
        self.after_push(now, to, is_first, expires, fx);
    }

    /// The group whose shared queue has handed the message at a place of a session's queue over.
    #[cold]
    pub(crate) fn group_of_handed(&self, slot: u32, place: u64) -> Option<Arc<str>> {
        let session = &self.sessions[self.owner_of_queue(slot)?];
        let queue = self.queues.slot_of(session.handed.get(&place)?.queue)?;
        Some(Arc::clone(&self.queues[queue].shared.as_ref()?.group))
    }

    /// A message of a queue is gone for good. If it was handed over, it is nobody else's any more.
    #[inline]
    pub(crate) fn end_handed<F: Effects>(&mut self, slot: u32, place: u64, fx: &mut F) {
        let own = self.queues.get(slot).and_then(|queue| queue.own.as_ref());
        if own.is_some_and(|own| own.has_shared) {
            self.settle_handed(slot, place, fx);
        }
    }

    #[cold]
    fn settle_handed<F: Effects>(&mut self, slot: u32, place: u64, fx: &mut F) {
        let Some(session) = self.owner_of_queue(slot) else { return };
        let Some(handed) = self.sessions[session].handed.remove(&place) else { return };
        if let Some(lent) = handed.lent {
            self.drop_lent(handed.queue, *lent, fx);
        }
        if self.sessions[session].handed.is_empty()
            && let Some(own) = &mut self.queues[slot].own
        {
            own.has_shared = false;
        }
        self.account_session(session);
    }

    /// All that waits in a queue is about to go at once.
    pub(crate) fn end_handed_waiting<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        if !self.queues[slot].own.as_ref().is_some_and(|own| own.has_shared) {
            return;
        }
        let Some(session) = self.owner_of_queue(slot) else { return };
        let places: Vec<u64> = self.sessions[session].handed.keys().copied().collect();
        for place in places {
            let lanes = &mut self.queues[slot].lanes;
            if lanes.iter_mut().any(|lane| lane.find(place).is_some()) {
                self.settle_handed(slot, place, fx);
            }
        }
    }

    /// A message that was lent is settled.
    fn drop_lent<F: Effects>(&mut self, queue: u64, lent: Entry, fx: &mut F) {
        match self.queues.slot_of(queue) {
            Some(slot) => self.forget(slot, lent, fx),
            None => {
                self.snapshot_first(queue, &lent);
                self.drop_entry(lent, fx);
            }
        }
    }

    /// A channel gives up a session, or ends: what it has unsettled of messages that were handed over goes
    /// back to the session's queue, at once.
    pub(crate) fn take_handed_back<F: Effects>(
        &mut self,
        now: Time,
        session: u32,
        channel: u32,
        fate: Fate,
        fx: &mut F,
    ) {
        let Session { queue, handed, .. } = &self.sessions[session];
        let unsettled = &mut self.clients.channels[channel].unsettled;
        if handed.is_empty() {
            return;
        }
        let is_handed =
            |it: &Delivered| it.queue_number == *queue && handed.contains_key(&it.entry.seq);
        let sent = unsettled.iter().filter(|(_, it)| is_handed(it));
        for tag in sent.map(|(tag, _)| tag).collect::<Vec<_>>() {
            let unsettled = &mut self.clients.channels[channel].unsettled;
            if let Some(delivered) = unsettled.take(tag) {
                self.settle_one(now, Some(channel), delivered, fate.plain(), fx);
            }
        }
    }

    /// A session ends: it is no member any more, and what it was handed and has not settled goes to others,
    /// where it may.
    pub(super) fn return_handed<F: Effects>(&mut self, now: Time, session: u32, fx: &mut F) {
        let Session { number, queue, holder, .. } = self.sessions[session];
        if let Some(channel) = holder.and_then(|holder| self.channel_slot(holder)) {
            self.take_handed_back(now, session, channel, Fate::Closed, fx);
        }
        for shared in std::mem::take(&mut self.sessions[session].shared) {
            self.end_membership(number, shared, fx);
        }
        let own = self.queues.slot_of(queue);
        for (place, handed) in std::mem::take(&mut self.sessions[session].handed) {
            self.return_one(now, own, place, handed, fx);
        }
    }

    /// A session leaves a shared queue: what its client has not been sent goes back.
    pub(super) fn return_unsent<F: Effects>(
        &mut self,
        now: Time,
        session: u32,
        shared: u64,
        fx: &mut F,
    ) {
        let Some(own) = self.queues.slot_of(self.sessions[session].queue) else { return };
        let lanes = self.queues[own].lanes.iter();
        let waiting = lanes.flat_map(|lane| lane.entries()).filter(|entry| !entry.redelivered);
        let waiting: Vec<u64> = waiting.map(|entry| entry.seq).collect();
        for place in waiting {
            let handed = &mut self.sessions[session].handed;
            if handed.get(&place).is_some_and(|it| it.queue == shared)
                && let Some(handed) = handed.remove(&place)
            {
                self.return_one(now, Some(own), place, Handed { returns: true, ..handed }, fx);
            }
        }
    }

    /// Gives a message back to its shared queue, if that is there and it may. `own`: the session's queue, to
    /// which all has come back that its client was sent.
    fn return_one<F: Effects>(
        &mut self,
        now: Time,
        own: Option<u32>,
        place: u64,
        handed: Handed,
        fx: &mut F,
    ) {
        let shared = self.queues.slot_of(handed.queue);
        let shared = shared.filter(|slot| self.queues[*slot].shared.is_some());
        let entry = own.and_then(|own| self.queues[own].remove(place));
        let Some(lent) = handed.lent else {
            let (Some(own), Some(entry)) = (own, entry) else { return };
            if let Some(shared) = shared.filter(|_| handed.returns) {
                let way = Move { from: own, to: shared, session: 0, returns: false };
                self.move_entry(now, way, &entry, fx);
            }
            return self.forget(own, entry, fx);
        };
        // One that is gone there was settled.
        let Some(copy) = entry else { return self.drop_lent(handed.queue, *lent, fx) };
        self.drop_entry(copy, fx);
        let Some(shared) = shared else { return self.drop_lent(handed.queue, *lent, fx) };
        self.snapshot_first_in_slot(shared, &lent);
        let lent = Entry { redelivered: true, mark: self.storage.mark, ..*lent };
        let expires = lent.expires;
        self.queues[shared].give_back(lent);
        self.after_push(now, shared, true, expires, fx);
    }

    /// A session is gone together with its queues: nothing of what it was lent returns.
    pub(crate) fn drop_handed<F: Effects>(&mut self, session: &mut Session, fx: &mut F) {
        for (_, handed) in std::mem::take(&mut session.handed) {
            if let Some(lent) = handed.lent {
                self.drop_lent(handed.queue, *lent, fx);
            }
        }
    }

    /// The place of the last message of a session's queue that was handed over.
    pub(crate) fn last_handed(&self, slot: u32) -> Option<u64> {
        self.queues[slot].own.as_ref().filter(|own| own.has_shared)?;
        let session = &self.sessions[self.owner_of_queue(slot)?];
        session.handed.last_key_value().map(|(place, _)| *place)
    }

    /// A message has come into another queue, as a record says.
    pub(crate) fn replay_handed<F: Effects>(
        &mut self,
        session: u64,
        returns: bool,
        from: u64,
        to: u64,
        entries: Vec<Entry>,
        fx: &mut F,
    ) -> Result<(), String> {
        for entry in entries {
            let Some(queue) = self.queues.numbered(to) else { continue };
            if entry.seq < queue.next_seq {
                return Err(format!("message {} of queue '{}' again", entry.seq, queue.name));
            }
            queue.next_seq = entry.seq + 1;
            fx.retain(entry.position, 1);
            let (place, mark) = (entry.seq, self.storage.mark);
            queue.push(Entry { mark, ..entry });
            if let Some(session) = self.sessions.numbered(session) {
                let handed = Handed { queue: from, returns, lent: None };
                self.sessions[session].handed.insert(place, handed);
            }
        }
        Ok(())
    }

    /// All records are replayed: only what is in the session's queue was handed over and not settled.
    pub(super) fn prune_handed(&mut self, session: u32) {
        let mut handed = std::mem::take(&mut self.sessions[session].handed);
        if let Some(queue) = self.queues.numbered(self.sessions[session].queue) {
            let mut is_there = |place: u64| {
                queue.lanes.iter_mut().any(|lane| lane.find(place).is_some())
                    || queue.page_of(place).is_some()
            };
            handed.retain(|place, _| is_there(*place));
            if let Some(own) = &mut queue.own {
                own.has_shared = !handed.is_empty();
            }
            self.sessions[session].handed = handed;
        }
    }
}
