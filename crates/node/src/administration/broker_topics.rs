//! What the broker tells about itself: counted here, and passed on to connections that want to know.

use crate::node::Node;
use angarium_engine::Time;
use angarium_protocol::{BrokerFigures, BrokerTopics, ProtocolHandler};
use std::sync::Arc;

impl Node {
    /// What this shard has counted.
    #[must_use]
    pub fn broker_figures(&self) -> BrokerFigures {
        let (stats, counters) = (self.stats(), self.engine.counters());
        BrokerFigures {
            connected: stats.connections,
            connected_most: stats.connections,
            disconnected: self.engine.detached_count() as u64,
            connections: stats.connections_total,
            subscriptions: self.engine.subscription_count() as u64,
            retained: self.engine.retained().0 as u64,
            stored_bytes: self.engine.list_vhosts().map(|vhost| vhost.stored_bytes).sum(),
            messages_received: counters.published + counters.emitted,
            messages_sent: counters.delivered + counters.direct_delivered + counters.replayed,
            messages_dropped: counters.missed + counters.dropped + counters.expired,
            bytes_received: stats.received_bytes,
            bytes_sent: stats.sent_bytes,
        }
    }

    /// The broker tells this about itself from now on.
    pub fn tell_broker_topics(&mut self, now: Time, topics: Arc<BrokerTopics>) {
        self.effects.broker_topics.last = Some(topics);
        let watching: Vec<_> = self.effects.broker_topics.watching.iter().copied().collect();
        for id in watching {
            self.with_handler(now, id, |handler, context| handler.broker_topics_changed(context));
        }
    }
}
