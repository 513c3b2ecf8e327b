//! The set of bindings, each a member of three linked lists: of its source, of its target, and of
//! those that share its source and key.
//!
//! Lists are linked through the bindings themselves, so that removing one costs the same however
//! many there are. Independent of what keys mean.

use super::QueueKey;
use super::patterns::NONE;
use crate::foundation::slab::Slab;
use crate::foundation::table::Table;
use crate::{Arguments, Value};
use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hash, Hasher};

/// Names an exchange by the slot it is kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ExchangeKey(pub(super) u32);

/// What a binding leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Target {
    Queue(QueueKey),
    Exchange(ExchangeKey),
}

/// Which of the lists.
#[derive(Clone, Copy, Debug)]
pub(super) enum List {
    Source = 0,
    Target = 1,
    Leaf = 2,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    previous: u32,
    next: u32,
}

const UNLINKED: Links = Links { previous: NONE, next: NONE };

#[derive(Debug)]
pub(super) struct Binding {
    pub(super) source: ExchangeKey,
    pub(super) target: Target,
    pub(super) key: Box<str>,
    pub(super) arguments: Option<Box<Arguments>>,
    links: [Links; 3],
}

/// All bindings of a virtual host.
#[derive(Debug)]
pub(super) struct Bindings {
    slots: Slab<Binding>,
    /// Finds a binding by all that makes it one.
    unique: Table<u32>,
    /// Finds the first binding of a source with a key; exchanges that compare keys look here.
    by_key: Table<u32>,
    hasher: FixedState,
    /// How often a binding was looked at or changed.
    #[cfg(test)]
    pub(super) steps: std::cell::Cell<usize>,
}

impl Bindings {
    pub(super) fn new(seed: u64) -> Bindings {
        Bindings {
            slots: Slab::default(),
            unique: Table::default(),
            by_key: Table::default(),
            hasher: FixedState::with_seed(seed),
            #[cfg(test)]
            steps: std::cell::Cell::new(0),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.unique.len()
    }

    pub(super) fn get(&self, id: u32) -> &Binding {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
        self.slots.get(id).expect("lists hold live bindings only")
    }

    fn get_mut(&mut self, id: u32) -> &mut Binding {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
        self.slots.get_mut(id).expect("lists hold live bindings only")
    }

    pub(super) fn find(
        &self,
        source: ExchangeKey,
        target: Target,
        key: &str,
        arguments: Option<&Arguments>,
    ) -> Option<u32> {
        let hash = identity(&self.hasher, source, target, key, arguments);
        let found = self.unique.find(hash, |&id| {
            let other = self.get(id);
            other.source == source
                && other.target == target
                && &*other.key == key
                && same_arguments(other.arguments.as_deref(), arguments)
        });
        found.copied()
    }

    /// Adds a binding that is not there yet; it is on no list.
    pub(super) fn add(
        &mut self,
        source: ExchangeKey,
        target: Target,
        key: &str,
        arguments: Option<Box<Arguments>>,
    ) -> u32 {
        let hash = identity(&self.hasher, source, target, key, arguments.as_deref());
        let binding = Binding { source, target, key: key.into(), arguments, links: [UNLINKED; 3] };
        let id = self.slots.insert(binding);
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.unique.insert_unique(hash, id, |&other| {
            let other = slots.get(other).expect("the set holds live bindings only");
            identity(hasher, other.source, other.target, &other.key, other.arguments.as_deref())
        });
        id
    }

    /// Takes a binding out that is on no list any more.
    pub(super) fn remove(&mut self, id: u32) -> Binding {
        let binding = self.get(id);
        let hash = identity(
            &self.hasher,
            binding.source,
            binding.target,
            &binding.key,
            binding.arguments.as_deref(),
        );
        self.unique.remove(hash, |&other| other == id);
        self.slots.remove(id).expect("lists hold live bindings only")
    }

    // ---- lists ----

    /// Puts a binding before `head`; it is the new head.
    #[must_use]
    pub(super) fn link(&mut self, list: List, head: u32, id: u32) -> u32 {
        self.get_mut(id).links[list as usize] = Links { previous: NONE, next: head };
        if head != NONE {
            self.get_mut(head).links[list as usize].previous = id;
        }
        id
    }

    /// Takes a binding off the list that begins with `head`; returns the new head.
    #[must_use]
    pub(super) fn unlink(&mut self, list: List, head: u32, id: u32) -> u32 {
        let Links { previous, next } =
            std::mem::replace(&mut self.get_mut(id).links[list as usize], UNLINKED);
        if next != NONE {
            self.get_mut(next).links[list as usize].previous = previous;
        }
        if previous == NONE {
            return next;
        }
        self.get_mut(previous).links[list as usize].next = next;
        head
    }

    /// The bindings of the list that begins with `head`.
    pub(super) fn list(&self, list: List, head: u32) -> impl Iterator<Item = (u32, &Binding)> {
        let mut at = head;
        std::iter::from_fn(move || {
            let id = (at != NONE).then_some(at)?;
            let binding = self.get(id);
            at = binding.links[list as usize].next;
            Some((id, binding))
        })
    }

    /// All bindings in order of their slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Binding> + Clone {
        self.slots.iter().map(|(_, binding)| binding)
    }

