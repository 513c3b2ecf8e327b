//! Values kept in numbered slots that are reused. Growing never moves many of them, and chunks of slots that
//! are all free are given back.

use std::collections::BTreeSet;
use std::ops::{Index, IndexMut, Range};

/// Slots that are allocated together.
const CHUNK: usize = 1 << 10;

/// Values by slot number; iteration goes by slot.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    /// The first chunk, which grows as a whole: most slabs have no other, and it is reached soonest.
    first: Chunk<T>,
    /// Further chunks; the last one has slots in use.
    rest: Vec<Chunk<T>>,
    /// Those of them that have room.
    open: BTreeSet<u32>,
    /// The slots of a chunk that became free, for the next one: slots that come and go where a chunk begins
    /// do not allocate it each time.
    spare: Vec<Option<T>>,
    /// How many slots are in use, or not free yet.
    len: usize,
}

/// Some slots; none while all are free, except in the first chunk.
#[derive(Clone, Debug)]
struct Chunk<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Chunk<T> {
    const EMPTY: Chunk<T> = Chunk { slots: Vec::new(), free: Vec::new() };

    /// The place that the next insertion takes, if there is room.
    fn next(&self) -> Option<u32> {
        let place = self.free.last().copied();
        place.or_else(|| (self.slots.len() < CHUNK).then_some(self.slots.len() as u32))
    }

    fn insert(&mut self, value: T) {
        match self.free.pop() {
            Some(place) => self.slots[place as usize] = Some(value),
            None => self.slots.push(Some(value)),
        }
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        let (first, rest, open) = (Chunk::EMPTY, Vec::new(), BTreeSet::new());
        Slab { first, rest, open, spare: Vec::new(), len: 0 }
    }
}

/// Which of the further chunks has that slot, and where.
fn far(slot: u32) -> Option<(usize, usize)> {
    let at = (slot as usize).checked_sub(CHUNK)?;
    Some((at / CHUNK, at % CHUNK))
}

impl<T> Slab<T> {
    /// Behind the last slot that is or was used.
    pub(crate) fn slots(&self) -> usize {
        match self.rest.last() {
            Some(last) => self.rest.len() * CHUNK + last.slots.len(),
            None => self.first.slots.len(),
        }
    }

    /// The slot, used or free, if it is behind the first ones.
    #[inline(never)]
    fn far(&self, slot: u32) -> Option<&Option<T>> {
        let (chunk, place) = far(slot)?;
        self.rest.get(chunk)?.slots.get(place)
    }

    #[inline(never)]
    fn far_mut(&mut self, slot: u32) -> Option<&mut Option<T>> {
        let (chunk, place) = far(slot)?;
        self.rest.get_mut(chunk)?.slots.get_mut(place)
    }

    #[inline]
    fn place_mut(&mut self, slot: u32) -> Option<&mut Option<T>> {
        if (slot as usize) < self.first.slots.len() {
            return Some(&mut self.first.slots[slot as usize]);
        }
        self.far_mut(slot)
    }

