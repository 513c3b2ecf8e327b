//! Where a message that is published goes: queues, subscribers, an inbox, or a delay before that.

use super::Route;
use crate::engine::Engine;
use crate::routing::vhost::{Way, is_internal};
use crate::routing::{QueueKey, Routed};
use crate::{Content, Publish, Refusal};

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
}
