//! A publisher of direct messages all of whose subscribers are above their high-water mark is not read from
//! until one of them, or its shard, has drained, and no longer than [`STALL_MAX`]; or [`SHARED_STALL_MAX`],
//! if it also reaches subscribers that keep up.
//!
//! Which subscribers a message reached is the engine's to say; another shard says when all of those there are
//! slow, and when one has drained.

use angarium_engine::{ConnectionId, ShardId, Shards, Time};
use std::collections::BTreeSet;
use std::time::Duration;

/// The longest stall: a flood that is read 64 to 248 KiB at a time sends 1 MB/s at most to slow subscribers.
pub(crate) const STALL_MAX: Duration = Duration::from_millis(250);

/// The longest stall of a publisher that has reached a subscriber that keeps up since its last stall: that
/// one is not to wait for the others.
pub(crate) const SHARED_STALL_MAX: Duration = Duration::from_millis(10);

/// Sweeps in a row, two seconds, without any byte sent to a subscriber after which no publisher waits for it.
/// Fewer do not tell: the kernel reports room in a full socket a part at a time, so that a reader of 400 KB/s
/// seems silent for a second.
const SILENT_SWEEPS_MAX: u8 = 4;

/// A publisher of direct messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Publisher {
    /// On this shard.
    Here(ConnectionId),
    /// On another shard.
    There(ShardId, ConnectionId),
}

/// How fast the subscribers on one shard are that a publisher's messages reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// One of them has drained.
    Drained,
    /// All are slow, and the publisher is to wait for one.
    Slow,
    /// All are slow, and none is waited for.
    TooSlow,
}

/// A publisher's last stall.
#[derive(Clone, Copy, Debug, Default)]
struct Stall {
    is_stalled: bool,
    /// When it began.
    since: Time,
    /// When it ends at the latest.
    until: Time,
    /// The publisher has reached a subscriber that keeps up since then.
    is_shared: bool,
}

/// Stalled publishers of this shard, and whom the next one would wait for.
#[derive(Debug, Default)]
pub(crate) struct PublisherStalls {
    /// By connection.
    stalls: Vec<Stall>,
    /// When stalls end at the latest, in order.
    ends: BTreeSet<(Time, ConnectionId)>,
    /// Which message the slow subscribers are of.
    emission: u64,
    /// Slow subscribers of it on this shard.
    pub(crate) slow_here: Vec<ConnectionId>,
    /// Shards where it waits for slow subscribers, or that are slow themselves.
    pub(crate) slow_shards: Shards,
}

impl PublisherStalls {
    /// Whether the connection is not read from because of its subscribers.
    #[inline]
    pub(crate) fn is_stalled(&self, connection: ConnectionId) -> bool {
        self.stalls.get(connection.0 as usize).is_some_and(|stall| stall.is_stalled)
    }

    /// When the connection was last stalled; [`Time::default`]: never.
    pub(crate) fn last_stalled(&self, connection: ConnectionId) -> Time {
        self.stalls.get(connection.0 as usize).map(|stall| stall.since).unwrap_or_default()
    }

    /// A message was written for a subscriber above its high-water mark. Of several in a row some subscribers
    /// are handed all before others are handed the first.
    pub(crate) fn add_slow(&mut self, emission: u64, subscriber: ConnectionId) {
        if emission > self.emission || emission == 0 {
            self.slow_here.clear();
            self.emission = emission;
        }
        if emission == self.emission {
            self.slow_here.push(subscriber);
        }
    }

    /// Forgets the slow subscribers of the last message.
    #[inline]
    pub(crate) fn clear_slow(&mut self) {
        self.slow_here.clear();
        self.slow_shards = Shards::NONE;
    }

    /// A publisher's message reached subscribers that keep up.
    #[inline]
    pub(crate) fn note_quick(&mut self, publisher: ConnectionId) {
        if let Some(stall) = self.stalls.get_mut(publisher.0 as usize) {
            stall.is_shared = true;
        }
    }

