//! The bindings of a headers exchange, found by headers: a message is compared only with those that name a
//! header which it has. Bindings with equal arguments are compared once.
//!
//! A binding that compares all its arguments is found by one of them, the one that finds the fewest others;
//! one that compares any is found by each.

use super::headers::{Compared, Headers};
use crate::Value;
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use std::hash::BuildHasher;

/// Different arguments found by one header that a message may still not match.
pub(super) const NEAR_MISSES_MAX: usize = 8_192;

/// Different arguments found by one header, of which each takes every message that has it.
const CERTAIN_MAX: usize = 16 * NEAR_MISSES_MAX;

/// Members of which places are noted once they are more than this.
const FEW: usize = 64;

/// Bindings in any order, from which one is taken in the same time however many they are.
#[derive(Debug, Default)]
struct Members {
    list: Vec<u32>,
    places: Option<HashMap<u32, u32, FixedState>>,
}

impl Members {
    fn push(&mut self, id: u32, hasher: &FixedState) {
        let place = |at: usize| u32::try_from(at).expect("limits keep bindings below 2^32");
        self.list.push(id);
        if let Some(places) = &mut self.places {
            places.insert(id, place(self.list.len() - 1));
        } else if self.list.len() > FEW {
            let mut places = HashMap::with_hasher(hasher.clone());
            places.extend(self.list.iter().enumerate().map(|(at, id)| (*id, place(at))));
            self.places = Some(places);
        }
    }

    /// Takes one out; false: it is not there.
    fn remove(&mut self, id: u32) -> bool {
        let place = match &mut self.places {
            Some(places) => places.remove(&id).map(|place| place as usize),
            None => self.list.iter().position(|other| *other == id),
        };
        let Some(place) = place else { return false };
        self.list.swap_remove(place);
        if let (Some(moved), Some(places)) = (self.list.get(place), &mut self.places)
            && let Some(at) = places.get_mut(moved)
        {
            *at = u32::try_from(place).expect("limits keep bindings below 2^32");
        }
        true
    }
}

/// Bindings with equal arguments.
#[derive(Debug)]
struct Alike {
    /// Of their arguments.
    hash: u64,
    bindings: Members,
    /// A message with the header matches.
    is_certain: bool,
}

/// Bindings that are found by one header, those with equal arguments together.
#[derive(Debug, Default)]
struct Found {
    /// By the hash of their arguments.
    alike: HashTable<Alike>,
    /// How many of them a message with the header may not match.
    near: usize,
}

/// The index.
#[derive(Debug)]
pub(super) struct HeaderIndex {
    by_header: HashMap<u64, Found, FixedState>,
    /// Those that take every message.
    always: Members,
    hasher: FixedState,
}

/// The headers by which a binding is found.
#[derive(Debug)]
struct Keys {
    keys: Vec<(u64, bool)>,
    all: bool,
    hash: u64,
}

impl Found {
    fn len(&self) -> usize {
        self.alike.len()
    }
}

impl HeaderIndex {
    pub(super) fn new(seed: u64) -> HeaderIndex {
        HeaderIndex {
            by_header: HashMap::with_hasher(FixedState::with_seed(seed)),
            always: Members::default(),
            hasher: FixedState::with_seed(seed),
        }
    }

    /// Puts a binding in; `is_alike` says whether another one has equal arguments. False: there are too many
    /// different ones that are found by the same header, and nothing has changed.
    pub(super) fn insert(
        &mut self,
        id: u32,
        compared: Option<Compared<'_>>,
        near_misses_max: usize,
        is_alike: impl Fn(u32) -> bool,
    ) -> bool {
        let Some(compared) = compared else { return true };
        if compared.takes_all() {
            self.always.push(id, &self.hasher);
            return true;
        }
        let Keys { mut keys, all, hash } = self.keys(&compared);
        if all {
            let found = |(key, _): &(u64, bool)| self.by_header.get(key).map_or(0, Found::len);
            let rarest = keys.iter().min_by_key(|key| found(key)).copied();
            let known = keys.iter().find(|(key, _)| self.has(*key, hash, &is_alike));
            keys = known.copied().or(rarest).into_iter().collect();
        }
        let is_full = |(key, is_exact): &(u64, bool)| {
            let is_near = all || !is_exact;
            let is_full = |found: &Found| {
                (is_near && found.near >= near_misses_max)
                    || found.len() >= CERTAIN_MAX.max(near_misses_max)
            };
            self.by_header.get(key).is_some_and(is_full) && !self.has(*key, hash, &is_alike)
        };
        if keys.iter().any(is_full) {
            return false;
        }
        for (key, is_exact) in keys {
            let found = self.by_header.entry(key).or_default();
            let is_it = |it: &Alike| it.hash == hash && is_alike(it.bindings.list[0]);
            if let Some(alike) = found.alike.find_mut(hash, is_it) {
                alike.bindings.push(id, &self.hasher);
                continue;
            }
            let mut bindings = Members::default();
            bindings.push(id, &self.hasher);
            let is_certain = is_exact && !all;
            found.near += usize::from(!is_certain);
            found.alike.insert_unique(hash, Alike { hash, bindings, is_certain }, |it| it.hash);
        }
        true
    }

