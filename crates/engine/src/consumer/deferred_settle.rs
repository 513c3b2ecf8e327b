//! Settles of many deliveries, a part in each turn: a channel that ends with a million deliveries,
//! or acknowledges them all, delays no other. Does not know what a settle does.

use super::unsettled::{Delivered, Taker, Unsettled};
use crate::engine::Engine;
use crate::{Bytes, Effects, Outcome, Time};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

/// How deliveries are settled together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner<'a> {
    pub(crate) fate: Fate,
    /// What those get that go back, if anything.
    pub(crate) annotations: &'a [u8],
}

/// What becomes of deliveries that are settled together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// The same of all.
    Same(Outcome),
    /// Their consumer or channel ends in good order: what the consumer began with.
    Closed,
    /// Their connection is lost: what the consumer began with.
    Lost,
}

/// What tells the deliveries of a consumer that has ended from others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakerKey {
    pub(crate) consumer: u32,
    pub(crate) incarnation: u32,
    pub(crate) queue: u32,
}

impl Fate {
    /// What becomes of one of them.
    #[inline]
    pub(crate) fn of(self, delivered: &Delivered) -> Outcome {
        match (self, delivered.taker) {
            (Fate::Same(outcome), _) => outcome,
            (Fate::Closed, Some(taker)) => taker.on_close,
            (Fate::Lost, Some(taker)) => taker.on_loss,
            (Fate::Closed | Fate::Lost, None) => Outcome::REQUEUE,
        }
    }

    /// In the manner of a settle that adds nothing.
    pub(crate) fn plain(self) -> Manner<'static> {
        Manner { fate: self, annotations: &[] }
    }
}

/// Deliveries that are settled together.
#[derive(Debug)]
pub(crate) struct Settling {
    /// Counted up.
    pub(crate) number: u64,
    /// Whose they were, while it is there.
    pub(crate) channel: Option<u32>,
    pub(crate) deliveries: Unsettled,
    fate: Fate,
    annotations: Bytes,
    /// Slots and numbers of queues that hand nothing out until all have come back: what was delivered
    /// first is to be delivered first again.
    held: Vec<(u32, u64)>,
}

/// All of them, in the order of their turns, and found by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Settlings {
    all: BTreeMap<u64, Settling>,
    turns: VecDeque<u64>,
    next: u64,
}

impl Settlings {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// By their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Settling> {
        self.all.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Settling> {
        self.all.values_mut()
    }

    /// The first from a number on.
    pub(crate) fn first_from(&self, number: u64) -> Option<&Settling> {
        self.all.range(number..).next().map(|(_, settling)| settling)
    }

    pub(crate) fn first_from_mut(&mut self, number: u64) -> Option<&mut Settling> {
        self.all.range_mut(number..).next().map(|(_, settling)| settling)
    }

    /// Adds one under the next number.
    fn add(&mut self, settling: impl FnOnce(u64) -> Settling) {
        self.all.insert(self.next, settling(self.next));
        self.turns.push_back(self.next);
        self.next += 1;
    }

    /// The one whose turn it is.
    fn front_mut(&mut self) -> Option<&mut Settling> {
        self.all.get_mut(self.turns.front()?)
    }

    fn pop_front(&mut self) -> Option<Settling> {
        self.all.remove(&self.turns.pop_front()?)
    }

    /// Lets those of another client go on, if others wait; those of one channel keep their order.
    fn let_next(&mut self) {
        let channel_of = |number: &u64| self.all.get(number).and_then(|it| it.channel);
        let Some(first) = self.turns.front() else { return };
        let channel = channel_of(first);
        if channel.is_none() || self.turns.iter().skip(1).all(|it| channel_of(it) != channel) {
            self.turns.rotate_left(1);
        }
    }
}

/// Steps that a delivery counts for which goes back because its channel closes.
const REQUEUE_STEPS: u64 = 2;
/// Settles of one client that are carried out before those of others.
const IN_TURN: usize = 256;

