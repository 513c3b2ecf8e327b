//! Routing within one virtual host: exchanges, bindings, and from a message's keys to its queues.
//!
//! Queues are keys here that the caller chose; independent of what they hold.

pub(crate) mod bindings;
mod cache;
pub(crate) mod condition;
mod exchanges;
mod followers;
pub(crate) mod forms;
mod header_index;
mod headers;
mod leaving;
pub(crate) mod patterns;
mod resolve;
mod suspended;
mod temporary;
mod topology;
pub(crate) mod vhost;
pub(crate) mod walk;

use crate::access::definitions::{Declarer, Tally};
use crate::interface::limits::Limits;
use crate::{
    Arguments, Binding, BindingTarget, ExchangeKind, ExchangeOptions, Names, PredeclaredExchange,
    Refusal, RefusalKind, StorageState, Value,
};
use bindings::{Bindings, ExchangeKey, List, Target};
use cache::RouteCache;
use condition::{Condition, Conditions};
use exchanges::{Exchange, Exchanges};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use resolve::Scratch;
pub(crate) use resolve::once_each;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Names a queue by the slot its owner keeps it in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct QueueKey(pub(crate) u32);

/// What a change to the topology did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Whether anything is different now; a repeated declaration or binding changes nothing.
    pub(crate) changed: bool,
    /// Whether what was asked for concerns something that survives a restart (an exchange that is
    /// durable, a binding with both ends durable), so that the change has to be recorded.
    pub(crate) durable: bool,
    /// Auto-delete exchanges that went as a consequence, in that order, not counting one that was
    /// deleted by request. A durable one needs a record of its own.
    pub(crate) auto_deleted: Vec<DeletedExchange>,
    /// How many bindings went.
    pub(crate) bindings_removed: usize,
    /// Further ones are left of a queue that was deleted: its key is not free until they have gone
    /// ([`Router::drop_some_bindings`]).
    pub(crate) leaves_bindings: bool,
}

/// An exchange that went because its last binding did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeletedExchange {
    /// Its name.
    pub(crate) name: String,
    /// Whether it was durable.
    pub(crate) durable: bool,
}

/// What the publisher's side needs to know of the exchange that a message was routed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Routed {
    /// Clients may not publish to it.
    pub(crate) internal: bool,
    /// Messages with a delay are held back before they are routed.
    pub(crate) delaying: bool,
    /// The message came to the exchange whose routing keys are the subjects of direct messages.
    pub(crate) has_subjects: bool,
    /// Its way was walked to the end, so that this, and the queues found, are all.
    pub(crate) is_whole: bool,
    /// Further queues get it under [`Router::take_conditions`].
    pub(crate) is_conditional: bool,
}

/// The keys of a message on its way through the exchanges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys<'a> {
    /// The routing key.
    pub(crate) routing_key: &'a str,
    /// Further ones (CC and BCC).
    pub(crate) also_to: &'a [&'a str],
}

/// How a message is looked at on its way.
pub(crate) struct Look<'a> {
    /// Its headers.
    pub(crate) headers: VisitHeaders<'a>,
    /// Whether it meets the condition of a binding.
    pub(crate) meets: &'a mut dyn FnMut(&Condition) -> bool,
}

/// Visits a message's headers; called at most once per message, and only where a headers exchange
/// is on its way: `|visit| read_headers(format, properties, visit)`.
pub(crate) type VisitHeaders<'a> = &'a mut dyn FnMut(&mut dyn FnMut(&str, Value));

/// One binding, as listings and snapshots see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BindingView<'a> {
    /// The exchange it leads from.
    pub(crate) source: &'a str,
    /// What it leads to.
    pub(crate) target: TargetView<'a>,
    /// Its key or pattern.
    pub(crate) key: &'a str,
    /// Its arguments; `None` where it has none.
    pub(crate) arguments: Option<&'a Arguments>,
    /// What a message has to be for it, if anything.
    pub(crate) condition: Option<&'a Condition>,
    /// Whether both of its ends are durable.
    pub(crate) durable: bool,
    /// Who bound.
    pub(crate) by: Declarer,
}

impl BindingView<'_> {
    /// The binding, as requests name it.
    pub(crate) fn to_binding(self) -> Binding {
        let target = match self.target {
            TargetView::Queue(name, _) => BindingTarget::Queue(name.to_owned()),
            TargetView::Exchange(name) => BindingTarget::Exchange(name.to_owned()),
        };
        Binding {
            source: self.source.to_owned(),
            target,
            key: self.key.to_owned(),
            arguments: self.arguments.cloned().unwrap_or_default(),
            filter: self.condition.and_then(|condition| condition.filter.clone()),
            not_from: self.condition.and_then(|it| it.not_from.as_deref().map(str::to_owned)),
        }
    }
}

