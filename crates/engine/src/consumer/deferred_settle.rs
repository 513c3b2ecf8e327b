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
        // A transaction's are one group of records.
        if self.is_much(slot, up_to) && !self.storage.in_group {
            let queues = match outcome {
                Outcome::Requeue => self.queues_of(slot),
                Outcome::Accept | Outcome::Discard => Vec::new(),
            };
            return self.settle_later(slot, up_to, outcome, &queues);
        }
        while let Some(channel) = self.clients.channels.get_mut(slot)
            && let Some(delivered) = channel.unsettled.take_first(up_to)
        {
            self.settle_one(now, Some(slot), delivered, outcome, fx);
        }
    }

    /// Requeues all deliveries of a channel that ends. `queues`: those that it has consumed from.
    pub(crate) fn requeue_all<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        queues: &[u32],
        fx: &mut F,
    ) {
        if self.is_much(slot, u64::MAX) {
            self.settle_later(slot, u64::MAX, Outcome::Requeue, queues);
        } else {
            self.settle_up_to(now, slot, u64::MAX, Outcome::Requeue, fx);
        }
        for settling in self.agenda.settling.iter_mut().filter(|it| it.channel == Some(slot)) {
            settling.channel = None;
        }
    }

    /// Whether there is more to be settled up to a tag than in one turn.
    #[inline]
    fn is_much(&self, slot: u32, up_to: u64) -> bool {
        let unsettled = &self.clients.channels[slot].unsettled;
        unsettled.up_to(up_to) > self.options.limits.settles_at_once
    }

    fn settle_later(&mut self, slot: u32, up_to: u64, outcome: Outcome, queues: &[u32]) {
        let deliveries = self.clients.channels[slot].unsettled.split_first(up_to);
        let held = self.hold_queues(queues);
        let (number, channel) = (self.agenda.next_settling, Some(slot));
        self.agenda.next_settling += 1;
        self.agenda.settling.push_back(Settling { number, channel, deliveries, outcome, held });
    }

    /// Goes on with what [`Engine::settle_up_to`] left.
    pub(crate) fn settle_some<F: Effects>(&mut self, now: Time, fx: &mut F) {
        let looked_at = self.looked_at_for_routes;
        for _ in 0..self.options.limits.settles_at_once {
            if self.letters_are_much(looked_at) {
                break;
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
