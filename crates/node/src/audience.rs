//! Who hears what a connection publishes, as far as it matters when one of them is behind: whether there are
//! others, for whom its publisher is not to wait.
//!
//! Knows two at a time. Most publishers have always the same listeners, and then nothing is written.

use angarium_engine::{ConnectionId, Delivery, ShardId, Shards, Time};
use std::time::Duration;

/// How long one that heard something is remembered after the publisher went over to others.
const REMEMBERED: Duration = Duration::from_secs(10);

/// Who hears a direct message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hearer {
    Connection(ConnectionId),
    /// Somebody there, or the shard itself.
    Shard(ShardId),
}

/// All who were behind with the last direct message that some were behind with.
#[derive(Debug, Default)]
pub(crate) struct Crowded {
    /// Which one that was, of those that are counted.
    emission: u64,
    /// On this shard.
    here: Vec<ConnectionId>,
    /// Other shards, or somebody there.
    there: Shards,
}

impl Crowded {
    /// A connection here is behind with this message.
    pub(crate) fn add(&mut self, delivery: &Delivery<'_>) {
        if delivery.emission != self.emission || delivery.emission == 0 {
            self.here.clear();
            self.emission = delivery.emission;
        }
        self.here.push(delivery.session.connection);
    }

    /// So are these shards, or who hears it there.
    pub(crate) fn add_shards(&mut self, shards: Shards) {
        self.there = self.there.and(shards);
    }

    /// The message has been dealt with.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.here.clear();
        self.there = Shards::NONE;
    }

    pub(crate) fn here(&self) -> &[ConnectionId] {
        &self.here
    }

    pub(crate) fn there(&self) -> Shards {
        self.there
    }

    fn contains(&self, hearer: HeardBy) -> bool {
        self.here.iter().any(|it| hearer == Hearer::Connection(*it).into())
            || self.there.into_iter().any(|it| hearer == Hearer::Shard(it).into())
    }
}

/// One of them in few bytes, since a group's messages are another member's each time: a connection by its
/// slot, a shard counted from the end of the numbers, where there are no slots. Zero: nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeardBy(u32);

impl From<Hearer> for HeardBy {
    #[inline]
    fn from(hearer: Hearer) -> HeardBy {
        match hearer {
            Hearer::Connection(id) => HeardBy(id.0),
            Hearer::Shard(shard) => HeardBy(u32::MAX - u32::from(shard.0)),
        }
    }
}

/// Those who heard a publisher well: the last of those who got its last message, and the last other one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Audience {
    last: HeardBy,
    before: HeardBy,
    /// When the one before was the last one.
    until: Time,
}

impl Audience {
    /// The publisher's message was heard well by this one, among others perhaps.
    #[inline]
    pub(crate) fn heard(&mut self, now: Time, hearer: HeardBy) {
        if self.last != hearer && hearer != HeardBy::default() {
            self.before = std::mem::replace(&mut self.last, hearer);
            self.until = now;
        }
    }

    /// Whether others than those who are behind have heard the publisher well of late.
    pub(crate) fn has_others(&self, now: Time, behind: &Crowded) -> bool {
        let is_other = |hearer| hearer != HeardBy::default() && !behind.contains(hearer);
        let is_remembered = now.since(self.until) < REMEMBERED;
        is_other(self.last) || (is_remembered && is_other(self.before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALLED: Hearer = Hearer::Connection(ConnectionId(1));
    const HEALTHY: Hearer = Hearer::Connection(ConnectionId(2));
    const ELSEWHERE: Hearer = Hearer::Shard(ShardId(1));

    /// What is known a moment after these heard the publisher, at these seconds, if then one is behind.
    #[track_caller]
    fn check(heard: &[(u64, Hearer)], now_s: u64, has_others: bool) {
        let mut audience = Audience::default();
        for (at_s, hearer) in heard {
            audience.heard(Time(at_s * 1_000_000), (*hearer).into());
        }
        let here = vec![ConnectionId(3), ConnectionId(1)];
        let behind = Crowded { here, there: Shards::one(ShardId(2)), ..Crowded::default() };
        assert_eq!(audience.has_others(Time(now_s * 1_000_000), &behind), has_others);
    }

    #[test]
    fn whoever_is_the_only_one_has_no_others() {
        check(&[], 20, false);
        check(&[(20, STALLED), (20, STALLED), (21, STALLED)], 21, false);
        check(&[(20, STALLED), (21, Hearer::Shard(ShardId(2)))], 21, false);
    }

    #[test]
    fn others_are_remembered_for_a_while() {
        for other in [HEALTHY, ELSEWHERE] {
            check(&[(20, other)], 20, true);
            check(&[(20, other), (20, STALLED)], 20, true);
            check(&[(20, STALLED), (20, other)], 90, true);
            check(&[(20, STALLED), (21, other), (22, STALLED)], 31, true);
            check(&[(20, STALLED), (21, other), (22, STALLED)], 32, false);
        }
        check(&[(20, HEALTHY), (20, ELSEWHERE)], 90, true);
    }
}
