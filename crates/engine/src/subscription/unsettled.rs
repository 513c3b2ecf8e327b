//! The deliveries of one session that were not settled yet, by tag.

use crate::Time;
use crate::queue::entry::Entry;
use std::collections::{BTreeMap, VecDeque};

/// A delivery that was not settled.
#[derive(Clone, Debug)]
pub(crate) struct Delivered {
    pub(crate) entry: Entry,
    /// The slot and number of its queue.
    pub(crate) queue: u32,
    pub(crate) queue_number: u64,
    /// The slot and incarnation of its subscription, where it was not asked for singly.
    pub(crate) subscription: Option<(u32, u32)>,
    /// When it returns to its queue.
    pub(crate) deadline: Time,
}

/// Empty places in the ring beyond which its front is moved out.
const HOLES_MAX: usize = 1024;

/// Deliveries by tag. Tags are dense and mostly settled in order: a ring serves them; a few old ones
/// that hold its front are kept apart, so that it does not grow with what was settled after them.
#[derive(Debug, Default)]
pub(crate) struct Unsettled {
    old: BTreeMap<u64, Delivered>,
    /// The tag of the ring's front.
    base: u64,
    ring: VecDeque<Option<Delivered>>,
    in_ring: usize,
}

impl Unsettled {
    pub(crate) fn len(&self) -> usize {
        self.old.len() + self.in_ring
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
            self.move_front_out();
            return self.push(tag, delivered);
        }
        while self.ring.len() < index {
            self.ring.push_back(None);
        }
        self.ring.push_back(Some(delivered));
        self.in_ring += 1;
    }

    /// Moves the front half of the ring to the old ones.
    fn move_front_out(&mut self) {
        let half = self.ring.len().div_ceil(2);
        for _ in 0..half {
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
        if tag < self.base {
            return self.old.remove(&tag);
        }
        let index = usize::try_from(tag - self.base).ok()?;
        if index == 0 {
            return self.take_front();
        }
        let taken = self.ring.get_mut(index)?.take()?;
        self.in_ring -= 1;
        Some(taken)
    }

    /// Takes the delivery of the lowest tag, unless that is above `up_to`.
    #[inline]
    pub(crate) fn take_first(&mut self, up_to: u64) -> Option<Delivered> {
        if let Some(oldest) = self.old.first_entry() {
            return (*oldest.key() <= up_to).then(|| oldest.remove());
        }
        if self.base > up_to { None } else { self.take_front() }
    }

    /// Takes the front of the ring, which is there unless the ring is empty.
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

    /// Whether that tag is unsettled.
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

    /// All of them, by tag.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Delivered)> {
        let ring =
            (self.base..).zip(&self.ring).filter_map(|(tag, slot)| Some((tag, slot.as_ref()?)));
        self.old.iter().map(|(tag, delivered)| (*tag, delivered)).chain(ring)
    }

    /// All of them, by tag.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Delivered)> {
        let ring =
            (self.base..).zip(&mut self.ring).filter_map(|(tag, slot)| Some((tag, slot.as_mut()?)));
        self.old.iter_mut().map(|(tag, delivered)| (*tag, delivered)).chain(ring)
    }
}
