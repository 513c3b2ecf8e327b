//! The deliveries of one channel that were not settled yet, by tag.

use crate::queue::entry::Entry;
use crate::{Outcome, Time};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

/// The consumer that a delivery went to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taker {
    pub(crate) slot: u32,
    pub(crate) incarnation: u32,
    /// What becomes of the delivery when the consumer ends.
    pub(crate) on_close: Outcome,
    pub(crate) on_loss: Outcome,
}

/// A delivery that was not settled.
#[derive(Clone, Debug)]
pub(crate) struct Delivered {
    pub(crate) entry: Entry,
    /// The slot and number of its queue.
    pub(crate) queue: u32,
    pub(crate) queue_number: u64,
    /// Its consumer, where it was not asked for singly.
    pub(crate) taker: Option<Taker>,
    /// When it returns to its queue.
    pub(crate) deadline: Time,
}

/// Empty places in the ring beyond which its front is moved out.
const HOLES_MAX: usize = 1024;
/// Places in the ring beyond which each delivery moves one out: a ring that grows is copied as a whole,
/// and that must not take long.
const RING_MAX: usize = 8192;

/// Deliveries by tag. Tags are dense and mostly settled in order: a ring serves them; old ones
/// that hold its front are kept apart, so that it does not grow with what was settled after them, and
/// so are those beyond what a ring should have.
#[derive(Debug, Default)]
pub(crate) struct Unsettled {
    old: BTreeMap<u64, Delivered>,
    /// The tag of the ring's front.
    base: u64,
    ring: VecDeque<Option<Delivered>>,
    in_ring: usize,
    /// One of them may survive a restart.
    has_durable: bool,
}

impl Unsettled {
    pub(crate) fn len(&self) -> usize {
        self.old.len() + self.in_ring
    }

    /// Whether one of them may survive a restart.
    pub(crate) fn has_durable(&self) -> bool {
        self.has_durable
    }

    /// Those that survive a restart; where there are none, the others are not looked at.
    pub(crate) fn durable(&self) -> impl Iterator<Item = &Delivered> {
        let all = self.has_durable.then(|| self.iter());
        all.into_iter().flatten().map(|(_, it)| it).filter(|it| it.entry.durable)
    }

    /// Adds a delivery; tags only go up.
    #[inline]
    pub(crate) fn push(&mut self, tag: u64, delivered: Delivered) {
        if self.in_ring == 0 {
            self.ring.clear();
            self.base = tag;
        }
        let index = usize::try_from(tag - self.base).unwrap_or(usize::MAX);
        if index - self.in_ring > HOLES_MAX + self.in_ring * 3 {
            self.move_front_out(self.ring.len().div_ceil(2));
            return self.push(tag, delivered);
        }
        if index >= RING_MAX {
            self.move_front_out(1);
        }
        while self.base + (self.ring.len() as u64) < tag {
            self.ring.push_back(None);
        }
        self.has_durable |= delivered.entry.durable;
        self.ring.push_back(Some(delivered));
        self.in_ring += 1;
    }

    /// Puts a delivery back that was taken.
    pub(crate) fn put_back(&mut self, tag: u64, delivered: Delivered) {
        let index = tag.checked_sub(self.base).and_then(|index| usize::try_from(index).ok());
        match index.and_then(|index| self.ring.get_mut(index)) {
            Some(place) => {
                self.in_ring += usize::from(place.is_none());
                self.has_durable |= delivered.entry.durable;
                *place = Some(delivered);
                self.drop_empty_front();
            }
            None if tag < self.base => {
                self.has_durable |= delivered.entry.durable;
                self.old.insert(tag, delivered);
            }
            None => self.push(tag, delivered),
        }
    }

    /// Moves `places` places from the ring's front to the old ones.
    fn move_front_out(&mut self, places: usize) {
        for _ in 0..places {
            if let Some(delivered) = self.ring.pop_front().flatten() {
                self.old.insert(self.base, delivered);
                self.in_ring -= 1;
            }
            self.base += 1;
        }
        self.drop_empty_front();
    }

