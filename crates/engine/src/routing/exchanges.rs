//! The exchanges of a virtual host, by key and by name.

use super::bindings::{Binding, ExchangeKey, Target};
use super::forms::Forms;
use super::header_index::HeaderIndex;
use super::patterns::{NONE, Patterns};
use crate::access::definitions::Declarer;
use crate::foundation::slab::Slab;
use crate::lifetime::Held;
use crate::policy::FollowedNames;
use crate::{ConnectionId, ExchangeKind, ExchangeOptions};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// One exchange with the heads of its binding lists.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) name: Arc<str>,
    pub(super) options: ExchangeOptions,
    /// The list of bindings that lead from it, and how many they are.
    pub(super) outgoing: u32,
    pub(super) outgoing_count: usize,
    /// The list of bindings that lead to it.
    pub(super) incoming: u32,
    /// Where patterns are compared: the index of them.
    pub(super) patterns: Option<Box<Patterns>>,
    /// The forms of those patterns that count; none where there never was one.
    pub(super) forms: Option<Box<Forms>>,
    /// Where headers are compared: the bindings by these.
    pub(super) by_header: Option<Box<HeaderIndex>>,
    /// Where every binding takes every message: what they lead to, each once.
    pub(super) all_targets: Option<Box<Targets>>,
    /// There: the list of bindings that take only some messages.
    pub(super) conditional: u32,
    /// Bindings that have arguments or a condition.
    pub(super) with_arguments: usize,
    /// Terms to evaluate for each message, of the filters of its bindings that are found by no hash.
    pub(super) filter_terms: usize,
    /// The number of the last route that passed here.
    pub(super) seen: u64,
    /// What makes it a temporary topic, if it is one.
    pub(super) temporary: Option<Box<TemporaryTopic>>,
    /// Who declared it.
    pub(super) by: Declarer,
    /// It was deleted, and has bindings left.
    pub(super) is_gone: bool,
    /// The policies it follows, and the alternate it has by them, if it follows any.
    pub(super) followed: Option<Box<(FollowedNames, Option<String>)>>,
}

/// What makes an exchange a temporary topic.
#[derive(Debug)]
pub(super) struct TemporaryTopic {
    /// The connection that alone may bind to it.
    pub(super) owner: Option<ConnectionId>,
    pub(super) held: Held,
}

/// What an exchange takes in memory beside its names, with an empty index of patterns.
const EXCHANGE_BYTES: usize = 512;

impl Exchange {
    pub(super) fn new(name: &str, options: ExchangeOptions, seed: u64) -> Exchange {
        let topic = options.kind == ExchangeKind::Topic;
        let headers = options.kind == ExchangeKind::Headers;
        let fanout = matches!(options.kind, ExchangeKind::Fanout | ExchangeKind::Filtered);
        Exchange {
            name: name.into(),
            options,
            outgoing: NONE,
            outgoing_count: 0,
            incoming: NONE,
            patterns: topic.then(|| Box::new(Patterns::new(seed))),
            forms: None,
            by_header: headers.then(|| Box::new(HeaderIndex::new(seed))),
            all_targets: fanout.then(|| Box::new(Targets::new(seed))),
            conditional: NONE,
            with_arguments: 0,
            filter_terms: 0,
            seen: 0,
            temporary: None,
            by: Declarer::default(),
            is_gone: false,
            followed: None,
        }
    }

    /// Where messages go that it leads nowhere: as declared, or else as policies say.
    pub(super) fn alternate(&self) -> Option<&str> {
        let by_policy = || self.followed.as_ref()?.1.as_deref();
        self.options.alternate.as_deref().or_else(by_policy)
    }

    /// A binding goes.
    pub(super) fn count_out(&mut self, binding: &Binding) {
        self.with_arguments -= usize::from(binding.has_terms());
        self.filter_terms -= binding.condition.as_ref().map_or(0, |it| it.terms_apart());
    }

    /// Whether it was not deleted.
    pub(super) fn is_live(&self) -> bool {
        !self.is_gone
    }

    /// About how much memory it takes, without its bindings.
    pub(super) fn bytes(&self) -> u64 {
        let alternate = self.options.alternate.as_ref().map_or(0, String::len);
        (EXCHANGE_BYTES + 2 * self.name.len() + alternate) as u64
    }
}

/// Targets, each once however many bindings lead to it.
#[derive(Debug)]
pub(super) struct Targets {
    list: Vec<Target>,
    /// Where in the list each is, and how many bindings lead to it.
    places: HashMap<Target, (u32, u32), FixedState>,
}

impl Targets {
    fn new(seed: u64) -> Targets {
        Targets { list: Vec::new(), places: HashMap::with_hasher(FixedState::with_seed(seed)) }
    }

    pub(super) fn list(&self) -> &[Target] {
        &self.list
    }

