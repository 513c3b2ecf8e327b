//! Who is behind with a direct message, of those whom its publisher may have to wait for.
//!
//! Knows who, not how far: that is each connection's outbox, or its shard's business.

use angarium_engine::{ConnectionId, Shards};

/// How those of a shard are behind who hear a publisher of another one, where none of them keeps up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// It is to wait for some of them. There may be others who keep up with other messages of its.
    Awaited { has_others: bool },
    /// They are too far behind for that.
    Far,
}

/// Those who were behind with the last direct message that some were behind with, but for those that are to
/// be disconnected for it.
#[derive(Debug, Default)]
pub(crate) struct Crowded {
    /// Which one that was, of those that are counted.
    emission: u64,
    /// On this shard, those that may be waited for.
    here: Vec<ConnectionId>,
    /// Those for whom nobody waits, since they miss it or have it later. Who waits for others goes on when
    /// one of these has room.
    patient: Vec<ConnectionId>,
    /// Other shards, or somebody there.
    there: Shards,
}

impl Crowded {
    /// A connection here is behind with this message.
    pub(crate) fn add(&mut self, emission: u64, connection: ConnectionId) {
        if self.is_last(emission) {
            self.here.push(connection);
        }
    }

    /// So is one that misses it, or has it later.
    pub(crate) fn add_patient(&mut self, emission: u64, connection: ConnectionId) {
        if self.is_last(emission) {
            self.patient.push(connection);
        }
    }

    /// So are these shards, or who hears it there.
    pub(crate) fn add_shards(&mut self, shards: Shards) {
        self.there = self.there.and(shards);
    }

    /// Whether a message is the last one. Of several in a row some are handed all of them before others are
    /// handed the first.
    fn is_last(&mut self, emission: u64) -> bool {
        if emission > self.emission || emission == 0 {
            self.here.clear();
            self.patient.clear();
            self.emission = emission;
        }
        emission == self.emission
    }

    /// The message has been dealt with.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.here.clear();
        self.patient.clear();
        self.there = Shards::NONE;
    }

    pub(crate) fn here(&self) -> &[ConnectionId] {
        &self.here
    }

    pub(crate) fn patient(&self) -> &[ConnectionId] {
        &self.patient
    }

    pub(crate) fn there(&self) -> Shards {
        self.there
    }
}
