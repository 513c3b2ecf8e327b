//! A hash table that grows a part at a time: putting a value in never costs what moving a million would.
//!
//! Extendible hashing (Fagin and others, "Extendible hashing: a fast access method for dynamic files",
//! 1979): parts are found by some bits of the hash; a full part is split by one bit more. It has no keys:
//! callers compare and hash values, as with `hashbrown::HashTable`.

use hashbrown::HashTable;

/// Values in a part beyond which it is split.
const PART_MAX: usize = 512;
/// Room that a part keeps that has become empty.
const KEPT_MAX: usize = 64;
/// Bits by which parts are found, at most.
const DEPTH_MAX: u32 = 20;

/// Values found by hash and comparison.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    parts: Vec<Part<T>>,
    /// Which part has the values of hashes with these bits; empty while there is but one.
    directory: Vec<u32>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Part<T> {
    values: HashTable<T>,
    /// How many bits the hashes of all its values share.
    depth: u32,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { parts: Vec::new(), directory: Vec::new(), len: 0 }
    }
}

/// The bits by which parts are found; `HashTable` uses the lowest and the highest.
#[inline]
fn bits(hash: u64) -> usize {
    (hash >> 24) as usize
}

impl<T> Table<T> {
    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All values, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().flat_map(|part| part.values.iter())
    }

    #[inline]
    fn part_of(&self, hash: u64) -> usize {
        match self.directory.len() {
            0 => 0,
            parts => self.directory[bits(hash) & (parts - 1)] as usize,
        }
    }

    /// The value with that hash that `is_same` accepts.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_same: impl FnMut(&T) -> bool) -> Option<&T> {
        self.parts.get(self.part_of(hash))?.values.find(hash, is_same)
    }

    /// The value with that hash that `is_same` accepts.
    pub(crate) fn find_mut(
        &mut self,
        hash: u64,
        is_same: impl FnMut(&T) -> bool,
    ) -> Option<&mut T> {
        let part = self.part_of(hash);
        self.parts.get_mut(part)?.values.find_mut(hash, is_same)
    }

    /// Puts a value in that is not there yet. `hash_of` says the hashes of those that are.
    pub(crate) fn insert_unique(&mut self, hash: u64, value: T, hash_of: impl Fn(&T) -> u64) {
        if self.parts.is_empty() {
            self.parts = Vec::with_capacity(1);
            self.parts.push(Part { values: HashTable::new(), depth: 0 });
        }
        let mut part = self.part_of(hash);
        if self.parts[part].values.len() >= PART_MAX && self.parts[part].depth < DEPTH_MAX {
            self.split(part, bits(hash), &hash_of);
            part = self.part_of(hash);
        }
        self.parts[part].values.insert_unique(hash, value, hash_of);
        self.len += 1;
    }

    /// Takes the value with that hash that `is_same` accepts out.
    pub(crate) fn remove(&mut self, hash: u64, is_same: impl FnMut(&T) -> bool) -> Option<T> {
        let part = self.part_of(hash);
        let values = &mut self.parts.get_mut(part)?.values;
        let (value, _) = values.find_entry(hash, is_same).ok()?.remove();
        if values.is_empty() && values.capacity() > KEPT_MAX {
            *values = HashTable::new();
        }
        self.len -= 1;
        Some(value)
    }

    /// Takes the values of one part out, few at a time if hashes are good. Nothing is found any more.
    pub(crate) fn take_part(&mut self) -> Option<impl Iterator<Item = T> + use<T>> {
        let part = self.parts.pop()?;
        self.len -= part.values.len();
        Some(part.values.into_iter())
    }

    /// Splits a part in two. `prefix`: bits that its values share, and others behind them.
    fn split(&mut self, part: usize, prefix: usize, hash_of: &impl Fn(&T) -> u64) {
        let depth = self.parts[part].depth;
        if self.directory.is_empty() {
            self.directory.push(0);
        }
        if self.directory.len() == 1 << depth {
            self.directory.extend_from_within(..);
        }
        let new = u32::try_from(self.parts.len()).expect("DEPTH_MAX bounds them");
        let step = 1 << depth;
        for at in ((prefix & (step - 1)) | step..self.directory.len()).step_by(step << 1) {
            self.directory[at] = new;
        }
        let all = std::mem::take(&mut self.parts[part].values);
        let mut halves = [HashTable::with_capacity(PART_MAX), HashTable::with_capacity(PART_MAX)];
        for value in all {
            let hash = hash_of(&value);
            halves[bits(hash) >> depth & 1].insert_unique(hash, value, hash_of);
        }
        let [low, high] = halves;
        self.parts[part] = Part { values: low, depth: depth + 1 };
        self.parts.push(Part { values: high, depth: depth + 1 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldhash::fast::FixedState;
    use std::hash::BuildHasher;

    /// Inserts `count` values, removes every third, and finds the rest.
    fn check(count: u32, hash: impl Fn(&u32) -> u64 + Copy) {
        let mut table = Table::default();
        for value in 0..count {
            let before = table.parts.iter().map(|part| part.values.len()).max();
            table.insert_unique(hash(&value), value, hash);
            assert!(before.is_none_or(|before| before <= PART_MAX || count < 5_000));
            if value % 3 == 2 {
                assert_eq!(table.remove(hash(&value), |other| *other == value), Some(value));
            }
        }
        for value in 0..count + 10 {
            let is_there = value < count && value % 3 != 2;
            assert_eq!(table.find(hash(&value), |other| *other == value).is_some(), is_there);
            assert_eq!(table.find_mut(hash(&value), |other| *other == value).is_some(), is_there);
        }
        let len = table.len();
        let mut all: Vec<u32> = Vec::new();
        while let Some(part) = table.take_part() {
            all.extend(part);
            assert_eq!(table.len(), len - all.len());
        }
        all.sort_unstable();
        assert!(all.iter().copied().eq((0..count).filter(|value| value % 3 != 2)));
        assert_eq!(len, all.len());
    }

    #[test]
    fn values_are_found_however_many_there_are() {
        let state = FixedState::with_seed(7);
        for count in [0, 1, 511, 512, 513, 5_000, 100_000] {
            check(count, |value| state.hash_one(value));
        }
    }

    #[test]
    fn values_of_the_same_hash_are_found() {
        for hash in [0, 1 << 24, u64::MAX] {
            check(2_000, |_| hash);
        }
    }

    #[test]
    fn the_parts_are_about_equally_large() {
        let state = FixedState::with_seed(7);
        let mut table = Table::default();
        for value in 0..200_000_u32 {
            table.insert_unique(state.hash_one(value), value, |value| state.hash_one(value));
        }
        let parts = table.parts.len();
        assert!((390..1_200).contains(&parts), "{parts}");
        assert!(table.directory.len() <= 4_096, "{}", table.directory.len());
    }
}
