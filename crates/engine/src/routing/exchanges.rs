//! The exchanges of a virtual host, by key and by name.

use super::bindings::ExchangeKey;
use super::patterns::{NONE, Patterns};
use crate::access::definitions::Declarer;
use crate::foundation::slab::Slab;
use crate::{ExchangeKind, ExchangeOptions};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
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
    /// The number of the last route that passed here.
    pub(super) seen: u64,
    /// Who declared it.
    pub(super) by: Declarer,
}

/// What an exchange takes in memory beside its names, with an empty index of patterns.
const EXCHANGE_BYTES: usize = 512;

impl Exchange {
    pub(super) fn new(name: &str, options: ExchangeOptions, seed: u64) -> Exchange {
        let topic = options.kind == ExchangeKind::Topic;
        Exchange {
            name: name.into(),
            options,
            outgoing: NONE,
            outgoing_count: 0,
            incoming: NONE,
            patterns: topic.then(|| Box::new(Patterns::new(seed))),
            seen: 0,
            by: Declarer::default(),
        }
    }

    /// About how much memory it takes, without its bindings.
    pub(super) fn bytes(&self) -> u64 {
        let alternate = self.options.alternate.as_ref().map_or(0, String::len);
        (EXCHANGE_BYTES + 2 * self.name.len() + alternate) as u64
    }
}

/// All exchanges by key and by name.
#[derive(Debug)]
pub(super) struct Exchanges {
    slots: Slab<Exchange>,
    names: HashMap<Arc<str>, ExchangeKey, FixedState>,
}

impl Exchanges {
    pub(super) fn new(seed: u64) -> Exchanges {
        Exchanges {
            slots: Slab::default(),
            names: HashMap::with_hasher(FixedState::with_seed(seed)),
        }
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

    pub(super) fn get_mut(&mut self, key: ExchangeKey) -> &mut Exchange {
        self.slots.get_mut(key.0).expect("bindings and names lead to live exchanges")
    }

    pub(super) fn add(&mut self, exchange: Exchange) -> ExchangeKey {
        let name = Arc::clone(&exchange.name);
        let key = ExchangeKey(self.slots.insert(exchange));
        self.names.insert(name, key);
        key
    }

    /// Takes out an exchange that no binding leads from or to.
    pub(super) fn remove(&mut self, key: ExchangeKey) -> Exchange {
        let exchange = self.slots.remove(key.0);
        let exchange = exchange.expect("bindings and names lead to live exchanges");
        self.names.remove(&exchange.name);
        exchange
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Exchange> {
        self.slots.iter().map(|(_, exchange)| exchange)
    }
}
