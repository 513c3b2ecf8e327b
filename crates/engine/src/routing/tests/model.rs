//! Random changes and messages: the router against a model that is nothing but lists.

use super::patterns::{Random, naive_topic};
use super::*;
use std::collections::{BTreeMap, BTreeSet};

const EXCHANGES: [&str; 6] = ["d", "f", "t", "u", "amq.topic", "amq.direct"];
const QUEUES: [&str; 5] = ["q1", "q2", "q3", "q4", "q5"];
const WORDS: [&str; 4] = ["a", "b", "*", "#"];

/// (source, target, key): targets as in [`target`].
type Binding = (String, String, String);

#[derive(Default)]
struct Model {
    exchanges: BTreeMap<String, ExchangeOptions>,
    queues: BTreeMap<String, QueueKey>,
    bindings: BTreeSet<Binding>,
}

impl Model {
    fn has(&self, target: &str) -> bool {
        match target.strip_prefix('>') {
            Some(exchange) => self.exchanges.contains_key(exchange),
            None => self.queues.contains_key(target),
        }
    }

    /// Takes out the bindings that `goes` says, then the auto-delete exchanges that lost their last.
    fn take(&mut self, goes: impl Fn(&Binding) -> bool) {
        let (gone, kept) = std::mem::take(&mut self.bindings).into_iter().partition(goes);
        self.bindings = kept;
        let gone: BTreeSet<Binding> = gone;
        let lost: BTreeSet<String> = gone.into_iter().map(|(source, ..)| source).collect();
        for source in lost {
            let last = !self.bindings.iter().any(|(other, ..)| *other == source);
            if last && self.exchanges.get(&source).is_some_and(|options| options.auto_delete) {
                self.delete(&source);
            }
        }
    }

    fn delete(&mut self, name: &str) {
        self.exchanges.remove(name);
        let target = format!(">{name}");
        self.take(|(source, to, _)| *source == name || *to == target);
    }

    fn route(&self, exchange: &str, keys: &[&str]) -> BTreeSet<QueueKey> {
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        self.walk(exchange, keys, &mut seen, &mut found);
        found
    }

    fn walk(
        &self,
        exchange: &str,
        keys: &[&str],
        seen: &mut BTreeSet<String>,
        found: &mut BTreeSet<QueueKey>,
    ) {
        let Some(options) = self.exchanges.get(exchange) else { return };
        if !seen.insert(exchange.to_owned()) {
            return;
        }
        let mut any = false;
        for (source, to, pattern) in &self.bindings {
            let takes = keys.iter().any(|key| match options.kind {
                Direct => pattern == key,
                Fanout => true,
                Topic => naive_topic(pattern, key),
                Headers | ExchangeKind::Filtered => false,
            });
            if source != exchange || !takes {
                continue;
            }
            any = true;
            match to.strip_prefix('>') {
                Some(next) => self.walk(next, keys, seen, found),
                None => drop(found.insert(self.queues[to])),
            }
        }
        if let (false, Some(alternate)) = (any, &options.alternate) {
            self.walk(alternate, keys, seen, found);
        }
    }
}

