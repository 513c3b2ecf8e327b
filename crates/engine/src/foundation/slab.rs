//! Values kept in numbered slots that are reused. Growing never moves many of them.

use std::ops::{Index, IndexMut, Range};

/// Slots that are allocated together.
const CHUNK: usize = 1 << 10;

/// Values by slot number; iteration goes by slot.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    /// The first chunk, which grows as a whole: most slabs have no other, and it is reached soonest.
    first: Vec<Option<T>>,
    /// Further chunks; all but the last are full of slots, used or free.
    rest: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { first: Vec::new(), rest: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// How many slots there are, used or free.
    pub(crate) fn slots(&self) -> usize {
        let last = self.rest.last().map_or(0, |last| (self.rest.len() - 1) * CHUNK + last.len());
        self.first.len() + last
    }

    /// The slot, used or free, if it is behind the first ones.
    #[inline(never)]
    fn far(&self, slot: u32) -> Option<&Option<T>> {
        let at = (slot as usize).checked_sub(CHUNK)?;
        self.rest.get(at / CHUNK)?.get(at % CHUNK)
    }

    #[inline(never)]
    fn far_mut(&mut self, slot: u32) -> Option<&mut Option<T>> {
        let at = (slot as usize).checked_sub(CHUNK)?;
        self.rest.get_mut(at / CHUNK)?.get_mut(at % CHUNK)
    }

    #[inline]
    fn place_mut(&mut self, slot: u32) -> Option<&mut Option<T>> {
        if (slot as usize) < self.first.len() {
            return Some(&mut self.first[slot as usize]);
        }
        self.far_mut(slot)
    }

    /// Puts a value into a free slot.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let slot = self.next_slot();
        if self.free.pop().is_some() {
            *self.place_mut(slot).expect("free slots are there") = Some(value);
        } else if self.first.len() < CHUNK {
            self.first.push(Some(value));
        } else {
            if self.rest.last().is_none_or(|last| last.len() == CHUNK) {
                self.rest.push(Vec::with_capacity(CHUNK));
            }
            self.rest.last_mut().expect("there is one with room").push(Some(value));
        }
        slot
    }

    /// The slot that the next insertion takes.
    pub(crate) fn next_slot(&self) -> u32 {
        match self.free.last() {
            Some(slot) => *slot,
            None => u32::try_from(self.slots()).expect("limits keep slots far below 2^32"),
        }
    }

    /// Takes the value out of a slot.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<T> {
        let value = self.place_mut(slot)?.take()?;
        self.free.push(slot);
        Some(value)
    }

    /// Takes the value out of a slot that nothing else gets before [`Slab::free`].
    pub(crate) fn take(&mut self, slot: u32) -> Option<T> {
        self.place_mut(slot)?.take()
    }

    /// A slot is free whose value was taken out.
    pub(crate) fn free(&mut self, slot: u32) {
        debug_assert!(self.get(slot).is_none(), "its value was taken");
        self.free.push(slot);
    }

    /// The value in a slot.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        match self.first.get(slot as usize) {
            Some(value) => value.as_ref(),
            None => self.far(slot)?.as_ref(),
        }
    }

    /// The value in a slot.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.place_mut(slot)?.as_mut()
    }

    /// All slots in use, with their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> + Clone {
        let slots = (0_u32..).zip(self.first.iter().chain(self.rest.iter().flatten()));
        slots.filter_map(|(slot, value)| Some((slot, value.as_ref()?)))
    }

    /// Those of these slots that are in use, with their values.
    pub(crate) fn iter_in(&self, slots: Range<usize>) -> impl Iterator<Item = (u32, &T)> {
        let end = slots.end.min(self.slots());
        (slots.start..end).filter_map(|slot| {
            let slot = u32::try_from(slot).ok()?;
            Some((slot, self.get(slot)?))
        })
    }

    /// All slots in use, with their values.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let all = self.first.iter_mut().chain(self.rest.iter_mut().flatten());
        let slots = (0_u32..).zip(all);
        slots.filter_map(|(slot, value)| Some((slot, value.as_mut()?)))
    }

    /// How many slots are in use, or not free yet.
    pub(crate) fn len(&self) -> usize {
        self.slots() - self.free.len()
    }
}

/// The value in a slot that is in use.
impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    #[track_caller]
    fn index(&self, slot: u32) -> &T {
        self.get(slot).expect("the slot is in use")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        self.get_mut(slot).expect("the slot is in use")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_dense_and_used_again() {
        let mut slab = Slab::default();
        let count = 3 * CHUNK as u32 + 1;
        for slot in 0..count {
            assert_eq!(slab.next_slot(), slot);
            assert_eq!(slab.insert(slot), slot);
        }
        assert_eq!(slab.remove(CHUNK as u32), Some(CHUNK as u32));
        assert_eq!((slab.remove(CHUNK as u32), slab.remove(count)), (None, None));
        assert_eq!((slab.get(CHUNK as u32), slab.get(count)), (None, None));
        assert_eq!(slab.len(), count as usize - 1);
        assert_eq!(slab.insert(7), CHUNK as u32);
        *slab.get_mut(CHUNK as u32).expect("it was put there") = CHUNK as u32;
        assert!(slab.iter().all(|(slot, value)| slot == *value));
        assert!(slab.iter_mut().all(|(slot, value)| slot == *value));
        assert_eq!((slab.iter().count(), slab.insert(0)), (count as usize, count));
        slab.remove(5);
        let slots = |range| slab.iter_in(range).map(|(slot, _)| slot).collect::<Vec<_>>();
        assert_eq!(slots(4..8), [4, 6, 7]);
        assert_eq!(slots(count as usize..usize::MAX), [count]);
    }
}
