//! Remembers which patterns match a subject, and brings that up to date instead of forgetting it.
//!
//! A set-associative table of bounded size: a subject that is used once pushes out at most one other.
//! Patterns are numbered leaves here; independent of their subscribers.

use super::interest::Dialect;
use crate::interface::limits::{
    NAME_BYTES_MAX, SUBJECT_CACHE_ENTRIES_MAX, SUBJECT_CACHE_LEAVES_MAX, SUBJECT_CHANGES_KEPT,
};
use std::collections::VecDeque;

/// Entries that one hash may lie in.
const WAYS: usize = 2;
/// Entries of a table that is not used much.
const ENTRIES_MIN: usize = 64;
/// Leaves of one entry.
const ENTRY_LEAVES_MAX: usize = SUBJECT_CACHE_LEAVES_MAX / 16;
/// Room for leaves that any entry may keep.
const ROOM_KEPT: usize = 64;

/// A pattern with wildcards that came or went.
#[derive(Debug)]
struct Change {
    leaf: u32,
    pattern: Box<str>,
    dialect: Dialect,
    added: bool,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    hash: u64,
    subject: String,
    /// Leaves of all patterns that match.
    leaves: Vec<u32>,
    /// How many changes are applied to it; zero: not in use.
    stamp: u64,
}

/// Subjects and the leaves that match them.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// `WAYS` entries for each of a power of two of sets; empty until first used.
    entries: Vec<Entry>,
    /// Leaves in all entries together.
    leaves: usize,
    /// Entries pushed out by others since the table last grew.
    pushed_out: usize,
    /// The last changes; the newest one is number `stamp`.
    changes: VecDeque<Change>,
    /// Begins at one with no change, so that zero is older than anything.
    changed: u64,
}

impl Cache {
    fn stamp(&self) -> u64 {
        self.changed + 1
    }

    /// The leaves of all patterns that match `subject`, where they are remembered.
    #[inline]
    pub(super) fn find(&mut self, hash: u64, subject: &str) -> Option<&[u32]> {
        let at = self.position(hash, subject)?;
        if self.entries[at].stamp != self.stamp() && !self.bring_up_to_date(at) {
            self.forget(at);
            return None;
        }
        Some(&self.entries[at].leaves)
    }

    /// Remembers the leaves of a subject that was not found; a subject of too many is left out.
    pub(super) fn put(&mut self, hash: u64, subject: &str, leaves: &[u32]) {
        if leaves.len() > ENTRY_LEAVES_MAX {
            return;
        }
        let at = self.make_room(hash);
        if self.leaves + leaves.len() > SUBJECT_CACHE_LEAVES_MAX {
            self.entries.fill_with(Entry::default);
            self.leaves = 0;
        }
        self.leaves += leaves.len();
        let stamp = self.stamp();
        let entry = &mut self.entries[at];
        (entry.hash, entry.stamp) = (hash, stamp);
        entry.subject.clear();
        entry.subject.push_str(subject);
        // Nor is room for far more of them kept.
        if entry.leaves.capacity() > ROOM_KEPT.max(leaves.len() * 4) {
            entry.leaves = Vec::new();
        }
        entry.leaves.extend_from_slice(leaves);
    }

    /// A pattern without wildcards, thus a subject, came (`added`) or went.
    pub(super) fn literal_changed(&mut self, hash: u64, subject: &str, leaf: u32, added: bool) {
        let Some(at) = self.position(hash, subject) else { return };
        if !self.bring_up_to_date(at) {
            return self.forget(at);
        }
        change(&mut self.entries[at].leaves, &mut self.leaves, leaf, added);
    }

    /// An entry is not in use any more.
    fn forget(&mut self, at: usize) {
        let entry = &mut self.entries[at];
        self.leaves -= entry.leaves.len();
        entry.leaves.clear();
        entry.stamp = 0;
    }

