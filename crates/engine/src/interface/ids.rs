//! Who and where: newtypes for shards, connections, channels and stored positions.

use crate::interface::limits::SHARDS_MAX;

/// One of the shards that make up a broker: an engine with connections of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u8);

impl ShardId {
    /// The shard that has the queues, the journal, and the users and virtual hosts that others copy.
    pub const HOME: ShardId = ShardId(0);
}

/// A set of shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shards(u64);

impl Shards {
    /// None.
    pub const NONE: Shards = Shards(0);

    /// One.
    #[must_use]
    pub fn one(shard: ShardId) -> Shards {
        debug_assert!(usize::from(shard.0) < SHARDS_MAX, "SHARDS_MAX is what fits here");
        Shards(1 << shard.0)
    }

    /// All of a broker of `count` shards but `shard`.
    #[must_use]
    pub fn others(shard: ShardId, count: usize) -> Shards {
        (0..count)
            .map(|at| Shards::one(ShardId(at as u8)))
            .fold(Shards::NONE, Shards::and)
            .without(shard)
    }

    /// Those of both sets.
    #[must_use]
    pub fn and(self, more: Shards) -> Shards {
        Shards(self.0 | more.0)
    }

    /// All but one.
    #[must_use]
    pub fn without(self, shard: ShardId) -> Shards {
        Shards(self.0 & !Shards::one(shard).0)
    }

    /// A bit for each of them.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Those whose bits are set.
    pub(crate) fn of_bits(bits: u64) -> Shards {
        Shards(bits)
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    #[must_use]
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether `shard` is one of them.
    #[must_use]
    pub fn contains(self, shard: ShardId) -> bool {
        self.0 & Shards::one(shard).0 != 0
    }
}

impl Iterator for Shards {
    type Item = ShardId;

    fn next(&mut self) -> Option<ShardId> {
        if self.0 == 0 {
            return None;
        }
        let at = self.0.trailing_zeros() as u8;
        self.0 &= self.0 - 1;
        Some(ShardId(at))
    }
}

/// A connection, named by the slot that the host keeps it in. Slots are reused after
/// [`crate::Engine::disconnect`]. A connection owns exclusive queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// One ordered stream of publishes, consumers and settlements within a connection, with its own
/// delivery tags; each protocol maps its channels, sessions or connections to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId {
    /// The connection it belongs to.
    pub connection: ConnectionId,
    /// Which of that connection's channels it is.
    pub number: u16,
}

/// Where the host stored a record: segment number in the upper 32 bits, byte offset in the lower.
/// Later records have greater positions. The engine compares positions and asks for their segment,
/// nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// The segment that holds the record: the unit in which disk space is given back.
    #[must_use]
    pub fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }
}
