//! Consumers that take only some messages of their queue: what comes is compared with each distinct filter
//! once, and what waits as far as somebody could take it.

use super::browsers::BrowserWanted;
use super::filtered::Filtered;
use super::read_beside::Served;
use super::selection_reading::{Known, NextWaiting, Place, known, next_waiting};
use crate::engine::Engine;
use crate::foundation::work_budget::Filtering;
use crate::interface::limits::{FILTER_TERMS_MAX, MESSAGE_BYTES};
use crate::interface::refusal::refuse;
use crate::queue::lane::Front;
use crate::queue::notes::Waiting;
use crate::queue::stored::{Incoming, Stored};
use crate::selector::Filter;
use crate::{Effects, Refusal, Selectable, Time};

/// Messages that wait which are compared with filters before others get their turn.
const COMPARED_AT_ONCE: usize = 64;

impl<'a> Incoming<'a> {
    fn selectable(&self) -> Selectable<'a> {
        Selectable {
            exchange: self.exchange,
            routing_key: self.routing_key,
            content: self.content,
            delivery_count: self.annotations.delivery_count,
        }
    }
}

impl<'a> Stored<'a> {
    /// As filters see it; it went back so often.
    pub(crate) fn selectable(&self, requeues: u32) -> Selectable<'a> {
        Selectable {
            exchange: self.exchange,
            routing_key: self.routing_key,
            content: self.content,
            delivery_count: requeues,
        }
    }
}

impl Engine {
    /// A consumer with a filter comes to a queue: returns its group. Refused: its filters would be too much
    /// work for each message.
    pub(super) fn join_group(&mut self, queue: u32, filter: &Filter) -> Result<u32, Refusal> {
        let seed = self.random.next();
        let queue = &mut self.queues[queue];
        let filtered = queue.filtered.get_or_insert_with(|| Box::new(Filtered::new(seed)));
        if filtered.terms_with(filter) > FILTER_TERMS_MAX {
            let name = &queue.name;
            refuse!(
                LimitExceeded,
                "the filters of the consumers of queue '{name}' would be more than {FILTER_TERMS_MAX} terms \
                 to evaluate for each message; those that compare a property with one value hardly count"
            );
        }
        let lanes = queue.lanes.numbered();
        let unseen = lanes.filter(|(_, lane)| !lane.is_empty()).map(|(index, _)| index);
        Ok(filtered.join(filter, unseen))
    }

    /// A consumer ends, or has left its queue: its group goes with its last.
    pub(super) fn leave_group(&mut self, queue_slot: u32, group: Option<u32>, consumer: u32) {
        let Some(group) = group else { return };
        let Some(queue) = self.queues.get_mut(queue_slot) else { return };
        if queue.filtered.as_mut().is_some_and(|filtered| filtered.leave(group, consumer)) {
            queue.filtered = None;
            self.count_known(queue_slot);
        }
    }

    /// Finds the groups of a queue's consumers that would take a message, into `scratch.matched`.
    pub(super) fn find_groups(&mut self, slot: u32, message: &Selectable<'_>) {
        let matched = &mut self.scratch.matched;
        matched.clear();
        let Some(filtered) = &self.queues[slot].filtered else { return };
        let read = self.options.conventions.read_property;
        let terms = filtered.filters().find(&|name: &str| read(message, name), matched);
        let property_bytes = message.content.properties.len();
        self.work_budget.count_filtering(Filtering { terms, property_bytes });
    }

    /// The consumer that takes a message which comes to a queue with filters, without its waiting: one of
    /// highest priority that can, in turn among equals. Leaves those who would take it otherwise in
    /// `scratch.matched`, for [`Engine::note_match`].
    pub(crate) fn choose_selecting<F: Effects>(
        &mut self,
        slot: u32,
        incoming: &Incoming<'_>,
        fx: &F,
    ) -> Option<u32> {
        self.find_groups(slot, &incoming.selectable());
        let bytes = incoming.content.body.len() as u32;
        loop {
            let which = self.next_group(slot)?;
            if let Some(taker) = self.taker(slot, which, bytes, fx) {
                return Some(taker);
            }
        }
    }

