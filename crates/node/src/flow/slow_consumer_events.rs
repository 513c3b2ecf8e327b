//! Slow-consumer events: when a client becomes too slow for direct messages and when it no longer is, for the
//! host's log and as advisories.

use crate::effects::NodeEffects;
use crate::node::Node;
use crate::outbox::SlowConsumerInfo;
use angarium_engine::{ChannelId, ConnectionId, Emit, SlowConsumerPolicy, Time};
use angarium_protocol::SlowConsumerEvent;
use std::collections::{BTreeMap, VecDeque};

/// Events that the host has not been told of yet; the oldest go.
const UNTOLD_MAX: usize = 1_000;
/// The broker's own channel, from which advisories are published.
const BROKER: ChannelId = ChannelId { connection: ConnectionId(0), number: 1 };

/// One that has begun.
#[derive(Clone, Copy, Debug)]
struct Episode {
    began: Time,
    /// How things were when they were last looked at.
    seen: SlowConsumerInfo,
}

/// The episodes that have begun and not ended, and events for the host.
#[derive(Debug, Default)]
pub(crate) struct SlowConsumerEvents {
    running: BTreeMap<ConnectionId, Episode>,
    untold: VecDeque<SlowConsumerEvent>,
    begun: u64,
}

impl NodeEffects {
    /// A connection misses messages that it was to get, by that policy.
    #[cold]
    pub(crate) fn note_missed(&mut self, id: ConnectionId, policy: SlowConsumerPolicy, count: u64) {
        self.lag(id, policy).missed += count;
    }

    pub(crate) fn note_spooled(&mut self, id: ConnectionId) {
        self.lag(id, SlowConsumerPolicy::Spool).spooled += 1;
    }

    /// What a connection misses; `policy` counts where it is the first that it misses.
    fn lag(&mut self, id: ConnectionId, policy: SlowConsumerPolicy) -> &mut SlowConsumerInfo {
        let lag = &mut self.outbox[id.0 as usize].lag;
        if lag.missed + lag.spooled == 0 {
            lag.policy = policy;
            self.became_slow.push(id);
        }
        lag
    }
}

impl Node {
    /// The next slow-consumer event for the host.
    pub fn next_slow_consumer_event(&mut self) -> Option<SlowConsumerEvent> {
        self.flow.slow_consumer_events.untold.pop_front()
    }

    /// Clients that are slow consumers now, and how often one became so.
    pub fn slow_consumer_episodes(&self) -> (u64, u64) {
        let events = &self.flow.slow_consumer_events;
        (events.running.len() as u64, events.begun)
    }

    /// How it stands with a connection that is too slow.
    pub(crate) fn slow_consumer_info(&self, id: ConnectionId) -> Option<SlowConsumerInfo> {
        let is_slow = self.flow.slow_consumer_events.running.contains_key(&id);
        is_slow.then(|| self.effects.outbox[id.0 as usize].lag)
    }

    /// Begins the episodes of connections that were too slow in this turn for the first time.
    pub(crate) fn begin_episodes(&mut self, now: Time) {
        for id in std::mem::take(&mut self.effects.became_slow) {
            let seen = self.effects.outbox[id.0 as usize].lag;
            let is_slow = seen != SlowConsumerInfo::default();
            let events = &mut self.flow.slow_consumer_events;
            if is_slow && self.connections.get(id).is_some() && !events.running.contains_key(&id) {
                events.running.insert(id, Episode { began: now, seen });
                events.begun += 1;
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
            if is_quiet && has_room && outbox.spooled.is_none() && outbox.conflated.is_none() {
                ended.push(*id);
            }
        }
        for id in ended {
            self.end_episode(now, id, false);
        }
    }

    /// Ends a connection's episode, if it has one.
    pub(crate) fn end_episode(&mut self, now: Time, id: ConnectionId, is_gone: bool) {
        let episode = self.flow.slow_consumer_events.running.get(&id).copied();
        let Some(Episode { began, .. }) = episode else { return };
        self.tell_episode(now, id, began, false, is_gone);
        self.flow.slow_consumer_events.running.remove(&id);
        self.effects.outbox[id.0 as usize].lag = SlowConsumerInfo::default();
    }

    fn tell_episode(
        &mut self,
        now: Time,
        id: ConnectionId,
        began: Time,
        has_begun: bool,
        is_gone: bool,
    ) {
        let Some(connection) = self.connections.get(id) else { return };
        let info = connection.handler.info();
        let SlowConsumerInfo { policy, missed, spooled } = self.effects.outbox[id.0 as usize].lag;
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
        let untold = &mut self.flow.slow_consumer_events.untold;
        if untold.len() >= UNTOLD_MAX {
            untold.pop_front();
        }
        untold.push_back(event);
    }

    /// Publishes an advisory in the client's virtual host.
    fn advise(&mut self, now: Time, event: &SlowConsumerEvent) {
        // Its virtual host may have been deleted.
        if self.engine.connect_internal(BROKER.connection, &event.vhost).is_err() {
            return;
        }
        self.engine.open(BROKER);
        let mut body = Vec::new();
        let content = event.content(&mut body);
        let emit =
            Emit { subject: event.subject(), echo: true, is_response: false, asks: false, content };
        // Advisories need no subscriber.
        let _ = self.engine.emit(now, BROKER, &emit, &mut self.effects);
        self.engine.disconnect(now, BROKER.connection, &mut self.effects);
    }
}
