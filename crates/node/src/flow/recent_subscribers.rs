//! Who hears what a connection publishes, as far as it matters when one of them is behind: whether there are
//! others, for whom its publisher is not to wait.
//!
//! Knows a few at a time. Most publishers have always the same listeners, and then nothing is written.

use angarium_engine::limits::SHARDS_MAX;
use angarium_engine::{ConnectionId, ShardId, Time};
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

impl HeardBy {
    fn hearer(self) -> Option<Hearer> {
        match u32::MAX - self.0 {
            _ if self == HeardBy::default() => None,
            shard if (shard as usize) < SHARDS_MAX => Some(Hearer::Shard(ShardId(shard as u8))),
            _ => Some(Hearer::Connection(ConnectionId(self.0))),
        }
    }
}

/// Others than the last one that are remembered.
const OTHERS_MAX: usize = 3;

/// Those who heard a publisher well: the last of those who got its last message, and the last others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Audience {
    last: HeardBy,
    /// The latest first, and until when each was the last one.
    others: [(HeardBy, Time); OTHERS_MAX],
}

impl Audience {
    /// The publisher's message was heard well by this one, among others perhaps.
    #[inline]
    pub(crate) fn heard(&mut self, now: Time, hearer: HeardBy) {
        if self.last != hearer && hearer != HeardBy::default() {
            self.change(now, hearer);
        }
    }

    fn change(&mut self, now: Time, hearer: HeardBy) {
        let last = std::mem::replace(&mut self.last, hearer);
        let place = |wanted| self.others.iter().position(|(other, _)| *other == wanted);
        let place = place(hearer).or(place(HeardBy::default())).unwrap_or(OTHERS_MAX - 1);
        if last == HeardBy::default() {
            // Nobody comes after it; it is not to be known twice.
            self.others[place].0 = HeardBy::default();
        } else {
            self.others[..=place].rotate_right(1);
            self.others[0] = (last, now);
        }
    }

    /// This one may have gone.
    pub(crate) fn forget(&mut self, hearer: Hearer) {
        let others = self.others.iter_mut().map(|(other, _)| other);
        for known in others.chain([&mut self.last]).filter(|it| **it == hearer.into()) {
            *known = HeardBy::default();
        }
    }

    /// Those of them who have heard it of late.
    pub(crate) fn of_late(&self, now: Time) -> impl Iterator<Item = Hearer> + use<> {
        let is_remembered = move |(_, until): &(_, Time)| now.since(*until) < REMEMBERED;
        let others = self.others.into_iter().filter(is_remembered).map(|(other, _)| other);
        std::iter::once(self.last).chain(others).filter_map(HeardBy::hearer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALLED: Hearer = Hearer::Connection(ConnectionId(1));
    const HEALTHY: Hearer = Hearer::Connection(ConnectionId(2));
    const ELSEWHERE: Hearer = Hearer::Shard(ShardId(1));

    /// Who is known to have heard the publisher at a time, after these heard it, at these seconds.
    #[track_caller]
    fn check(heard: &[(u64, Hearer)], now_s: u64, expected: &[Hearer]) {
        let mut audience = Audience::default();
        for (at_s, hearer) in heard {
            audience.heard(Time(at_s * 1_000_000), (*hearer).into());
        }
        assert_eq!(audience.of_late(Time(now_s * 1_000_000)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn whoever_is_the_only_one_has_no_others() {
        check(&[], 20, &[]);
        check(&[(20, STALLED), (20, STALLED), (21, STALLED)], 21, &[STALLED]);
    }

    #[test]
    fn who_is_remembered_is_so_once() {
        let more = [3, 4, 5].map(|id| Hearer::Connection(ConnectionId(id)));
        check(&[(1, HEALTHY), (2, STALLED), (3, HEALTHY), (4, STALLED)], 5, &[STALLED, HEALTHY]);
        check(&[(1, HEALTHY), (2, more[0]), (3, more[1])], 5, &[more[1], more[0], HEALTHY]);
        let heard = [(1, STALLED), (1, HEALTHY), (2, more[0]), (2, more[1]), (2, more[2])];
        check(&heard, 5, &[more[2], more[1], more[0], HEALTHY]);
    }

    #[test]
    fn who_is_forgotten_and_heard_again_takes_nobodys_place() {
        let mut audience = Audience::default();
        audience.heard(Time(1), HEALTHY.into());
        for _ in 0..9 {
            audience.heard(Time(1), ELSEWHERE.into());
            audience.forget(ELSEWHERE);
        }
        assert!(audience.of_late(Time(2)).eq([HEALTHY]));
        audience.heard(Time(2), HEALTHY.into());
        assert!(audience.of_late(Time(2)).eq([HEALTHY]));
    }

    #[test]
    fn who_may_have_gone_is_forgotten() {
        let mut audience = Audience::default();
        for hearer in [HEALTHY, ELSEWHERE, STALLED] {
            audience.heard(Time(1), hearer.into());
        }
        audience.forget(ELSEWHERE);
        audience.forget(STALLED);
        assert!(audience.of_late(Time(2)).eq([HEALTHY]));
    }

    #[test]
    fn others_are_remembered_for_a_while() {
        for other in [HEALTHY, ELSEWHERE] {
            check(&[(20, other)], 20, &[other]);
            check(&[(20, other), (20, STALLED)], 20, &[STALLED, other]);
            check(&[(20, STALLED), (20, other)], 90, &[other]);
            check(&[(20, STALLED), (21, other), (22, STALLED)], 31, &[STALLED, other]);
            check(&[(20, STALLED), (21, other), (22, STALLED)], 32, &[STALLED]);
        }
    }
}