    // ---- by key ----

    /// The head of the list of bindings that share source and key.
    pub(super) fn by_key(&self, source: ExchangeKey, key: &str) -> u32 {
        let hash = self.hasher.hash_one((source, key));
        let found = self.by_key.find(hash, |&id| {
            let other = self.get(id);
            other.source == source && &*other.key == key
        });
        found.copied().unwrap_or(NONE)
    }

    /// Puts a binding on the list of those that share its source and key.
    pub(super) fn link_by_key(&mut self, id: u32) {
        let (hash, head) = self.key_list(id);
        let new = self.link(List::Leaf, head, id);
        self.set_key_list(hash, head, new);
    }

    /// Takes it off that list.
    pub(super) fn unlink_by_key(&mut self, id: u32) {
        let (hash, head) = self.key_list(id);
        let new = self.unlink(List::Leaf, head, id);
        self.set_key_list(hash, head, new);
    }

    fn key_list(&self, id: u32) -> (u64, u32) {
        let binding = self.get(id);
        let head = self.by_key(binding.source, &binding.key);
        (self.hasher.hash_one((binding.source, &*binding.key)), head)
    }

    fn set_key_list(&mut self, hash: u64, old: u32, new: u32) {
        if new == NONE {
            self.by_key.remove(hash, |&head| head == old);
        } else if let Some(head) = self.by_key.find_mut(hash, |&head| head == old) {
            *head = new;
        } else {
            let (slots, hasher) = (&self.slots, &self.hasher);
            self.by_key.insert_unique(hash, new, |&head| {
                let head = slots.get(head).expect("heads are live bindings");
                hasher.hash_one((head.source, &*head.key))
            });
        }
    }
}

fn identity(
    hasher: &FixedState,
    source: ExchangeKey,
    target: Target,
    key: &str,
    arguments: Option<&Arguments>,
) -> u64 {
    let mut state = hasher.build_hasher();
    (source, target, key).hash(&mut state);
    for (name, value) in arguments.into_iter().flatten() {
        name.hash(&mut state);
        hash_value(value, &mut state);
    }
    state.finish()
}

fn hash_value(value: &Value, state: &mut impl Hasher) {
    std::mem::discriminant(value).hash(state);
    match value {
        Value::Null => {}
        Value::Bool(value) => value.hash(state),
        Value::Int(value) => value.hash(state),
        Value::Float(value) => value.to_bits().hash(state),
        Value::Text(value) => value.hash(state),
        Value::Bytes(value) => value.hash(state),
        Value::Timestamp(value) => value.hash(state),
        Value::List(values) => values.iter().for_each(|value| hash_value(value, state)),
        Value::Map(values) => values.iter().for_each(|(name, value)| {
            name.hash(state);
            hash_value(value, state);
        }),
    }
}

fn same_arguments(one: Option<&Arguments>, other: Option<&Arguments>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|((name, value), (key, other))| name == key && same(value, other))
        }
        _ => false,
    }
}

/// Equality under which every value equals itself, also a float that is not a number: a binding
/// that was made can be found again.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Float(one), Value::Float(other)) => one.to_bits() == other.to_bits(),
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Map(one), Value::Map(other)) => same_arguments(Some(one), Some(other)),
        _ => one == other,
    }
}
