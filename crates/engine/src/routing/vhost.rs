//! A virtual host: where its messages are routed to, and who subscribes in it.

use crate::access::stored::Stored;
use crate::pubsub::Interest;
use crate::routing::walk::Walk;
use crate::routing::{Keys, QueueKey, Routed, Router, VisitHeaders};
use crate::{Content, Publish, ReadHeaders, Refusal, RefusalKind};
use std::collections::BTreeMap;

/// What a message is routed by.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) exchange: &'a str,
    pub(crate) keys: Keys<'a>,
}

impl<'a> Way<'a> {
    #[inline]
    pub(crate) fn of(publish: &Publish<'a>) -> Way<'a> {
        let keys = Keys { routing_key: publish.routing_key, also_to: publish.also_to };
        Way { exchange: publish.exchange, keys }
    }
}

/// A virtual host.
#[derive(Debug)]
pub(crate) struct Vhost {
    pub(crate) name: String,
    pub(crate) router: Router,
    /// Who subscribes to direct messages.
    pub(crate) interest: Interest,
    /// Its queues.
    pub(crate) queues: usize,
    /// Bytes that wait in them.
    pub(crate) stored: Stored,
    /// Its inboxes: whose they are, in channel slots, by address.
    pub(crate) inboxes: BTreeMap<String, u32>,
}

/// Lends what visits the headers of a content.
#[inline]
fn with_headers<T>(
    read: ReadHeaders,
    content: &Content<'_>,
    work: impl FnOnce(VisitHeaders<'_>) -> T,
) -> T {
    work(&mut |visit| read(content.format, content.properties, visit))
}

impl Vhost {
    /// Puts the queues that a message goes to into `targets`, as [`Router::route`]; `None` where there is no
    /// such exchange.
    /// `read_headers` reads the content's headers, where an exchange on the way compares them.
    #[inline]
    pub(crate) fn route(
        &mut self,
        read_headers: ReadHeaders,
        way: Way<'_>,
        content: &Content<'_>,
        targets: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        let Way { exchange, keys } = way;
        with_headers(read_headers, content, |headers| {
            self.router.route(exchange, keys, headers, targets)
        })
    }

    /// Goes on with a walk, as [`Router::go_on`].
    pub(crate) fn go_on(
        &mut self,
        walk: &mut Walk,
        read_headers: ReadHeaders,
        way: Way<'_>,
        content: &Content<'_>,
        most: u64,
        targets: &mut Vec<QueueKey>,
    ) -> bool {
        with_headers(read_headers, content, |headers| {
            self.router.go_on(walk, way.keys, headers, most, targets)
        })
    }

    /// As [`Vhost::route`], to the end of the way however long it is: where it was found before that this is
    /// not much.
    pub(crate) fn route_whole(
        &mut self,
        read_headers: ReadHeaders,
        way: Way<'_>,
        content: &Content<'_>,
        targets: &mut Vec<QueueKey>,
    ) -> Option<Routed> {
        with_headers(read_headers, content, |headers| {
            self.router.route_whole(way.exchange, way.keys, headers, targets)
        })
    }

    /// The exchanges that a message comes to, as [`Router::reached`].
    pub(crate) fn reached(
        &mut self,
        read_headers: ReadHeaders,
        way: Way<'_>,
        content: &Content<'_>,
    ) -> Option<Vec<&str>> {
        with_headers(read_headers, content, |headers| {
            self.router.reached(way.exchange, way.keys, headers)
        })
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
