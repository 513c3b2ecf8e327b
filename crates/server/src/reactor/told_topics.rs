//! What home tells about the broker: what shards have counted, put together every few seconds.

use angarium_engine::Time;
use angarium_protocol::{BrokerFigures, BrokerTopics};
use std::sync::Arc;
use std::time::Duration;

/// What was told last, and what comes next; home's.
#[derive(Debug, Default)]
pub(super) struct ToldTopics {
    /// When shards are asked next.
    pub(super) due: Option<Time>,
    began: Time,
    last: BrokerTopics,
    /// The most clients that there were at once.
    connected_most: u64,
    /// What shards have answered by now, and how many are to answer still.
    gathered: BrokerFigures,
    awaited: usize,
}

impl ToldTopics {
    pub(super) fn begin(&mut self, now: Time) {
        (self.began, self.due) = (now, Some(now));
    }

    /// Whether it is time to ask all shards. While one has not answered, none is asked.
    pub(super) fn asks(&mut self, now: Time, interval: Duration, shards: usize) -> bool {
        if self.due.is_none_or(|due| due > now) {
            return false;
        }
        self.due = Some(now.plus(interval));
        if self.awaited > 0 {
            return false;
        }
        (self.gathered, self.awaited) = (BrokerFigures::default(), shards);
        true
    }

    /// A shard has counted that. Returns what follows, once all have answered.
    pub(super) fn take(&mut self, now: Time, figures: &BrokerFigures) -> Option<Arc<BrokerTopics>> {
        self.gathered.add(figures);
        self.awaited = self.awaited.saturating_sub(1);
        if self.awaited > 0 {
            return None;
        }
        self.connected_most = self.connected_most.max(self.gathered.connected);
        let figures = BrokerFigures { connected_most: self.connected_most, ..self.gathered };
        self.last = self.last.next(&figures, now.since(self.began));
        Some(Arc::new(self.last.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_asked_again_once_all_have_answered() {
        let mut told = ToldTopics::default();
        let second = Duration::from_secs(1);
        assert!(!told.asks(Time(0), second, 2), "it has not begun");
        told.begin(Time(5));
        let figures = BrokerFigures { connected: 1, ..BrokerFigures::default() };
        assert!(told.asks(Time(5), second, 2) && !told.asks(Time(6), second, 2));
        assert!(told.take(Time(6), &figures).is_none());
        assert!(!told.asks(Time(1_000_005), second, 2), "one is awaited");
        assert!(told.take(Time(1_000_006), &figures).is_some());
        assert_eq!(told.connected_most, 2);
        assert!(told.asks(Time(2_000_005), second, 2));
    }
}
