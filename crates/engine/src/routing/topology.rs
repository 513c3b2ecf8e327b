//! Changes to the topology: declaring, deleting, binding, unbinding, and what follows from them.

use super::bindings::{Binding, ExchangeKey, List, Target, Terms};
use super::exchanges::Exchange;
use super::forms::{Forms, signs};
use super::header_index::NEAR_MISSES_MAX;
use super::patterns::{NONE, TOPIC};
use super::{Change, QueueEntry, QueueKey, Router, headers};
use crate::interface::limits::{
    ARGUED_BINDINGS_MAX, FILTER_TERMS_MAX, KEY_BYTES_MAX, NAME_BYTES_MAX, TOPIC_WORDS_MAX,
};
use crate::interface::refusal::refuse;
use crate::{Arguments, BindingTarget, Declared, ExchangeKind, ExchangeOptions, Mismatch, Refusal};
use std::sync::Arc;

impl Router {
    /// Declares an exchange. Declaring an equal one again changes nothing. Refused: the default
    /// exchange, a reserved name, one that exists and differs, the limit.
    pub(crate) fn declare_exchange(
        &mut self,
        name: &str,
        options: &ExchangeOptions,
    ) -> Result<Change, Refusal> {
        check_not_default(name)?;
        let durable = options.durable;
        if let Some(key) = self.exchanges.find(name) {
            if let Some(option) = self.exchanges.get(key).options.difference(options) {
                let (name, vhost) = (name.to_owned(), self.vhost.clone());
                let declared = Declared::Exchange;
                return Err(Refusal::of_mismatch(Mismatch { declared, name, vhost, option }));
            }
            return Ok(Change { durable, ..Change::default() });
        }
        self.check_not_reserved(name)?;
        self.add_exchange(name, options)
    }

    /// Declares an exchange whose name is free.
    pub(super) fn add_exchange(
        &mut self,
        name: &str,
        options: &ExchangeOptions,
    ) -> Result<Change, Refusal> {
        let durable = options.durable;
        check_length("exchange name", name, NAME_BYTES_MAX)?;
        if !self.hold_auto_delete && self.exchanges.len() >= self.exchanges_max {
            refuse!(
                LimitExceeded,
                "cannot declare exchange '{name}' in vhost '{}': limit of {} exchanges reached",
                self.vhost,
                self.exchanges_max
            );
        }
        self.check_kept(durable)?;
        let by = self.tally.by;
        let exchange = Exchange { by, ..Exchange::new(name, options.clone(), self.seed) };
        self.tally.came(by, exchange.bytes());
        self.exchanges.add(exchange);
        self.generation += 1;
        Ok(Change { changed: true, durable, ..Change::default() })
    }

    /// Deletes an exchange and its bindings on both sides; nothing changes where none was. Refused:
    /// the exchanges that every virtual host has, and with `if_unused` one that bindings lead from.
    pub(crate) fn delete_exchange(
        &mut self,
        name: &str,
        if_unused: bool,
    ) -> Result<Change, Refusal> {
        check_not_default(name)?;
        self.check_not_reserved(name)?;
        let Some(key) = self.exchanges.find(name) else { return Ok(Change::default()) };
        let exchange = self.exchanges.get(key);
        if if_unused && exchange.outgoing != NONE {
            refuse!(PreconditionFailed, "exchange '{name}' in vhost '{}' in use", self.vhost);
        }
        let durable = exchange.options.durable;
        self.check_kept(durable)?;
        let mut change = Change { changed: true, durable, ..Change::default() };
        self.take_exchange(key, &mut change);
        Ok(change)
    }

    /// A queue came: the default exchange leads to it. The caller made sure the name is free.
    pub(crate) fn queue_added(&mut self, name: &str, queue: QueueKey, durable: bool) {
        let name: Arc<str> = name.into();
        self.queue_names.insert(Arc::clone(&name), queue);
        self.queues.insert(queue, QueueEntry { name, durable, incoming: NONE, is_gone: false });
    }

    /// The queue of that name is about to go: another one may have the name.
    pub(crate) fn give_up_name(&mut self, name: &str) {
        self.queue_names.remove(name);
        self.last_named = None;
    }

