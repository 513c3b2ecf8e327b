//! The set of bindings, each a member of three linked lists: of its source, of its target, and of
//! those that share its source and key.
//!
//! Lists are linked through the bindings themselves, so that removing one costs the same however
//! many there are. Independent of what keys mean.

use super::QueueKey;
use super::condition::Condition;
use super::patterns::NONE;
use crate::Arguments;
use crate::access::definitions::Declarer;
use crate::foundation::slab::Slab;
use crate::foundation::table::Table;
use crate::interface::value::arguments_bytes;
use crate::selector::Filter;
use crate::storage::codec::{Codec, Writer};
use foldhash::fast::FixedState;
use std::hash::BuildHasher;
use std::ops::Range;

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

/// What a binding says beside its key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    pub(super) arguments: Option<Box<Arguments>>,
    pub(super) condition: Option<Box<Condition>>,
}

impl Terms {
    pub(crate) fn new(
        arguments: Arguments,
        filter: Option<Filter>,
        not_from: Option<&str>,
    ) -> Terms {
        let arguments = (!arguments.is_empty()).then(|| Box::new(arguments));
        Terms { arguments, condition: Condition::of(filter, not_from) }
    }

    pub(crate) fn of(binding: &crate::Binding) -> Terms {
        let crate::Binding { arguments, filter, not_from, .. } = binding;
        Terms::new(arguments.clone(), filter.clone(), not_from.as_deref())
    }

    /// Whether it says anything.
    pub(super) fn is_some(&self) -> bool {
        self.arguments.is_some() || self.condition.is_some()
    }

    fn borrow(&self) -> TermsRef<'_> {
        let (arguments, condition) = (self.arguments.as_deref(), self.condition.as_deref());
        TermsRef { arguments, condition }
    }
}

/// The same, borrowed.
#[derive(Clone, Copy)]
struct TermsRef<'a> {
    arguments: Option<&'a Arguments>,
    condition: Option<&'a Condition>,
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
    pub(super) condition: Option<Box<Condition>>,
    /// Who bound.
    pub(super) by: Declarer,
    /// No message takes it: it is on no list by key.
    pub(super) is_suspended: bool,
    links: [Links; 3],
}

/// What a binding takes in memory beside its key and arguments: itself and its places in tables.
const BINDING_BYTES: usize = 160;
/// What each word of its key may take beside its text, in an index of patterns.
const WORD_BYTES: usize = 96;

