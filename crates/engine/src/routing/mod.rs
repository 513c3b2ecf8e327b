//! Routing within one virtual host: exchanges, bindings, and from a message's keys to its queues.
//!
//! Knows queues only as keys that the caller chose, and nothing of what a queue holds.

#![allow(clippy::todo, unused_variables, dead_code)]

use crate::limits::Limits;
use crate::{Arguments, BindingTarget, ExchangeOptions, Refusal, Value};

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
}

/// The keys of a message on its way through the exchanges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys<'a> {
    /// The routing key.
    pub(crate) routing_key: &'a str,
    /// Further ones (CC and BCC).
    pub(crate) also_to: &'a [&'a str],
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
    /// Whether both of its ends are durable.
    pub(crate) durable: bool,
}

/// The far end of a [`BindingView`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetView<'a> {
    /// A queue.
    Queue(&'a str, QueueKey),
    /// An exchange.
    Exchange(&'a str),
}

/// The exchanges and bindings of one virtual host.
#[derive(Debug)]
pub(crate) struct Router {}

impl Router {
    /// A virtual host's routing with the exchanges that every one has. `seed` seeds the hashing.
    pub(crate) fn new(vhost: &str, limits: &Limits, seed: u64) -> Router {
        todo!()
    }

    /// Counts up with every change that can alter where a message goes.
    pub(crate) fn generation(&self) -> u64 {
        todo!()
    }

    /// While held, exchanges stay that lose their last binding: a replay of records must not decide
    /// anew what was decided, and recorded, when not only the durable bindings were there.
    pub(crate) fn hold_auto_delete(&mut self, hold: bool) {
        todo!()
    }

    // ---- exchanges ----

    /// Declares an exchange. Declaring an equal one again changes nothing.
    pub(crate) fn declare_exchange(
        &mut self,
        name: &str,
        options: &ExchangeOptions,
    ) -> Result<Change, Refusal> {
        todo!()
    }

    /// Deletes an exchange and its bindings on both sides; nothing changes where none was.
    pub(crate) fn delete_exchange(
        &mut self,
        name: &str,
        if_unused: bool,
    ) -> Result<Change, Refusal> {
        todo!()
    }

    /// The options of an exchange, or the refusal that says there is none (passive declaration).
    pub(crate) fn exchange(&self, name: &str) -> Result<&ExchangeOptions, Refusal> {
        todo!()
    }

    /// All exchanges in order of their names; predeclared ones too, which need no restoring.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = (&str, &ExchangeOptions)> {
        std::iter::empty()
    }

    // ---- queues ----

    /// A queue came: the default exchange leads to it. The caller made sure the name is free.
    pub(crate) fn queue_added(&mut self, name: &str, queue: QueueKey, durable: bool) {
        todo!()
    }

    /// A queue went, and its bindings with it.
    pub(crate) fn queue_removed(&mut self, queue: QueueKey) -> Change {
        todo!()
    }

    /// The queue of that name.
    #[inline]
    pub(crate) fn queue(&self, name: &str) -> Option<QueueKey> {
        todo!()
    }

    // ---- bindings ----

    /// Binds; a binding that exists (same source, target, key and arguments) changes nothing.
    /// Refused: either end missing, the default exchange, a malformed key or arguments, the limit.
    pub(crate) fn bind(
        &mut self,
        source: &str,
        target: &BindingTarget,
        key: &str,
        arguments: Arguments,
    ) -> Result<Change, Refusal> {
        todo!()
    }

    /// Unbinds; nothing changes where no such binding was.
    pub(crate) fn unbind(
        &mut self,
        source: &str,
        target: &BindingTarget,
        key: &str,
        arguments: &Arguments,
    ) -> Result<Change, Refusal> {
        todo!()
    }

    /// All bindings but those of the default exchange, in an order that depends on nothing but the
    /// history of requests. [`Router::bind`] in this order restores them.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = BindingView<'_>> {
        std::iter::empty()
    }

    // ---- messages ----

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
        todo!()
    }

    /// The refusal that says there is no such exchange.
    pub(crate) fn no_exchange(&self, name: &str) -> Refusal {
        todo!()
    }

    /// The refusal that says there is no such queue.
    pub(crate) fn no_queue(&self, name: &str) -> Refusal {
        todo!()
    }
}
