//! What the broker tells about itself.

use super::{AnyHandler, TestHost};
use crate::{BrokerFigures, BrokerTopics, ProtocolHandler};
use std::sync::Arc;
use std::time::Duration;

impl TestHost {
    /// The broker tells how many clients there are, some time after it began.
    pub(crate) fn tell_broker_topics(&mut self, connected: u64, uptime: Duration) {
        let figures = BrokerFigures { connected, ..BrokerFigures::default() };
        let first = BrokerTopics::default();
        let last = self.host.topics.last.as_deref().unwrap_or(&first);
        self.host.topics.last = Some(Arc::new(last.next(&figures, uptime)));
        for id in self.host.topics.watching.clone() {
            self.with(id.0 as usize, |handler, context| {
                let AnyHandler::Mqtt(handler) = handler else { return };
                handler.broker_topics_changed(context);
            });
        }
    }
}