impl Engine {
    /// Settles the deliveries of a channel within a range of tags, the first ones first; where they are many,
    /// over several turns.
    pub(crate) fn settle_range<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        tags: RangeInclusive<u64>,
        manner: Manner<'_>,
        fx: &mut F,
    ) {
        self.settle_some_of(now, slot, tags, manner, None, fx);
    }

    /// Gives back all deliveries of a channel that ends. `queues`: those that it has consumed from.
    pub(crate) fn return_all<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        fate: Fate,
        queues: &[u32],
        fx: &mut F,
    ) {
        self.settle_some_of(now, slot, 0..=u64::MAX, fate.plain(), Some(queues), fx);
        for settling in self.agenda.settling.iter_mut().filter(|it| it.channel == Some(slot)) {
            settling.channel = None;
        }
    }

    /// Gives back the deliveries of a channel that went to a consumer which has ended.
    pub(crate) fn return_those_of<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        ended: TakerKey,
        fate: Fate,
        fx: &mut F,
    ) {
        let TakerKey { consumer, incarnation, queue } = ended;
        let is_its = |taker: Taker| (taker.slot, taker.incarnation) == (consumer, incarnation);
        let is_its = |it: &Delivered| it.taker.is_some_and(is_its);
        self.return_some_of(now, slot, queue, is_its, fate, fx);
    }

    /// Gives back the deliveries of a channel that are of one queue, as where their consumers end in good
    /// order.
    pub(crate) fn return_those_of_queue<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        queue: u32,
        fx: &mut F,
    ) {
        let number = self.queues[queue].number;
        let is_its = |it: &Delivered| it.queue == queue && it.queue_number == number;
        self.return_some_of(now, slot, queue, is_its, Fate::Closed, fx);
    }

    fn return_some_of<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        queue: u32,
        is_its: impl Fn(&Delivered) -> bool,
        fate: Fate,
        fx: &mut F,
    ) {
        let unsettled = &mut self.clients.channels[slot].unsettled;
        let its = unsettled.iter().filter(|(_, it)| is_its(it));
        let tags: Vec<u64> = its.map(|(tag, _)| tag).collect();
        let is_many = tags.len() > self.options.limits.settles_at_once;
        let mut deliveries = Unsettled::default();
        for tag in tags {
            if let Some(delivered) = unsettled.take(tag) {
                deliveries.push(tag, delivered);
            }
        }
        if is_many {
            return self.settle_later(slot, deliveries, fate.plain(), &[queue]);
        }
        while let Some(delivered) = deliveries.take_first(u64::MAX) {
            self.settle_one(now, Some(slot), delivered, fate.plain(), fx);
        }
    }

    /// Settles deliveries within a range of tags, in later turns what there is no time for. `queues`: as
    /// [`Engine::return_all`] has them.
    fn settle_some_of<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        tags: RangeInclusive<u64>,
        manner: Manner<'_>,
        queues: Option<&[u32]>,
        fx: &mut F,
    ) {
        // A transaction's are one group of records.
        let is_group = self.storage.in_group;
        let count = self.clients.channels[slot].unsettled.within(&tags);
        // All channels of a connection may close at once.
        let has_time = queues.is_none() || count == 0 || !self.has_much_unasked();
        let mut is_later = !is_group && (count > self.options.limits.settles_at_once || !has_time);
        if queues.is_some() && !is_later {
            self.unasked_steps += REQUEUE_STEPS * count as u64;
        }
        let mut next = *tags.start();
        while !is_later
            && let Some(channel) = self.clients.channels.get_mut(slot)
            && let Some((tag, delivered)) = channel.unsettled.take_within(&(next..=*tags.end()))
        {
            next = tag.saturating_add(1);
            self.settle_one(now, Some(slot), delivered, manner, fx);
            is_later = !is_group && self.letters_are_much();
        }
        if !is_later {
            return;
        }
        let queues = match (manner.fate, queues) {
            (Fate::Same(Outcome::Accept | Outcome::Discard), _) => Vec::new(),
            (_, Some(queues)) => queues.to_vec(),
            (_, None) => self.queues_of(slot),
        };
        let deliveries = self.clients.channels[slot].unsettled.split(&(next..=*tags.end()));
        self.settle_later(slot, deliveries, manner, &queues);
    }

    /// Settles deliveries of a channel in later turns, before which these queues hand nothing out.
    fn settle_later(
        &mut self,
        slot: u32,
        deliveries: Unsettled,
        manner: Manner<'_>,
        queues: &[u32],
    ) {
        self.settle_later_of(Some(slot), deliveries, manner, queues);
    }

    /// Brings deliveries back to their queues over several turns. `channel`: whose they were, while it is
    /// there.
    pub(crate) fn bring_back_later(&mut self, channel: Option<u32>, deliveries: Unsettled) {
        let is_there = |(slot, number): &(u32, u64)| {
            self.queues.get(*slot).is_some_and(|queue| queue.number == *number)
        };
        let queues = deliveries.iter().map(|(_, it)| (it.queue, it.queue_number));
        let mut queues: Vec<u32> = queues.filter(is_there).map(|(slot, _)| slot).collect();
        queues.sort_unstable();
        queues.dedup();
        let manner = Fate::Same(Outcome::REQUEUE).plain();
        self.settle_later_of(channel, deliveries, manner, &queues);
    }

    fn settle_later_of(
        &mut self,
        channel: Option<u32>,
        deliveries: Unsettled,
        manner: Manner<'_>,
        queues: &[u32],
    ) {
        let held = self.hold_queues(queues);
        let (fate, annotations) = (manner.fate, Bytes::copy_from_slice(manner.annotations));
        let settling = |number| Settling { number, channel, deliveries, fate, annotations, held };
        self.agenda.settling.add(settling);
    }

    /// Goes on with what [`Engine::settle_range`] left.
    pub(crate) fn settle_some<F: Effects>(&mut self, now: Time, fx: &mut F) {
        for count in 1..=self.options.limits.settles_at_once {
            if self.letters_are_much() {
                break;
            }
            if count % IN_TURN == 0 {
                self.agenda.settling.let_next();
            }
            let Some(settling) = self.agenda.settling.front_mut() else { break };
            let channel = settling.channel;
            if let Some(delivered) = settling.deliveries.take_first(u64::MAX) {
                let (fate, annotations) = (settling.fate, settling.annotations.clone());
                let manner = Manner { fate, annotations: &annotations };
                self.settle_one(now, channel, delivered, manner, fx);
            } else if let Some(settling) = self.agenda.settling.pop_front() {
                self.let_go_on(settling.held);
            }
        }
        self.run_overdue(now, fx);
    }

    /// The queues that a channel consumes from.
    pub(crate) fn queues_of(&self, slot: u32) -> Vec<u32> {
        let consumers = self.clients.channels[slot].consumers.iter();
        let queues = consumers.map(|consumer| self.clients.consumers[consumer].queue);
        let mut queues: Vec<u32> = queues.collect();
        queues.sort_unstable();
        queues.dedup();
        queues
    }

    /// Has queues hand nothing out for the time being.
    fn hold_queues(&mut self, queues: &[u32]) -> Vec<(u32, u64)> {
        let mut held = Vec::new();
        for &slot in queues {
            let Some(queue) = self.queues.get_mut(slot) else { continue };
            queue.holds += 1;
            held.push((slot, queue.number));
            let selecting = queue.filtered.as_mut().map(|filtered| filtered.take_able());
            let able = std::mem::take(&mut queue.able);
            for able in able.into_iter().chain(selecting.into_iter().flatten()) {
                self.clients.consumers[able].is_able = false;
            }
        }
        held
    }

    /// Has them hand out messages again, where nothing else holds them.
    fn let_go_on(&mut self, held: Vec<(u32, u64)>) {
        for (slot, number) in held {
            let Some(queue) = self.queues.get_mut(slot).filter(|queue| queue.number == number)
            else {
                continue;
            };
            queue.holds -= 1;
            if queue.holds > 0 {
                continue;
            }
            for consumer in queue.consumers.clone() {
                self.reconsider(consumer);
            }
            self.mark_dirty(slot);
        }
    }
}
