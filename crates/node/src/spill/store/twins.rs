//! Which messages were stored lately, and where: the same ones may wait for clients of other shards.

use super::copies::{Copy, Origin};
use crate::spill::record;
use angarium_journal::checksum;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Messages that are remembered, up to twice as many: some megabytes of memory.
const REMEMBERED: usize = 128 << 10;

/// How a message is known. What has the same key need not be the same.
type Key = (u32, usize);

/// Messages that were stored lately.
#[derive(Debug)]
pub(super) struct Twins {
    young: HashMap<Key, Origin, FixedState>,
    old: HashMap<Key, Origin, FixedState>,
}

/// A message in a chunk.
#[derive(Clone, Copy)]
struct Message {
    at: usize,
    bytes: usize,
    key: Key,
}

/// A chunk's messages.
fn messages(chunk: &[u8]) -> impl Iterator<Item = Message> {
    record::contents(chunk).map(|content| {
        let key = (checksum(&chunk[content.clone()]), content.len());
        Message { at: content.start, bytes: content.len(), key }
    })
}

impl Twins {
    /// None yet; nobody who writes messages is to know the seed.
    pub(super) fn new(seed: u64) -> Twins {
        let map = || HashMap::with_hasher(FixedState::with_seed(seed));
        Twins { young: map(), old: map() }
    }

    /// What of a chunk may be a copy of what other chunks have, or had.
    pub(super) fn find(&self, chunk: &[u8]) -> Vec<Copy> {
        let known = |Message { at, bytes, key }| {
            let origin = self.young.get(&key).or_else(|| self.old.get(&key))?;
            Some(Copy { at, bytes, origin: *origin })
        };
        messages(chunk).filter_map(known).collect()
    }

    /// Remembers what was stored of a chunk: all but its copies, which are in their order.
    pub(super) fn remember(&mut self, number: u64, chunk: &[u8], copies: &[Copy]) {
        let mut copies = copies.iter().peekable();
        let mut copied = 0;
        for Message { at, bytes, key } in messages(chunk) {
            if copies.next_if(|copy| copy.at == at).is_some() {
                copied += bytes;
                continue;
            }
            if self.young.len() >= REMEMBERED {
                std::mem::swap(&mut self.old, &mut self.young);
                self.young.clear();
            }
            self.young.insert(key, Origin { chunk: number, offset: at - copied });
        }
    }

    /// Forgets all.
    pub(super) fn forget(&mut self) {
        for map in [&mut self.young, &mut self.old] {
            map.clear();
            map.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::record::tests::delivery;
    use crate::spill::record::{self, Recipient};

    /// A chunk of messages, each for so many laggards.
    fn chunk(keys: &[&str], laggards: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for key in keys {
            let start = bytes.len();
            assert!(record::begin(&mut bytes, &delivery(key, &[b'x'; 100]).message));
            for laggard in 1..=laggards {
                let recipient = Recipient { laggard, listener: 0, missed: 0 };
                record::add_recipient(&mut bytes, start, recipient);
            }
        }
        bytes
    }

    /// The keys of messages, and of those among them that were found in chunks with these messages.
    #[track_caller]
    fn check(stored: &[&[&str]], keys: &[&str], expected: &[(&str, u64)]) {
        let mut twins = Twins::new(1);
        let chunks: Vec<Vec<u8>> =
            (1..).zip(stored).map(|(laggards, keys)| chunk(keys, laggards)).collect();
        for (number, chunk) in (1..).zip(&chunks) {
            twins.remember(number, chunk, &[]);
        }
        let bytes = chunk(keys, 3);
        let found = twins.find(&bytes);
        let read = |copy: &Copy| {
            let Origin { chunk, offset } = copy.origin;
            let same = &bytes[copy.at..copy.at + copy.bytes];
            let there = &chunks[chunk as usize - 1][offset..offset + copy.bytes];
            assert_eq!(same, there);
            let record = record::Record::read(&bytes[copy.at - 4..]).unwrap();
            (record.message.routing_key.to_owned(), chunk)
        };
        let found: Vec<(String, u64)> = found.iter().map(read).collect();
        let found: Vec<(&str, u64)> = found.iter().map(|(key, at)| (key.as_str(), *at)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_was_stored_is_found_whoever_it_waits_for() {
        check(&[], &["a"], &[]);
        check(&[&["a", "b"]], &["a", "c", "b"], &[("a", 1), ("b", 1)]);
        check(&[&["a", "b"], &["c"]], &["c", "a"], &[("c", 2), ("a", 1)]);
        check(&[&["a"], &["a"]], &["a"], &[("a", 2)]);
    }

    #[test]
    fn copies_are_not_remembered_and_take_no_place() {
        let mut twins = Twins::new(1);
        let bytes = chunk(&["a", "b", "c"], 1);
        let all: Vec<Message> = messages(&bytes).collect();
        let copied =
            Copy { at: all[1].at, bytes: all[1].bytes, origin: Origin { chunk: 1, offset: 4 } };
        twins.remember(2, &bytes, &[copied]);
        let found = twins.find(&bytes);
        let offsets: Vec<usize> = found.iter().map(|copy| copy.origin.offset).collect();
        assert_eq!(offsets, [all[0].at, all[2].at - all[1].bytes]);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut twins = Twins::new(1);
        let first = chunk(&["first"], 1);
        twins.remember(1, &first, &[]);
        for number in 0..REMEMBERED {
            twins.young.insert((0, number), Origin { chunk: 2, offset: 0 });
        }
        assert_eq!(twins.find(&first).len(), 1);
        twins.remember(3, &chunk(&["second"], 1), &[]);
        for number in 0..REMEMBERED {
            twins.young.insert((0, number), Origin { chunk: 4, offset: 0 });
        }
        twins.remember(5, &chunk(&["third"], 1), &[]);
        assert!(twins.find(&first).is_empty());
    }
}