    /// Takes the delivery of that tag.
    #[inline]
    pub(crate) fn take(&mut self, tag: u64) -> Option<Delivered> {
        let taken = if tag < self.base {
            self.old.remove(&tag)?
        } else if tag == self.base {
            self.take_front()?
        } else {
            let index = usize::try_from(tag - self.base).ok()?;
            let taken = self.ring.get_mut(index)?.take()?;
            self.in_ring -= 1;
            taken
        };
        self.has_durable &= self.len() > 0;
        Some(taken)
    }

    /// Takes the delivery of the lowest tag, unless that is above `up_to`.
    #[inline]
    pub(crate) fn take_first(&mut self, up_to: u64) -> Option<Delivered> {
        let taken = match self.old.first_entry() {
            Some(oldest) if *oldest.key() <= up_to => oldest.remove(),
            None if self.base <= up_to => self.take_front()?,
            _ => return None,
        };
        self.has_durable &= self.len() > 0;
        Some(taken)
    }

    /// Takes the delivery of the lowest tag within a range.
    #[inline]
    pub(crate) fn take_within(&mut self, tags: &RangeInclusive<u64>) -> Option<(u64, Delivered)> {
        let is_first = self.in_ring > 0 && self.old.is_empty() && *tags.start() <= self.base;
        let tag = if is_first { self.base } else { self.next_from(*tags.start())? };
        if tag > *tags.end() {
            return None;
        }
        if !is_first {
            return Some((tag, self.take(tag)?));
        }
        let taken = self.take_front()?;
        self.has_durable &= self.len() > 0;
        Some((tag, taken))
    }

    /// How many deliveries there are within a range of tags.
    pub(crate) fn within(&self, tags: &RangeInclusive<u64>) -> usize {
        let (first, last) = (*tags.start(), *tags.end());
        if first > last {
            return 0;
        }
        let old = match self.old.is_empty() {
            true => 0,
            false => self.old.range(tags.clone()).count(),
        };
        let place = |tag: u64| usize::try_from(tag.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let end = if last < self.base { 0 } else { place(last).saturating_add(1) };
        let (from, end) = (place(first).min(self.ring.len()), end.min(self.ring.len()));
        if from >= end {
            return old;
        }
        let has_holes = self.in_ring < self.ring.len();
        old + match has_holes {
            true => self.ring.range(from..end).flatten().count(),
            false => end - from,
        }
    }

    /// Places for deliveries, empty ones included.
    pub(crate) fn places(&self) -> usize {
        self.old.len() + self.ring.len()
    }

    /// Takes all deliveries within a range of tags.
    pub(crate) fn split(&mut self, tags: &RangeInclusive<u64>) -> Unsettled {
        let mut first = self.split_first(*tags.end());
        if *tags.start() > 0 {
            let mut before = first.split_first(*tags.start() - 1);
            self.has_durable |= before.has_durable;
            before.old.append(&mut self.old);
            self.old = before.old;
        }
        first
    }

    /// Takes all deliveries up to a tag, all of which are then old.
    fn split_first(&mut self, up_to: u64) -> Unsettled {
        let later = self.old.split_off(&up_to.saturating_add(1));
        let mut first =
            Unsettled { old: std::mem::replace(&mut self.old, later), ..Unsettled::default() };
        if self.old.is_empty() {
            while self.in_ring > 0 && self.base <= up_to {
                let tag = self.base;
                first.old.extend(self.take_front().map(|delivered| (tag, delivered)));
            }
        }
        first.has_durable = self.has_durable;
        first
    }

    /// Takes the front of the ring, which is there unless the ring is empty. The caller counts.
    #[inline]
    fn take_front(&mut self) -> Option<Delivered> {
        let taken = self.ring.pop_front()??;
        self.base += 1;
        self.in_ring -= 1;
        self.drop_empty_front();
        Some(taken)
    }

    #[inline]
    fn drop_empty_front(&mut self) {
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.base += 1;
        }
    }

