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
            if let Some(consumer) = self.end_consumer(now, consumer, fx) {
                self.tell_cancelled(consumer.channel, consumer.name);
            }
        }
    }
}
