//! Remembers where messages of an exchange and key go, until the topology changes.

use super::condition::Conditions;
use super::{QueueKey, Routed};
use crate::interface::limits::{NAME_BYTES_MAX, ROUTE_CACHE_ENTRIES_MAX, ROUTE_CACHE_QUEUES_MAX};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;

#[derive(Debug)]
struct Entry {
    /// Exchange and key, one after the other, so that both cost one allocation.
    names: Box<str>,
    /// Where the key begins.
    split: u32,
    generation: u64,
    routed: Routed,
    queues: Box<[QueueKey]>,
    conditions: Option<Arc<Conditions<QueueKey>>>,
}

impl Entry {
    /// The queues that it leads to.
    fn weight(&self) -> usize {
        self.queues.len() + self.conditions.as_ref().map_or(0, |conditions| conditions.len())
    }
}

/// A bounded map from exchange and routing key to queues. An entry counts only in the generation it
/// was made in; full, the map starts anew.
#[derive(Debug)]
pub(super) struct RouteCache {
    entries: HashTable<Entry>,
    /// Queues in all entries together.
    queues: usize,
    hasher: FixedState,
}

impl RouteCache {
    pub(super) fn new(seed: u64) -> RouteCache {
        RouteCache { entries: HashTable::new(), queues: 0, hasher: FixedState::with_seed(seed) }
    }

    /// Appends the queues to `out` where the route is known in this generation.
    #[inline]
    pub(super) fn get(
        &self,
        generation: u64,
        exchange: &str,
        key: &str,
        out: &mut Vec<QueueKey>,
        conditions: &mut Option<Arc<Conditions<QueueKey>>>,
    ) -> Option<Routed> {
        let hash = self.hasher.hash_one((exchange, key));
        let entry = self.entries.find(hash, |entry| entry.is(exchange, key))?;
        if entry.generation != generation {
            return None;
        }
        out.extend_from_slice(&entry.queues);
        if entry.routed.is_conditional {
            conditions.clone_from(&entry.conditions);
        }
        Some(entry.routed)
    }

    /// Remembers a route; one to too many queues, or with a long key, is left out.
    pub(super) fn put(
        &mut self,
        generation: u64,
        exchange: &str,
        key: &str,
        routed: Routed,
        queues: &[QueueKey],
        conditions: Option<&Arc<Conditions<QueueKey>>>,
    ) {
        let weight = queues.len() + conditions.map_or(0, |conditions| conditions.len());
        if weight > ROUTE_CACHE_QUEUES_MAX / 16 || key.len() > NAME_BYTES_MAX {
            return;
        }
        let hash = self.hasher.hash_one((exchange, key));
        if let Ok(entry) = self.entries.find_entry(hash, |entry| entry.is(exchange, key)) {
            let (stale, _) = entry.remove();
            self.queues -= stale.weight();
        }
        if self.entries.len() >= ROUTE_CACHE_ENTRIES_MAX
            || self.queues + weight > ROUTE_CACHE_QUEUES_MAX
        {
            self.entries.clear();
            self.queues = 0;
        }
        let mut names = String::with_capacity(exchange.len() + key.len());
        names.push_str(exchange);
        names.push_str(key);
        let split = u32::try_from(exchange.len()).expect("names are shorter than 2^32 bytes");
        let (names, queues, conditions) = (names.into(), queues.into(), conditions.cloned());
        let entry = Entry { names, split, generation, routed, queues, conditions };
        self.queues += weight;
        let hasher = &self.hasher;
        self.entries.insert_unique(hash, entry, |entry| hasher.hash_one(entry.names()));
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        (self.entries.len(), self.queues)
    }
}

impl Entry {
    fn names(&self) -> (&str, &str) {
        self.names.split_at(self.split as usize)
    }

    fn is(&self, exchange: &str, key: &str) -> bool {
        self.names() == (exchange, key)
    }
}
