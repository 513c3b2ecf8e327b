//! Which messages were stored lately, and where: the same ones may wait for clients of other shards.

use super::copies::{Copy, Origin};
use crate::spill::record;
use angarium_journal::checksum;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::VecDeque;

/// Messages that are remembered, up to twice as many: some megabytes of memory.
const REMEMBERED: usize = 128 << 10;

/// How a message is known. What has the same key need not be the same.
type Key = (u32, usize);

/// Messages that were stored lately.
#[derive(Debug)]
pub(super) struct Twins {
    /// In the order in which they were stored.
    stored: VecDeque<(Key, Origin)>,
    /// The number of the first of them, and of the first that is in no map but `young`.
    first: u64,
    first_young: u64,
    /// By key, the number of the first such message in the last chunk that has some.
    young: HashMap<Key, u64, FixedState>,
    old: HashMap<Key, u64, FixedState>,
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
        Twins { stored: VecDeque::new(), first: 0, first_young: 0, young: map(), old: map() }
    }

    /// What of a chunk may be a copy of what other chunks have, or had. Of messages that are the same as each
    /// other each is a copy of another one, if it can be: so a row of them is a copy of a row.
    pub(super) fn find(&self, chunk: &[u8]) -> Vec<Copy> {
        let mut next = None;
        let copy = |Message { at, bytes, key }| {
            let follows = |number: &u64| self.stored(*number).is_some_and(|(it, _)| it == key);
            let first = || self.young.get(&key).or_else(|| self.old.get(&key)).copied();
            let number = next.filter(follows).or_else(first);
            next = number.map(|number| number + 1);
            let (_, origin) = self.stored(number?)?;
            Some(Copy { at, bytes, origin })
        };
        messages(chunk).filter_map(copy).collect()
    }

    fn stored(&self, number: u64) -> Option<(Key, Origin)> {
        self.stored.get(usize::try_from(number.checked_sub(self.first)?).ok()?).copied()
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
            self.add(key, Origin { chunk: number, offset: at - copied });
        }
    }

    fn add(&mut self, key: Key, origin: Origin) {
        let number = self.first + self.stored.len() as u64;
        if number - self.first_young >= REMEMBERED as u64 {
            std::mem::swap(&mut self.old, &mut self.young);
            self.young.clear();
            self.stored.drain(..(self.first_young - self.first) as usize);
            (self.first, self.first_young) = (self.first_young, number);
        }
        let known = self.young.get(&key).and_then(|known| self.stored(*known));
        if known.is_none_or(|(_, known)| known.chunk != origin.chunk) {
            self.young.insert(key, number);
        }
        self.stored.push_back((key, origin));
    }

    /// Forgets all.
    pub(super) fn forget(&mut self) {
        for map in [&mut self.young, &mut self.old] {
            map.clear();
            map.shrink_to_fit();
        }
        self.stored = VecDeque::new();
        (self.first, self.first_young) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::record::tests::delivery;
    use crate::spill::record::{self, Recipient};

    const BODY: [u8; 100] = [b'x'; 100];

    /// A chunk of messages, each for so many slow_consumers.
    fn chunk(keys: &[&str], slow_consumers: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for key in keys {
            let start = bytes.len();
            assert!(record::begin(&mut bytes, &delivery(key, &BODY).message));
            bytes.extend_from_slice(&BODY);
            for slow_consumer in 1..=slow_consumers {
                let recipient = Recipient { slow_consumer, listener: 0, missed: 0 };
                record::add_recipient(&mut bytes, start, 0, recipient);
            }
        }
        bytes
    }

    /// The keys of messages, and of those among them that were found in chunks with these messages.
    #[track_caller]
    fn check(stored: &[&[&str]], keys: &[&str], expected: &[(&str, u64)]) {
        let mut twins = Twins::new(1);
        let chunks: Vec<Vec<u8>> =
            (1..).zip(stored).map(|(slow_consumers, keys)| chunk(keys, slow_consumers)).collect();
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
    fn a_row_of_the_same_is_a_copy_of_a_row() {
        let mut twins = Twins::new(1);
        let bytes = chunk(&["a"; 9], 1);
        let offsets: Vec<usize> = messages(&bytes).map(|message| message.at).collect();
        twins.remember(1, &bytes, &[]);
        let found = |keys: &[&str]| -> Vec<usize> {
            let found = twins.find(&chunk(keys, 2));
            found.iter().map(|copy| copy.origin.offset).collect()
        };
        assert_eq!(found(&["a"; 9]), offsets);
        assert_eq!(found(&["a"; 7]), offsets[..7]);
        assert_eq!(found(&["a", "b", "a"]), [offsets[0], offsets[0]]);
        assert_eq!(found(&["a"; 10])[8..], [offsets[8], offsets[0]]);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut twins = Twins::new(1);
        let first = chunk(&["first"], 1);
        let others = |twins: &mut Twins, bytes: usize| {
            (0..REMEMBERED).for_each(|_| twins.add((0, bytes), Origin { chunk: 2, offset: 0 }));
        };
        twins.remember(1, &first, &[]);
        others(&mut twins, 1);
        assert_eq!(twins.find(&first).len(), 1);
        others(&mut twins, 2);
        assert!(twins.find(&first).is_empty());
        assert!(twins.stored.len() <= 2 * REMEMBERED);
    }
}
