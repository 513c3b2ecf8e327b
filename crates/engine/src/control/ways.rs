//! What a user whose routing keys are narrowed may declare: ways that lead messages to keys of an exchange,
//! and bindings that let it hear them.
//!
//! A publish is decided by its publisher, wherever exchanges and alternates lead it. A dead letter, or a
//! message whose delay is over, has no publisher any more and goes the ways that were declared. So who
//! declares a way that ends at an exchange of narrowed keys must be allowed to publish all that can pass it.

use crate::access::matched_by_binding;
use crate::engine::Engine;
use crate::routing::Router;
use crate::routing::vhost::Way;
use crate::{
    Binding, BindingTarget, ChannelId, ExchangeKind, Names, Publish, QueueOptions, Refusal,
    RefusalKind, Request, TemporaryKind,
};

impl Engine {
    /// Refuses a request of a narrowed user that would lead messages to keys it may not publish with, or let
    /// it hear others than it may.
    pub(super) fn check_ways(&mut self, slot: u32, request: &Request) -> Result<(), Refusal> {
        let channel = &self.clients.channels[slot];
        let (connection, vhost) = (channel.id.connection, channel.vhost);
        let names = self.names();
        let router = &self.topology.vhosts[vhost].router;
        let Some(grant) = self.clients.grant(connection) else { return Ok(()) };
        if grant.narrowed_exchanges().next().is_none() {
            return Ok(());
        }
        if let Request::Bind(Binding { source, key, .. }) = request {
            grant.check_binding(source, key, &passing(router, source, key))?;
        }
        if let Request::JoinShared(join) = request {
            grant.check_binding(
                &join.source,
                &join.key,
                &passing(router, &join.source, &join.key),
            )?;
        }
        if let Request::OpenSubscription(open) = request {
            for key in &open.keys {
                grant.check_binding(&open.source, key, &passing(router, &open.source, key))?;
            }
        }
        let Some(declared) = DeclaredWay::of(names, router, request) else { return Ok(()) };
        let reached = router.reachable(declared.to, grant.narrowed_exchanges());
        reached.into_iter().try_for_each(|exchange| grant.check_way(exchange, &declared.patterns))
    }

    /// Whether the channel's user has the right to publish to `exchange` with that key: asked before a body
    /// that arrives in parts is collected.
    pub fn check_right_to_publish(
        &mut self,
        id: ChannelId,
        exchange: &str,
        routing_key: &str,
    ) -> Result<(), Refusal> {
        let Some(grant) = self.clients.grant(id.connection) else { return Ok(()) };
        grant.check_exchange(&self.access, exchange)?;
        grant.check_key(exchange, routing_key)
    }

    /// Refuses a message of a narrowed user that its exchange leads to keys it may not publish with.
    #[cold]
    pub(crate) fn check_reached(
        &mut self,
        slot: u32,
        publish: &Publish<'_>,
    ) -> Result<(), Refusal> {
        let vhost = self.clients.channels[slot].vhost;
        let connection = self.clients.channels[slot].id.connection;
        let narrows = self.clients.grant(connection).is_some_and(|it| it.narrows_exchanges());
        if narrows {
            return self.check_all_reached(slot, publish);
        }
        let mut targets = std::mem::take(&mut self.scratch.targets);
        let routed = self.route_to(vhost, Some(connection), publish, &mut targets);
        self.scratch.targets = targets;
        // Where there is no such exchange, that is said later; a long way leads to no subjects then.
        if !routed.is_some_and(|routed| routed.has_subjects) {
            return Ok(());
        }
        let Some(grant) = self.clients.grant(connection) else { return Ok(()) };
        publish.keys().try_for_each(|key| grant.check_subject(key))
    }

    /// The same for a user with rules on further exchanges: each that the message comes to is looked at.
    fn check_all_reached(&mut self, slot: u32, publish: &Publish<'_>) -> Result<(), Refusal> {
        let channel = &self.clients.channels[slot];
        let (connection, vhost) = (channel.id.connection, channel.vhost);
        let read_headers = self.options.conventions.read_headers;
        let vhost = &mut self.topology.vhosts[vhost];
        let reached = vhost.reached(read_headers, Way::of(publish, None), &publish.content);
        let checked = match (self.clients.grant(connection), reached) {
            (None, _) => Ok(()),
            (Some(grant), Some(reached)) => reached.into_iter().try_for_each(|exchange| {
                publish.keys().try_for_each(|key| grant.check_key(exchange, key))
            }),
            (Some(_), None) => Err(too_long(publish.exchange)),
        };
        let looked_at = vhost.router.take_looked_at();
        self.route_steps += looked_at;
        self.work_budget.count_routing(looked_at);
        checked
    }
}

/// The refusal of a message whose way is too long to be compared with its publisher's rules.
fn too_long(exchange: &str) -> Refusal {
    let text = format!(
        "exchange '{exchange}' leads through more exchanges and bindings than are looked at in one step: \
         nobody whose routing keys are narrowed may publish to it"
    );
    Refusal::new(RefusalKind::AccessRefused, text)
}

/// A way that a request declares.
struct DeclaredWay<'a> {
    /// The exchange that it ends at.
    to: &'a str,
    /// Patterns of all routing keys of messages that can pass it.
    patterns: Vec<String>,
}

impl<'a> DeclaredWay<'a> {
    fn of(names: &'a Names, router: &Router, request: &'a Request) -> Option<DeclaredWay<'a>> {
        match request {
            Request::Bind(Binding { source, target: BindingTarget::Exchange(to), key, .. }) => {
                Some(DeclaredWay { to, patterns: passing(router, source, key) })
            }
            Request::DeclareExchange { options: Some(options), .. } => {
                let to = options.alternate.as_deref()?;
                Some(DeclaredWay { to, patterns: everything() })
            }
            _ => {
                let options = queue_options(request)?;
                let exchange = options.dead_letter_exchange.as_deref()?;
                let key = options.dead_letter_routing_key.clone();
                // The default exchange leads to subscribers who wait for an answer.
                let answers = || key.as_deref().is_some_and(|key| names.is_answer_address(key));
                let to = match exchange {
                    "" if answers() => names.subject_exchange,
                    exchange => exchange,
                };
                Some(DeclaredWay { to, patterns: key.map_or_else(everything, |key| vec![key]) })
            }
        }
    }
}

/// What a request declares a queue with, if it may do so.
pub(crate) fn queue_options(request: &Request) -> Option<&QueueOptions> {
    match request {
        Request::DeclareQueue { options, .. } => options.as_ref(),
        Request::OpenSubscription(open) => Some(&open.options),
        Request::CreateTemporary(create) => match &create.kind {
            TemporaryKind::Queue(options) => Some(options),
            TemporaryKind::Topic => None,
        },
        _ => None,
    }
}

/// Patterns of the routing keys that a binding lets through. Where there is no such exchange, the binding is
/// refused for that.
pub(crate) fn passing(router: &Router, source: &str, key: &str) -> Vec<String> {
    match router.exchange(source).map(|options| options.kind) {
        Ok(ExchangeKind::Topic) => matched_by_binding(key),
        Ok(ExchangeKind::Direct) => vec![key.to_owned()],
        Ok(ExchangeKind::Fanout | ExchangeKind::Headers | ExchangeKind::Filtered) => everything(),
        Err(_) => Vec::new(),
    }
}

fn everything() -> Vec<String> {
    vec![">".to_owned()]
}
