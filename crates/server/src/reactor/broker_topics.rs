//! The broker tells about itself: home asks all shards what they have counted, every few seconds, and tells
//! all of them what that comes to.

use super::shard::Shard;
use angarium_protocol::BrokerFigures;

impl Shard {
    /// Begins, if that is wanted.
    pub(super) fn begin_broker_topics(&mut self) {
        if self.node.is_home() && self.settings.mqtt_sys_interval.is_some() {
            self.broker_topics.begin(self.now);
        }
    }

    /// Asks all shards once it is time.
    pub(super) fn tell_broker_topics(&mut self) {
        let Some(interval) = self.settings.mqtt_sys_interval else { return };
        if !self.broker_topics.asks(self.now, interval.0, self.directory.count()) {
            return;
        }
        let home = self.mailbox.clone();
        self.directory.tell_others(move |shard| {
            let figures = shard.node.broker_figures();
            // Home has ended, then.
            let _ = home.tell(move |home: &mut Shard| home.counted(&figures));
        });
        let figures = self.node.broker_figures();
        self.counted(&figures);
    }

    /// A shard has counted that.
    fn counted(&mut self, figures: &BrokerFigures) {
        let Some(topics) = self.broker_topics.take(self.now, figures) else { return };
        let for_others = topics.clone();
        self.directory.tell_others(move |shard| {
            shard.node.tell_broker_topics(shard.now, for_others);
        });
        self.node.tell_broker_topics(self.now, topics);
    }
}
