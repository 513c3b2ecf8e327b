//! Where a message that is published goes: queues, subscribers, an inbox, or a delay before that.

use crate::access::definitions::Declarer;
use crate::engine::Engine;
use crate::foundation::work_budget::Filtering;
use crate::publish::taken::{Route, SizeInGroup};
use crate::queue::stored::Incoming;
use crate::routing::condition::Conditions;
use crate::routing::vhost::{Routing, Sender, Way, is_internal};
use crate::routing::walk::Walk;
use crate::routing::{Keys, QueueKey, Routed, once_each};
use crate::storage::record;
use crate::{Bound, ConnectionId, Content, Publish, Refusal, RefusalKind, StorageState, Time};
use std::sync::Arc;

/// Queues of one message whose users' quotas are looked at before it is placed.
const LOOKED_AT_MAX: usize = 64;

impl Engine {
    #[inline(always)]
    pub(crate) fn route(
        &mut self,
        now: Time,
        vhost: u32,
        by: Option<ConnectionId>,
        publish: &Publish<'_>,
        targets: &mut Vec<QueueKey>,
    ) -> Result<Route, Refusal> {
        let Some(routed) = self.route_to(vhost, by, publish, targets) else {
            return Err(self.topology.vhosts[vhost].router.no_exchange(publish.exchange));
        };
        let (vhost, names) = (&self.topology.vhosts[vhost], &self.options.conventions.names);
        if routed.internal {
            return Err(is_internal(publish.exchange));
        }
        if targets.is_empty()
            && publish.exchange.is_empty()
            && publish.routing_key.starts_with(names.inbox_prefix)
            && let Some(owner) = vhost.inboxes.get(publish.routing_key)
        {
            return Ok(Route::Inbox(*owner));
        }
        if let Some(due) = publish.not_before
            && self.is_held_back(now, due)
            // One that is to come back where no queue takes it is looked at now.
            && (routed.delaying || !publish.mandatory || !targets.is_empty())
        {
            return Ok(Route::Delayed(due));
        }
        let Routed { has_subjects, is_whole, .. } = routed;
        Ok(Route::Queues { has_subjects, is_whole })
    }

    /// The queues that a message goes to; `None` where there is no such exchange.
    #[inline]
    pub(crate) fn route_to(
        &mut self,
        vhost: u32,
        by: Option<ConnectionId>,
        publish: &Publish<'_>,
        targets: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        self.find_queues(vhost, Way::of(publish, by), &publish.content, targets)
    }

    /// Whether a message that was found to go to that number of queues reaches them over several turns, or
    /// has a long way (`is_whole`, as [`Routed::is_whole`]). A group of records is one step.
    #[inline]
    pub(crate) fn is_wide(&self, is_whole: bool, queues: usize) -> bool {
        (!is_whole || queues > self.options.limits.queues_at_once) && !self.storage.in_group
    }

    /// Puts the queues that a message goes to into `targets`, or some of them where its way is long, and
    /// counts the work of finding them; `None` where there is no such exchange.
    #[inline]
    pub(crate) fn find_queues(
        &mut self,
        vhost: u32,
        way: Way<'_>,
        content: &Content<'_>,
        targets: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        let from = &|| self.clients.name_of(way.sender);
        let message = Routing { conventions: self.options.conventions, way, content, from };
        let host = &mut self.topology.vhosts[vhost];
        let mut routed = host.route(&message, targets);
        if routed.is_some_and(|routed| !routed.is_whole) && self.storage.in_group {
            routed = host.route_whole(&message, targets);
        }
        if routed.is_some_and(|routed| routed.is_conditional) {
            let conditions = host.router.take_conditions();
            self.work_budget.count_filtering(add_selected(&message, conditions, targets));
        }
        let looked_at = host.router.take_looked_at();
        self.route_steps += looked_at + targets.len() as u64;
        if looked_at > 0 {
            self.work_budget.count_routing(looked_at);
        }
        routed
    }

    /// Goes on to find the queues that a message goes to, for `most` steps, and counts them. Says whether all
    /// are found.
    pub(super) fn find_more_queues(
        &mut self,
        vhost: u32,
        by: Option<ConnectionId>,
        walk: &mut Walk,
        incoming: &Incoming<'_>,
        most: u64,
        found: &mut Vec<QueueKey>,
    ) -> bool {
        let keys = Keys { routing_key: incoming.routing_key, also_to: incoming.also_to };
        let sender = Sender::of(by, incoming.from);
        let way = Way { exchange: incoming.exchange, keys, sender };
        let (conventions, content) = (self.options.conventions, &incoming.content);
        let from = &|| self.clients.name_of(sender);
        let message = Routing { conventions, way, content, from };
        let host = &mut self.topology.vhosts[vhost];
        let is_whole = host.go_on(walk, &message, most, found);
        let conditions = host.router.conditions_of(walk);
        if conditions.is_some() {
            self.work_budget.count_filtering(add_selected(&message, conditions, found));
        }
        let looked_at = host.router.take_looked_at();
        self.route_steps += looked_at + found.len() as u64;
        is_whole
    }

    /// What a message comes to once it is published in a group of records.
    pub(crate) fn size_in_group(
        &mut self,
        vhost: u32,
        way: Way<'_>,
        content: &Content<'_>,
        message_bytes: usize,
    ) -> SizeInGroup {
        let mut targets = std::mem::take(&mut self.scratch.targets);
        targets.clear();
        let routed = self.find_queues(vhost, way, content, &mut targets);
        let (queues, is_whole) = (targets.len(), routed.is_none_or(|routed| routed.is_whole));
        self.scratch.targets = targets;
        SizeInGroup { bytes: record::bytes_max(message_bytes, queues), queues, is_whole }
    }

