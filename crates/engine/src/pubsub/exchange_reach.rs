//! Whether subscribers may hear what comes by way of an exchange.

use crate::Publish;
use crate::access::Right;
use crate::engine::Engine;

impl Engine {
    /// Whether subscribers may hear what comes by another exchange than that of subjects: where it leads to
    /// subjects that its publisher may not publish to, they are nobody to it.
    pub(crate) fn may_be_heard(&mut self, slot: u32, publish: &Publish<'_>) -> bool {
        // What is published to subjects themselves was refused before.
        let names = self.names();
        if publish.exchange == names.subject_exchange {
            return true;
        }
        let id = self.clients.channels.get(slot).expect("a channel's slot is in use").id;
        let connection = self.clients.connections[id.connection.0 as usize].as_mut();
        let grant = connection.and_then(|connection| connection.grant.as_mut());
        let Some(grant) = grant else { return true };
        // Who bound another exchange to that of subjects had the right. Nobody has bound the default
        // exchange, and whoever is asked for an answer may give it.
        let leads_there = !publish.exchange.is_empty()
            || publish.keys().all(|key| names.is_answer_address(key))
            || grant.may(&self.access, Right::Write, names.subject_exchange);
        leads_there && publish.keys().all(|key| grant.check_subject(key).is_ok())
    }
}