    /// It stays after all, and the name is its own again.
    pub(crate) fn take_name_back(&mut self, name: &str, queue: u32) {
        self.queue_names.insert(name.into(), QueueKey(queue));
        self.last_named = None;
    }

    /// A queue went, and its bindings with it, or [`Change::leaves_bindings`].
    pub(crate) fn queue_removed(&mut self, queue: QueueKey) -> Change {
        let mut change = Change::default();
        let Some(entry) = self.queues.get_mut(&queue).filter(|entry| !entry.is_gone) else {
            return change;
        };
        entry.is_gone = true;
        (change.changed, change.durable) = (true, entry.durable);
        if self.queue_names.get(&entry.name) == Some(&queue) {
            self.queue_names.remove(&entry.name);
        }
        self.last_named = None;
        change.leaves_bindings = !self.leave(Target::Queue(queue), &mut change);
        if change.leaves_bindings {
            self.generation += 1;
        }
        change
    }

    /// Binds; a binding that exists (same source, target, key and arguments) changes nothing.
    /// Refused: either end missing, the default exchange, a malformed key or arguments, the limit.
    pub(crate) fn bind(
        &mut self,
        source: &str,
        target: &BindingTarget,
        key: &str,
        terms: impl Into<Terms>,
    ) -> Result<Change, Refusal> {
        let terms = terms.into();
        check_ends(source, target)?;
        check_length("binding key", key, KEY_BYTES_MAX)?;
        let from = self.exchanges.find(source).ok_or_else(|| self.no_exchange(source))?;
        let to = self.target(target)?;
        let durable = self.exchanges.get(from).options.durable && self.is_durable(to);
        let change = Change { durable, ..Change::default() };
        if self.bindings.find(from, to, key, &terms).is_some() {
            return Ok(change);
        }
        match self.exchanges.get(from).options.kind {
            ExchangeKind::Headers => {
                let none = Arguments::new();
                headers::check(self.names, terms.arguments.as_deref().unwrap_or(&none))?;
            }
            ExchangeKind::Topic => check_pattern(key)?,
            ExchangeKind::Filtered => check_filtered(source, &terms)?,
            ExchangeKind::Direct | ExchangeKind::Fanout => {}
        }
        if !self.hold_auto_delete && self.bindings.len() >= self.bindings_max {
            refuse!(
                LimitExceeded,
                "cannot bind to exchange '{source}' in vhost '{}': limit of {} bindings reached",
                self.vhost,
                self.bindings_max
            );
        }
        self.check_kept(durable)?;
        self.count_in(from, key, &terms)?;
        let by = self.tally.by;
        let id = self.bindings.add(from, to, key, terms, by);
        if !self.index_headers(id) {
            let binding = self.bindings.remove(id);
            self.exchanges.get_mut(from).count_out(&binding);
            refuse!(
                LimitExceeded,
                "cannot bind to exchange '{source}' in vhost '{}': {NEAR_MISSES_MAX} bindings with other \
                 arguments have the same headers; one with a header of its own is taken",
                self.vhost
            );
        }
        self.tally.came(by, self.bindings.get(id).bytes());
        self.relink(id, true);
        Ok(Change { changed: true, ..change })
    }

    /// Unbinds; nothing changes where no such binding was.
    pub(crate) fn unbind(
        &mut self,
        source: &str,
        target: &BindingTarget,
        key: &str,
        terms: impl Into<Terms>,
    ) -> Result<Change, Refusal> {
        let terms = terms.into();
        check_ends(source, target)?;
        let mut change = Change::default();
        let (Some(from), Ok(to)) = (self.exchanges.find(source), self.target(target)) else {
            return Ok(change);
        };
        change.durable = self.exchanges.get(from).options.durable && self.is_durable(to);
        if let Some(id) = self.bindings.find(from, to, key, &terms) {
            self.check_kept(change.durable)?;
            change.changed = true;
            change.bindings_removed = 1;
            let source = self.drop_binding(id);
            self.auto_delete(vec![source], &mut change);
        }
        Ok(change)
    }

    /// Whether there is such a binding.
    pub(crate) fn is_bound(&self, binding: &crate::Binding) -> bool {
        let crate::Binding { source, target, key, .. } = binding;
        let (Some(from), Ok(to)) = (self.exchanges.find(source), self.target(target)) else {
            return false;
        };
        self.bindings.find(from, to, key, &Terms::of(binding)).is_some()
    }