    /// Whether a message has to be stored in one of these queues and cannot be now.
    #[inline]
    pub(super) fn cannot_store(&self, persistent: bool, targets: &[QueueKey]) -> bool {
        let is_durable = |key: &QueueKey| self.queues.get(key.0).is_some_and(|queue| queue.stores);
        self.storage.state != StorageState::Ready && persistent && targets.iter().any(is_durable)
    }

    /// Where a message goes that is to go this way: nowhere, if it has to be stored and cannot be now, or if
    /// none of its places may take more. `wants_flush`: its publisher learns that it was not taken; others
    /// are refused where a quota is reached. `by`: the connection that published it, if it is on this shard.
    #[inline]
    pub(crate) fn check_room(
        &mut self,
        by: Option<ConnectionId>,
        vhost: u32,
        publish: &Publish<'_>,
        route: Route,
        targets: &[QueueKey],
        wants_flush: bool,
    ) -> Result<Route, Refusal> {
        if self.storage.state == StorageState::Ready && !self.access.bounds_stored() {
            return Ok(route);
        }
        self.look_for_room(by, vhost, publish, route, targets, wants_flush)
    }

    #[cold]
    fn look_for_room(
        &mut self,
        by: Option<ConnectionId>,
        vhost: u32,
        publish: &Publish<'_>,
        route: Route,
        targets: &[QueueKey],
        wants_flush: bool,
    ) -> Result<Route, Refusal> {
        let has_no_memory = self.storage.state == StorageState::NoMemory
            && !self.storage.in_group
            && !targets.is_empty();
        let cannot_store = has_no_memory || self.cannot_store(publish.content.persistent, targets);
        // What is done in a group was looked at before.
        let is_bounded = self.access.bounds_stored() && !self.storage.in_group;
        let over_quota =
            if is_bounded { self.over_quota(by, vhost, &route, targets) } else { None };
        if !cannot_store && over_quota.is_none() {
            return Ok(route);
        }
        self.counters.not_stored += 1;
        match over_quota {
            Some(refusal) if !wants_flush => Err(refusal),
            _ => Ok(Route::Refused),
        }
    }

    /// The refusal of a message none of whose places may take more: their virtual host has as many bytes
    /// stored as its quota allows, or the users who declared its queues have, or who publishes it with a
    /// delay. A full user holds up nobody whose message goes to others too.
    pub(crate) fn over_quota(
        &self,
        by: Option<ConnectionId>,
        vhost: u32,
        route: &Route,
        targets: &[QueueKey],
    ) -> Option<Refusal> {
        let is_delayed = matches!(route, Route::Delayed(_));
        if targets.is_empty() && !is_delayed {
            return None;
        }
        let name = &self.topology.vhosts[vhost].name;
        let most = self.access.vhost_quota(name).get(Bound::StoredBytes);
        if let Some(most) = most.filter(|most| self.stored_in(vhost) >= *most) {
            return Some(full(&format!("virtual host '{name}'"), most));
        }
        let user = if is_delayed {
            self.definitions.find(by.and_then(|by| self.clients.user(by))?)?
        } else {
            let are_full = targets.len() <= LOOKED_AT_MAX
                && targets.iter().all(|key| self.is_users_quota_reached(key.0));
            self.queues.get(targets.first()?.0).filter(|_| are_full)?.by
        };
        let most = self.reached_by(user)?;
        Some(full(&format!("user '{}'", self.definitions.name(user)), most))
    }

    /// Whether the user who declared a queue has as many bytes stored as its quota allows.
    pub(crate) fn is_users_quota_reached(&self, slot: u32) -> bool {
        self.queues.get(slot).is_some_and(|queue| self.reached_by(queue.by).is_some())
    }

    /// The bound of a user's stored bytes, where it is reached.
    fn reached_by(&self, user: Declarer) -> Option<u64> {
        let most = self.access.quota(self.definitions.name(user)).get(Bound::StoredBytes)?;
        (self.stored_by(user) >= most).then_some(most)
    }

    /// Bytes stored in a virtual host: in queues, out of them and not settled, delayed, and on their way to
    /// very many queues.
    pub(crate) fn stored_in(&self, vhost: u32) -> u64 {
        self.topology.vhosts[vhost].stored.bytes()
            + self.delays.sums.bytes_in_vhost(vhost)
            + self.agenda.wide.outstanding_in(vhost)
    }

    /// Bytes stored in a user's queues, or out of them and not settled, and those that it has published with
    /// a delay.
    pub(crate) fn stored_by(&self, user: Declarer) -> u64 {
        self.access.owned_bytes(self.definitions.name(user)) + self.delays.sums.bytes_of_user(user)
    }
}

/// Adds the queues whose conditions a message meets; returns what finding them counts for.
#[cold]
fn add_selected(
    message: &Routing<'_>,
    conditions: Option<Arc<Conditions<QueueKey>>>,
    targets: &mut Vec<QueueKey>,
) -> Filtering {
    let Some(conditions) = conditions else { return Filtering::default() };
    let selectable = message.way.selectable(message.content);
    let property = |name: &str| (message.conventions.read_property)(&selectable, name);
    let terms = conditions.select(&property, (message.from)(), targets);
    once_each(targets);
    Filtering { terms, property_bytes: message.content.properties.len() }
}

/// The refusal of a publish to what is full by its quota.
fn full(what: &str, most: u64) -> Refusal {
    let text = format!("the quota of stored bytes ({most}) of {what} is reached");
    Refusal::new(RefusalKind::LimitExceeded, text)
}
