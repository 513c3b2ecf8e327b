//! The bindings of a headers exchange, found by headers: a message is compared only with those that name a
//! header which it has. Bindings with equal arguments are compared once.
//!
//! A binding that compares all its arguments is found by one of them, the one that finds the fewest others;
//! one that compares any is found by each.

use super::headers::{Compared, Headers};
use crate::Value;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::hash::BuildHasher;

/// Different arguments found by one header that a message may still not match.
pub(super) const NEAR_MISSES_MAX: usize = 8_192;

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

/// The index.
#[derive(Debug)]
pub(super) struct HeaderIndex {
    by_header: HashMap<u64, Vec<Alike>, FixedState>,
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
            let found = |(key, _): &(u64, bool)| self.by_header.get(key).map_or(0, Vec::len);
            let rarest = keys.iter().min_by_key(|key| found(key)).copied();
            let known = keys.iter().find(|(key, _)| self.place(*key, hash, &is_alike).is_some());
            keys = known.copied().or(rarest).into_iter().collect();
        }
        let is_full = |(key, is_exact): &(u64, bool)| {
            let near = |alike: &&Alike| !alike.is_certain;
            (all || !is_exact)
                && self.place(*key, hash, &is_alike).is_none()
                && self.by_header.get(key).is_some_and(|alike| {
                    alike.len() >= near_misses_max
                        && alike.iter().filter(near).count() >= near_misses_max
                })
        };
        if keys.iter().any(is_full) {
            return false;
        }
        for (key, is_exact) in keys {
            let place = self.place(key, hash, &is_alike);
            let alike = self.by_header.entry(key).or_default();
            match place {
                Some(place) => alike[place].bindings.push(id, &self.hasher),
                None => {
                    let mut bindings = Members::default();
                    bindings.push(id, &self.hasher);
                    alike.push(Alike { hash, bindings, is_certain: is_exact && !all });
                }
            }
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
            let Some(alike) = self.by_header.get_mut(&key) else { continue };
            let found = alike.iter_mut().position(|it| it.hash == hash && it.bindings.remove(id));
            let Some(at) = found else { continue };
            if alike[at].bindings.list.is_empty() {
                alike.swap_remove(at);
            }
            if alike.is_empty() {
                self.by_header.remove(&key);
            }
        }
    }

    /// Calls `visit` with bindings that may take a message with these headers, those of equal arguments
    /// together; returns how often it did.
    pub(super) fn find(&self, headers: &Headers, mut visit: impl FnMut(&[u32])) -> usize {
        let mut count = 0;
        for (name, value) in headers {
            let keys = [self.key(name, None), self.key(name, Some(value))];
            for alike in keys.iter().filter_map(|key| self.by_header.get(key)).flatten() {
                visit(&alike.bindings.list);
                count += 1;
            }
        }
        if !self.always.list.is_empty() {
            visit(&self.always.list);
            count += 1;
        }
        count
    }

    fn place(&self, key: u64, hash: u64, is_alike: impl Fn(u32) -> bool) -> Option<usize> {
        let alike = self.by_header.get(&key)?;
        alike.iter().position(|it| it.hash == hash && is_alike(it.bindings.list[0]))
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
