//! Whether subscribers may receive what comes through an exchange.

use crate::Publish;
use crate::access::Right;
use crate::engine::Engine;

impl Engine {
    /// Whether subscribers may receive a message that came through another exchange than that
    /// of subjects: not where it leads to subjects that its publisher may not publish to.
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
        // Binding another exchange to that of subjects takes the right to it. The default
        // exchange is not bound, and a responder may answer a request.
        let leads_there = !publish.exchange.is_empty()
            || publish.keys().all(|key| names.is_answer_address(key))
            || grant.may(&self.access, Right::Write, names.subject_exchange);
        leads_there && publish.keys().all(|key| grant.check_subject(key).is_ok())
    }
}