    pub(crate) fn contains(&self, tag: u64) -> bool {
        if tag < self.base {
            return self.old.contains_key(&tag);
        }
        usize::try_from(tag - self.base)
            .ok()
            .and_then(|index| self.ring.get(index))
            .is_some_and(Option::is_some)
    }

    /// The lowest unsettled tag.
    #[inline]
    pub(crate) fn first(&self) -> Option<u64> {
        match self.old.first_key_value() {
            Some((tag, _)) => Some(*tag),
            None if self.in_ring > 0 => Some(self.base),
            None => None,
        }
    }

    /// The lowest unsettled tag from one on.
    #[inline]
    pub(crate) fn next_from(&self, tag: u64) -> Option<u64> {
        let first = self.first()?;
        if tag <= first {
            return Some(first);
        }
        if let Some((old, _)) = self.old.range(tag..).next() {
            return Some(*old);
        }
        let from = tag.max(self.base);
        let passed = usize::try_from(from - self.base).unwrap_or(usize::MAX).min(self.ring.len());
        let ahead = self.ring.range(passed..).position(Option::is_some)?;
        Some(self.base + (passed + ahead) as u64)
    }

    /// All of them, by tag.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Delivered)> {
        let ring =
            (self.base..).zip(&self.ring).filter_map(|(tag, slot)| Some((tag, slot.as_ref()?)));
        self.old.iter().map(|(tag, delivered)| (*tag, delivered)).chain(ring)
    }

    /// All of them from a tag on.
    pub(crate) fn onward(&self, tag: u64) -> impl Iterator<Item = (u64, &Delivered)> {
        let passed = usize::try_from(tag.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let passed = passed.min(self.ring.len());
        let ring = (self.base + passed as u64..).zip(self.ring.range(passed..));
        let ring = ring.filter_map(|(tag, slot)| Some((tag, slot.as_ref()?)));
        self.old.range(tag..).map(|(tag, delivered)| (*tag, delivered)).chain(ring)
    }

    /// All of them from a tag on, if one may survive a restart; otherwise none.
    pub(crate) fn iter_from(&mut self, tag: u64) -> impl Iterator<Item = (u64, &mut Delivered)> {
        let all = self.has_durable.then(|| {
            let passed = usize::try_from(tag.saturating_sub(self.base)).unwrap_or(usize::MAX);
            let passed = passed.min(self.ring.len());
            let ring = (self.base + passed as u64..).zip(self.ring.range_mut(passed..));
            let ring = ring.filter_map(|(tag, slot)| Some((tag, slot.as_mut()?)));
            self.old.range_mut(tag..).map(|(tag, delivered)| (*tag, delivered)).chain(ring)
        });
        all.into_iter().flatten()
    }

    /// Those that survive a restart.
    pub(crate) fn durable_mut(&mut self) -> impl Iterator<Item = &mut Delivered> {
        self.iter_from(0).map(|(_, it)| it).filter(|it| it.entry.durable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::entry::{Fetch, NEVER, NOWHERE};

    fn delivered(seq: u64) -> Delivered {
        let entry = Entry {
            seq,
            position: NOWHERE,
            expires: NEVER,
            message: None,
            bytes: 0,
            requeues: 0,
            durable: seq.is_multiple_of(7),
            redelivered: false,
            fetch: Fetch::Idle,
            lane: 0,
            mark: false,
        };
        Delivered { entry, queue: 0, queue_number: 0, taker: None, deadline: NEVER }
    }

    /// Every seventh is durable.
    fn check_durable(unsettled: &Unsettled, tags: &[u64]) {
        let durable = unsettled.durable().map(|it| it.entry.seq);
        assert!(durable.eq(tags.iter().copied().filter(|tag| tag.is_multiple_of(7))));
    }

    /// As many are delivered as said, of which every `nth` is settled at once; then all others, from the
    /// first on or singly.
    fn check(count: u64, nth: u64, singly: bool) {
        let mut unsettled = Unsettled::default();
        let mut left = Vec::new();
        for tag in 1..=count {
            unsettled.push(tag, delivered(tag));
            assert!(unsettled.ring.capacity() <= 2 * RING_MAX, "it grows at {tag}");
            if tag % nth == 0 {
                assert_eq!(unsettled.take(tag).expect("it is there").entry.seq, tag);
            } else {
                left.push(tag);
            }
        }
        assert_eq!(unsettled.len(), left.len());
        check_durable(&unsettled, &left);
        assert!(unsettled.iter().map(|(tag, _)| tag).eq(left.iter().copied()));
        for &tag in &left {
            assert_eq!(unsettled.first(), Some(tag));
            assert!(unsettled.contains(tag));
            let taken = if singly { unsettled.take(tag) } else { unsettled.take_first(u64::MAX) };
            assert_eq!(taken.expect("it is there").entry.seq, tag);
            assert!(!unsettled.contains(tag));
        }
        assert_eq!((unsettled.len(), unsettled.first(), unsettled.has_durable), (0, None, false));
    }

    #[test]
    fn the_first_ones_are_split_off() {
        let most = RING_MAX as u64;
        for count in [3, most - 1, most, 2 * most] {
            for up_to in [0, 1, 2, most / 2, most, most + 1, 2 * most, u64::MAX] {
                let mut unsettled = Unsettled::default();
                for tag in (1..=count).filter(|tag| tag % 5 != 2) {
                    unsettled.push(tag, delivered(tag));
                }
                let all: Vec<u64> = unsettled.iter().map(|(tag, _)| tag).collect();
                let within = unsettled.within(&(0..=up_to));
                let first = unsettled.split(&(0..=up_to));
                let (split, rest) = all.split_at(all.partition_point(|tag| *tag <= up_to));
                assert_eq!(within, split.len());
                assert!(first.iter().map(|(tag, _)| tag).eq(split.iter().copied()));
                assert!(unsettled.iter().map(|(tag, _)| tag).eq(rest.iter().copied()));
                assert_eq!((first.len(), unsettled.len()), (split.len(), rest.len()));
                check_durable(&first, split);
                check_durable(&unsettled, rest);
            }
        }
    }

    #[test]
    fn those_within_a_range_are_counted_though_others_are_settled_between_them() {
        let most = RING_MAX as u64;
        for kept in [|tag: u64| !tag.is_multiple_of(3), |tag| tag % 7 == 1, |_| true] {
            let mut unsettled = Unsettled::default();
            let count = most + 100;
            (1..=count).for_each(|tag| unsettled.push(tag, delivered(tag)));
            (1..=count).filter(|tag| !kept(*tag)).for_each(|tag| drop(unsettled.take(tag)));
            for first in [0, 1, 2, 99, 100, 101, 102, most, count, count + 1] {
                for span in [0, 1, 5, 100, most, u64::MAX] {
                    let tags = first..=first.saturating_add(span);
                    let expected = (1..=count).filter(|tag| kept(*tag) && tags.contains(tag));
                    assert_eq!(unsettled.within(&tags), expected.count(), "{tags:?}");
                }
            }
            let places = unsettled.places() as u64;
            assert!((most - 7..=most + 100).contains(&places), "{places}");
        }
    }

    #[test]
    fn however_many_there_are_each_is_found_by_its_tag_and_in_order() {
        for count in [1, 100, RING_MAX as u64, RING_MAX as u64 + 1, 3 * RING_MAX as u64] {
            for nth in [1, 2, 3, 1000, u64::MAX] {
                for singly in [false, true] {
                    check(count, nth, singly);
                }
            }
        }
    }
}
