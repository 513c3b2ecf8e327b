//! Cancels consumers whose user may not read their queue any more.

use crate::access::Right;
use crate::engine::Engine;
use crate::{Effects, Time};

impl Engine {
    /// A user's permissions in a virtual host have changed: ends its consumers that it may not have any more.
    pub(crate) fn review_consumers<F: Effects>(
        &mut self,
        now: Time,
        user: &str,
        vhost: &str,
        fx: &mut F,
    ) {
        let Some(vhost) = self.topology.vhost_slots.get(vhost).copied() else { return };
        let Engine { access, clients, queues, .. } = self;
        let mut forbidden = Vec::new();
        for connection in clients.connections.iter_mut().flatten() {
            let Some(grant) = connection.grant.as_mut().filter(|grant| *grant.user == *user) else {
                continue;
            };
            if connection.vhost != vhost {
                continue;
            }
            let channels = connection.channels.iter().map(|(_, slot)| &clients.channels[*slot]);
            for consumer in channels.flat_map(|channel| &channel.consumers) {
                let queue = &queues[clients.consumers[*consumer].queue];
                if !grant.may(access, Right::Read, &queue.name) {
                    forbidden.push(*consumer);
                }
            }
        }
        for consumer in forbidden {
            self.forbid_consumer(now, consumer, fx);
        }
    }

    fn forbid_consumer<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let Some(consumer) = self.clients.consumers.get(slot) else { return };
        if let Some(channel) = self.clients.channels.get(consumer.channel) {
            fx.consumer_cancelled(channel.id, &consumer.name);
        }
        self.end_consumer(now, slot, fx);
    }
}
