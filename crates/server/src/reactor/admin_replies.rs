//! AdminReplies who wait for what they asked of the broker.

use super::shard::Shard;
use angarium_engine::{Refusal, Reply, Request};
use angarium_node::Ticket;
use std::collections::BTreeMap;

/// What gets an operator's answer.
type Then = Box<dyn FnOnce(Result<Reply, Refusal>) + Send>;

/// Those who wait, by the tickets of what they asked.
#[derive(Default)]
pub(super) struct AdminReplies(BTreeMap<Ticket, Then>);

impl Shard {
    /// Carries out what an operator asks of the broker; at home. `then` gets the answer on this thread,
    /// once what was changed is flushed and all shards know it; a shard that ends first drops it.
    pub fn administer(
        &mut self,
        vhost: &str,
        request: Request,
        then: impl FnOnce(Result<Reply, Refusal>) + Send + 'static,
    ) {
        let ticket = self.node.administer(self.now, vhost, request);
        self.admin_replies.0.insert(ticket, Box::new(then));
    }

    /// Gives the answers out that there are.
    pub(super) fn answer_admin_requests(&mut self) {
        while let Some((ticket, answer)) = self.node.next_admin_answer() {
            if let Some(then) = self.admin_replies.0.remove(&ticket) {
                then(answer);
            }
        }
    }
}
