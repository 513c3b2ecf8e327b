//! What a connection waits for that is not read from, for the host, which does not read from it, and for
//! people, who want to know why.

use crate::node::Node;
use angarium_engine::{ConnectionId, ShardId, Time};
use angarium_protocol::ProtocolHandler;
use std::time::Duration;

/// For so long a pause of a moment is shown: whoever is paused so is paused again and again.
const SHOWN: Duration = Duration::from_secs(1);

/// What has to be before a connection is read from again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// It has sent more than it may.
    Rate,
    /// Its user has.
    UserRate,
    /// It floods others with what nobody gets: a moment is theirs.
    Flooded,
    /// It put more into a queue than its consumers get: so long as [`WaitsFor::Flooded`].
    Consumers,
    /// All who hear it are behind, or the shard where they are.
    Listeners,
    /// It stores messages, and the journal has more than the disk takes.
    Disk,
    /// Home is behind with what it has it do.
    Queues,
    /// Other shards do not know yet what it has done.
    Shards,
    /// It does not take what it is sent.
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
            WaitsFor::Flooded => "others it floods",
            WaitsFor::Consumers => "consumers it outruns",
            WaitsFor::Listeners => "subscribers it outruns",
            WaitsFor::Disk => "the disk",
            WaitsFor::Queues => "the queues' shard",
            WaitsFor::Shards => "other shards",
            WaitsFor::Room => "its own reading",
            WaitsFor::NextTurn => "its next turn",
            WaitsFor::Answer => "an answer",
        }
    }
}

impl Node {
    /// Whether the host should read from the connection. Not while the session waits for an answer,
    /// nor while much is unsent, nor while what it asked for at once waits for the next turn; for a moment
    /// not from one that outruns a queue's consumers, floods others, or has sent more than it may; not
    /// while other shards or all who hear it are behind; and not from one that stores messages while the
    /// journal has more than the disk takes.
    pub fn wants_read(&self, id: ConnectionId) -> bool {
        let connection = self.connections[id.0 as usize].as_ref();
        connection.is_some_and(|it| it.ended.is_none()) && self.waits_for(id).is_none()
    }

    /// What the connection waits for; of several things that which tells most.
    #[inline]
    fn waits_for(&self, id: ConnectionId) -> Option<WaitsFor> {
        let connection = self.connections[id.0 as usize].as_ref()?;
        if let Some(metered) = connection.metered.as_ref().filter(|metered| metered.is_waiting()) {
            let by_user = metered.waits_for_user();
            return Some(if by_user { WaitsFor::UserRate } else { WaitsFor::Rate });
        }
        if connection.is_slowed {
            return connection.last_slowed.map(|(why, _)| why);
        }
        let links = &self.effects.links;
        [
            (self.effects.stalls.is_stalled(id), WaitsFor::Listeners),
            (connection.stores && self.is_journal_congested(), WaitsFor::Disk),
            (connection.uses_home && links.is_behind(ShardId::HOME), WaitsFor::Queues),
            (!connection.carry.is_empty() && !links.is_settled(id), WaitsFor::Shards),
            (links.is_far_ahead(id), WaitsFor::Shards),
            (self.is_choked(id), WaitsFor::Room),
            (connection.is_resting, WaitsFor::NextTurn),
            (connection.handler.is_waiting(), WaitsFor::Answer),
        ]
        .into_iter()
        .find_map(|(waits, why)| waits.then_some(why))
    }

    /// The same as people are shown it: a pause of a moment for a while.
    pub(crate) fn shown_wait(&self, now: Time, id: ConnectionId) -> Option<WaitsFor> {
        let connection = self.connections[id.0 as usize].as_ref()?;
        let stalled = (WaitsFor::Listeners, self.effects.stalls.last_stalled(id));
        let mut pauses = connection.last_slowed.into_iter().chain([stalled]);
        let paused = pauses.find(|(_, at)| *at != Time::default() && now.since(*at) < SHOWN);
        let waits_for = self.waits_for(id).or(paused.map(|(why, _)| why));
        waits_for.filter(|_| connection.ended.is_none())
    }
}
