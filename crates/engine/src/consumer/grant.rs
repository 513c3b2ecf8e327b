//! Grants: how many deliveries a consumer may have had, as its client says, and the answer once there is
//! nothing more to deliver.

use crate::engine::Engine;
use crate::{ChannelId, Effects, Grant};

impl Engine {
    /// Sets how far a consumer that began with [`crate::Consume::is_granted`] may be delivered to. One that
    /// drains is answered by [`Effects::drained`] at the end of the turn in which nothing is left that could
    /// be delivered to it, or the grant is used up. Without effect where the channel has no such consumer: it
    /// may have been cancelled meanwhile.
    #[inline]
    pub fn grant<F: Effects>(&mut self, id: ChannelId, consumer: &str, grant: Grant, fx: &mut F) {
        if self.is_away() {
            return self.grant_at_home(id, consumer, grant, fx);
        }
        let Some(channel) = self.channel_slot(id) else { return };
        let Some(slot) = self.consumer_named(channel, consumer) else {
            return self.browsers.grant(id, consumer, grant);
        };
        let consumer = &mut self.clients.consumers[slot];
        if !consumer.is_granted {
            return;
        }
        consumer.up_to = grant.up_to;
        if grant.drain && !consumer.drains {
            self.agenda.draining.push((slot, consumer.incarnation));
        }
        consumer.drains = grant.drain;
        if consumer.delivered < consumer.up_to {
            self.reconsider(slot);
            self.wake_member(slot);
        }
    }

    /// Tells those consumers that drain for which nothing is left, now that queues have been served.
    #[cold]
    #[inline(never)]
    pub(super) fn answer_drains<F: Effects>(&mut self, fx: &mut F) {
        let mut draining = std::mem::take(&mut self.agenda.draining);
        draining.retain(|&(slot, incarnation)| {
            let consumer = self.clients.consumers.get(slot);
            let is_there = consumer.is_some_and(|it| it.incarnation == incarnation && it.drains);
            if !is_there || !self.is_drained(slot, fx) {
                return is_there;
            }
            let consumer = &mut self.clients.consumers[slot];
            consumer.drains = false;
            consumer.up_to = consumer.delivered;
            if let Some(channel) = self.clients.channels.get(consumer.channel) {
                fx.drained(channel.id, &consumer.name, consumer.delivered);
            }
            false
        });
        draining.append(&mut self.agenda.draining);
        self.agenda.draining = draining;
    }

    /// Whether nothing is left that could be delivered to a consumer, whatever is still being read, or on its
    /// way back, or waits for room in its client's output.
    fn is_drained<F: Effects>(&self, slot: u32, fx: &F) -> bool {
        let consumer = &self.clients.consumers[slot];
        if consumer.delivered >= consumer.up_to {
            return true;
        }
        let Some(channel) = self.clients.channels.get(consumer.channel) else { return false };
        let Some(queue) = self.queues.get(consumer.queue) else { return false };
        if !consumer.is_started || queue.holds > 0 {
            return false;
        }
        let is_second = queue.options.single_active && queue.consumers.first() != Some(&slot);
        if is_second || self.has_nothing_for(slot) {
            return true;
        }
        if queue.groups.is_some() && self.is_group_drained(consumer.queue, slot) {
            return true;
        }
        if !channel.flow || !fx.has_room(channel.id.connection) {
            return false;
        }
        // It can take no more before it settles some, for which it may wait.
        !consumer.presettled && self.has_all_it_may(channel)
    }
}
