//! Entries in the order of their numbers, in pieces: adding one never copies the others.
//! Independent of what they wait for.

use super::entry::Entry;
use std::collections::VecDeque;

/// Entries in a piece.
const PIECE: usize = 128;

#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// Each of them full when it was put here; none empty.
    older: VecDeque<VecDeque<Entry>>,
    /// Empty only where there is nothing at all. As long as all fit in it, it grows as they do.
    newest: VecDeque<Entry>,
}

/// Where a search goes on that is for the entry behind the last one found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    piece: usize,
    index: usize,
}

impl Entries {
    pub(super) const fn new() -> Entries {
        Entries { older: VecDeque::new(), newest: VecDeque::new() }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }

    /// How many there are, counted by pieces.
    pub(crate) fn count(&self) -> usize {
        self.older.iter().map(VecDeque::len).sum::<usize>() + self.newest.len()
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&Entry> {
        self.older.front().unwrap_or(&self.newest).front()
    }

    #[inline]
    pub(crate) fn back(&self) -> Option<&Entry> {
        self.newest.back()
    }

    #[inline]
    pub(crate) fn push_back(&mut self, entry: Entry) {
        if self.newest.len() >= PIECE {
            self.begin_piece();
        }
        self.newest.push_back(entry);
    }

    #[cold]
    fn begin_piece(&mut self) {
        let full = std::mem::replace(&mut self.newest, VecDeque::with_capacity(PIECE));
        self.older.push_back(full);
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<Entry> {
        let Some(oldest) = self.older.front_mut() else { return self.newest.pop_front() };
        let entry = oldest.pop_front();
        if oldest.is_empty() {
            self.older.pop_front();
        }
        entry
    }

    pub(crate) fn pop_back(&mut self) -> Option<Entry> {
        let entry = self.newest.pop_back();
        self.settle_newest();
        entry
    }

    /// The newest piece may have lost its last entry.
    fn settle_newest(&mut self) {
        if self.newest.is_empty()
            && let Some(piece) = self.older.pop_back()
        {
            self.newest = piece;
        }
    }

    /// Takes all of `newer`, which come after those that are here.
    pub(crate) fn append(&mut self, newer: &mut Entries) {
        if newer.is_empty() {
            return;
        }
        if !self.is_empty() {
            self.older.push_back(std::mem::take(&mut self.newest));
        }
        self.older.append(&mut newer.older);
        self.newest = std::mem::take(&mut newer.newest);
    }

    /// Takes the `count` oldest out, or the `count` newest; in order.
    pub(crate) fn take(&mut self, count: usize, are_newest: bool) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(count);
        let next = if are_newest { Entries::pop_back } else { Entries::pop_front };
        entries.extend((0..count).map_while(|_| next(self)));
        if are_newest {
            entries.reverse();
        }
        entries
    }

    /// Which piece has the entry of that number, if one has it; the newest comes after all others.
    fn piece_of(&self, seq: u64) -> usize {
        self.older.partition_point(|piece| piece.back().is_some_and(|last| last.seq < seq))
    }

    fn piece_mut(&mut self, piece: usize) -> &mut VecDeque<Entry> {
        self.older.get_mut(piece).unwrap_or(&mut self.newest)
    }

    fn locate(&mut self, seq: u64) -> Option<Cursor> {
        let piece = self.piece_of(seq);
        let index = self.piece_mut(piece).binary_search_by_key(&seq, |entry| entry.seq).ok()?;
        Some(Cursor { piece, index })
    }

    pub(crate) fn find(&mut self, seq: u64) -> Option<&mut Entry> {
        let found = self.locate(seq)?;
        self.piece_mut(found.piece).get_mut(found.index)
    }

    /// As [`Entries::find`], at once where it is the one behind the last that was found with this cursor.
    #[inline]
    pub(crate) fn find_next(&mut self, seq: u64, next: &mut Cursor) -> Option<&mut Entry> {
        let here = self.piece_mut(next.piece).get(next.index);
        if here.is_none_or(|entry| entry.seq != seq) {
            *next = self.locate(seq)?;
        }
        let found = *next;
        next.index += 1;
        self.piece_mut(found.piece).get_mut(found.index)
    }

    pub(crate) fn remove(&mut self, seq: u64) -> Option<Entry> {
        let Cursor { piece, index } = self.locate(seq)?;
        let from = self.piece_mut(piece);
        let entry = from.remove(index);
        if from.is_empty() && piece < self.older.len() {
            self.older.remove(piece);
        }
        self.settle_newest();
        entry
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.older.iter().flatten().chain(&self.newest)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.older.iter_mut().flatten().chain(&mut self.newest)
    }

    /// The first from a number on.
    pub(crate) fn next_from(&mut self, seq: u64) -> Option<&Entry> {
        self.onward_mut(seq).next().map(|entry| &*entry)
    }

    /// From a number on.
    pub(crate) fn onward_mut(&mut self, seq: u64) -> impl Iterator<Item = &mut Entry> {
        let piece = self.piece_of(seq);
        let pieces = self.older.range_mut(piece..).chain(std::iter::once(&mut self.newest));
        pieces.flat_map(move |piece| {
            let from = piece.partition_point(|entry| entry.seq < seq);
            piece.range_mut(from..)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Entry, Fetch, NEVER, NOWHERE};
    use super::{Cursor, Entries, PIECE};
    use crate::foundation::random::Random;

    impl Entries {
        /// Checks that no piece is empty where none may be.
        pub(crate) fn check(&self) {
            assert!(self.older.iter().all(|piece| !piece.is_empty()), "an empty piece");
            assert!(!self.newest.is_empty() || self.older.is_empty(), "an empty piece at the end");
        }
    }

    fn entry(seq: u64) -> Entry {
        Entry {
            seq,
            position: NOWHERE,
            expires: NEVER,
            message: None,
            bytes: 0,
            requeues: 0,
            durable: false,
            redelivered: false,
            fetch: Fetch::Idle,
            lane: 0,
            mark: false,
        }
    }

    fn numbers<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<u64> {
        entries.map(|entry| entry.seq).collect()
    }

    /// The same is done to entries and to a plain list of their numbers, each second one.
    fn compare(seed: u8) {
        let mut random = Random::new([seed; 32]);
        let mut below = |bound: usize| (random.next() >> 11) as usize % bound.max(1);
        let (mut entries, mut list, mut next) = (Entries::default(), Vec::new(), 0);
        let mut fill = |entries: &mut Entries, list: &mut Vec<u64>, count: usize| {
            for _ in 0..count {
                entries.push_back(entry(next));
                list.push(next);
                next += 2;
            }
        };
        for _ in 0..300 {
            let count = below(2 * PIECE);
            let some = count.min(list.len());
            let seq = below(list.last().map_or(1, |last| *last as usize + 2)) as u64;
            let found = list.binary_search(&seq).ok();
            match below(10) {
                0..4 => fill(&mut entries, &mut list, count),
                4 => {
                    let popped: Vec<_> = (0..some).map_while(|_| entries.pop_front()).collect();
                    assert!(list.drain(..some).eq(numbers(popped.iter())));
                }
                5 => {
                    let are_newest = count % 2 == 0;
                    let from = if are_newest { list.len() - some } else { 0 };
                    let taken = numbers(entries.take(some, are_newest).iter());
                    assert!(list.drain(from..from + some).eq(taken));
                }
                6 => {
                    let removed = entries.remove(seq).map(|entry| entry.seq);
                    assert_eq!(removed, found.map(|index| list.remove(index)));
                }
                7 => {
                    let mut newer = Entries::default();
                    fill(&mut newer, &mut list, count);
                    entries.append(&mut newer);
                    assert!(newer.is_empty());
                }
                8 => {
                    let mut cursor = Cursor::default();
                    for seq in list.iter().skip(found.unwrap_or(0)).step_by(1 + count % 3) {
                        let entry = entries.find_next(*seq, &mut cursor);
                        assert_eq!(entry.map(|entry| entry.seq), Some(*seq));
                    }
                    assert!(entries.find_next(1, &mut cursor).is_none(), "there is no odd one");
                }
                _ => {
                    let from = list.partition_point(|other| *other < seq);
                    assert_eq!(numbers(entries.onward_mut(seq).map(|entry| &*entry)), list[from..]);
                    assert_eq!(entries.find(seq).map(|entry| entry.seq), found.map(|_| seq));
                }
            }
            entries.check();
            assert_eq!(numbers(entries.iter()), list);
            assert_eq!((entries.count(), entries.is_empty()), (list.len(), list.is_empty()));
            let ends = (entries.front(), entries.back());
            let ends = (ends.0.map(|entry| entry.seq), ends.1.map(|entry| entry.seq));
            assert_eq!(ends, (list.first().copied(), list.last().copied()));
        }
    }

    #[test]
    fn they_are_as_in_one_list() {
        (0..20).for_each(compare);
    }

    #[test]
    fn none_is_moved_when_one_more_comes() {
        let mut entries = Entries::default();
        (0..10_000).for_each(|seq| entries.push_back(entry(seq)));
        let first = std::ptr::from_ref(entries.front().unwrap());
        (10_000..20_000).for_each(|seq| entries.push_back(entry(seq)));
        assert!(std::ptr::eq(first, entries.front().unwrap()));
    }
}
