//! Where a message that is published goes: queues, subscribers, an inbox, or a delay before that.

use super::Route;
use crate::engine::Engine;
use crate::routing::vhost::{Way, is_internal};
use crate::routing::{QueueKey, Routed};
use crate::{Publish, Refusal};

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
        let read_headers = self.options.conventions.read_headers;
        let vhost = &mut self.topology.vhosts[vhost];
        vhost.route(read_headers, Way::of(publish), &publish.content, targets)
    }
}
