//! Ways to subjects: what a user who is narrowed to subjects may declare that leads messages to them.
//!
//! A publish is decided by its publisher, wherever exchanges and alternates lead it. A dead letter, or a
//! message whose delay is over, has no publisher any more and goes the ways that were declared. So who
//! declares a way that ends at the exchange of subjects must be allowed to publish all that can pass it.

use crate::access::matched_by_binding;
use crate::engine::Engine;
use crate::routing::Router;
use crate::{BindingTarget, ExchangeKind, Names, Publish, Refusal, Request};

impl Engine {
    /// Refuses a request of a narrowed user that would lead messages to subjects it may not publish to.
    pub(super) fn check_ways(&mut self, slot: u32, request: &Request) -> Result<(), Refusal> {
        let channel = &self.clients.channels[slot];
        let (connection, vhost) = (channel.id.connection, channel.vhost);
        let names = self.names();
        let Some(grant) = self.clients.grant(connection) else { return Ok(()) };
        if grant.subjects().is_none() {
            return Ok(());
        }
        grant.check_way(passing(names, &self.topology.vhosts[vhost].router, request))
    }

    /// Refuses a message of a narrowed user that its exchange leads to subjects it may not publish to.
    #[cold]
    pub(crate) fn check_reached(
        &mut self,
        slot: u32,
        publish: &Publish<'_>,
    ) -> Result<(), Refusal> {
        let mut targets = std::mem::take(&mut self.scratch.targets);
        let vhost = self.clients.channels[slot].vhost;
        let routed = self.route_to(vhost, publish, &mut targets);
        self.scratch.targets = targets;
        // Where there is no such exchange, that is said later.
        if !routed.is_some_and(|routed| routed.has_subjects) {
            return Ok(());
        }
        let connection = self.clients.channels[slot].id.connection;
        let Some(grant) = self.clients.grant(connection) else { return Ok(()) };
        publish.keys().try_for_each(|key| grant.check_subject(key))
    }
}

/// Patterns of all subjects that messages can have which pass the way that a request declares; none where
/// it does not end at the exchange of subjects.
fn passing(names: &Names, router: &Router, request: &Request) -> Vec<String> {
    let everything = || vec![">".to_owned()];
    match request {
        Request::Bind(binding) => match &binding.target {
            BindingTarget::Exchange(target) if router.leads_to_subjects(target) => {
                match router.exchange(&binding.source).map(|options| options.kind) {
                    Ok(ExchangeKind::Topic) => matched_by_binding(&binding.key),
                    Ok(ExchangeKind::Direct) => vec![binding.key.clone()],
                    Ok(ExchangeKind::Fanout | ExchangeKind::Headers) => everything(),
                    // The binding is refused for that.
                    Err(_) => Vec::new(),
                }
            }
            _ => Vec::new(),
        },
        Request::DeclareExchange { options: Some(options), .. } => match &options.alternate {
            Some(alternate) if router.leads_to_subjects(alternate) => everything(),
            _ => Vec::new(),
        },
        Request::DeclareQueue { options: Some(options), .. } => {
            let Some(exchange) = &options.dead_letter_exchange else { return Vec::new() };
            match &options.dead_letter_routing_key {
                // The default exchange leads to subscribers who wait for an answer.
                Some(key) if exchange.is_empty() && names.is_answer_address(key) => {
                    vec![key.clone()]
                }
                Some(key) if router.leads_to_subjects(exchange) => vec![key.clone()],
                None if router.leads_to_subjects(exchange) => everything(),
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}