    fn check_not_reserved(&self, name: &str) -> Result<(), Refusal> {
        let prefix = self.names.reserved_prefix;
        if name.starts_with(prefix) {
            refuse!(AccessRefused, "exchange name '{name}' contains reserved prefix '{prefix}*'");
        }
        Ok(())
    }

    fn check_kept(&self, durable: bool) -> Result<(), Refusal> {
        self.storage.check_kept(durable)
    }

    fn target(&self, target: &BindingTarget) -> Result<Target, Refusal> {
        match target {
            BindingTarget::Queue(name) => {
                self.queue(name).map(Target::Queue).ok_or_else(|| self.no_queue(name))
            }
            BindingTarget::Exchange(name) => {
                let found = self.exchanges.find(name).map(Target::Exchange);
                found.ok_or_else(|| self.no_exchange(name))
            }
        }
    }

    pub(super) fn is_durable(&self, target: Target) -> bool {
        match target {
            Target::Queue(queue) => self.queues[&queue].durable,
            Target::Exchange(key) => self.exchanges.get(key).options.durable,
        }
    }

    /// Puts a binding on its lists, or takes it off them.
    fn relink(&mut self, id: u32, comes: bool) {
        let &Binding { source, target, .. } = self.bindings.get(id);
        let exchange = self.exchanges.get_mut(source);
        if comes {
            exchange.outgoing_count += 1;
        } else {
            exchange.outgoing_count -= 1;
        }
        if exchange.patterns.is_some() {
            if !self.bindings.get(id).is_suspended {
                self.relink_pattern(id, comes);
            }
        } else if exchange.options.kind == ExchangeKind::Direct {
            self.bindings.relink_by_key(id, comes);
        } else if exchange.all_targets.is_some() && self.bindings.get(id).condition.is_some() {
            let head = exchange.conditional;
            exchange.conditional = self.bindings.relink(List::Leaf, head, id, comes);
        } else if let Some(targets) = &mut exchange.all_targets {
            if comes { targets.add(target) } else { targets.remove(target) }
        }
        let exchange = self.exchanges.get_mut(source);
        exchange.outgoing = self.bindings.relink(List::Source, exchange.outgoing, id, comes);
        let incoming = *self.incoming_mut(target);
        *self.incoming_mut(target) = self.bindings.relink(List::Target, incoming, id, comes);
        self.generation += 1;
    }

    /// Puts a binding of a topic exchange on the list of its pattern, or takes it off.
    pub(super) fn relink_pattern(&mut self, id: u32, comes: bool) {
        let &Binding { source, ref key, .. } = self.bindings.get(id);
        let Some(patterns) = &mut self.exchanges.get_mut(source).patterns else { return };
        let node = patterns.insert(TOPIC.pattern(key));
        let before = patterns.head(node);
        let head = self.bindings.relink(List::Leaf, before, id, comes);
        patterns.set_head(node, head);
        if source == self.subjects
            && (before == NONE) != (head == NONE)
            && let Some(changes) = &mut self.subject_changes
        {
            changes.push((self.bindings.get(id).key.clone(), comes));
        }
    }

    /// Puts a new binding of a headers exchange into its index; false: it has no room for it.
    fn index_headers(&mut self, id: u32) -> bool {
        let most = if self.hold_auto_delete { usize::MAX } else { NEAR_MISSES_MAX };
        let Router { exchanges, bindings, names, .. } = self;
        let binding = bindings.get(id);
        let arguments = binding.arguments.as_deref();
        let Some(index) = &mut exchanges.get_mut(binding.source).by_header else { return true };
        index.insert(id, headers::compared(names, arguments), most, |other| {
            bindings.get(other).arguments.as_deref() == arguments
        })
    }

    /// Takes a binding out; returns where it led from.
    pub(super) fn drop_binding(&mut self, id: u32) -> ExchangeKey {
        self.relink(id, false);
        let binding = self.bindings.remove(id);
        self.tally.went(binding.by, binding.bytes());
        let exchange = self.exchanges.get_mut(binding.source);
        exchange.count_out(&binding);
        let Binding { source, key, arguments, .. } = binding;
        if let Some(index) = &mut exchange.by_header {
            index.remove(id, headers::compared(self.names, arguments.as_deref()));
        }
        if let Some(forms) = &mut exchange.forms
            && let Some(signs) = signs(TOPIC.pattern(&key), self.seed)
        {
            forms.remove(&signs);
        }
        source
    }