    /// A pattern with wildcards came (`added`) or went.
    pub(super) fn pattern_changed(
        &mut self,
        pattern: &str,
        dialect: Dialect,
        leaf: u32,
        added: bool,
    ) {
        if self.changes.len() == SUBJECT_CHANGES_KEPT {
            self.changes.pop_front();
        }
        self.changes.push_back(Change { leaf, pattern: pattern.into(), dialect, added });
        self.changed += 1;
    }

    #[inline]
    fn set(&self, hash: u64) -> usize {
        // The low bits of the hash choose the set; the table's length is a power of two.
        (hash as usize & (self.entries.len() / WAYS - 1)) * WAYS
    }

    #[inline]
    fn position(&self, hash: u64, subject: &str) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let set = self.set(hash);
        (set..set + WAYS).find(|&at| {
            let entry = &self.entries[at];
            entry.hash == hash && entry.stamp != 0 && entry.subject == subject
        })
    }

    /// Applies the changes that an entry lacks; false where they are not all kept, or it has, or all have,
    /// more leaves than are remembered.
    #[inline]
    fn bring_up_to_date(&mut self, at: usize) -> bool {
        let stamp = self.stamp();
        let entry = &mut self.entries[at];
        let behind = stamp - entry.stamp;
        if behind > self.changes.len() as u64 {
            return false;
        }
        if entry.leaves.len() > ENTRY_LEAVES_MAX || self.leaves > SUBJECT_CACHE_LEAVES_MAX {
            return false;
        }
        // A long one costs less to look up than to compare with several patterns.
        if behind > 1 && entry.subject.len() > NAME_BYTES_MAX {
            return false;
        }
        for missed in self.changes.iter().skip(self.changes.len() - behind as usize) {
            if missed.dialect.matches(&missed.pattern, &entry.subject) {
                change(&mut entry.leaves, &mut self.leaves, missed.leaf, missed.added);
            }
        }
        entry.stamp = stamp;
        true
    }

    /// Finds a place for a subject. Where its set is full, that pushes out the first, and the other, which
    /// came later, moves up.
    fn make_room(&mut self, hash: u64) -> usize {
        if self.entries.is_empty() {
            self.entries.resize(ENTRIES_MIN, Entry::default());
        } else if self.pushed_out > self.entries.len()
            && self.entries.len() < SUBJECT_CACHE_ENTRIES_MAX
        {
            self.grow();
        }
        let set = self.set(hash);
        self.free(set).unwrap_or_else(|| {
            self.pushed_out += 1;
            self.entries.swap(set, set + 1);
            self.forget(set + 1);
            set + 1
        })
    }

    /// A place of a set that is not in use.
    fn free(&self, set: usize) -> Option<usize> {
        (set..set + WAYS).find(|&at| self.entries[at].stamp == 0)
    }

    fn grow(&mut self) {
        let larger = vec![Entry::default(); self.entries.len() * 2];
        let old = std::mem::replace(&mut self.entries, larger);
        self.pushed_out = 0;
        for entry in old.into_iter().filter(|entry| entry.stamp != 0) {
            let at = self.free(self.set(entry.hash)).expect("a set parts into two as large as it");
            self.entries[at] = entry;
        }
    }

    /// How many entries there are, how many leaves they have, and for how many there is room.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize, usize) {
        let used = self.entries.iter().filter(|entry| entry.stamp != 0);
        let leaves = self.entries.iter().map(|entry| entry.leaves.len()).sum();
        assert_eq!(leaves, self.leaves);
        let room = self.entries.iter().map(|entry| entry.leaves.capacity()).sum();
        (used.count(), leaves, room)
    }
}

/// Applies a change to an entry, and to the count of all leaves.
fn change(leaves: &mut Vec<u32>, all: &mut usize, leaf: u32, added: bool) {
    if added {
        leaves.push(leaf);
        *all += 1;
    } else if let Some(at) = leaves.iter().position(|other| *other == leaf) {
        leaves.swap_remove(at);
        *all -= 1;
    }
}
