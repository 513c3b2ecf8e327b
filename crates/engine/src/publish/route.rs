//! Where a message that is published goes: queues, subscribers, an inbox, or a delay before that.

use super::Route;
use crate::engine::Engine;
use crate::routing::vhost::{Way, is_internal};
use crate::routing::{QueueKey, Routed};
use crate::{Bound, Content, Publish, Refusal, RefusalKind, StorageState};

/// Queues of one message whose users' quotas are looked at before it is placed.
const LOOKED_AT_MAX: usize = 64;

impl Engine {
    #[inline]
    pub(super) fn route(
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

    /// Whether the message has to be stored and cannot be now, or none of these queues may take more.
    #[inline]
    pub(super) fn cannot_take(&self, publish: &Publish<'_>, targets: &[QueueKey]) -> bool {
        let is_durable = |key: &QueueKey| self.queues.get(key.0).is_some_and(|queue| queue.stores);
        let cannot_store = self.storage.state != StorageState::Ready
            && publish.content.persistent
            && targets.iter().any(is_durable);
        cannot_store || self.over_quota(targets).is_some()
    }

    /// The refusal for targets none of which may take more: their virtual host has as many bytes waiting as
    /// its quota allows, or the users who declared them have. A full user holds up nobody whose message goes
    /// to others too.
    #[inline]
    pub(super) fn over_quota(&self, targets: &[QueueKey]) -> Option<Refusal> {
        if self.access.bounds_stored() { self.find_over_quota(targets) } else { None }
    }

    #[cold]
    fn find_over_quota(&self, targets: &[QueueKey]) -> Option<Refusal> {
        let queue = self.queues.get(targets.first()?.0)?;
        let vhost = &self.topology.vhosts[queue.vhost];
        let most = self.access.vhost_quota(&vhost.name).get(Bound::StoredBytes);
        if let Some(most) = most.filter(|most| vhost.stored.bytes() >= *most) {
            return Some(full(&format!("virtual host '{}'", vhost.name), most));
        }
        if targets.len() > LOOKED_AT_MAX
            || !targets.iter().all(|key| self.is_over_users_quota(key.0))
        {
            return None;
        }
        let user = queue.declared_by.as_deref()?;
        let most = self.access.quota(user).get(Bound::StoredBytes)?;
        Some(full(&format!("the queues of user '{user}'"), most))
    }

    /// Whether the user who declared a queue has as many bytes waiting as its quota allows.
    pub(crate) fn is_over_users_quota(&self, slot: u32) -> bool {
        let queue = self.queues.get(slot);
        queue.and_then(|queue| queue.declared_by.as_deref()).is_some_and(|user| {
            let most = self.access.quota(user).get(Bound::StoredBytes);
            most.is_some_and(|most| self.access.owned_bytes(user) >= most)
        })
    }
}

/// The refusal of a publish to what is full by its quota.
fn full(what: &str, most: u64) -> Refusal {
    let text = format!("the quota of stored bytes ({most}) of {what} is reached");
    Refusal::new(RefusalKind::LimitExceeded, text)
}