    /// A binding to a target comes.
    pub(super) fn add(&mut self, target: Target) {
        let next = u32::try_from(self.list.len()).expect("limits keep bindings below 2^32");
        let (_, bindings) = self.places.entry(target).or_insert((next, 0));
        *bindings += 1;
        if *bindings == 1 {
            self.list.push(target);
        }
    }

    /// A binding to a target goes.
    pub(super) fn remove(&mut self, target: Target) {
        let Some((place, bindings)) = self.places.get_mut(&target) else { return };
        *bindings -= 1;
        if *bindings > 0 {
            return;
        }
        let place = *place;
        self.places.remove(&target);
        self.list.swap_remove(place as usize);
        if let Some(moved) = self.list.get(place as usize)
            && let Some((at, _)) = self.places.get_mut(moved)
        {
            *at = place;
        }
    }
}

/// All exchanges by key and by name.
#[derive(Debug)]
pub(super) struct Exchanges {
    slots: Slab<Exchange>,
    names: HashMap<Arc<str>, ExchangeKey, FixedState>,
    /// Those with an alternate, behind the name of that.
    alternates: BTreeSet<(Box<str>, ExchangeKey)>,
}

impl Exchanges {
    pub(super) fn new(seed: u64) -> Exchanges {
        Exchanges {
            slots: Slab::default(),
            names: HashMap::with_hasher(FixedState::with_seed(seed)),
            alternates: BTreeSet::new(),
        }
    }

    /// Those that have the exchange of that name as their alternate.
    pub(super) fn with_alternate(&self, name: &str) -> impl Iterator<Item = ExchangeKey> {
        let from = (Box::from(name), ExchangeKey(0));
        let behind = self.alternates.range(from..);
        behind.take_while(move |(alternate, _)| **alternate == *name).map(|(_, key)| *key)
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn find(&self, name: &str) -> Option<ExchangeKey> {
        self.names.get(name).copied()
    }

    pub(super) fn get(&self, key: ExchangeKey) -> &Exchange {
        self.slots.get(key.0).expect("bindings and names lead to live exchanges")
    }

    /// The exchange of that key, which may have gone since.
    pub(super) fn try_get(&self, key: ExchangeKey) -> Option<&Exchange> {
        self.slots.get(key.0)
    }

    /// As [`Exchanges::try_get`].
    pub(super) fn try_get_mut(&mut self, key: ExchangeKey) -> Option<&mut Exchange> {
        self.slots.get_mut(key.0)
    }

    pub(super) fn get_mut(&mut self, key: ExchangeKey) -> &mut Exchange {
        self.slots.get_mut(key.0).expect("bindings and names lead to live exchanges")
    }

    pub(super) fn add(&mut self, exchange: Exchange) -> ExchangeKey {
        let name = Arc::clone(&exchange.name);
        let alternate = exchange.alternate().map(Box::from);
        let key = ExchangeKey(self.slots.insert(exchange));
        self.alternates.extend(alternate.map(|alternate| (alternate, key)));
        self.names.insert(name, key);
        key
    }

    /// An exchange is deleted: its name is free.
    pub(super) fn retire(&mut self, key: ExchangeKey) {
        let exchange =
            self.slots.get_mut(key.0).expect("bindings and names lead to live exchanges");
        exchange.is_gone = true;
        self.names.remove(&exchange.name);
        if let Some(alternate) = exchange.alternate() {
            self.alternates.remove(&(Box::from(alternate), key));
        }
    }

    /// An exchange follows other policies from now on, or none; says whether its alternate is another.
    pub(super) fn lead(
        &mut self,
        key: ExchangeKey,
        followed: Option<(FollowedNames, Option<String>)>,
    ) -> bool {
        let exchange = self.get_mut(key);
        let before = exchange.alternate().map(Box::from);
        exchange.followed = followed.map(Box::new);
        let after = exchange.alternate().map(Box::from);
        let changed = before != after;
        if changed {
            before.map(|alternate| self.alternates.remove(&(alternate, key)));
            self.alternates.extend(after.map(|alternate| (alternate, key)));
        }
        changed
    }

    /// The keys of exchanges in some of the slots that were not deleted.
    pub(super) fn live_keys_in(&self, slots: Range<usize>) -> Vec<ExchangeKey> {
        let all = self.slots.iter_in(slots).filter(|(_, exchange)| exchange.is_live());
        all.map(|(slot, _)| ExchangeKey(slot)).collect()
    }

    /// Takes out an exchange that was deleted and that no binding leads from or to.
    pub(super) fn remove(&mut self, key: ExchangeKey) -> Exchange {
        self.slots.remove(key.0).expect("bindings and names lead to live exchanges")
    }

    /// How many slots there are, used or free.
    pub(super) fn slots(&self) -> usize {
        self.slots.slots()
    }

    /// The exchanges in some of the slots.
    pub(super) fn iter_in(&self, slots: Range<usize>) -> impl Iterator<Item = &Exchange> {
        self.slots.iter_in(slots).map(|(_, exchange)| exchange)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Exchange> {
        self.slots.iter().map(|(_, exchange)| exchange)
    }
}
