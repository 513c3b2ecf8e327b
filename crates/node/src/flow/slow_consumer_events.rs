//! Slow-consumer events: when a client becomes too slow for direct messages and when it no longer is, for the
//! host's log and as advisories.

use crate::administration::SlowConsumerInfo;
use crate::effects::NodeEffects;
use crate::node::Node;
use crate::outbox::Lag;
use angarium_engine::{ChannelId, ConnectionId, Emit, SlowConsumerPolicy, Time};
use angarium_protocol::SlowConsumerAdvisory;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// SlowConsumerEvents that the host has not been told of yet; the oldest go.
const UNTOLD_MAX: usize = 1_000;
/// The broker's own channel, from which advisories are published.
const BROKER: ChannelId = ChannelId { connection: ConnectionId(0), number: 1 };

/// One that has begun.
#[derive(Clone, Copy, Debug)]
struct Episode {
    began: Time,
    /// How things were when they were last looked at.
    seen: Lag,
}

/// The episodes that have begun and not ended, and events for the host.
#[derive(Debug, Default)]
pub(crate) struct SlowConsumerEvents {
    running: BTreeMap<ConnectionId, Episode>,
    untold: VecDeque<SlowConsumerEvent>,
    begun: u64,
}

/// A client became too slow for direct messages, or is so no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowConsumerEvent {
    /// It became so; else it is so no longer.
    pub has_begun: bool,
    /// The connection's number in listings, among those of all shards.
    pub connection: u64,
    /// Where it comes from.
    pub peer: String,
    /// Its user.
    pub user: String,
    /// Its virtual host.
    pub vhost: String,
    /// The name that the program gave it.
    pub name: Option<String>,
    /// What became of the first messages for which it was too slow.
    pub policy: SlowConsumerPolicy,
    /// Messages that it has missed meanwhile.
    pub missed: u64,
    /// Messages that have waited on the disk for it meanwhile.
    pub spooled: u64,
    /// How long it has been so.
    pub lasted: Duration,
    /// It was disconnected for it, or went.
    pub is_gone: bool,
}

impl NodeEffects {
    /// A connection misses messages that it was to get, by that policy.
    #[cold]
    pub(crate) fn note_missed(&mut self, id: ConnectionId, policy: SlowConsumerPolicy, count: u64) {
        self.note_lag(id, Lag { missed: count, spooled: 0, policy: Some(policy) });
    }

    /// A message waits on the disk for a connection.
    pub(crate) fn note_spooled(&mut self, id: ConnectionId) {
        let policy = Some(SlowConsumerPolicy::Spool);
        self.note_lag(id, Lag { missed: 0, spooled: 1, policy });
    }

    fn note_lag(&mut self, id: ConnectionId, more: Lag) {
        let lag = &mut self.outbox[id.0 as usize].lag;
        if *lag == Lag::default() {
            self.became_slow.push(id);
        }
        lag.missed += more.missed;
        lag.spooled += more.spooled;
        lag.policy = lag.policy.or(more.policy);
    }
}

impl Node {
    /// A client that became too slow for direct messages, or is so no longer, which the host was not
    /// told of yet.
    pub fn next_slow_consumer_event(&mut self) -> Option<SlowConsumerEvent> {
        self.flow.slow_consumer_events.untold.pop_front()
    }

    /// Clients that are slow consumers now, and how often one became so.
    pub fn slow_consumer_episodes(&self) -> (u64, u64) {
        (self.flow.slow_consumer_events.running.len() as u64, self.flow.slow_consumer_events.begun)
    }

    /// How it stands with a connection that is too slow.
    pub(crate) fn slow_consumer_info(&self, id: ConnectionId) -> Option<SlowConsumerInfo> {
        self.flow.slow_consumer_events.running.get(&id)?;
        let outbox = &self.effects.outbox[id.0 as usize];
        let Lag { missed, spooled, policy } = outbox.lag;
        Some(SlowConsumerInfo {
            policy: policy.unwrap_or(outbox.slow_consumer_policy),
            missed,
            spooled,
        })
    }

