//! Where a message that is published goes: queues, subscribers, an inbox, or a delay before that.

use super::Route;
use crate::access::definitions::Declarer;
use crate::engine::Engine;
use crate::routing::vhost::{Way, is_internal};
use crate::routing::{QueueKey, Routed};
use crate::{Bound, ConnectionId, Content, Publish, Refusal, RefusalKind, StorageState};

/// Queues of one message whose users' quotas are looked at before it is placed.
const LOOKED_AT_MAX: usize = 64;

impl Engine {
    #[inline]
    pub(crate) fn route(
        &mut self,
        vhost: u32,
        publish: &Publish<'_>,
        targets: &mut Vec<QueueKey>,
    ) -> Result<Route, Refusal> {
        let Some(routed) = self.route_to(vhost, publish, targets) else {
            return Err(self.topology.vhosts[vhost].router.no_exchange(publish.exchange));
        };
        let (vhost, names) = (&self.topology.vhosts[vhost], &self.options.conventions.names);
        if routed.internal {
            return Err(is_internal(publish.exchange));
        }
        if let (true, Some(delay)) = (routed.delaying, publish.delay) {
            return Ok(Route::Delayed(delay));
        }
        if targets.is_empty()
            && publish.exchange.is_empty()
            && publish.routing_key.starts_with(names.inbox_prefix)
            && let Some(owner) = vhost.inboxes.get(publish.routing_key)
        {
            return Ok(Route::Inbox(*owner));
        }
        Ok(Route::Queues { has_subjects: routed.has_subjects })
    }

    /// The queues that a message goes to; `None` where there is no such exchange.
    #[inline]
    pub(crate) fn route_to(
        &mut self,
        vhost: u32,
        publish: &Publish<'_>,
        targets: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        self.find_queues(vhost, Way::of(publish), &publish.content, targets)
    }

    /// Whether a message to that number of queues reaches them over several turns. A group of records is one
    /// step.
    #[inline]
    pub(crate) fn is_wide(&self, queues: usize) -> bool {
        queues > self.options.limits.queues_at_once && !self.storage.in_group
    }

    /// Puts the queues that a message goes to into `targets`, and counts the work of finding them; `None`
    /// where there is no such exchange.
    #[inline]
    pub(crate) fn find_queues(
        &mut self,
        vhost: u32,
        way: Way<'_>,
        content: &Content<'_>,
        targets: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        let vhost = &mut self.topology.vhosts[vhost];
        let routed = vhost.route(self.options.conventions.read_headers, way, content, targets);
        let looked_at = vhost.router.take_looked_at();
        if looked_at > 0 {
            self.looked_at_for_routes += looked_at;
            self.work_budget.count_routing(looked_at);
        }
        routed
    }

    /// Where a message goes that is to go this way: nowhere, if it has to be stored and cannot be now, or if
    /// none of its places may take more. `wants_flush`: its publisher learns that it was not taken; others
    /// are refused where a quota is reached. `by`: the connection that published it, if it is on this shard.
    #[inline]
    pub(super) fn check_room(
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
        let is_durable = |key: &QueueKey| self.queues.get(key.0).is_some_and(|queue| queue.stores);
        let cannot_store = self.storage.state != StorageState::Ready
            && publish.content.persistent
            && targets.iter().any(is_durable);
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
            + self.delays.bytes.in_vhost(vhost)
            + self.agenda.wide.outstanding_in(vhost)
    }

    /// Bytes stored in a user's queues, or out of them and not settled, and those that it has published with
    /// a delay.
    pub(crate) fn stored_by(&self, user: Declarer) -> u64 {
        self.access.owned_bytes(self.definitions.name(user)) + self.delays.bytes.of_user(user)
    }
}

/// The refusal of a publish to what is full by its quota.
fn full(what: &str, most: u64) -> Refusal {
    let text = format!("the quota of stored bytes ({most}) of {what} is reached");
    Refusal::new(RefusalKind::LimitExceeded, text)
}