    /// Takes a binding out.
    pub(super) fn remove(&mut self, id: u32, compared: Option<Compared<'_>>) {
        let Some(compared) = compared else { return };
        if compared.takes_all() {
            self.always.remove(id);
            return;
        }
        let Keys { keys, hash, .. } = self.keys(&compared);
        for (key, _) in keys {
            let Some(found) = self.by_header.get_mut(&key) else { continue };
            let mut alike = found.alike.iter_hash_mut(hash).filter(|it| it.hash == hash);
            if !alike.any(|it| it.bindings.remove(id)) {
                continue;
            }
            let is_left = |it: &Alike| it.hash == hash && it.bindings.list.is_empty();
            if let Ok(alike) = found.alike.find_entry(hash, is_left) {
                let (alike, _) = alike.remove();
                found.near -= usize::from(!alike.is_certain);
            }
            if found.len() == 0 {
                self.by_header.remove(&key);
            }
        }
    }

    /// Calls `visit` with bindings that may take a message with these headers, those of equal arguments
    /// together; it says how many of them do. Looks headers up from the one at `from` on, until `room`
    /// bindings were looked at. Returns how many were, and which header is next.
    pub(super) fn find(
        &self,
        headers: &Headers,
        from: usize,
        room: u64,
        mut visit: impl FnMut(&[u32]) -> usize,
    ) -> (u64, Option<usize>) {
        let mut count = 0;
        for (index, (name, value)) in headers.iter().enumerate().skip(from) {
            if count >= room {
                return (count, Some(index));
            }
            let keys = [self.key(name, None), self.key(name, Some(value))];
            count += 1;
            let found = keys.iter().filter_map(|key| self.by_header.get(key));
            for alike in found.flat_map(|found| found.alike.iter()) {
                count += 1 + visit(&alike.bindings.list) as u64;
            }
        }
        if !self.always.list.is_empty() {
            count += 1 + visit(&self.always.list) as u64;
        }
        (count, None)
    }

    /// Whether bindings with these arguments are found by that header.
    fn has(&self, key: u64, hash: u64, is_alike: impl Fn(u32) -> bool) -> bool {
        let is_it = |it: &Alike| it.hash == hash && is_alike(it.bindings.list[0]);
        self.by_header.get(&key).is_some_and(|found| found.alike.find(hash, is_it).is_some())
    }

    fn keys(&self, compared: &Compared<'_>) -> Keys {
        let mut keys: Vec<(u64, bool)> = Vec::new();
        let mut hash = u64::from(compared.all);
        for (name, value) in compared.arguments() {
            let key = self.key(name, Some(value));
            hash = self.hasher.hash_one((hash, key));
            keys.push((key, is_exact(value)));
        }
        Keys { keys, all: compared.all, hash }
    }

    /// Where a header with that value is found; without one, or with one that may be written in several ways:
    /// where it is found by its name.
    fn key(&self, name: &str, value: Option<&Value>) -> u64 {
        let hasher = &self.hasher;
        match value {
            Some(Value::Bool(value)) => hasher.hash_one((name, 1, value)),
            Some(Value::Int(value)) => hasher.hash_one((name, 2, value)),
            Some(Value::Text(value)) => hasher.hash_one((name, 3, value)),
            Some(Value::Bytes(value)) => hasher.hash_one((name, 4, value)),
            Some(Value::Timestamp(value)) => hasher.hash_one((name, 5, value)),
            _ => hasher.hash_one((name, 0)),
        }
    }
}

/// Whether a message that is found by that value has an equal one; any value equals none.
fn is_exact(value: &Value) -> bool {
    !matches!(value, Value::Float(_) | Value::List(_) | Value::Map(_))
}
