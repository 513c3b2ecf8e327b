//! What is known of single messages of a queue beyond their entries: which consumers do not get them, and
//! what consumers have added to them. Few messages have any of it.
//!
//! Consumers are gone after a restart, so only what was added is recorded.

use crate::foundation::deferred_drop::drop_elsewhere;
use crate::interface::limits::ANNOTATION_BYTES_MAX;
use bytes::Bytes;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Tells a consumer from all others that ever were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConsumerKey {
    pub(crate) slot: u32,
    pub(crate) incarnation: u32,
}

/// Where a message waits; the one that is served first is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waiting {
    lane: Reverse<u8>,
    pub(crate) seq: u64,
}

impl Waiting {
    pub(crate) fn new(lane: u8, seq: u64) -> Waiting {
        Waiting { lane: Reverse(lane), seq }
    }

    pub(crate) fn lane(self) -> usize {
        self.lane.0.into()
    }
}

/// What is known of one message.
#[derive(Debug, Default)]
struct Note {
    /// Consumers that do not get it, in order.
    barred: Vec<ConsumerKey>,
    /// What consumers have added to it.
    changed: Bytes,
    /// That survives a restart.
    is_durable: bool,
}

/// Messages in the queue that the same consumers do not get.
#[derive(Debug)]
struct Group {
    barred: Vec<ConsumerKey>,
    waiting: BTreeSet<Waiting>,
}

/// What is known of messages of a queue, by number.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    by_seq: BTreeMap<u64, Note>,
    groups: Vec<Group>,
    /// Bytes that consumers have added.
    changed_bytes: u64,
}

impl Notes {
    /// Whether nothing is known of any message.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_seq.is_empty() && self.groups.is_empty()
    }

    /// A consumer does not get a message any more; returns all that do not, of which only those stay that
    /// `is_there`.
    pub(crate) fn bar(
        &mut self,
        seq: u64,
        consumer: ConsumerKey,
        is_there: impl Fn(&ConsumerKey) -> bool,
    ) -> &[ConsumerKey] {
        let barred = &mut self.by_seq.entry(seq).or_default().barred;
        barred.retain(is_there);
        if let Err(index) = barred.binary_search(&consumer) {
            barred.insert(index, consumer);
        }
        barred
    }

    /// Whether some consumers do not get a message.
    pub(crate) fn is_barred(&self, seq: u64) -> bool {
        self.by_seq.get(&seq).is_some_and(|note| !note.barred.is_empty())
    }

    /// Whether a consumer does not get a message.
    pub(crate) fn bars(&self, seq: u64, consumer: ConsumerKey) -> bool {
        let note = self.by_seq.get(&seq);
        note.is_some_and(|note| note.barred.binary_search(&consumer).is_ok())
    }

    /// A message that some consumers do not get is in the queue.
    pub(crate) fn came(&mut self, at: Waiting) {
        let Some(note) = self.by_seq.get(&at.seq) else { return };
        match self.groups.iter_mut().find(|group| group.barred == note.barred) {
            Some(group) => {
                group.waiting.insert(at);
            }
            None => {
                let (barred, waiting) = (note.barred.clone(), BTreeSet::from([at]));
                self.groups.push(Group { barred, waiting });
            }
        }
    }

    /// A message that was in the queue is not any more.
    pub(crate) fn left(&mut self, at: Waiting) {
        let group = self.groups.iter().position(|group| group.waiting.contains(&at));
        if let Some(index) = group {
            let group = &mut self.groups[index];
            group.waiting.remove(&at);
            if group.waiting.is_empty() {
                self.groups.swap_remove(index);
            }
        }
    }

    /// Consumers have ended.
    pub(crate) fn consumers_left(&mut self, is_there: impl Fn(&ConsumerKey) -> bool) {
        for group in &mut self.groups {
            group.barred.retain(&is_there);
        }
    }

    /// The message that is served first of those in the queue which some consumers do not get.
    pub(crate) fn first(&self) -> Option<Waiting> {
        self.groups.iter().filter_map(|group| group.waiting.first().copied()).min()
    }

    /// The same of those which a consumer may get.
    pub(crate) fn first_for(&self, consumer: ConsumerKey) -> Option<Waiting> {
        let groups = self.groups.iter().filter(|group| !group.barred.contains(&consumer));
        groups.filter_map(|group| group.waiting.first().copied()).min()
    }

    /// Adds to what consumers have added to a message, or replaces it where both are too much.
    pub(crate) fn annotate(&mut self, seq: u64, is_durable: bool, more: &[u8]) {
        let changed = self.changed(seq).map_or(Bytes::new(), |before| joined(before, more));
        let changed = if changed.is_empty() { Bytes::copy_from_slice(more) } else { changed };
        self.set_changed(seq, is_durable, changed);
    }

    /// What was added to a message that survives a restart, as a record or a snapshot says.
    pub(crate) fn restore_changed(&mut self, seq: u64, changed: &[u8]) {
        self.set_changed(seq, true, Bytes::copy_from_slice(changed));
    }

    fn set_changed(&mut self, seq: u64, is_durable: bool, changed: Bytes) {
        let note = self.by_seq.entry(seq).or_default();
        self.changed_bytes -= note.changed.len() as u64;
        self.changed_bytes += changed.len() as u64;
        (note.changed, note.is_durable) = (changed, is_durable);
    }

    /// What was added to a message, if anything.
    pub(crate) fn changed(&self, seq: u64) -> Option<&Bytes> {
        self.by_seq.get(&seq).map(|note| &note.changed).filter(|changed| !changed.is_empty())
    }

    /// What was added to messages that survive a restart.
    pub(crate) fn durable_changed(&self) -> impl Iterator<Item = (u64, &[u8])> + Clone {
        let durable = self.by_seq.iter().filter(|(_, note)| note.is_durable);
        durable.map(|(seq, note)| (*seq, &note.changed[..]))
    }

    pub(crate) fn changed_bytes(&self) -> u64 {
        self.changed_bytes
    }

    /// A message is gone for good.
    pub(crate) fn forget(&mut self, seq: u64) {
        if let Some(note) = self.by_seq.remove(&seq) {
            self.changed_bytes -= note.changed.len() as u64;
        }
    }

    /// No message is in the queue any more. What is known of those that have gone stays for now.
    pub(crate) fn all_left(&mut self) {
        drop_elsewhere(std::mem::take(&mut self.groups));
    }

    /// Forgets what is known of messages that are gone, of those within bounds, at most `most` of them; says
    /// how many were looked at, and which is next, if any is.
    pub(crate) fn forget_gone(
        &mut self,
        within: Range<u64>,
        most: usize,
        is_gone: impl Fn(u64) -> bool,
    ) -> (usize, Option<u64>) {
        let mut seqs = self.by_seq.range(within).map(|(seq, _)| *seq);
        let some: Vec<u64> = seqs.by_ref().take(most).collect();
        let next = seqs.next();
        some.iter().filter(|seq| is_gone(**seq)).for_each(|seq| self.forget(*seq));
        (some.len(), next)
    }
}

