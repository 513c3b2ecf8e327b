//! The queues of all virtual hosts: by slot, and by the number that records have.

use crate::foundation::slab::Slab;
use crate::queue::Queue;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// All queues. Slots are used again, numbers never. They are added and removed here only, so that
/// both ways lead to the same.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    all: Slab<Queue>,
    by_number: BTreeMap<u64, u32>,
    last_number: u64,
}

impl Queues {
    /// The number of the next queue.
    pub(crate) fn next_number(&self) -> u64 {
        self.last_number + 1
    }

    /// Numbers below `next` are taken: a snapshot says so.
    pub(crate) fn start_numbers_at(&mut self, next: u64) {
        self.last_number = next.saturating_sub(1);
    }

    /// Adds a queue under the number that it has; returns its slot.
    pub(crate) fn insert(&mut self, queue: Queue) -> u32 {
        let number = queue.number;
        self.last_number = self.last_number.max(number);
        let slot = self.all.insert(queue);
        self.by_number.insert(number, slot);
        slot
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Option<Queue> {
        let queue = self.take(slot)?;
        self.free(slot);
        Some(queue)
    }

    /// Takes a queue out of its slot, which no other one gets before [`Queues::free`].
    pub(crate) fn take(&mut self, slot: u32) -> Option<Queue> {
        let queue = self.all.take(slot)?;
        self.by_number.remove(&queue.number);
        Some(queue)
    }

    pub(crate) fn free(&mut self, slot: u32) {
        self.all.free(slot);
    }

    #[inline]
    pub(crate) fn slot_of(&self, number: u64) -> Option<u32> {
        self.by_number.get(&number).copied()
    }

    /// The queue of that number.
    pub(crate) fn numbered(&mut self, number: u64) -> Option<&mut Queue> {
        self.all.get_mut(*self.by_number.get(&number)?)
    }
}

impl Deref for Queues {
    type Target = Slab<Queue>;

    #[inline]
    fn deref(&self) -> &Slab<Queue> {
        &self.all
    }
}

impl DerefMut for Queues {
    #[inline]
    fn deref_mut(&mut self) -> &mut Slab<Queue> {
        &mut self.all
    }
}