    pub(crate) fn begin(&mut self, now: Time, publisher: ConnectionId) {
        let slot = publisher.0 as usize;
        if slot >= self.stalls.len() {
            self.stalls.resize(slot + 1, Stall::default());
        }
        let stall = &mut self.stalls[slot];
        if stall.is_stalled {
            return;
        }
        let until = now.plus(if stall.is_shared { SHARED_STALL_MAX } else { STALL_MAX });
        self.ends.remove(&(stall.until, publisher));
        *stall = Stall { is_stalled: true, since: now, until, is_shared: false };
        self.ends.insert((until, publisher));
    }

    pub(crate) fn end(&mut self, publisher: ConnectionId) {
        if let Some(stall) = self.stalls.get_mut(publisher.0 as usize) {
            stall.is_stalled = false;
            self.ends.remove(&(stall.until, publisher));
        }
    }

    /// The connection's slot is another one's.
    pub(crate) fn reset(&mut self, connection: ConnectionId) {
        self.end(connection);
        if let Some(stall) = self.stalls.get_mut(connection.0 as usize) {
            *stall = Stall::default();
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.ends.first().map(|(due, _)| *due)
    }

    /// Ends the stalls that have lasted for as long as they may.
    pub(crate) fn end_due(&mut self, now: Time) {
        while let Some((due, publisher)) = self.ends.first().copied()
            && due <= now
        {
            self.end(publisher);
        }
    }
}

/// The publishers that wait for one subscriber, and whether it takes anything.
#[derive(Debug, Default)]
pub(crate) struct WaitingPublishers {
    publishers: BTreeSet<Publisher>,
    /// Something was sent to the subscriber since the last sweep.
    has_moved: bool,
    silent_sweeps: u8,
}

impl WaitingPublishers {
    #[inline]
    pub(crate) fn note_sent(&mut self) {
        self.has_moved = true;
        self.silent_sweeps = 0;
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.silent_sweeps >= SILENT_SWEEPS_MAX
    }

    pub(crate) fn add(&mut self, publisher: Publisher) {
        self.publishers.insert(publisher);
    }

    pub(crate) fn take(&mut self) -> impl Iterator<Item = Publisher> + use<> {
        std::mem::take(&mut self.publishers).into_iter()
    }

    /// Called twice a second; takes all once the subscriber has been silent for long.
    pub(crate) fn sweep(&mut self) -> impl Iterator<Item = Publisher> + use<> {
        if !std::mem::take(&mut self.has_moved) && !self.publishers.is_empty() {
            self.silent_sweeps += 1;
        }
        let is_silent = self.is_silent();
        is_silent.then(|| self.take()).into_iter().flatten()
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.publishers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_ends_by_itself() {
        let mut stalls = PublisherStalls::default();
        let publisher = ConnectionId(8);
        stalls.begin(Time(1), publisher);
        let due = Time(1).plus(STALL_MAX);
        assert_eq!(stalls.deadline(), Some(due));
        stalls.end_due(Time(due.0 - 1));
        assert!(stalls.is_stalled(publisher));
        stalls.end_due(due);
        assert!(!stalls.is_stalled(publisher));
    }

    #[test]
    fn a_subscriber_that_keeps_up_shortens_the_next_stall() {
        let mut stalls = PublisherStalls::default();
        let publisher = ConnectionId(8);
        stalls.begin(Time(1), publisher);
        stalls.end(publisher);
        assert_eq!(stalls.deadline(), None);
        stalls.note_quick(publisher);
        stalls.begin(Time(5), publisher);
        assert_eq!(stalls.deadline(), Some(Time(5).plus(SHARED_STALL_MAX)));
        stalls.end_due(Time(5).plus(SHARED_STALL_MAX));
        stalls.begin(Time(99), publisher);
        assert_eq!(stalls.deadline(), Some(Time(99).plus(STALL_MAX)));
        stalls.reset(publisher);
        assert!(!stalls.is_stalled(publisher) && stalls.deadline().is_none());
    }
}
