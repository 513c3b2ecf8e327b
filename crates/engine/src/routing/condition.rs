//! What a message has to be for a binding to take it, beside its key: selected by a filter, published by
//! another client.

use crate::selector::filter_set::FilterSet;
use crate::selector::{Filter, Value};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// What a binding asks of a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Condition {
    pub(crate) filter: Option<Filter>,
    /// The client whose messages it does not take.
    pub(crate) not_from: Option<Box<str>>,
}

impl Condition {
    /// `None`: nothing.
    pub(crate) fn of(filter: Option<Filter>, not_from: Option<&str>) -> Option<Box<Condition>> {
        let filter = filter.filter(|filter| !filter.selector().selects_all());
        let is_one = filter.is_some() || not_from.is_some();
        is_one.then(|| Box::new(Condition { filter, not_from: not_from.map(Box::from) }))
    }

    /// Whether it is met by a message with these properties, from that client.
    pub(crate) fn is_met<'m>(
        &self,
        property: &impl Fn(&str) -> Value<'m>,
        from: Option<&str>,
    ) -> bool {
        (self.not_from.is_none() || self.not_from.as_deref() != from)
            && self.filter.as_ref().is_none_or(|filter| filter.selector().matches(property))
    }

    /// Terms that a message may have to be evaluated against for it alone.
    pub(crate) fn terms(&self) -> usize {
        self.filter.as_ref().map_or(1, |filter| filter.selector().terms())
    }

    /// The same of what no hash decides.
    pub(super) fn terms_apart(&self) -> usize {
        /// What a filter has that compares a property with a value and nothing else.
        const EQUALITY_TERMS: usize = 3;
        let has_equality = |filter: &Filter| filter.selector().equality().is_some();
        let hashed = self.filter.as_ref().is_some_and(has_equality);
        self.terms().saturating_sub(if hashed { EQUALITY_TERMS } else { 0 })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Condition>()
            + self.filter.as_ref().map_or(0, Filter::memory_bytes)
            + self.not_from.as_ref().map_or(0, |name| name.len())
    }
}

/// A queue, as `K` names it, that gets a message under a condition.
#[derive(Clone, Debug)]
pub(super) struct Conditional<K> {
    pub(super) queue: K,
    pub(super) condition: Condition,
}

/// The queues that a route leads to under conditions, such that each distinct filter is evaluated once for a
/// message.
#[derive(Debug)]
pub(crate) struct Conditions<K> {
    /// By the place of their filter in `by_filter`.
    filters: FilterSet<u32>,
    by_filter: Vec<Vec<Taker<K>>>,
    /// Those without a filter.
    others: Vec<Taker<K>>,
}

#[derive(Debug)]
struct Taker<K> {
    queue: K,
    not_from: Option<Box<str>>,
}

impl<K: Copy> Conditions<K> {
    /// Those of the queues that a walk has found; `None`: there are none.
    pub(super) fn of(found: Vec<Conditional<K>>, seed: u64) -> Option<Conditions<K>> {
        if found.is_empty() {
            return None;
        }
        let mut conditions =
            Conditions { filters: FilterSet::new(seed), by_filter: Vec::new(), others: Vec::new() };
        let mut places = HashMap::with_hasher(FixedState::with_seed(seed));
        for Conditional { queue, condition } in found {
            let taker = Taker { queue, not_from: condition.not_from };
            let Some(filter) = condition.filter else {
                conditions.others.push(taker);
                continue;
            };
            let next = conditions.by_filter.len() as u32;
            let place = *places.entry(filter.clone()).or_insert(next);
            if place == next {
                conditions.filters.add(&filter, place);
                conditions.by_filter.push(Vec::new());
            }
            conditions.by_filter[place as usize].push(taker);
        }
        Some(conditions)
    }

    /// How many queues they are about.
    pub(super) fn len(&self) -> usize {
        self.others.len() + self.by_filter.iter().map(Vec::len).sum::<usize>()
    }

    /// Adds the queues whose conditions are met by a message with these properties, from that client;
    /// returns how many terms were evaluated.
    pub(crate) fn select<'m>(
        &self,
        property: &impl Fn(&str) -> Value<'m>,
        from: Option<&str>,
        out: &mut Vec<K>,
    ) -> usize {
        let mut found = Vec::new();
        let terms = self.filters.find(property, &mut found);
        let selected = found.iter().flat_map(|place| &self.by_filter[*place as usize]);
        let takes =
            |taker: &&Taker<K>| taker.not_from.is_none() || taker.not_from.as_deref() != from;
        let before = out.len();
        out.extend(selected.chain(&self.others).filter(takes).map(|taker| taker.queue));
        terms + out.len() - before
    }
}
