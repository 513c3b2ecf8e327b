//! Settles of many deliveries, a part in each turn: a channel that ends with a million deliveries,
//! or acknowledges them all, delays no other. Does not know what a settle does.

use super::unsettled::Unsettled;
use crate::engine::Engine;
use crate::{Effects, Outcome, Time};

/// Deliveries that are all settled alike.
#[derive(Debug)]
pub(crate) struct Settling {
    /// Counted up.
    pub(crate) number: u64,
    /// Whose they were, while it is there.
    pub(crate) channel: Option<u32>,
    pub(crate) deliveries: Unsettled,
    outcome: Outcome,
    /// Slots and numbers of queues that hand nothing out until all have come back: what was delivered
    /// first is to be delivered first again.
    held: Vec<(u32, u64)>,
}

/// Steps that a delivery counts for which goes back because its channel closes.
const REQUEUE_STEPS: u64 = 2;
/// Settles of one client that are carried out before those of others.
const IN_TURN: usize = 256;

impl Engine {
    /// Settles all deliveries of a channel up to a tag, the first ones first; where they are many, over
    /// several turns.
    pub(crate) fn settle_up_to<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        up_to: u64,
        outcome: Outcome,
        fx: &mut F,
    ) {
        self.settle_some_of(now, slot, up_to, outcome, None, fx);
    }

    /// Requeues all deliveries of a channel that ends. `queues`: those that it has consumed from.
    pub(crate) fn requeue_all<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        queues: &[u32],
        fx: &mut F,
    ) {
        self.settle_some_of(now, slot, u64::MAX, Outcome::Requeue, Some(queues), fx);
        for settling in self.agenda.settling.iter_mut().filter(|it| it.channel == Some(slot)) {
            settling.channel = None;
        }
    }

    /// Settles deliveries up to a tag, in later turns what there is no time for. `queues`: as
    /// [`Engine::requeue_all`] has them.
    fn settle_some_of<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        up_to: u64,
        outcome: Outcome,
        queues: Option<&[u32]>,
        fx: &mut F,
    ) {
        // A transaction's are one group of records.
        let is_group = self.storage.in_group;
        let count = self.clients.channels[slot].unsettled.up_to(up_to);
        // All channels of a connection may close at once.
        let has_time = queues.is_none() || count == 0 || !self.has_much_unasked();
        if !is_group && (count > self.options.limits.settles_at_once || !has_time) {
            return self.settle_later(slot, up_to, outcome, queues);
        }
        if queues.is_some() {
            self.unasked_steps += REQUEUE_STEPS * count as u64;
        }
        while let Some(channel) = self.clients.channels.get_mut(slot)
            && let Some(delivered) = channel.unsettled.take_first(up_to)
        {
            self.settle_one(now, Some(slot), delivered, outcome, fx);
            if !is_group && self.letters_are_much() {
                return self.settle_later(slot, up_to, outcome, queues);
            }
        }
    }

    fn settle_later(&mut self, slot: u32, up_to: u64, outcome: Outcome, queues: Option<&[u32]>) {
        let queues = match (outcome, queues) {
            (Outcome::Accept | Outcome::Discard, _) => Vec::new(),
            (Outcome::Requeue, Some(queues)) => queues.to_vec(),
            (Outcome::Requeue, None) => self.queues_of(slot),
        };
        let deliveries = self.clients.channels[slot].unsettled.split_first(up_to);
        let held = self.hold_queues(&queues);
        let (number, channel) = (self.agenda.next_settling, Some(slot));
        self.agenda.next_settling += 1;
        self.agenda.settling.push_back(Settling { number, channel, deliveries, outcome, held });
    }

    /// Goes on with what [`Engine::settle_up_to`] left.
    pub(crate) fn settle_some<F: Effects>(&mut self, now: Time, fx: &mut F) {
        for count in 1..=self.options.limits.settles_at_once {
            if self.letters_are_much() {
                break;
            }
            if count % IN_TURN == 0 {
                self.let_next_settle();
            }
            let Some(settling) = self.agenda.settling.front_mut() else { break };
            let (channel, outcome) = (settling.channel, settling.outcome);
            if let Some(delivered) = settling.deliveries.take_first(u64::MAX) {
                self.settle_one(now, channel, delivered, outcome, fx);
            } else if let Some(settling) = self.agenda.settling.pop_front() {
                self.let_go_on(settling.held);
            }
        }
        self.run_overdue(now, fx);
    }

    /// Lets the settles of another client go on, if others wait; those of one channel keep their order.
    fn let_next_settle(&mut self) {
        let settling = &mut self.agenda.settling;
        let Some(first) = settling.front() else { return };
        let channel = first.channel;
        if channel.is_none() || settling.iter().skip(1).all(|other| other.channel != channel) {
            settling.rotate_left(1);
        }
    }

    /// The queues that a channel consumes from.
    pub(crate) fn queues_of(&self, slot: u32) -> Vec<u32> {
        let consumers = self.clients.channels[slot].consumers.iter();
        let queues = consumers.map(|consumer| self.clients.consumers[*consumer].queue);
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
            for able in std::mem::take(&mut queue.able) {
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
