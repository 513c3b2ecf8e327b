//! From an exchange and keys to queues: by name, as remembered, or by a walk over exchanges.

use super::bindings::{ExchangeKey, List, Target};
use super::patterns::MatchScratch;
use super::{Keys, Look, QueueKey, Routed, Router, VisitHeaders};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a walk needs and the next one can use again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Targets that one exchange leads it to.
    pub(super) targets: Vec<Target>,
    /// Bindings of it that take only some messages.
    pub(super) conditional: Vec<u32>,
    pub(super) matching: MatchScratch,
    /// Counts walks; an exchange marked with this number has been come to.
    pub(super) walk: u64,
}

impl Router {
    /// Fills `out` (cleared first) with the queues the message goes to, each once, in key order: with some of
    /// them where its way is long ([`Routed::is_whole`]). `None`: there is no such exchange. A repeated
    /// exchange and key costs one hash lookup.
    #[inline]
    pub(crate) fn route(
        &mut self,
        exchange: &str,
        keys: Keys<'_>,
        look: Look<'_>,
        out: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        out.clear();
        if exchange.is_empty() {
            self.by_name(keys, out);
            once_each(out);
            return Some(Routed {
                internal: false,
                delaying: false,
                has_subjects: false,
                is_whole: true,
                is_conditional: false,
            });
        }
        if keys.also_to.is_empty() {
            let Router { cache, generation, conditions, .. } = self;
            let known = cache.get(*generation, exchange, keys.routing_key, out, conditions);
            if known.is_some() {
                return known;
            }
        }
        self.resolve(exchange, keys, look, self.route_steps_at_once, out)
    }

    /// As [`Router::route`], however long the message's way is.
    pub(crate) fn route_whole(
        &mut self,
        exchange: &str,
        keys: Keys<'_>,
        look: Look<'_>,
        out: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        out.clear();
        self.resolve(exchange, keys, look, u64::MAX, out)
    }

    #[cold]
    fn resolve(
        &mut self,
        name: &str,
        keys: Keys<'_>,
        look: Look<'_>,
        most: u64,
        out: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        let mut walk = self.begin_walk(name)?;
        let options = &self.exchange(name).ok()?;
        let (internal, delaying) = (options.internal, options.delaying);
        let is_whole = self.go_on(&mut walk, keys, look, most, out);
        once_each(out);
        let has_subjects = walk.has_subjects;
        self.conditions = walk.take_conditions(self.seed);
        let is_conditional = self.conditions.is_some();
        let routed = Routed { internal, delaying, has_subjects, is_whole, is_conditional };
        if is_whole && walk.is_by_key() && keys.also_to.is_empty() {
            let (generation, conditions) = (self.generation, self.conditions.as_ref());
            self.cache.put(generation, name, keys.routing_key, routed, out, conditions);
        }
        Some(routed)
    }

    /// The exchanges that a message comes to, that it is published to among them; none where there is no such
    /// exchange, and `None` where its way is long.
    pub(crate) fn reached(
        &mut self,
        exchange: &str,
        keys: Keys<'_>,
        headers: VisitHeaders<'_>,
    ) -> Option<Vec<&str>> {
        // Whatever a binding asks for beside the key.
        let look = Look { headers, meets: &mut |_| true };
        let Some(mut walk) = self.begin_walk(exchange) else { return Some(Vec::new()) };
        let most = self.route_steps_at_once;
        let is_whole = self.go_on(&mut walk, keys, look, most, &mut Vec::new());
        let name = |key| &*self.exchanges.get(key).name;
        is_whole.then(|| walk.exchanges().map(name).collect())
    }

    /// Which of `ends` bindings and alternates can lead a message to from an exchange. An exchange leads to
    /// itself, also one that is yet to be declared.
    pub(crate) fn reachable<'a>(
        &self,
        exchange: &str,
        ends: impl Iterator<Item = &'a str>,
    ) -> Vec<&'a str> {
        let from = self.exchanges.find(exchange);
        let is_reached = |end: &&str| {
            let leads = || Some(self.leads_to(from?, self.exchanges.find(end)?));
            *end == exchange || leads().unwrap_or(false)
        };
        ends.filter(is_reached).collect()
    }

    fn leads_to(&self, from: ExchangeKey, to: ExchangeKey) -> bool {
        let mut leading = BTreeSet::from([to]);
        let mut ahead = vec![to];
        while let Some(key) = ahead.pop() {
            let exchange = self.exchanges.get(key);
            let bound = self.bindings.list(List::Target, exchange.incoming);
            let alternate_of = self.exchanges.with_alternate(&exchange.name);
            let before = bound.map(|binding| binding.source).chain(alternate_of);
            ahead.extend(before.filter(|key| leading.insert(*key)));
        }
        leading.contains(&from)
    }

    /// The default exchange: every queue is bound to it by its name.
    #[inline]
    pub(super) fn by_name(&mut self, keys: Keys<'_>, out: &mut Vec<QueueKey>) {
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
}

/// Sorts queues, each to be there once.
pub(crate) fn once_each(queues: &mut Vec<QueueKey>) {
    if queues.len() > 1 {
        queues.sort_unstable();
        queues.dedup();
    }
}
