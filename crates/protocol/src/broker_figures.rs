//! What a broker has counted, and the topics in which it tells that, by the names that Mosquitto gave them.

use angarium_engine::ConnectionId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What all these topics begin with.
pub(crate) const PREFIX: &str = "$SYS/broker";
/// Minutes over which loads are averaged.
const LOAD_MINUTES: [u32; 3] = [1, 5, 15];

/// What a broker has counted, all its shards together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrokerFigures {
    /// Clients that are connected, of all protocols.
    pub connected: u64,
    /// The most that were at once.
    pub connected_most: u64,
    /// Sessions without a connection.
    pub disconnected: u64,
    /// Connections that there were.
    pub connections: u64,
    /// Subscriptions to subjects.
    pub subscriptions: u64,
    /// Retained messages.
    pub retained: u64,
    /// Bytes of messages in queues.
    pub stored_bytes: u64,
    /// Messages from clients.
    pub messages_received: u64,
    /// Messages to clients.
    pub messages_sent: u64,
    /// Messages that did not reach who was to get them.
    pub messages_dropped: u64,
    /// Bytes from clients.
    pub bytes_received: u64,
    /// Bytes to clients.
    pub bytes_sent: u64,
}

impl BrokerFigures {
    /// What grows, by the names of its loads.
    fn growing(&self) -> [(&'static str, u64); 7] {
        [
            ("messages/received", self.messages_received),
            ("messages/sent", self.messages_sent),
            ("publish/received", self.messages_received),
            ("publish/sent", self.messages_sent),
            ("bytes/received", self.bytes_received),
            ("bytes/sent", self.bytes_sent),
            ("connections", self.connections),
        ]
    }

    /// Adds another shard's.
    pub fn add(&mut self, other: &BrokerFigures) {
        let BrokerFigures {
            connected,
            connected_most,
            disconnected,
            connections,
            subscriptions,
            retained,
            stored_bytes,
            messages_received,
            messages_sent,
            messages_dropped,
            bytes_received,
            bytes_sent,
        } = other;
        self.connected += connected;
        self.connected_most = self.connected_most.max(*connected_most);
        self.disconnected += disconnected;
        self.connections += connections;
        self.subscriptions += subscriptions;
        self.retained += retained;
        self.stored_bytes += stored_bytes;
        self.messages_received += messages_received;
        self.messages_sent += messages_sent;
        self.messages_dropped += messages_dropped;
        self.bytes_received += bytes_received;
        self.bytes_sent += bytes_sent;
    }
}

/// How much grows in a minute, on average over the last ones: recent ones weigh more.
#[derive(Clone, Debug, Default)]
struct Loads {
    before: BrokerFigures,
    averages: [[f64; LOAD_MINUTES.len()]; 7],
}

impl Loads {
    /// Takes what was counted until now, `span` after what was before.
    fn take(&mut self, figures: &BrokerFigures, span: Duration) {
        let seconds = span.as_secs_f64();
        let before = std::mem::replace(&mut self.before, *figures);
        if seconds <= 0.0 {
            return;
        }
        let grown = figures.growing().into_iter().zip(before.growing());
        for (averages, ((_, now), (_, before))) in self.averages.iter_mut().zip(grown) {
            let a_minute = now.saturating_sub(before) as f64 * 60.0 / seconds;
            for (average, minutes) in averages.iter_mut().zip(LOAD_MINUTES) {
                let kept = (-seconds / (60.0 * f64::from(minutes))).exp();
                *average = a_minute + kept * (*average - a_minute);
            }
        }
    }
}

/// A topic's last message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) value: Box<str>,
    /// It differs from the one before.
    pub(crate) is_new: bool,
}

/// All topics, with their last messages.
#[derive(Clone, Debug, Default)]
pub struct BrokerTopics {
    pub(crate) all: BTreeMap<Box<str>, Told>,
    loads: Loads,
    uptime: Duration,
}

impl BrokerTopics {
    /// Those that come after these ones, for what is counted by then.
    #[must_use]
    pub fn next(&self, figures: &BrokerFigures, uptime: Duration) -> BrokerTopics {
        let mut next =
            BrokerTopics { all: BTreeMap::new(), loads: self.loads.clone(), uptime: self.uptime };
        next.loads.take(figures, uptime.saturating_sub(self.uptime));
        next.uptime = uptime;
        next.tell(&self.all, "version", concat!("angarium ", env!("CARGO_PKG_VERSION")));
        next.tell(&self.all, "uptime", &format!("{} seconds", uptime.as_secs()));
        for (name, value) in named(figures) {
            next.tell(&self.all, name, &value.to_string());
        }
        let averages = next.loads.averages;
        for ((name, _), averages) in figures.growing().iter().zip(averages) {
            for (average, minutes) in averages.iter().zip(LOAD_MINUTES) {
                let name = format!("load/{name}/{minutes}min");
                next.tell(&self.all, &name, &format!("{average:.2}"));
            }
        }
        next
    }

    fn tell(&mut self, before: &BTreeMap<Box<str>, Told>, name: &str, value: &str) {
        let topic = format!("{PREFIX}/{name}").into_boxed_str();
        let is_new = before.get(&topic).is_none_or(|before| *before.value != *value);
        self.all.insert(topic, Told { value: value.into(), is_new });
    }
}

/// What is counted, by the names of its topics.
fn named(figures: &BrokerFigures) -> [(&'static str, u64); 18] {
    let BrokerFigures { connected, disconnected, retained, .. } = *figures;
    [
        ("clients/connected", connected),
        ("clients/active", connected),
        ("clients/disconnected", disconnected),
        ("clients/inactive", disconnected),
        ("clients/maximum", figures.connected_most.max(connected)),
        ("clients/total", connected + disconnected),
        ("subscriptions/count", figures.subscriptions),
        ("retained messages/count", retained),
        ("store/messages/bytes", figures.stored_bytes),
        ("messages/received", figures.messages_received),
        ("messages/sent", figures.messages_sent),
        ("publish/messages/received", figures.messages_received),
        ("publish/messages/sent", figures.messages_sent),
        ("publish/messages/dropped", figures.messages_dropped),
        ("publish/bytes/received", figures.bytes_received),
        ("publish/bytes/sent", figures.bytes_sent),
        ("bytes/received", figures.bytes_received),
        ("bytes/sent", figures.bytes_sent),
    ]
}

/// What was told last, and whose handlers hear of what comes next.
#[derive(Debug, Default)]
pub struct ToldTopics {
    /// `None`: nothing was.
    pub last: Option<Arc<BrokerTopics>>,
    /// Connections that subscribe to some.
    pub watching: BTreeSet<ConnectionId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(connected: u64, messages_received: u64) -> BrokerFigures {
        BrokerFigures { connected, messages_received, ..BrokerFigures::default() }
    }

    #[test]
    fn what_has_changed_is_new() {
        let mut first = figures(2, 5);
        first.add(&figures(1, 5));
        let topics = BrokerTopics::default().next(&first, Duration::ZERO);
        assert!(topics.all.values().all(|told| told.is_new));
        let topics = topics.next(&figures(3, 70), Duration::from_secs(60));
        let told = |name: &str| {
            let told = &topics.all[&*format!("$SYS/broker/{name}")];
            (&*told.value, told.is_new)
        };
        assert_eq!(told("clients/connected"), ("3", false));
        assert_eq!(told("messages/received"), ("70", true));
        assert_eq!(told("uptime"), ("60 seconds", true));
        assert_eq!(told("version"), (concat!("angarium ", env!("CARGO_PKG_VERSION")), false));
        assert_eq!(told("load/messages/received/1min"), ("37.93", true));
    }
}