/// The far end of a [`BindingView`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetView<'a> {
    /// A queue.
    Queue(&'a str, QueueKey),
    /// An exchange.
    Exchange(&'a str),
}

/// A queue as the router sees it.
#[derive(Debug)]
struct QueueEntry {
    name: Arc<str>,
    durable: bool,
    /// The list of bindings that lead to it.
    incoming: u32,
    /// It was deleted, and has bindings left.
    is_gone: bool,
}

/// The exchanges and bindings of one virtual host.
#[derive(Debug)]
pub(crate) struct Router {
    vhost: String,
    names: &'static Names,
    exchanges_max: usize,
    bindings_max: usize,
    pattern_states_max: u64,
    route_steps_at_once: u64,
    seed: u64,
    /// Counts up with every change that can alter a remembered route. What only the default exchange
    /// sees is none: routes through it are looked up, not remembered, so that queues may come and go
    /// without disturbing others.
    generation: u64,
    hold_auto_delete: bool,
    /// Whether what is durable can be changed on request.
    storage: StorageState,
    exchanges: Exchanges,
    /// The exchange whose routing keys are subjects.
    subjects: ExchangeKey,
    /// Patterns that the first binding from there came with, or the last one went with; `None` where
    /// they are not asked for.
    subject_changes: Option<Vec<(Box<str>, bool)>>,
    queues: HashMap<QueueKey, QueueEntry, FixedState>,
    queue_names: HashMap<Arc<str>, QueueKey, FixedState>,
    /// The queue that was last found by its name: publishers name one repeatedly.
    last_named: Option<(Arc<str>, QueueKey)>,
    bindings: Bindings,
    /// What was deleted and has bindings left.
    leaving: VecDeque<Target>,
    /// What exchanges and bindings take in memory, by who declared them.
    pub(crate) tally: Tally,
    cache: RouteCache,
    /// Those of the last route that has some.
    conditions: Option<Arc<Conditions<QueueKey>>>,
    scratch: Scratch,
    /// Nodes, bindings and exchanges looked at since the host last asked; nothing for remembered routes.
    looked_at: u64,
}

/// The default exchange: it leads to each queue by the queue's name.
const DEFAULT_EXCHANGE: PredeclaredExchange =
    PredeclaredExchange { name: "", kind: ExchangeKind::Direct };

impl Router {
    /// A virtual host's routing with the exchanges that every one has. `seed` seeds the hashing.
    pub(crate) fn new(vhost: &str, names: &'static Names, limits: &Limits, seed: u64) -> Router {
        let mut exchanges = Exchanges::new(seed);
        let predeclared = names.predeclared.iter().copied();
        for exchange in std::iter::once(DEFAULT_EXCHANGE).chain(predeclared) {
            let PredeclaredExchange { name, kind } = exchange;
            let options = ExchangeOptions {
                kind,
                delaying: false,
                durable: true,
                auto_delete: false,
                internal: false,
                alternate: None,
            };
            exchanges.add(Exchange::new(name, options, seed));
        }
        let subjects = exchanges.find(names.subject_exchange).expect("it was added just now");
        Router {
            vhost: vhost.to_owned(),
            names,
            exchanges_max: limits.exchanges_max,
            bindings_max: limits.bindings_max,
            pattern_states_max: limits.pattern_states_max,
            route_steps_at_once: limits.route_steps_at_once,
            seed,
            generation: 0,
            hold_auto_delete: false,
            storage: StorageState::Ready,
            exchanges,
            subjects,
            subject_changes: None,
            queues: HashMap::with_hasher(FixedState::with_seed(seed)),
            queue_names: HashMap::with_hasher(FixedState::with_seed(seed)),
            last_named: None,
            bindings: Bindings::new(seed),
            leaving: VecDeque::new(),
            tally: Tally::default(),
            cache: RouteCache::new(seed),
            conditions: None,
            scratch: Scratch::default(),
            looked_at: 0,
        }
    }

    /// While held, exchanges stay that lose their last binding: a replay of records must not decide
    /// anew what was decided, and recorded, when not only the durable bindings were there. For the
    /// same reason exchanges and bindings are not counted against the limits: what was taken once
    /// stays, also where an operator has lowered a limit since.
    pub(crate) fn hold_auto_delete(&mut self, hold: bool) {
        self.hold_auto_delete = hold;
    }

    /// How many bindings there are.
    pub(crate) fn binding_count(&self) -> usize {
        self.bindings.len()
    }

    /// From now on requests are refused, or no longer, that a restart would undo.
    pub(crate) fn storage_changed(&mut self, state: StorageState) {
        self.storage = state;
    }

    /// The options of an exchange, or the refusal that says there is none (passive declaration).
    pub(crate) fn exchange(&self, name: &str) -> Result<&ExchangeOptions, Refusal> {
        match self.exchanges.find(name) {
            Some(key) => Ok(&self.exchanges.get(key).options),
            None => Err(self.no_exchange(name)),
        }
    }

    /// All exchanges in order of their names; predeclared ones too, which need no restoring.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = (&str, &ExchangeOptions)> + Clone {
        let live = self.exchanges.iter().filter(|exchange| exchange.is_live());
        let mut all: Vec<_> = live.map(|exchange| (&*exchange.name, &exchange.options)).collect();
        all.sort_unstable_by_key(|&(name, _)| name);
        all.into_iter()
    }

    /// Who declared an exchange.
    pub(crate) fn declarer_of(&self, exchange: &str) -> Declarer {
        let key = self.exchanges.find(exchange);
        key.map_or_else(Declarer::default, |key| self.exchanges.get(key).by)
    }

    /// The queue of that name.
    #[inline]
    pub(crate) fn queue(&self, name: &str) -> Option<QueueKey> {
        self.queue_names.get(name).copied()
    }

    /// Whether a message to a subject may have to be looked up: some binding leads from the exchange of
    /// subjects, or it has an alternate.
    #[inline]
    pub(crate) fn has_subject_bindings(&self) -> bool {
        let subjects = self.exchanges.get(self.subjects);
        subjects.outgoing_count > 0 || subjects.followed.is_some()
    }

    /// Begins, or ceases, to note which patterns lead from the exchange of subjects.
    pub(crate) fn watch_subjects(&mut self, is_watched: bool) {
        self.subject_changes = is_watched.then(Vec::new);
    }

    /// How much was looked at to find routes since the last call.
    #[inline]
    pub(crate) fn take_looked_at(&mut self) -> u64 {
        std::mem::take(&mut self.looked_at)
    }

    /// Takes the conditions under which the message that was routed last goes to further queues, if there are
    /// some ([`Routed::is_conditional`]).
    pub(crate) fn take_conditions(&mut self) -> Option<Arc<Conditions<QueueKey>>> {
        self.conditions.take()
    }

    /// Takes the patterns that have come (true) or gone since the last call.
    pub(crate) fn take_subject_changes(&mut self) -> Vec<(Box<str>, bool)> {
        self.subject_changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The exchanges in some of the [`Router::exchange_places`].
    pub(crate) fn exchanges_in(
        &self,
        places: Range<usize>,
    ) -> impl Iterator<Item = (&str, &ExchangeOptions)> {
        let live = self.exchanges.iter_in(places).filter(|exchange| exchange.is_live());
        live.map(|exchange| (&*exchange.name, &exchange.options))
    }

    /// How many places there are for exchanges.
    pub(crate) fn exchange_places(&self) -> usize {
        self.exchanges.slots()
    }

    /// All bindings but those of the default exchange, in an order that depends on nothing but the
    /// history of requests. [`Router::bind`] in this order restores them.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = BindingView<'_>> + Clone {
        self.bindings.iter().filter_map(|binding| self.view(binding))
    }

    /// How many places there are for bindings.
    pub(crate) fn binding_places(&self) -> usize {
        self.bindings.slots()
    }

    /// The bindings in some of the places.
    pub(crate) fn bindings_in(
        &self,
        places: Range<usize>,
    ) -> impl Iterator<Item = BindingView<'_>> {
        self.bindings.iter_in(places).filter_map(|binding| self.view(binding))
    }

    /// A binding as listings see it; `None` where one of its ends was deleted.
    fn view<'a>(&'a self, binding: &'a bindings::Binding) -> Option<BindingView<'a>> {
        if !self.is_live(Target::Exchange(binding.source)) || !self.is_live(binding.target) {
            return None;
        }
        let source = self.exchanges.get(binding.source);
        let target = match binding.target {
            Target::Queue(queue) => TargetView::Queue(&self.queues[&queue].name, queue),
            Target::Exchange(key) => TargetView::Exchange(&self.exchanges.get(key).name),
        };
        Some(BindingView {
            source: &source.name,
            target,
            key: &binding.key,
            arguments: binding.arguments.as_deref(),
            condition: binding.condition.as_deref(),
            durable: source.options.durable && self.is_durable(binding.target),
            by: binding.by,
        })
    }

    /// The bindings that lead to a queue.
    pub(crate) fn bindings_to(&self, queue: QueueKey) -> impl Iterator<Item = BindingView<'_>> {
        let entry = self.queues.get(&queue).into_iter();
        let bindings = entry.flat_map(|entry| self.bindings.list(List::Target, entry.incoming));
        bindings.filter_map(|binding| self.view(binding))
    }

    /// The bindings that lead to a queue or an exchange.
    pub(crate) fn bindings_of_target(
        &self,
        target: &BindingTarget,
    ) -> Result<impl Iterator<Item = BindingView<'_>>, Refusal> {
        let first = match target {
            BindingTarget::Queue(name) => {
                let key = self.queue(name).ok_or_else(|| self.no_queue(name))?;
                self.queues[&key].incoming
            }
            BindingTarget::Exchange(name) => {
                let key = self.exchanges.find(name).ok_or_else(|| self.no_exchange(name))?;
                self.exchanges.get(key).incoming
            }
        };
        Ok(self.bindings.list(List::Target, first).filter_map(|binding| self.view(binding)))
    }

    /// The refusal that says there is no such exchange.
    pub(crate) fn no_exchange(&self, name: &str) -> Refusal {
        let text = format!("no exchange '{name}' in vhost '{}'", self.vhost);
        Refusal::new(RefusalKind::NotFound, text)
    }

    /// The refusal that says there is no such queue.
    pub(crate) fn no_queue(&self, name: &str) -> Refusal {
        let text = format!("no queue '{name}' in vhost '{}'", self.vhost);
        Refusal::new(RefusalKind::NotFound, text)
    }
}

#[cfg(test)]
mod tests;
