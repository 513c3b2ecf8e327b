//! The queues of all virtual hosts: by slot, and by the number that records have.

use crate::foundation::slab::Slab;
use crate::queue::Queue;
use std::collections::BTreeMap;
use std::ops::Range;

/// All queues. Slots are used again, numbers never.
#[derive(Debug)]
pub(crate) struct Queues {
    all: Slab<Queue>,
    by_number: BTreeMap<u64, u32>,
    next_number: u64,
}

impl Queues {
    pub(crate) fn new() -> Queues {
        Queues { all: Slab::default(), by_number: BTreeMap::new(), next_number: 1 }
    }

    /// The number of the next queue.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Numbers below `next` are taken: a snapshot says so.
    pub(crate) fn start_numbers_at(&mut self, next: u64) {
        self.next_number = next;
    }

    /// The slot that the next queue gets.
    pub(crate) fn next_slot(&self) -> u32 {
        self.all.next_slot()
    }

    /// Adds a queue under the number that it has; returns its slot.
    pub(crate) fn insert(&mut self, queue: Queue) -> u32 {
        let number = queue.number;
        self.next_number = self.next_number.max(number + 1);
        let slot = self.all.insert(queue);
        self.by_number.insert(number, slot);
        slot
    }

    /// Takes a queue out.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<Queue> {
        let queue = self.all.remove(slot)?;
        self.by_number.remove(&queue.number);
        Some(queue)
    }

    /// The slot of the queue of that number.
    #[inline]
    pub(crate) fn slot_of(&self, number: u64) -> Option<u32> {
        self.by_number.get(&number).copied()
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&Queue> {
        self.all.get(slot)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut Queue> {
        self.all.get_mut(slot)
    }

    /// All queues with their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Queue)> {
        self.all.iter()
    }

    /// All queues with their slots.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Queue)> {
        self.all.iter_mut()
    }

    /// The queues in these slots.
    pub(crate) fn iter_in(&self, slots: Range<usize>) -> impl Iterator<Item = (u32, &Queue)> {
        self.all.iter_in(slots)
    }

    /// How many slots there are, in use or not.
    pub(crate) fn slots(&self) -> usize {
        self.all.slots()
    }
}
