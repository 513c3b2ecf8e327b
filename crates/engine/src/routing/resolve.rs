//! From an exchange and keys to queues: the walk over exchanges, bindings and alternates.

use super::bindings::{ExchangeKey, List, Target};
use super::headers::{self, Headers};
use super::patterns::{MatchScratch, TOPIC};
use super::{Keys, QueueKey, Routed, Router, VisitHeaders};
use crate::ExchangeKind;
use crate::interface::limits::ROUTE_EXCHANGES_MAX;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a walk needs and the next one can use again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Exchanges that the message has come to, in order.
    exchanges: Vec<ExchangeKey>,
    /// Targets that one exchange leads it to.
    targets: Vec<Target>,
    matching: MatchScratch,
    /// Counts walks; an exchange marked with this number has been come to.
    walk: u64,
}

impl Router {
    /// Fills `out` (cleared first) with the queues the message goes to, each once, in key order.
    /// `None`: there is no such exchange. A repeated exchange and key costs one hash lookup.
    #[inline]
    pub(crate) fn route(
        &mut self,
        exchange: &str,
        keys: Keys<'_>,
        headers: VisitHeaders<'_>,
        out: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        out.clear();
        if exchange.is_empty() {
            self.by_name(keys, out);
            once_each(out);
            return Some(Routed { internal: false, delaying: false, has_subjects: false });
        }
        if keys.also_to.is_empty() {
            let known = self.cache.get(self.generation, exchange, keys.routing_key, out);
            if known.is_some() {
                return known;
            }
        }
        self.resolve(exchange, keys, headers, out)
    }

    #[cold]
    fn resolve(
        &mut self,
        name: &str,
        keys: Keys<'_>,
        visit_headers: VisitHeaders<'_>,
        out: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        let first = self.exchanges.find(name)?;
        let options = &self.exchanges.get(first).options;
        let (internal, delaying, mut has_subjects) = (options.internal, options.delaying, false);

        let mut headers: Option<Headers> = None;
        let mut looked_up_name = false;
        self.scratch.walk += 1;
        self.scratch.exchanges.clear();
        self.come_to(first);
        let mut at = 0;
        while at < self.scratch.exchanges.len().min(ROUTE_EXCHANGES_MAX) {
            let own = self.scratch.exchanges[at];
            has_subjects |= own == self.subjects;
            let kind = self.exchanges.get(own).options.kind;
            if kind == ExchangeKind::Headers && headers.is_none() {
                headers = Some(collect(visit_headers));
            }
            self.find_targets(own, keys, headers.as_ref());
            if self.scratch.targets.is_empty() {
                let alternate = self.exchanges.get(own).options.alternate.as_deref();
                if alternate == Some("") {
                    self.by_name(keys, out);
                    looked_up_name = true;
                } else if let Some(key) = alternate.and_then(|name| self.exchanges.find(name)) {
                    self.come_to(key);
                }
            }
            for index in 0..self.scratch.targets.len() {
                match self.scratch.targets[index] {
                    Target::Queue(queue) => out.push(queue),
                    Target::Exchange(key) => self.come_to(key),
                }
            }
            at += 1;
        }
        once_each(out);
        let routed = Routed { internal, delaying, has_subjects };
        if headers.is_none() && !looked_up_name && keys.also_to.is_empty() {
            self.cache.put(self.generation, name, keys.routing_key, routed, out);
        }
        Some(routed)
    }

    /// The exchanges that a message comes to, that it is published to among them; none where there is no such
    /// exchange.
    pub(crate) fn reached(
        &mut self,
        exchange: &str,
        keys: Keys<'_>,
        headers: VisitHeaders<'_>,
    ) -> Vec<&str> {
        if self.resolve(exchange, keys, headers, &mut Vec::new()).is_none() {
            return Vec::new();
        }
        self.scratch.exchanges.iter().map(|key| &*self.exchanges.get(*key).name).collect()
    }