    /// Who could take a message that comes, and waits for no other: a group that would take it, or (`None`)
    /// those who take all.
    fn next_group(&mut self, slot: u32) -> Option<Option<u32>> {
        let queue = &mut self.queues[slot];
        let filtered = queue.filtered.as_deref_mut()?;
        let consumers = &self.clients.consumers;
        let priority = |able: &[u32]| able.first().map(|first| consumers[*first].priority);
        let is_up_to_date = filtered.is_up_to_date() && queue.holds == 0;
        let of_group = |slot: u32| {
            let group = filtered.get(slot).filter(|group| is_up_to_date && group.has_nothing())?;
            priority(&group.able)
        };
        let takes_any = queue.ready == 0 && queue.groups.is_none();
        let all = takes_any.then(|| priority(&queue.able)).flatten();
        // The first of those with the highest priority, and how many these are.
        let mut first = None;
        let (mut highest, mut count) = (all, usize::from(all.is_some()));
        let matched = self.scratch.matched.iter();
        for slot in matched.clone() {
            let Some(own) = of_group(*slot) else { continue };
            if highest.is_none_or(|highest| own > highest) {
                (first, highest, count) = (Some(*slot), Some(own), 1);
            } else if highest == Some(own) {
                count += 1;
            }
        }
        let highest = highest?;
        if count == 1 {
            return Some(first);
        }
        let equal_groups = matched.filter(|slot| of_group(**slot) == Some(highest));
        let mut equals: Vec<Option<u32>> = equal_groups.map(|slot| Some(*slot)).collect();
        equals.extend((all == Some(highest)).then_some(None));
        Some(equals[filtered.next_turn(count)])
    }

    /// A message comes to a queue at that place, and no consumer has it yet: those who would take it, in
    /// `scratch.matched`, know of it.
    pub(crate) fn note_match(&mut self, slot: u32, lane: u8, seq: u64) {
        let queue = &mut self.queues[slot];
        let Some(filtered) = &mut queue.filtered else { return };
        if filtered.came(&self.scratch.matched, lane.into(), seq) {
            self.mark_dirty(slot);
        }
    }

    /// The same for one that was to be handed to a consumer who cannot take it any more.
    #[cold]
    pub(crate) fn compare_and_note(&mut self, slot: u32, incoming: &Incoming<'_>, seq: u64) {
        if self.queues[slot].filtered.is_some() {
            self.find_groups(slot, &incoming.selectable());
            let lane = self.queues[slot].lane_of(incoming.content.priority);
            self.note_match(slot, lane, seq);
        }
    }

    /// A message is back at its place.
    pub(crate) fn note_return(&mut self, slot: u32, lane: u8, seq: u64) {
        let queue = &mut self.queues[slot];
        if queue.filtered.is_none() {
            return;
        }
        let Some(entry) = queue.lanes[usize::from(lane)].find(seq) else { return };
        let requeues = entry.requeues;
        let Some(message) = entry.message.clone() else {
            if let Some(filtered) = &mut queue.filtered {
                filtered.look_again_at(Waiting::new(lane, seq));
                filtered.wake_all();
                self.mark_dirty(slot);
            }
            return;
        };
        self.find_groups(slot, &message.stored().selectable(requeues));
        let Some(filtered) = &mut self.queues[slot].filtered else { return };
        if filtered.came_back(&self.scratch.matched, lane.into(), seq) {
            self.mark_dirty(slot);
        }
    }

