//! A message's walk from exchange to exchange: over bindings and alternates to its queues, some of it at a
//! time where it is long.

use super::bindings::{ExchangeKey, List, Target};
use super::condition::{Conditional, Conditions};
use super::headers::{self, Headers};
use super::patterns::TOPIC;
use super::resolve::once_each;
use super::{Keys, Look, QueueKey, Router, VisitHeaders};
use crate::ExchangeKind;
use crate::interface::limits::ROUTE_EXCHANGES_MAX;
use std::sync::Arc;

/// Queues found twice or more that a walk may have in its list, beyond as many as were found once.
const REPEATED_MAX: usize = 4_096;

/// How far a message has come on its way through exchanges. Without any, it goes to queues by their names.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// The exchanges that it has come to, in order, each once; the first `at` are behind it.
    exchanges: Vec<ExchangeKey>,
    at: usize,
    /// Keys, or headers, that the exchange at hand was asked for.
    asked: usize,
    /// The exchange at hand has led it on, so that its alternate does not.
    is_led_on: bool,
    headers: Option<Headers>,
    /// It went to a queue by the queue's name.
    looked_up_name: bool,
    /// It came to the exchange of subjects.
    pub(crate) has_subjects: bool,
    /// Queues that it goes to under conditions.
    conditional: Vec<Conditional<QueueKey>>,
    /// Where it leads was decided by what the message is, beside its key.
    is_by_content: bool,
    /// It does not go there.
    pub(crate) avoids_subjects: bool,
    /// The names of the exchanges that are there, if it was interrupted: another one may have the slot of one
    /// that is gone.
    names: Vec<Option<Arc<str>>>,
}

impl Walk {
    /// The exchanges that it has come to, in order.
    pub(super) fn exchanges(&self) -> impl Iterator<Item = ExchangeKey> {
        self.exchanges.iter().copied()
    }

    /// Whether exchange and routing key alone decide where it leads.
    pub(super) fn is_by_key(&self) -> bool {
        self.headers.is_none() && !self.looked_up_name && !self.is_by_content
    }

    /// Takes the queues found so far that it goes to under conditions.
    pub(super) fn take_conditions(&mut self, seed: u64) -> Option<Arc<Conditions<QueueKey>>> {
        Conditions::of(std::mem::take(&mut self.conditional), seed).map(Arc::new)
    }
}

impl Router {
    /// A walk that begins at an exchange; `None` where there is no such exchange.
    pub(crate) fn begin_walk(&self, exchange: &str) -> Option<Walk> {
        if exchange.is_empty() {
            return Some(Walk::default());
        }
        let first = self.exchanges.find(exchange)?;
        Some(Walk { exchanges: vec![first], ..Walk::default() })
    }

    /// Those under which a walk leads to the queues that it has found under conditions so far.
    pub(crate) fn conditions_of(&self, walk: &mut Walk) -> Option<Arc<Conditions<QueueKey>>> {
        walk.take_conditions(self.seed)
    }

    /// Goes on with a walk until it has looked at `most` nodes, bindings and exchanges, or somewhat more, and
    /// adds the queues found to `out`. Says whether it is at its end.
    pub(crate) fn go_on(
        &mut self,
        walk: &mut Walk,
        keys: Keys<'_>,
        mut look: Look<'_>,
        most: u64,
        out: &mut Vec<QueueKey>,
    ) -> bool {
        if walk.exchanges.is_empty() {
            self.by_name(keys, out);
            return true;
        }
        self.mark_seen(walk);
        let end = self.looked_at.saturating_add(most);
        let mut once = out.len();
        while let Some(&own) = walk.exchanges.get(walk.at) {
            if self.looked_at >= end {
                self.interrupt(walk);
                return false;
            }
            let next = match self
                .exchanges
                .try_get(own)
                .filter(|it| it.seen == self.scratch.walk && it.is_live())
            {
                Some(exchange) => {
                    if exchange.options.kind == ExchangeKind::Headers && walk.headers.is_none() {
                        walk.headers = Some(collect(&mut *look.headers));
                    }
                    self.pass(own, walk, keys, &mut look, end, out)
                }
                // It was deleted meanwhile.
                None => None,
            };
            match next {
                Some(asked) => walk.asked = asked,
                None => (walk.at, walk.asked, walk.is_led_on) = (walk.at + 1, 0, false),
            }
            if out.len() > 2 * once + REPEATED_MAX {
                once_each(out);
                once = out.len();
            }
        }
        true
    }

    /// Has the exchange at hand lead the message on. Returns from which of its keys or headers on there is
    /// more to look up.
    fn pass(
        &mut self,
        own: ExchangeKey,
        walk: &mut Walk,
        keys: Keys<'_>,
        look: &mut Look<'_>,
        end: u64,
        out: &mut Vec<QueueKey>,
    ) -> Option<usize> {
        walk.has_subjects |= own == self.subjects;
        let next = self.find_targets(own, walk.asked, keys, walk.headers.as_ref(), end);
        self.pass_conditional(own, walk, look);
        let mut targets = std::mem::take(&mut self.scratch.targets);
        if self.has_leaving() {
            targets.retain(|target| self.is_live(*target));
        }
        walk.is_led_on |= !targets.is_empty();
        for target in &targets {
            match *target {
                Target::Queue(queue) => out.push(queue),
                Target::Exchange(key) => self.come_to(walk, key),
            }
        }
        self.scratch.targets = targets;
        if next.is_none() && !walk.is_led_on {
            let alternate = self.exchanges.get(own).alternate();
            if alternate == Some("") {
                self.by_name(keys, out);
                walk.looked_up_name = true;
            } else if let Some(key) = alternate.and_then(|name| self.exchanges.find(name)) {
                self.come_to(walk, key);
            }
        }
        next
    }

