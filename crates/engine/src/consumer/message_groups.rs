//! Message groups: all messages of one go to the same consumer, in order.
//!
//! Groups share 1,024 buckets by a hash of their name; each bucket has at most one consumer. It stays with
//! it until the consumer has ended and settled what it had, or until a message says that its group ends.
//! A message whose consumer cannot take it is set aside for that consumer, by its place, and waits in the
//! queue; those behind it are looked at, each once.

use crate::MessageGroup;
use crate::foundation::deferred_drop::drop_elsewhere;
use crate::queue::notes::{ConsumerKey, Waiting};
use std::collections::{BTreeMap, BTreeSet};

/// Buckets of a queue's groups.
const BUCKETS: u64 = 1024;

/// What a consumer takes in the tables of groups, and a message that waits for one.
const CONSUMER_BYTES: usize = 48;
const WAITING_BYTES: usize = 32;

/// The groups of one queue.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// By bucket, those that have one.
    owners: BTreeMap<u16, ConsumerKey>,
    /// Messages that wait for these consumers.
    aside: BTreeMap<ConsumerKey, BTreeSet<Waiting>>,
    /// How many these are.
    waiting: usize,
    /// Consumers that have ended, and how many messages they have not settled.
    ended: BTreeMap<ConsumerKey, u32>,
    /// By lane: messages before this one were looked at.
    looked_at: Vec<u64>,
    /// No message is left to be looked at.
    pub(crate) is_complete: bool,
}

impl Groups {
    pub(crate) fn new(lanes: usize) -> Groups {
        Groups { looked_at: vec![0; lanes], ..Groups::default() }
    }

    /// About how much memory they take.
    pub(crate) fn bytes(&self) -> u64 {
        let consumers = self.owners.len() + self.ended.len() + self.aside.len();
        (consumers * CONSUMER_BYTES + self.waiting * WAITING_BYTES) as u64
    }

    fn bucket(group: MessageGroup) -> u16 {
        (group.hash % BUCKETS) as u16
    }

    /// The consumer of a group.
    pub(crate) fn owner(&self, group: MessageGroup) -> Option<ConsumerKey> {
        self.owners.get(&Groups::bucket(group)).copied()
    }

    /// A message of the group goes to this consumer.
    pub(crate) fn taken(&mut self, group: MessageGroup, by: ConsumerKey) {
        let bucket = Groups::bucket(group);
        if group.ends {
            self.owners.remove(&bucket);
        } else {
            self.owners.insert(bucket, by);
        }
    }

    /// Whether a consumer has ended and has messages that it has not settled.
    pub(crate) fn is_ending(&self, whose: ConsumerKey) -> bool {
        self.ended.contains_key(&whose)
    }

    /// The next place of a lane that was not looked at.
    pub(crate) fn next(&self, lane: usize) -> u64 {
        self.looked_at.get(lane).copied().unwrap_or(0)
    }

    /// A message waits for its consumer.
    pub(crate) fn set_aside(&mut self, whose: ConsumerKey, place: Waiting) {
        self.waiting += usize::from(self.aside.entry(whose).or_default().insert(place));
        self.passed(place.lane(), place.seq);
    }

    /// A message of a lane was looked at.
    pub(crate) fn passed(&mut self, lane: usize, seq: u64) {
        self.looked_at[lane] = seq + 1;
    }

    /// The first message that waits for a consumer.
    pub(crate) fn first_aside(&self, whose: ConsumerKey) -> Option<Waiting> {
        self.aside.get(&whose)?.first().copied()
    }

    /// It waits no more.
    pub(crate) fn drop_aside(&mut self, whose: ConsumerKey, place: Waiting) {
        let Some(places) = self.aside.get_mut(&whose) else { return };
        self.waiting -= usize::from(places.remove(&place));
        if places.is_empty() {
            self.aside.remove(&whose);
        }
    }

    /// A message has come into a lane, or back.
    pub(crate) fn came(&mut self, lane: usize, seq: u64) {
        self.is_complete = false;
        if let Some(looked_at) = self.looked_at.get_mut(lane) {
            *looked_at = seq.min(*looked_at);
        }
    }

    /// A consumer has ended with that many messages unsettled.
    pub(crate) fn consumer_ended(&mut self, whose: ConsumerKey, unsettled: u32) {
        if unsettled == 0 {
            self.let_go(whose);
        } else {
            self.ended.insert(whose, unsettled);
        }
    }

    /// A message of a consumer is settled; says whether its groups are free now because it has ended.
    pub(crate) fn settled(&mut self, whose: ConsumerKey) -> bool {
        let Some(unsettled) = self.ended.get_mut(&whose) else { return false };
        *unsettled = unsettled.saturating_sub(1);
        if *unsettled > 0 {
            return false;
        }
        self.ended.remove(&whose);
        self.let_go(whose);
        true
    }

    /// Everything that was in the queue is gone.
    pub(crate) fn forget_all(&mut self) {
        drop_elsewhere(std::mem::take(&mut self.aside));
        self.waiting = 0;
    }

    /// The groups of a consumer are free, and what waited for it is looked at again.
    fn let_go(&mut self, whose: ConsumerKey) {
        self.owners.retain(|_, owner| *owner != whose);
        let places = self.aside.remove(&whose).unwrap_or_default();
        self.waiting -= places.len();
        for place in places {
            self.came(place.lane(), place.seq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_stays_with_its_consumer_until_that_has_settled_all() {
        let [one, other] = [1, 2].map(|slot| ConsumerKey { slot, incarnation: 0 });
        let group = |name, sequence| MessageGroup::new(name, sequence);
        let mut groups = Groups::new(2);
        assert_eq!(groups.owner(group("a", None)), None);
        groups.taken(group("a", Some(1)), one);
        assert_eq!(groups.owner(group("a", None)), Some(one));
        groups.set_aside(one, Waiting::new(1, 5));
        groups.set_aside(one, Waiting::new(0, 3));
        groups.set_aside(one, Waiting::new(0, 4));
        assert_eq!((groups.next(0), groups.next(1)), (5, 6));
        let first = groups.first_aside(one).unwrap();
        assert_eq!((first.lane(), first.seq), (1, 5));
        let before = groups.bytes();
        groups.drop_aside(one, first);
        groups.drop_aside(one, first);
        assert_eq!(before - groups.bytes(), WAITING_BYTES as u64);
        assert_eq!(groups.first_aside(one), Some(Waiting::new(0, 3)));
        groups.is_complete = true;
        groups.consumer_ended(one, 2);
        assert!(groups.is_ending(one) && !groups.settled(one) && !groups.settled(other));
        assert_eq!(groups.owner(group("a", None)), Some(one));
        assert!(groups.settled(one));
        assert_eq!((groups.owner(group("a", None)), groups.first_aside(one)), (None, None));
        assert_eq!((groups.next(0), groups.is_complete), (3, false));
        assert_eq!(groups.bytes(), 0);
        // A message that ends its group leaves the bucket free.
        groups.taken(group("a", Some(-1)), other);
        assert_eq!(groups.owner(group("a", None)), None);
    }
}