    /// Begins the episodes of connections that were too slow in this turn for the first time.
    pub(crate) fn begin_episodes(&mut self, now: Time) {
        for id in std::mem::take(&mut self.effects.became_slow) {
            let seen = self.effects.outbox[id.0 as usize].lag;
            let is_there =
                self.connections.slots[id.0 as usize].is_some() && seen != Lag::default();
            if is_there && !self.flow.slow_consumer_events.running.contains_key(&id) {
                self.flow.slow_consumer_events.running.insert(id, Episode { began: now, seen });
                self.flow.slow_consumer_events.begun += 1;
                self.tell_episode(now, id, now, true, false);
            }
        }
    }

    /// Ends the episodes of those that have kept up since the last call.
    pub(crate) fn end_episodes(&mut self, now: Time) {
        let mut ended = Vec::new();
        for (id, episode) in &mut self.flow.slow_consumer_events.running {
            let outbox = &self.effects.outbox[id.0 as usize];
            let is_quiet = std::mem::replace(&mut episode.seen, outbox.lag) == outbox.lag;
            let has_room = outbox.unsent() < self.options.outbox_bytes_max;
            if is_quiet && has_room && outbox.spooled.is_none() {
                ended.push(*id);
            }
        }
        for id in ended {
            self.end_episode(now, id, false);
        }
    }

    /// Ends a connection's episode, if it has one.
    pub(crate) fn end_episode(&mut self, now: Time, id: ConnectionId, is_gone: bool) {
        let Some(Episode { began, .. }) = self.flow.slow_consumer_events.running.get(&id).copied()
        else {
            return;
        };
        self.tell_episode(now, id, began, false, is_gone);
        self.flow.slow_consumer_events.running.remove(&id);
        self.effects.outbox[id.0 as usize].lag = Lag::default();
    }

    fn tell_episode(
        &mut self,
        now: Time,
        id: ConnectionId,
        began: Time,
        has_begun: bool,
        is_gone: bool,
    ) {
        let Some(connection) = self.connections.slots[id.0 as usize].as_ref() else { return };
        let info = connection.handler.info();
        let Some(SlowConsumerInfo { policy, missed, spooled }) = self.slow_consumer_info(id) else {
            return;
        };
        let event = SlowConsumerEvent {
            has_begun,
            connection: self.options.number_of(connection.serial),
            peer: info.peer.address.clone(),
            user: info.user.to_owned(),
            vhost: info.vhost.to_owned(),
            name: info.client.connection_name.clone(),
            policy,
            missed,
            spooled,
            lasted: now.since(began),
            is_gone,
        };
        self.advise(now, &event);
        if self.flow.slow_consumer_events.untold.len() >= UNTOLD_MAX {
            self.flow.slow_consumer_events.untold.pop_front();
        }
        self.flow.slow_consumer_events.untold.push_back(event);
    }

    /// Publishes an advisory in the client's virtual host.
    fn advise(&mut self, now: Time, event: &SlowConsumerEvent) {
        let advisory = SlowConsumerAdvisory {
            has_begun: event.has_begun,
            connection: event.connection,
            peer: &event.peer,
            user: &event.user,
            name: event.name.as_deref(),
            policy: event.policy.name(),
            missed: event.missed,
            spooled: event.spooled,
            millis: u64::try_from(event.lasted.as_millis()).unwrap_or(u64::MAX),
            is_disconnected: event.is_gone,
        };
        // Its virtual host may have been deleted.
        if self.engine.connect_internal(BROKER.connection, &event.vhost).is_err() {
            return;
        }
        self.engine.open(BROKER);
        let mut body = Vec::new();
        let content = advisory.content(&mut body);
        let emit = Emit { subject: advisory.subject(), echo: true, asks: false, content };
        // Advisories need no subscriber.
        let _ = self.engine.emit(now, BROKER, &emit, &mut self.effects);
        self.engine.disconnect(now, BROKER.connection, &mut self.effects);
    }
}