    /// Puts a value into a free slot.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let slot = self.next_slot();
        self.len += 1;
        match far(slot) {
            None => self.first.insert(value),
            Some((chunk, _)) => self.insert_far(chunk, value),
        }
        slot
    }

    fn insert_far(&mut self, at: usize, value: T) {
        if at == self.rest.len() {
            self.rest.push(Chunk::EMPTY);
        }
        let chunk = &mut self.rest[at];
        if chunk.slots.is_empty() {
            chunk.slots = std::mem::take(&mut self.spare);
            chunk.slots.reserve_exact(CHUNK);
            self.open.insert(at as u32);
        }
        chunk.insert(value);
        if chunk.next().is_none() {
            self.open.remove(&(at as u32));
        }
    }

    /// The slot that the next insertion takes.
    pub(crate) fn next_slot(&self) -> u32 {
        if let Some(place) = self.first.next() {
            return place;
        }
        let chunk = self.open.first().map_or(self.rest.len(), |chunk| *chunk as usize);
        let place = self.rest.get(chunk).and_then(Chunk::next).unwrap_or(0);
        u32::try_from((chunk + 1) * CHUNK).expect("limits keep slots far below 2^32") + place
    }

    /// Takes the value out of a slot.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<T> {
        let value = self.place_mut(slot)?.take()?;
        self.free(slot);
        Some(value)
    }

    /// Takes the value out of a slot that nothing else gets before [`Slab::free`].
    pub(crate) fn take(&mut self, slot: u32) -> Option<T> {
        self.place_mut(slot)?.take()
    }

    /// A slot is free whose value was taken out.
    pub(crate) fn free(&mut self, slot: u32) {
        debug_assert!(self.get(slot).is_none(), "its value was taken");
        self.len -= 1;
        match far(slot) {
            None => self.first.free.push(slot),
            Some((chunk, place)) => self.free_far(chunk, place),
        }
    }

    fn free_far(&mut self, at: usize, place: usize) {
        let chunk = &mut self.rest[at];
        if chunk.next().is_none() {
            self.open.insert(at as u32);
        }
        chunk.free.push(place as u32);
        if chunk.free.len() < chunk.slots.len() {
            return;
        }
        let Chunk { mut slots, .. } = std::mem::replace(chunk, Chunk::EMPTY);
        slots.clear();
        self.spare = slots;
        while self.rest.last().is_some_and(|last| last.slots.is_empty()) {
            self.rest.pop();
            self.open.remove(&(self.rest.len() as u32));
        }
    }

    /// The value in a slot.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        match self.first.slots.get(slot as usize) {
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
        let chunks = (0_u32..).step_by(CHUNK).zip(std::iter::once(&self.first).chain(&self.rest));
        let slots = chunks.flat_map(|(from, chunk)| (from..).zip(&chunk.slots));
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

    /// As [`Slab::iter_in`].
    pub(crate) fn iter_mut_in(
        &mut self,
        slots: Range<usize>,
    ) -> impl Iterator<Item = (u32, &mut T)> {
        let end = slots.end.min(self.slots());
        let begin = slots.start.min(end);
        let all = std::iter::once(&mut self.first).chain(&mut self.rest).skip(begin / CHUNK);
        let chunks = (begin / CHUNK * CHUNK..).step_by(CHUNK).zip(all);
        let slots = chunks.flat_map(|(from, chunk)| (from..).zip(&mut chunk.slots));
        let slots = slots.skip_while(move |(slot, _)| *slot < begin);
        slots.filter_map(|(slot, value)| Some((u32::try_from(slot).ok()?, value.as_mut()?)))
    }

    /// All slots in use, with their values.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let all = std::iter::once(&mut self.first).chain(&mut self.rest);
        let chunks = (0_u32..).step_by(CHUNK).zip(all);
        let slots = chunks.flat_map(|(from, chunk)| (from..).zip(&mut chunk.slots));
        slots.filter_map(|(slot, value)| Some((slot, value.as_mut()?)))
    }

    /// How many slots are in use, or not free yet.
    pub(crate) fn len(&self) -> usize {
        self.len
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

    #[test]
    fn chunks_that_are_free_are_given_back() {
        let chunk = CHUNK as u32;
        let mut slab = Slab::default();
        (0..5 * chunk).for_each(|slot| assert_eq!(slab.insert(slot), slot));
        let room =
            |slab: &Slab<u32>| -> usize { slab.rest.iter().map(|it| it.slots.capacity()).sum() };
        assert_eq!(room(&slab), 4 * CHUNK);
        // The second, and all behind it but one value of the fourth.
        let kept = 3 * chunk + 7;
        for slot in (chunk..5 * chunk).filter(|slot| *slot != kept) {
            assert_eq!(slab.remove(slot), Some(slot));
        }
        assert_eq!((room(&slab), slab.slots(), slab.len()), (CHUNK, 4 * CHUNK, CHUNK + 1));
        assert_eq!(slab.iter().last(), Some((kept, &kept)));
        assert_eq!(slab.iter_in(CHUNK..5 * CHUNK).collect::<Vec<_>>(), [(kept, &kept)]);
        for slot in chunk..3 * chunk {
            assert_eq!((slab.next_slot(), slab.insert(slot)), (slot, slot));
        }
        assert_eq!(slab.insert(kept - 1), 4 * chunk - 1, "what became free last");
        slab.remove(4 * chunk - 1);
        assert!(slab.iter_mut().all(|(slot, value)| slot == *value));
        // A value that is taken out keeps its slot.
        assert_eq!((slab.take(kept), slab.rest.len()), (Some(kept), 3));
        slab.free(kept);
        assert_eq!((slab.rest.len(), slab.len(), slab.slots()), (2, 3 * CHUNK, 3 * CHUNK));
        (0..3 * chunk).for_each(|slot| assert_eq!(slab.remove(slot), Some(slot)));
        assert_eq!(
            (slab.len(), slab.rest.len(), slab.insert(1)),
            (0, 0, 3 * chunk - 1 - 2 * chunk)
        );
    }
}
