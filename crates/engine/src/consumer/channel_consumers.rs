//! The consumers of one channel: in the order in which they are considered, and found by their names.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Consumers that are looked through for a name; beyond them there is an index.
const LOOKED_THROUGH: usize = 8;

/// Slots of consumers. Their names are the caller's to know.
#[derive(Debug, Default)]
pub(crate) struct ChannelConsumers {
    all: Vec<u32>,
    /// All of them by their names, where they are many.
    index: Option<Box<Index>>,
}

#[derive(Debug)]
struct Index {
    slots: HashTable<u32>,
    hasher: FixedState,
}

impl ChannelConsumers {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// In the order in which they are considered.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.all.iter().copied()
    }

    /// The consumer of that name.
    #[inline]
    pub(crate) fn find<'a>(&self, name: &str, name_of: impl Fn(u32) -> &'a str) -> Option<u32> {
        let is_it = |slot: &u32| name_of(*slot) == name;
        match &self.index {
            None => self.iter().find(is_it),
            Some(index) => index.slots.find(index.hasher.hash_one(name), is_it).copied(),
        }
    }

    /// Adds a consumer, whose name no other has. `seed` gives out what makes hashes hard to guess.
    pub(crate) fn add<'a>(
        &mut self,
        slot: u32,
        name_of: impl Fn(u32) -> &'a str,
        seed: impl FnOnce() -> u64,
    ) {
        self.all.push(slot);
        if let Some(index) = &mut self.index {
            return index.add(slot, name_of);
        }
        if self.all.len() > LOOKED_THROUGH {
            let hasher = FixedState::with_seed(seed());
            let mut index = Index { slots: HashTable::new(), hasher };
            self.iter().for_each(|slot| index.add(slot, &name_of));
            self.index = Some(Box::new(index));
        }
    }

    /// Takes consumers out, each with its name.
    pub(crate) fn remove<'a>(&mut self, gone: impl Iterator<Item = (u32, &'a str)>) {
        let mut slots = Vec::new();
        for (slot, name) in gone {
            slots.push(slot);
            if let Some(index) = &mut self.index
                && let Ok(found) =
                    index.slots.find_entry(index.hasher.hash_one(name), |it| *it == slot)
            {
                found.remove();
            }
        }
        slots.sort_unstable();
        self.all.retain(|slot| slots.binary_search(slot).is_err());
    }

    /// Another one is considered first from now on.
    pub(crate) fn rotate(&mut self) {
        if self.all.len() > 1 {
            self.all.rotate_left(1);
        }
    }
}

impl Index {
    fn add<'a>(&mut self, slot: u32, name_of: impl Fn(u32) -> &'a str) {
        let hash = |slot: &u32| self.hasher.hash_one(name_of(*slot));
        self.slots.insert_unique(hash(&slot), slot, hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn one_among_many_is_found_without_looking_at_the_others() {
        const COUNT: u32 = 10_000;
        let names: Vec<String> = (0..COUNT).map(|slot| format!("link {slot}")).collect();
        let looked_at = Cell::new(0);
        let name_of = |slot: u32| {
            looked_at.set(looked_at.get() + 1);
            &*names[slot as usize]
        };
        let mut consumers = ChannelConsumers::default();
        for slot in 0..COUNT {
            assert_eq!(consumers.find(&names[slot as usize], name_of), None);
            consumers.add(slot, name_of, || 7);
        }
        looked_at.set(0);
        for (slot, name) in names.iter().enumerate() {
            assert_eq!(consumers.find(name, name_of), Some(slot as u32));
        }
        let looks = looked_at.take();
        assert!(looks < u64::from(COUNT) * 11 / 10, "{looks} names were looked at");
        let gone = |slot: u32| slot.is_multiple_of(3).then(|| (slot, &*names[slot as usize]));
        consumers.remove((0..COUNT).filter_map(gone));
        consumers.rotate();
        assert_eq!(consumers.iter().next(), Some(2));
        for slot in 0..COUNT {
            let found = consumers.find(&names[slot as usize], name_of);
            assert_eq!(found, (slot % 3 != 0).then_some(slot));
        }
        consumers.add(0, name_of, || 7);
        assert_eq!(consumers.find("link 0", name_of), Some(0));
        assert_eq!(consumers.len(), consumers.iter().count());
    }
}
