//! A virtual host: where its messages are routed to, and who subscribes in it.

use crate::access::stored::Stored;
use crate::policy::Policies;
use crate::pubsub::Interest;
use crate::routing::condition::Condition;
use crate::routing::walk::Walk;
use crate::routing::{Keys, Look, QueueKey, Routed, Router};
use crate::{
    ConnectionId, Content, Conventions, Publish, ReadHeaders, Refusal, RefusalKind, Selectable,
    Value,
};
use std::collections::BTreeMap;

/// What a message is routed by.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) exchange: &'a str,
    pub(crate) keys: Keys<'a>,
    pub(crate) sender: Sender<'a>,
}

/// Who publishes a message, for bindings that do not take those of a certain client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sender<'a> {
    /// The client of that connection.
    Connection(ConnectionId),
    /// The client of that name, whether or not it is still there.
    Client(&'a str),
    /// No client: the broker moves a dead letter, say.
    Unknown,
}

impl<'a> Sender<'a> {
    /// The client of that name, else that of the connection, as far as they are known.
    pub(crate) fn of(by: Option<ConnectionId>, name: Option<&'a str>) -> Sender<'a> {
        match (name, by) {
            (Some(name), _) => Sender::Client(name),
            (None, Some(by)) => Sender::Connection(by),
            (None, None) => Sender::Unknown,
        }
    }
}

impl<'a> Way<'a> {
    #[inline]
    pub(crate) fn of(publish: &Publish<'a>, by: Option<ConnectionId>) -> Way<'a> {
        let keys = Keys { routing_key: publish.routing_key, also_to: publish.also_to };
        Way { exchange: publish.exchange, keys, sender: Sender::of(by, None) }
    }

    /// The message that goes this way, as filters see it.
    pub(crate) fn selectable(&self, content: &Content<'a>) -> Selectable<'a> {
        Selectable {
            exchange: self.exchange,
            routing_key: self.keys.routing_key,
            content: *content,
            delivery_count: 0,
        }
    }
}

/// A virtual host.
#[derive(Debug)]
pub(crate) struct Vhost {
    pub(crate) name: String,
    pub(crate) router: Router,
    /// Who subscribes to direct messages.
    pub(crate) interest: Interest,
    /// What its queues and exchanges follow.
    pub(crate) policies: Policies,
    /// Its queues.
    pub(crate) queues: usize,
    /// Bytes that wait in them.
    pub(crate) stored: Stored,
    /// Its inboxes: whose they are, in channel slots, by address.
    pub(crate) inboxes: BTreeMap<String, u32>,
    /// It is being deleted: nobody enters.
    pub(crate) is_leaving: bool,
}

/// A message on its way, and what reads it where an exchange or a binding asks for more than its key.
#[derive(Clone, Copy)]
pub(crate) struct Routing<'a> {
    pub(crate) conventions: &'static Conventions,
    pub(crate) way: Way<'a>,
    pub(crate) content: &'a Content<'a>,
    /// Gives the name of the client that publishes it.
    pub(crate) from: &'a dyn Fn() -> Option<&'a str>,
}

impl Routing<'_> {
    /// Lends how the message is looked at.
    #[inline]
    fn look<T>(&self, work: impl FnOnce(Look<'_>) -> T) -> T {
        let Content { format, properties, .. } = *self.content;
        let headers = &mut |visit: &mut dyn FnMut(&str, Value)| {
            (self.conventions.read_headers)(format, properties, visit);
        };
        work(Look { headers, meets: &mut |condition| self.meets(condition) })
    }

    #[cold]
    fn meets(&self, condition: &Condition) -> bool {
        let message = self.way.selectable(self.content);
        let property = |name: &str| (self.conventions.read_property)(&message, name);
        condition.is_met(&property, (self.from)())
    }
}

impl Vhost {
    /// Puts the queues that a message goes to into `targets`, as [`Router::route`]; `None` where there is no
    /// such exchange.
    #[inline]
    pub(crate) fn route(
        &mut self,
        message: &Routing<'_>,
        targets: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        let Way { exchange, keys, .. } = message.way;
        message.look(|look| self.router.route(exchange, keys, look, targets))
    }

    /// Goes on with a walk, as [`Router::go_on`].
    pub(crate) fn go_on(
        &mut self,
        walk: &mut Walk,
        message: &Routing<'_>,
        most: u64,
        targets: &mut Vec<QueueKey>,
    ) -> bool {
        message.look(|look| self.router.go_on(walk, message.way.keys, look, most, targets))
    }

    /// As [`Vhost::route`], to the end of the way however long it is: where it was found before that this is
    /// not much.
    pub(crate) fn route_whole(
        &mut self,
        message: &Routing<'_>,
        targets: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        let Way { exchange, keys, .. } = message.way;
        message.look(|look| self.router.route_whole(exchange, keys, look, targets))
    }

    /// The exchanges that a message comes to, as [`Router::reached`].
    pub(crate) fn reached(
        &mut self,
        read_headers: ReadHeaders,
        way: Way<'_>,
        content: &Content<'_>,
    ) -> Option<Vec<&str>> {
        let headers = &mut |visit: &mut dyn FnMut(&str, Value)| {
            read_headers(content.format, content.properties, visit);
        };
        self.router.reached(way.exchange, way.keys, headers)
    }

    /// Refused: no exchange of that name, or one that no client publishes to.
    pub(crate) fn check_exchange(&self, exchange: &str) -> Result<(), Refusal> {
        if !exchange.is_empty() && self.router.exchange(exchange)?.internal {
            return Err(is_internal(exchange));
        }
        Ok(())
    }
}

/// The refusal that says that no client publishes to that exchange.
#[cold]
pub(crate) fn is_internal(exchange: &str) -> Refusal {
    Refusal::new(RefusalKind::AccessRefused, format!("exchange '{exchange}' is internal"))
}
