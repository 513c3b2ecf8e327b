//! Administration requests that wait for their answers.

use super::shard::Shard;
use angarium_engine::{Refusal, Reply, Request};
use angarium_node::Ticket;
use std::collections::BTreeMap;

/// Gets an operator's answer.
type Then = Box<dyn FnOnce(Result<Reply, Refusal>) + Send>;

/// By ticket.
pub(super) type AdminReplies = BTreeMap<Ticket, Then>;

impl Shard {
    /// Carries out an administration request; at home. `then` gets the answer on this thread, once the change
    /// is flushed and all shards know it; it is dropped if the shard ends first.
    pub fn administer(
        &mut self,
        vhost: &str,
        request: Request,
        then: impl FnOnce(Result<Reply, Refusal>) + Send + 'static,
    ) {
        let ticket = self.node.administer(self.now, vhost, request);
        self.admin_replies.insert(ticket, Box::new(then));
    }

    /// Passes on the answers that have come.
    pub(super) fn answer_admin_requests(&mut self) {
        while let Some((ticket, answer)) = self.node.next_admin_answer() {
            if let Some(then) = self.admin_replies.remove(&ticket) {
                then(answer);
            }
        }
    }
}