    /// Counts a binding that comes against what bounds the work of routing a message. Refused: a topic
    /// pattern whose form makes matching too much work; too many bindings that differ in arguments which
    /// mean nothing to the exchange.
    fn count_in(&mut self, from: ExchangeKey, key: &str, terms: &Terms) -> Result<(), Refusal> {
        let (seed, is_held) = (self.seed, self.hold_auto_delete);
        let most = if is_held { u64::MAX } else { self.pattern_states_max };
        let exchange = self.exchanges.get_mut(from);
        let kind = exchange.options.kind;
        let filter_terms = terms.condition.as_ref().map_or(0, |it| it.terms_apart());
        if !is_held && exchange.filter_terms + filter_terms > FILTER_TERMS_MAX {
            refuse!(
                LimitExceeded,
                "cannot bind to exchange '{}' in vhost '{}' with this filter: those of its bindings would be \
                 more than {FILTER_TERMS_MAX} terms to evaluate for each message; filters that compare a \
                 property with one value hardly count",
                exchange.name,
                self.vhost
            );
        }
        if terms.is_some()
            && !is_held
            && kind != ExchangeKind::Headers
            && exchange.with_arguments >= ARGUED_BINDINGS_MAX
        {
            refuse!(
                LimitExceeded,
                "cannot bind to exchange '{}' in vhost '{}' with arguments: limit of \
                 {ARGUED_BINDINGS_MAX} such bindings reached",
                exchange.name,
                self.vhost
            );
        }
        if kind == ExchangeKind::Topic
            && let Some(signs) = signs(TOPIC.pattern(key), seed)
        {
            let forms = exchange.forms.get_or_insert_with(|| Box::new(Forms::new(seed)));
            if !forms.admit(&signs, most) {
                refuse!(
                    LimitExceeded,
                    "cannot bind to exchange '{}' in vhost '{}' by '{key}': its patterns have their \
                     wildcards in too many different places (pattern-states-max); patterns with fewer \
                     wildcards are taken",
                    exchange.name,
                    self.vhost
                );
            }
        }
        exchange.with_arguments += usize::from(terms.is_some());
        exchange.filter_terms += filter_terms;
        Ok(())
    }

    fn incoming_mut(&mut self, target: Target) -> &mut u32 {
        match target {
            Target::Queue(queue) => {
                let entry = self.queues.get_mut(&queue);
                &mut entry.expect("a binding's queue is there as long as it is").incoming
            }
            Target::Exchange(key) => &mut self.exchanges.get_mut(key).incoming,
        }
    }
}

fn check_not_default(name: &str) -> Result<(), Refusal> {
    if name.is_empty() {
        refuse!(AccessRefused, "operation not permitted on the default exchange");
    }
    Ok(())
}

fn check_ends(source: &str, target: &BindingTarget) -> Result<(), Refusal> {
    check_not_default(source)?;
    match target {
        BindingTarget::Exchange(name) => check_not_default(name),
        BindingTarget::Queue(_) => Ok(()),
    }
}

/// Every binding of an exchange that goes by filters alone has one.
fn check_filtered(source: &str, terms: &Terms) -> Result<(), Refusal> {
    if terms.condition.as_ref().is_some_and(|condition| condition.filter.is_some()) {
        return Ok(());
    }
    refuse!(
        PreconditionFailed,
        "exchange '{source}' leads messages on by filters alone: a binding of it needs one that does not \
         select every message"
    );
}

fn check_length(what: &str, name: &str, most: usize) -> Result<(), Refusal> {
    if name.len() > most {
        refuse!(LimitExceeded, "{what} of {} bytes is longer than {most}", name.len());
    }
    Ok(())
}

fn check_pattern(key: &str) -> Result<(), Refusal> {
    let words = TOPIC.words(key).count();
    if words > TOPIC_WORDS_MAX {
        refuse!(LimitExceeded, "topic pattern of {words} words has more than {TOPIC_WORDS_MAX}");
    }
    Ok(())
}