    /// Has those bindings lead the message on that take it under a condition. Whether it is met by this
    /// message is seen at once where that decides about more than a queue.
    fn pass_conditional(&mut self, own: ExchangeKey, walk: &mut Walk, look: &mut Look<'_>) {
        if self.scratch.conditional.is_empty() {
            return;
        }
        let Router { exchanges, bindings, scratch, .. } = self;
        let has_alternate = exchanges.get(own).alternate().is_some();
        for id in scratch.conditional.drain(..) {
            let binding = bindings.get(id);
            let Some(condition) = binding.condition.as_deref() else { continue };
            match binding.target {
                Target::Queue(queue) if !has_alternate => {
                    walk.is_led_on = true;
                    walk.conditional.push(Conditional { queue, condition: condition.clone() });
                }
                target => {
                    walk.is_by_content = true;
                    if (look.meets)(condition) {
                        scratch.targets.push(target);
                    }
                }
            }
        }
    }

    /// Marks the exchanges that a walk has come to and that are still there.
    fn mark_seen(&mut self, walk: &mut Walk) {
        self.scratch.walk += 1;
        for (index, key) in walk.exchanges.iter().enumerate() {
            let Some(exchange) = self.exchanges.try_get_mut(*key) else { continue };
            let is_it = |name: &Option<Arc<str>>| {
                name.as_ref().is_some_and(|name| Arc::ptr_eq(name, &exchange.name))
            };
            if walk.names.get(index).is_none_or(is_it) {
                exchange.seen = self.scratch.walk;
            }
        }
    }

    /// Notes which of its exchanges are there, for when the walk goes on.
    fn interrupt(&self, walk: &mut Walk) {
        let there = |key: &ExchangeKey| {
            let exchange = self.exchanges.try_get(*key)?;
            (exchange.seen == self.scratch.walk).then(|| Arc::clone(&exchange.name))
        };
        walk.names = walk.exchanges.iter().map(there).collect();
    }

    /// Notes an exchange for the walk unless the message has come to it before.
    fn come_to(&mut self, walk: &mut Walk, key: ExchangeKey) {
        if walk.exchanges.len() >= ROUTE_EXCHANGES_MAX
            || (walk.avoids_subjects && key == self.subjects)
        {
            return;
        }
        let exchange = self.exchanges.get_mut(key);
        if exchange.seen != self.scratch.walk {
            exchange.seen = self.scratch.walk;
            walk.exchanges.push(key);
        }
    }

    /// Finds the targets of the bindings of one exchange that take the message, from one of its keys or
    /// headers on, until the walk has looked at as much as `end` says. Returns which of them is next.
    fn find_targets(
        &mut self,
        own: ExchangeKey,
        from: usize,
        keys: Keys<'_>,
        headers: Option<&Headers>,
        end: u64,
    ) -> Option<usize> {
        let Router { exchanges, bindings, names, scratch, looked_at, .. } = self;
        let super::resolve::Scratch { targets, conditional, matching, .. } = scratch;
        let exchange = exchanges.get(own);
        targets.clear();
        conditional.clear();
        let mut take_all = |targets: &mut Vec<Target>, head| {
            for (id, binding) in bindings.list_with_ids(List::Leaf, head) {
                match binding.condition {
                    None => targets.push(binding.target),
                    Some(_) => conditional.push(id),
                }
            }
        };
        *looked_at += 1;
        let keys = std::iter::once(keys.routing_key).chain(keys.also_to.iter().copied());
        match exchange.options.kind {
            ExchangeKind::Fanout | ExchangeKind::Filtered => {
                targets.extend(exchange.all_targets.iter().flat_map(|all| all.list()));
                take_all(targets, exchange.conditional);
                *looked_at += (targets.len() + conditional.len()) as u64;
            }
            ExchangeKind::Direct | ExchangeKind::Topic => {
                for (index, key) in keys.enumerate().skip(from) {
                    if index > from && *looked_at >= end {
                        return Some(index);
                    }
                    let before = targets.len();
                    let mut take = |head| take_all(targets, head);
                    if let Some(patterns) = &exchange.patterns {
                        let words = TOPIC.words(key);
                        *looked_at += patterns.matches(words, matching, take) as u64;
                    } else {
                        take(bindings.by_key(own, key));
                    }
                    *looked_at += (targets.len() - before) as u64;
                }
            }
            ExchangeKind::Headers => {
                let (Some(headers), Some(index)) = (headers, &exchange.by_header) else {
                    return None;
                };
                let room = end.saturating_sub(*looked_at).max(1);
                let (found, next) = index.find(headers, from, room, |alike| {
                    let arguments = bindings.get(alike[0]).arguments.as_deref();
                    if headers::matches(names, arguments, headers) {
                        for id in alike {
                            let binding = bindings.get(*id);
                            match binding.condition {
                                None => targets.push(binding.target),
                                Some(_) => conditional.push(*id),
                            }
                        }
                        return alike.len();
                    }
                    0
                });
                *looked_at += found;
                return next;
            }
        }
        None
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
