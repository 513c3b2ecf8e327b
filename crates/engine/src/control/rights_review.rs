//! Ends what connections have under way that their user may not have any more, once its rights have changed:
//! consumers and gets of queues, and bindings of queues that one connection or session has to itself.
//!
//! Queues that others may use stay as they were declared, with their bindings.

use super::ways::passing;
use crate::access::{Grant, Right};
use crate::engine::Engine;
use crate::queue::Queue;
use crate::routing::vhost::Vhost;
use crate::routing::{BindingView, QueueKey};
use crate::{Binding, CancelReason, Effects, Request, Time};
use std::sync::Arc;

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
        self.review_queues(now, user, vhost, fx);
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

    /// Looks at the queues at which its connections wait for a message, or which they or its sessions own,
    /// and those that its sessions share.
    fn review_queues<F: Effects>(&mut self, now: Time, user: &str, vhost: u32, fx: &mut F) {
        let vhost_slot = vhost;
        let is_theirs = |queue: &Queue| {
            let is_anyones = queue.owner.is_some() || queue.own.is_some();
            queue.vhost == vhost && is_anyones && !queue.options.is_log
        };
        let looked_at =
            self.queues.iter().filter(|(_, queue)| !queue.gets.is_empty() || is_theirs(queue));
        let looked_at: Vec<u32> = looked_at.map(|(slot, _)| slot).collect();
        let vhost = &self.topology.vhosts[vhost].name;
        let mut grant = self.access.grant_as_it_is(user, vhost);
        for slot in looked_at {
            self.review_gets(slot, user, fx);
            if self.is_queue_of(slot, user) {
                // Some rules depend on the client, and a session has the name of its.
                let client = self.client_of_queue(slot);
                grant.name_client(&self.access, client.as_deref());
                self.review_bindings(slot, &mut grant, fx);
            }
        }
        for (session, queue) in self.memberships_of(user, vhost_slot) {
            let name = Arc::clone(&self.sessions[session].name);
            grant.name_client(&self.access, Some(&name));
            if !self.forbidden_bindings(queue, &mut grant).is_empty() {
                self.leave_queue(now, session, self.queues[queue].number, fx);
            }
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

    /// Whether a connection or a session of that user has the queue to itself.
    fn is_queue_of(&self, slot: u32, user: &str) -> bool {
        let connection = self.queues[slot].owner.and_then(|owner| self.clients.user(owner));
        let session = self.owner_of_queue(slot).and_then(|session| self.sessions.get(session));
        connection.or(session.map(|session| &session.user)).is_some_and(|it| **it == *user)
    }

    /// The name of the client whose connection or session has the queue to itself.
    fn client_of_queue(&self, slot: u32) -> Option<Arc<str>> {
        if let Some(owner) = self.queues[slot].owner {
            return self.clients.client_name(owner).map(Into::into);
        }
        Some(Arc::clone(&self.sessions.get(self.owner_of_queue(slot)?)?.name))
    }

    /// Takes away what leads messages that its user may not hear any more to a connection's or session's
    /// queue.
    fn review_bindings<F: Effects>(&mut self, slot: u32, grant: &mut Grant, fx: &mut F) {
        let vhost = self.queues[slot].vhost;
        for binding in self.forbidden_bindings(slot, grant) {
            // Those of a connection are not durable, so they go. One of a session stays while the journal
            // takes nothing.
            if self.unbind(vhost, binding.clone(), fx).is_ok() {
                self.own_queue_unbound(&binding, vhost, true, fx);
            }
        }
    }

    /// What leads messages to a queue that a user may not hear.
    fn forbidden_bindings(&self, slot: u32, grant: &mut Grant) -> Vec<Binding> {
        let Engine { access, queues, topology, .. } = self;
        let vhost = queues[slot].vhost;
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
        forbidden
    }
}