    /// Which of `ends` bindings and alternates can lead a message to from an exchange. An exchange leads to
    /// itself, also one that is yet to be declared.
    pub(crate) fn reachable<'a>(
        &self,
        exchange: &str,
        ends: impl Iterator<Item = &'a str>,
    ) -> Vec<&'a str> {
        let from = self.exchanges.find(exchange);
        let mut by_alternate = None;
        let mut is_reached = |end: &&str| {
            if *end == exchange {
                return true;
            }
            let (Some(from), Some(to)) = (from, self.exchanges.find(end)) else { return false };
            let by_alternate = by_alternate.get_or_insert_with(|| self.by_alternate());
            self.leads_to(from, to, by_alternate)
        };
        ends.filter(|end| is_reached(end)).collect()
    }

    /// The exchanges that have an alternate, by its name.
    fn by_alternate(&self) -> BTreeMap<&str, Vec<ExchangeKey>> {
        let mut by_alternate = BTreeMap::<&str, Vec<ExchangeKey>>::new();
        for other in self.exchanges.iter() {
            if let (Some(alternate), Some(key)) =
                (other.options.alternate.as_deref(), self.exchanges.find(&other.name))
            {
                by_alternate.entry(alternate).or_default().push(key);
            }
        }
        by_alternate
    }

    fn leads_to(
        &self,
        from: ExchangeKey,
        to: ExchangeKey,
        by_alternate: &BTreeMap<&str, Vec<ExchangeKey>>,
    ) -> bool {
        let mut leading = BTreeSet::from([to]);
        let mut ahead = vec![to];
        while let Some(key) = ahead.pop() {
            let exchange = self.exchanges.get(key);
            let bound = self.bindings.list(List::Target, exchange.incoming);
            let alternate_of = by_alternate.get(&*exchange.name).into_iter().flatten();
            let before = bound.map(|binding| binding.source).chain(alternate_of.copied());
            ahead.extend(before.filter(|key| leading.insert(*key)));
        }
        leading.contains(&from)
    }

    /// The default exchange: every queue is bound to it by its name.
    #[inline]
    fn by_name(&mut self, keys: Keys<'_>, out: &mut Vec<QueueKey>) {
        match &self.last_named {
            Some((name, queue)) if **name == *keys.routing_key => out.push(*queue),
            _ => out.extend(self.look_up_name(keys.routing_key)),
        }
        out.extend(keys.also_to.iter().filter_map(|key| self.queue(key)));
    }

    /// The queue of that name, to be remembered as the last one.
    fn look_up_name(&mut self, name: &str) -> Option<QueueKey> {
        let (name, queue) = self.queue_names.get_key_value(name)?;
        self.last_named = Some((Arc::clone(name), *queue));
        Some(*queue)
    }

    /// Notes an exchange for the walk unless the message has come to it before.
    fn come_to(&mut self, key: ExchangeKey) {
        let exchange = self.exchanges.get_mut(key);
        if exchange.seen != self.scratch.walk {
            exchange.seen = self.scratch.walk;
            self.scratch.exchanges.push(key);
        }
    }

    /// Finds the targets of all bindings of one exchange that take the message.
    fn find_targets(&mut self, own: ExchangeKey, keys: Keys<'_>, headers: Option<&Headers>) {
        let Router { exchanges, bindings, names, scratch, looked_at, .. } = self;
        let Scratch { targets, matching, .. } = scratch;
        let exchange = exchanges.get(own);
        targets.clear();
        let keys = std::iter::once(keys.routing_key).chain(keys.also_to.iter().copied());
        match exchange.options.kind {
            ExchangeKind::Fanout => {
                targets.extend(exchange.all_targets.iter().flat_map(|all| all.list()));
            }
            ExchangeKind::Direct => {
                for key in keys {
                    let equal = bindings.list(List::Leaf, bindings.by_key(own, key));
                    targets.extend(equal.map(|binding| binding.target));
                }
            }
            ExchangeKind::Topic => {
                let Some(patterns) = &exchange.patterns else { return };
                for key in keys {
                    let visited = patterns.matches(TOPIC.words(key), matching, |head| {
                        let leaf = bindings.list(List::Leaf, head);
                        targets.extend(leaf.map(|binding| binding.target));
                    });
                    *looked_at += visited as u64;
                }
            }
            ExchangeKind::Headers => {
                let (Some(headers), Some(index)) = (headers, &exchange.by_header) else { return };
                let found = index.find(headers, |alike| {
                    let arguments = bindings.get(alike[0]).arguments.as_deref();
                    if headers::matches(names, arguments, headers) {
                        targets.extend(alike.iter().map(|id| bindings.get(*id).target));
                    }
                });
                *looked_at += found as u64;
            }
        }
        *looked_at += 1 + targets.len() as u64;
    }
}

/// The headers as a map; of a name that occurs twice, the first counts.
fn collect(visit: VisitHeaders<'_>) -> Headers {
    let mut headers = Headers::new();
    visit(&mut |name, value| {
        headers.entry(name.to_owned()).or_insert(value);
    });
    headers
}

fn once_each(queues: &mut Vec<QueueKey>) {
    if queues.len() > 1 {
        queues.sort_unstable();
        queues.dedup();
    }
}