struct Pair {
    router: Router,
    model: Model,
    random: Random,
    next_key: u32,
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let router = Router::new("/", &crate::tests::CONVENTIONS.names, &Limits::default(), seed);
        let mut model = Model::default();
        for (name, options) in router.exchanges() {
            model.exchanges.insert(name.to_owned(), options.clone());
        }
        Pair { router, model, random: Random::new(seed), next_key: 0 }
    }

    fn declare(&mut self) {
        let name = self.random.pick(&EXCHANGES[..4]);
        let kind = match name {
            "d" => Direct,
            "f" => Fanout,
            _ => Topic,
        };
        let alternate = (self.random.below(2) == 0).then(|| self.random.pick(&EXCHANGES).into());
        let options =
            ExchangeOptions { auto_delete: self.random.below(2) == 0, alternate, ..options(kind) };
        let same = self.model.exchanges.get(name).is_none_or(|current| *current == options);
        assert_eq!(self.router.declare_exchange(name, &options).is_ok(), same);
        self.model.exchanges.entry(name.into()).or_insert(options);
    }

    fn delete(&mut self) {
        let name = self.random.pick(&EXCHANGES[..4]);
        let change = self.router.delete_exchange(name, false).unwrap();
        assert_eq!(change.changed, self.model.exchanges.contains_key(name));
        self.model.delete(name);
    }

    fn queue(&mut self) {
        let name = self.random.pick(&QUEUES);
        if let Some(key) = self.model.queues.remove(name) {
            self.router.queue_removed(key);
            self.model.take(|(_, to, _)| to == name);
        } else {
            let key = QueueKey(self.next_key);
            self.next_key += 1;
            self.router.queue_added(name, key, false);
            self.model.queues.insert(name.into(), key);
        }
    }

    fn bind_or_unbind(&mut self) {
        let source = self.random.pick(&EXCHANGES);
        let to = match self.random.below(3) {
            0 => format!(">{}", self.random.pick(&EXCHANGES)),
            _ => self.random.pick(&QUEUES).to_owned(),
        };
        let key = self.random.words(&WORDS, 3);
        let binding = (source.to_owned(), to.clone(), key.clone());
        let known = self.model.exchanges.contains_key(source) && self.model.has(&to);
        if self.random.below(5) < 3 {
            let bound = self.router.bind(source, &target(&to), &key, Arguments::new());
            assert_eq!(bound.is_ok(), known);
            if let Ok(change) = bound {
                assert_eq!(change.changed, self.model.bindings.insert(binding));
            }
        } else {
            let change = self.router.unbind(source, &target(&to), &key, Arguments::new()).unwrap();
            assert_eq!(change.changed, self.model.bindings.contains(&binding));
            self.model.take(|other| *other == binding);
        }
    }

    fn compare(&mut self, what: &str) {
        let listed: BTreeSet<Binding> = self
            .router
            .bindings()
            .map(|binding| {
                let to = match binding.target {
                    TargetView::Queue(name, _) => name.to_owned(),
                    TargetView::Exchange(name) => format!(">{name}"),
                };
                (binding.source.to_owned(), to, binding.key.to_owned())
            })
            .collect();
        assert_eq!(listed, self.model.bindings, "{what}");
        let exchanges = self.model.exchanges.iter().map(|(name, options)| (&**name, options));
        assert!(self.router.exchanges().eq(exchanges), "{what}");
        for _ in 0..6 {
            let exchange = self.random.pick(&EXCHANGES);
            let key = self.random.words(&WORDS[..2], 3);
            let other = self.random.words(&WORDS[..2], 2);
            let keys = [key.as_str(), other.as_str()];
            let keys = &keys[..1 + self.random.below(2)];
            let mut out = Vec::new();
            let asked = Keys { routing_key: keys[0], also_to: &keys[1..] };
            let routed = self.router.route_by(exchange, asked, &mut |_| (), &mut out);
            assert_eq!(routed.is_some(), self.model.exchanges.contains_key(exchange), "{what}");
            let expected: Vec<_> = self.model.route(exchange, keys).into_iter().collect();
            assert_eq!(out, expected, "{what}: {exchange} {keys:?}");
        }
    }
}

#[test]
fn agrees_with_a_model_whatever_happens() {
    for seed in 0..30 {
        let mut pair = Pair::new(seed);
        for step in 0..250 {
            match pair.random.below(12) {
                0 => pair.declare(),
                1 if pair.random.below(2) == 0 => pair.delete(),
                2 | 3 => pair.queue(),
                _ => pair.bind_or_unbind(),
            }
            pair.compare(&format!("seed {seed} step {step}"));
        }
        for key in pair.model.queues.into_values() {
            pair.router.queue_removed(key);
        }
        for name in &EXCHANGES[..4] {
            pair.router.delete_exchange(name, false).unwrap();
        }
        let left: Vec<_> = pair.router.bindings().map(|binding| binding.source).collect();
        assert!(left.iter().all(|source| source.starts_with("amq.")), "seed {seed}: {left:?}");
    }
}
