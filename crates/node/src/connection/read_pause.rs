//! Why a connection is not read from: for the host, which does not read, and for listings.

use crate::flow::rate::RateOf;
use crate::node::Node;
use angarium_engine::{ConnectionId, ShardId, Time};
use angarium_protocol::ProtocolHandler;
use std::time::Duration;

/// How long a pause of milliseconds is shown in listings: such pauses recur.
const SHOWN: Duration = Duration::from_secs(1);

/// What has to be before a connection is read from again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// It has sent more than it may.
    Rate,
    /// Its user has.
    UserRate,
    /// So have all in its virtual host together.
    VhostRate,
    /// It floods the broker with messages that reach nobody while others are active.
    Flooded,
    /// It put more into a queue than its consumers get: so long as [`WaitsFor::Flooded`].
    Consumers,
    /// All subscribers of what it publishes are slow, or their shards are.
    Subscribers,
    /// It stores messages, and the journal has more than the disk takes.
    Disk,
    /// Home has too much of its requests to process.
    Queues,
    /// Other shards do not know its subscriptions yet, or home has not processed its requests.
    Shards,
    /// It or its user holds too much memory in unfinished messages.
    Memory,
    /// It does not read its output.
    Room,
    /// It asked for much at once: others have their turns.
    NextTurn,
    /// What it has asked is not answered.
    Answer,
}

impl WaitsFor {
    /// In words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            WaitsFor::Rate => "its rate",
            WaitsFor::UserRate => "its user's rate",
            WaitsFor::VhostRate => "its virtual host's rate",
            WaitsFor::Flooded => "others it floods",
            WaitsFor::Consumers => "consumers it outruns",
            WaitsFor::Subscribers => "subscribers it outruns",
            WaitsFor::Disk => "the disk",
            WaitsFor::Queues => "the queues' shard",
            WaitsFor::Shards => "other shards",
            WaitsFor::Memory => "memory",
            WaitsFor::Room => "its own reading",
            WaitsFor::NextTurn => "its next turn",
            WaitsFor::Answer => "an answer",
        }
    }
}

impl Node {
    /// Whether the host should read from the connection: whether it waits for nothing of [`WaitsFor`].
    pub fn wants_read(&self, id: ConnectionId) -> bool {
        self.is_open(id) && self.waits_for(id).is_none()
    }

    /// What the connection waits for; of several things the most telling one.
    #[inline]
    fn waits_for(&self, id: ConnectionId) -> Option<WaitsFor> {
        let connection = self.connections.get(id)?;
        if let Some(metered) = connection.metered.as_ref().filter(|metered| metered.is_waiting()) {
            return Some(match metered.waits_for {
                RateOf::Connection => WaitsFor::Rate,
                RateOf::User => WaitsFor::UserRate,
                RateOf::Vhost => WaitsFor::VhostRate,
            });
        }
        if connection.is_slowed {
            return connection.last_slowed.map(|(why, _)| why);
        }
        let links = &self.effects.links;
        [
            (self.effects.stalls.is_stalled(id), WaitsFor::Subscribers),
            (connection.stores && self.is_journal_congested(), WaitsFor::Disk),
            (connection.uses_home && links.is_behind(ShardId::HOME), WaitsFor::Queues),
            (!connection.carry.is_empty() && !links.is_settled(id), WaitsFor::Shards),
            (links.is_far_ahead(id), WaitsFor::Shards),
            (self.effects.outbox[id.0 as usize].memory.paused_since.is_some(), WaitsFor::Memory),
            (self.is_choked(id), WaitsFor::Room),
            (connection.is_resting || links.is_fanning_out(id), WaitsFor::NextTurn),
            (connection.handler.is_waiting(), WaitsFor::Answer),
        ]
        .into_iter()
        .find_map(|(waits, why)| waits.then_some(why))
    }

    /// What listings show: what the connection waits for, or waited for within the last second.
    pub(crate) fn shown_wait(&self, now: Time, id: ConnectionId) -> Option<WaitsFor> {
        let connection = self.connections.get(id)?;
        let stalled = (WaitsFor::Subscribers, self.effects.stalls.last_stalled(id));
        let mut pauses = connection.last_slowed.into_iter().chain([stalled]);
        let paused = pauses.find(|(_, at)| *at != Time::default() && now.since(*at) < SHOWN);
        let waits_for = self.waits_for(id).or(paused.map(|(why, _)| why));
        waits_for.filter(|_| connection.ended.is_none())
    }
}