/// What was added before and now, or just the latter where both are too much.
pub(crate) fn joined(before: &Bytes, more: &[u8]) -> Bytes {
    if before.len() + more.len() > ANNOTATION_BYTES_MAX {
        return Bytes::copy_from_slice(more);
    }
    [before, more].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Notes {
        /// The numbers of messages in the queue which some consumers do not get.
        pub(crate) fn waiting(&self) -> BTreeSet<u64> {
            self.groups.iter().flat_map(|group| &group.waiting).map(|at| at.seq).collect()
        }
    }

    const A: ConsumerKey = ConsumerKey { slot: 1, incarnation: 7 };
    const B: ConsumerKey = ConsumerKey { slot: 2, incarnation: 8 };

    #[test]
    fn each_consumer_sees_the_first_of_what_it_may_get() {
        let mut notes = Notes::default();
        for (seq, lane, whom) in [(5, 0, A), (6, 1, A), (4, 0, B)] {
            assert_eq!(notes.bar(seq, whom, |_| true), [whom]);
            notes.came(Waiting::new(lane, seq));
        }
        let seq_for = |notes: &Notes, who| notes.first_for(who).map(|at| at.seq);
        assert_eq!((seq_for(&notes, A), seq_for(&notes, B)), (Some(4), Some(6)));
        notes.left(Waiting::new(1, 6));
        assert_eq!((seq_for(&notes, A), seq_for(&notes, B)), (Some(4), Some(5)));
        assert_eq!(notes.bar(5, B, |_| true), [A, B]);
        notes.left(Waiting::new(0, 5));
        notes.came(Waiting::new(0, 5));
        assert_eq!((seq_for(&notes, A), seq_for(&notes, B)), (Some(4), None));
        notes.consumers_left(|who| *who != B);
        assert_eq!(seq_for(&notes, B), Some(4), "a later one in its slot is another");
        notes.all_left();
        assert_eq!(notes.forget_gone(0..5, 9, |_| true), (1, None));
        assert_eq!(notes.forget_gone(0..9, 1, |_| true), (1, Some(6)));
        assert!(!notes.is_empty());
        assert_eq!(notes.forget_gone(6..9, 1, |_| true), (1, None));
        assert!(notes.is_empty());
    }

    #[test]
    fn what_is_added_is_joined_as_long_as_there_is_room() {
        let mut notes = Notes::default();
        notes.annotate(1, true, b"a");
        notes.annotate(1, true, b"b");
        assert_eq!(notes.changed(1).unwrap().as_ref(), b"ab");
        let most = vec![b'c'; ANNOTATION_BYTES_MAX];
        notes.annotate(1, true, &most);
        assert_eq!(notes.changed(1).unwrap().as_ref(), &most[..]);
        assert_eq!(notes.changed_bytes(), ANNOTATION_BYTES_MAX as u64);
        notes.forget(1);
        assert_eq!((notes.changed(1), notes.changed_bytes()), (None, 0));
    }
}
