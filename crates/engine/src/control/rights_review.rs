//! Ends what connections have under way that their user may not have any more, once its rights have changed:
//! consumers and gets of queues, and bindings of queues that one connection has to itself.
//!
//! Queues that others may use stay as they were declared, with their bindings.

use super::ways::passing;
use crate::access::Right;
use crate::engine::Engine;
use crate::queue::Queue;
use crate::routing::vhost::Vhost;
use crate::routing::{BindingView, QueueKey};
use crate::{CancelReason, Effects, Request, Time};

impl Engine {
    /// A user's permissions in a virtual host have changed.
    pub(super) fn review_rights<F: Effects>(
        &mut self,
        now: Time,
        user: &str,
        vhost: &str,
        fx: &mut F,
    ) {
        let Some(vhost) = self.topology.vhost_slots.get(vhost).copied() else { return };
        self.review_consumers(now, user, vhost, fx);
        self.review_queues(user, vhost, fx);
    }

    fn review_consumers<F: Effects>(&mut self, now: Time, user: &str, vhost: u32, fx: &mut F) {
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
            for consumer in channels.flat_map(|channel| channel.consumers.iter()) {
                let queue = &queues[clients.consumers[consumer].queue];
                if queue.own.is_none() && !grant.may(access, Right::Read, &queue.name) {
                    forbidden.push(consumer);
                }
            }
        }
        for consumer in forbidden {
            if let Some(consumer) = self.end_consumer(now, consumer, fx) {
                self.tell_cancelled(consumer.channel, consumer.name, CancelReason::Forbidden);
            }
        }
    }

    /// Looks at the queues at which its connections wait for a message, or which they have to themselves.
    fn review_queues<F: Effects>(&mut self, user: &str, vhost: u32, fx: &mut F) {
        let is_theirs = |queue: &Queue| queue.vhost == vhost && queue.owner.is_some();
        let looked_at =
            self.queues.iter().filter(|(_, queue)| !queue.gets.is_empty() || is_theirs(queue));
        for slot in looked_at.map(|(slot, _)| slot).collect::<Vec<_>>() {
            self.review_gets(slot, user, fx);
            self.review_bindings(slot, user, fx);
        }
    }

    /// Refuses gets that wait for a message of a queue that the user may not read any more.
    fn review_gets<F: Effects>(&mut self, slot: u32, user: &str, fx: &mut F) {
        let Engine { access, clients, queues, .. } = self;
        let Queue { name, gets, .. } = &mut queues[slot];
        gets.retain(|get| {
            let grant = clients.grant(get.channel.connection).filter(|it| *it.user == *user);
            let request = Request::Get { queue: name.clone(), presettled: get.presettled };
            let Some(Err(refusal)) = grant.map(|it| it.check(access, &request)) else {
                return true;
            };
            if let Some(channel) = clients.channel_slot(get.channel) {
                clients.channels[channel].waits_no_more_for(slot);
            }
            fx.reply(get.channel, Err(refusal));
            false
        });
    }

    /// Takes away what leads messages that the user may not hear any more to a queue that one of its
    /// connections has to itself.
    fn review_bindings<F: Effects>(&mut self, slot: u32, user: &str, fx: &mut F) {
        let Engine { access, clients, queues, topology, .. } = self;
        let Queue { vhost, owner, .. } = queues[slot];
        let grant = owner.and_then(|owner| clients.grant(owner));
        let Some(grant) = grant.filter(|grant| *grant.user == *user) else { return };
        let Vhost { router, .. } = &topology.vhosts[vhost];
        let mut forbidden = Vec::new();
        // Bindings in a row often have one source.
        let (mut last, mut may_read, mut is_narrowed) = (None, false, false);
        for view in router.bindings_to(QueueKey(slot)) {
            let BindingView { source, key, .. } = view;
            if last != Some(source) {
                last = Some(source);
                may_read = grant.may(access, Right::Read, source);
                is_narrowed = grant.narrowed_exchanges().any(|exchange| exchange == source);
            }
            let may_hear = may_read
                && (!is_narrowed
                    || grant.check_binding(source, key, &passing(router, source, key)).is_ok());
            if !may_hear {
                forbidden.push(view.to_binding());
            }
        }
        for binding in forbidden {
            // Nothing about it is durable, so it is not refused.
            let _ = self.unbind(vhost, binding, fx);
        }
    }
}