    /// Hands messages of one queue to consumers that take only some, each group in turn, until that counts
    /// for `most` bytes. Returns what it counts for.
    pub(super) fn serve_filtered<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        most: u64,
        fx: &mut F,
    ) -> u64 {
        let mut bytes = 0;
        while bytes < most {
            let Some(queue) = self.queues.get_mut(slot) else { return bytes };
            let Some(group) = queue.filtered.as_mut().and_then(|it| it.take_awake()) else {
                return bytes;
            };
            if let Served::Something(more) = self.serve_group(now, slot, group, fx) {
                bytes += more;
                if let Some(filtered) = &mut self.queues[slot].filtered {
                    filtered.wake(group);
                }
            }
        }
        self.mark_dirty(slot);
        bytes
    }

    /// Hands a group one message, or has it look at some that it has not seen.
    fn serve_group<F: Effects>(&mut self, now: Time, slot: u32, group: u32, fx: &mut F) -> Served {
        if let Some(served) = self.look_again(now, slot, group, fx) {
            return served;
        }
        if let Some(bytes) = self.serve_barred(now, slot, group, fx) {
            return Served::Something(bytes);
        }
        for lane in (0..self.queues[slot].lanes.len()).rev() {
            loop {
                let queue = &mut self.queues[slot];
                let own = queue.filtered.as_ref().and_then(|filtered| filtered.get(group));
                let Some(own) = own.filter(|own| !own.able.is_empty() && queue.holds == 0) else {
                    return Served::Nothing;
                };
                let Some(seq) = own.first_known(lane) else { break };
                if queue.notes.as_ref().is_some_and(|notes| notes.is_barred(seq)) {
                    self.bar_known(slot, group, lane);
                    return Served::Something(MESSAGE_BYTES);
                }
                match known(queue, lane, seq, now) {
                    Known::Passed => self.forget_known(slot, group, lane),
                    Known::Cold => return self.read_known(slot, group, lane, fx),
                    Known::Here { bytes } => {
                        let Some(taker) = self.taker(slot, Some(group), bytes, fx) else {
                            return Served::Nothing;
                        };
                        self.forget_known(slot, group, lane);
                        self.hand_out_selected(now, slot, Place { lane, seq }, taker, fx);
                        return Served::Something(MESSAGE_BYTES + u64::from(bytes));
                    }
                }
            }
            let own = self.queues[slot].filtered.as_ref().and_then(|it| it.get(group));
            if let Some(from) = own.and_then(|own| own.unseen_from(lane)) {
                return self.look_on(now, slot, group, Place { lane, seq: from }, fx);
            }
        }
        Served::Nothing
    }

    fn forget_known(&mut self, slot: u32, group: u32, lane: usize) {
        if let Some(filtered) = &mut self.queues[slot].filtered {
            filtered.forget_first(group, lane);
        }
    }

    /// Some consumers do not get the next message that a group would take.
    #[cold]
    fn bar_known(&mut self, slot: u32, group: u32, lane: usize) {
        if let Some(filtered) = &mut self.queues[slot].filtered {
            filtered.bar_first(group, lane as u8);
        }
    }

    /// Hands a group the first message that it would take and some consumers do not get.
    fn serve_barred<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        group: u32,
        fx: &mut F,
    ) -> Option<u64> {
        let queue = &self.queues[slot];
        let own = queue.filtered.as_ref()?.get(group)?;
        let barred: Vec<Waiting> = own.barred().collect();
        for at in barred {
            match known(&mut self.queues[slot], at.lane(), at.seq, now) {
                Known::Passed => {
                    let filtered = self.queues[slot].filtered.as_mut()?;
                    filtered.get_mut(group)?.forget_barred(at);
                }
                Known::Cold => {}
                Known::Here { bytes } => {
                    let Some(taker) = self.unbarred(slot, group, at.seq, bytes, fx) else {
                        continue;
                    };
                    let filtered = self.queues[slot].filtered.as_mut()?;
                    filtered.get_mut(group)?.forget_barred(at);
                    let place = Place { lane: at.lane(), seq: at.seq };
                    self.hand_out_selected(now, slot, place, taker, fx);
                    return Some(MESSAGE_BYTES + u64::from(bytes));
                }
            }
        }
        None
    }

    /// A consumer of a group that may have a message and can take it.
    fn unbarred<F: Effects>(
        &self,
        slot: u32,
        group: u32,
        seq: u64,
        bytes: u32,
        fx: &F,
    ) -> Option<u32> {
        let queue = &self.queues[slot];
        let own = queue.filtered.as_ref()?.get(group).filter(|_| queue.holds == 0)?;
        let notes = queue.notes.as_ref()?;
        let may = |consumer: &u32| {
            let key = self.clients.consumer_key(*consumer);
            key.is_some_and(|key| !notes.bars(seq, key))
                && self.held_up(*consumer, bytes, fx).is_none()
        };
        own.able.iter().copied().find(may)
    }

    /// Has the groups that have seen a lane up to a number see more of it, for one of them.
    fn look_on<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        group: u32,
        from: Place,
        fx: &mut F,
    ) -> Served {
        let lane = from.lane;
        let Some(filtered) = &self.queues[slot].filtered else { return Served::Nothing };
        let mut cohort = filtered.cohort(lane, from.seq);
        let (mut next, mut count, mut wanted) = (Some(from.seq), 0, None);
        while let Some(seq) = next
            && count < COMPARED_AT_ONCE
            && seq < cohort.until
        {
            count += 1;
            let entry = match next_waiting(&mut self.queues[slot], lane, seq) {
                NextWaiting::Entry(entry) if entry.seq < cohort.until => entry,
                NextWaiting::Entry(_) => {
                    next = Some(cohort.until);
                    break;
                }
                NextWaiting::InPage { position, from } => {
                    next = Some(from);
                    wanted = Some(BrowserWanted::Page { lane, position, is_searched: false });
                    break;
                }
                NextWaiting::End => {
                    next = None;
                    break;
                }
            };
            next = Some(entry.seq + 1);
            let Some(filtered) = &self.queues[slot].filtered else { break };
            if entry.expires <= now || entry.is_unreadable() || filtered.reading.is_given_up(&entry)
            {
                continue;
            }
            let read = || filtered.reading.message(entry.seq).cloned();
            let Some(message) = entry.message.clone().or_else(read) else {
                next = Some(entry.seq);
                wanted = Some(self.messages_from(slot, lane, entry, now));
                break;
            };
            self.find_groups(slot, &message.stored().selectable(entry.requeues));
            let matched = &self.scratch.matched;
            if let Some(filtered) = &mut self.queues[slot].filtered {
                filtered.look_at(&mut cohort, matched, lane, entry.seq);
            }
        }
        if let Some(filtered) = &mut self.queues[slot].filtered {
            filtered.has_seen(cohort, lane, next);
            if next.is_none() {
                filtered.reading.forget();
            }
        }
        match wanted {
            Some(wanted) if count <= 1 => self.read_beside(slot, group, wanted, fx),
            _ => Served::Something(count as u64 * MESSAGE_BYTES),
        }
    }

    /// Whether nothing is left in its queue that a consumer could be handed, as far as its filter goes and
    /// everything that waits was looked at.
    #[must_use]
    pub(crate) fn has_nothing_for(&self, slot: u32) -> bool {
        let Some(consumer) = self.clients.consumers.get(slot) else { return true };
        let Some(queue) = self.queues.get(consumer.queue) else { return true };
        let Some(key) = self.clients.consumer_key(slot) else { return true };
        let Some(group) = consumer.group else {
            let has_none = || queue.notes.as_ref().is_none_or(|it| it.first_for(key).is_none());
            return matches!(queue.front(), Front::Empty) && has_none();
        };
        let group = queue.filtered.as_ref().and_then(|filtered| filtered.get(group));
        let Some(group) = group.filter(|_| queue.ready > 0) else { return true };
        let is_barred = |at: Waiting| queue.notes.as_ref().is_none_or(|it| it.bars(at.seq, key));
        let is_up_to_date = queue.filtered.as_ref().is_none_or(|it| it.is_up_to_date());
        is_up_to_date && group.has_seen_all() && group.barred().all(is_barred)
    }
}