impl Binding {
    fn terms(&self) -> TermsRef<'_> {
        let (arguments, condition) = (self.arguments.as_deref(), self.condition.as_deref());
        TermsRef { arguments, condition }
    }

    /// Whether it says anything beside its key.
    pub(super) fn has_terms(&self) -> bool {
        self.arguments.is_some() || self.condition.is_some()
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> u64 {
        let words = self.key.bytes().filter(|byte| *byte == b'.').count() + 1;
        let arguments = self.arguments.as_deref().map_or(0, arguments_bytes);
        let condition = self.condition.as_ref().map_or(0, |condition| condition.heap_bytes());
        (BINDING_BYTES + 2 * self.key.len() + words * WORD_BYTES + arguments + condition) as u64
    }
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

    pub(super) fn get_mut(&mut self, id: u32) -> &mut Binding {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
        self.slots.get_mut(id).expect("lists hold live bindings only")
    }

    pub(super) fn find(
        &self,
        source: ExchangeKey,
        target: Target,
        key: &str,
        terms: &Terms,
    ) -> Option<u32> {
        let hash = identity(&self.hasher, source, target, key, terms.borrow());
        let found = self.unique.find(hash, |&id| {
            let other = self.get(id);
            other.source == source
                && other.target == target
                && &*other.key == key
                && other.condition == terms.condition
                && compared(other.arguments.as_deref()) == compared(terms.arguments.as_deref())
        });
        found.copied()
    }

    /// Adds a binding that is not there yet; it is on no list.
    pub(super) fn add(
        &mut self,
        source: ExchangeKey,
        target: Target,
        key: &str,
        terms: Terms,
        by: Declarer,
    ) -> u32 {
        let hash = identity(&self.hasher, source, target, key, terms.borrow());
        let (key, links) = (key.into(), [UNLINKED; 3]);
        let Terms { arguments, condition } = terms;
        let is_suspended = false;
        let binding =
            Binding { source, target, key, arguments, condition, by, is_suspended, links };
        let id = self.slots.insert(binding);
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.unique.insert_unique(hash, id, |&other| {
            let other = slots.get(other).expect("the set holds live bindings only");
            identity(hasher, other.source, other.target, &other.key, other.terms())
        });
        id
    }

    /// Takes a binding out that is on no list any more.
    pub(super) fn remove(&mut self, id: u32) -> Binding {
        let binding = self.get(id);
        let Binding { source, target, ref key, .. } = *binding;
        let hash = identity(&self.hasher, source, target, key, binding.terms());
        self.unique.remove(hash, |&other| other == id);
        self.slots.remove(id).expect("lists hold live bindings only")
    }

    // ---- lists ----

    /// Puts a binding before `head`, the first of a list, or takes it off that list; returns the new head.
    #[must_use]
    pub(super) fn relink(&mut self, list: List, head: u32, id: u32, comes: bool) -> u32 {
        let at = list as usize;
        if comes {
            self.get_mut(id).links[at] = Links { previous: NONE, next: head };
            if head != NONE {
                self.get_mut(head).links[at].previous = id;
            }
            return id;
        }
        let Links { previous, next } = std::mem::replace(&mut self.get_mut(id).links[at], UNLINKED);
        if next != NONE {
            self.get_mut(next).links[at].previous = previous;
        }
        if previous == NONE {
            return next;
        }
        self.get_mut(previous).links[at].next = next;
        head
    }

    /// The bindings of the list that begins with `head`.
    pub(super) fn list(&self, list: List, head: u32) -> impl Iterator<Item = &Binding> {
        self.list_with_ids(list, head).map(|(_, binding)| binding)
    }

    /// The same with what finds each of them again.
    pub(super) fn list_with_ids(
        &self,
        list: List,
        head: u32,
    ) -> impl Iterator<Item = (u32, &Binding)> {
        let mut next = head;
        std::iter::from_fn(move || {
            let id = (next != NONE).then_some(next)?;
            let binding = self.get(id);
            next = binding.links[list as usize].next;
            Some((id, binding))
        })
    }

    /// Whether a binding shares one of its lists with as many as to be `count` together.
    pub(super) fn is_among(&self, list: List, id: u32, count: usize) -> bool {
        let links = |id: u32| self.get(id).links[list as usize];
        let others = |next: fn(Links) -> u32| {
            let next = |id: &u32| Some(next(links(*id))).filter(|next| *next != NONE);
            std::iter::successors(Some(id), next).skip(1).take(count).count()
        };
        1 + others(|links| links.previous) + others(|links| links.next) >= count
    }

    /// How many slots there are, used or free.
    pub(super) fn slots(&self) -> usize {
        self.slots.slots()
    }

    /// Those in some of the slots.
    pub(super) fn iter_in(&self, slots: Range<usize>) -> impl Iterator<Item = &Binding> {
        self.slots.iter_in(slots).map(|(_, binding)| binding)
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

    /// Puts a binding on the list of those that share its source and key, or takes it off.
    pub(super) fn relink_by_key(&mut self, id: u32, comes: bool) {
        let binding = self.get(id);
        let hash = self.hasher.hash_one((binding.source, &*binding.key));
        let old = self.by_key(binding.source, &binding.key);
        let new = self.relink(List::Leaf, old, id, comes);
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

/// A hash of all that makes a binding the one it is.
fn identity(
    hasher: &FixedState,
    source: ExchangeKey,
    target: Target,
    key: &str,
    terms: TermsRef<'_>,
) -> u64 {
    hasher.hash_one((source, target, key, compared(terms.arguments), terms.condition))
}

/// What arguments are compared by: every value equals itself, also a float that is not a number, so that a
/// binding that was made can be found again.
fn compared(arguments: Option<&Arguments>) -> Vec<u8> {
    let mut bytes = Vec::new();
    arguments.inspect(|arguments| arguments.encode(&mut Writer(&mut bytes)));
    bytes
}
