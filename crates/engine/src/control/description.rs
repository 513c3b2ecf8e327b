//! Answers to clients that ask what queues and bindings of their virtual host are made of.

use crate::access::Right;
use crate::engine::Engine;
use crate::interface::refusal::refuse;
use crate::queue::Queue;
use crate::{BindingTarget, QueueDescription, Refusal, Reply};

/// Bindings that one answer has at most.
const BINDINGS_MAX: usize = 1_000;
/// Queues that one answer has at most, and places that are looked at for it.
const QUEUES_MAX: usize = 100;
const QUEUE_PLACES_MAX: usize = 4_096;

impl Engine {
    /// A queue, exclusive ones of other connections too.
    pub(super) fn describe_queue(&mut self, slot: u32, name: &str) -> Result<Reply, Refusal> {
        let router = &self.vhost_of(slot).router;
        let Some(key) = router.queue(name) else { return Err(router.no_queue(name)) };
        let description = describe(&self.queues[key.0]);
        Ok(Reply::QueueDescriptions { queues: vec![description], next: None })
    }

    /// Some of the queues on which the connection's user has a right, from a place on.
    pub(super) fn describe_queues(&mut self, slot: u32, from: u64, most: u32) -> Reply {
        let vhost = self.clients.channels[slot].vhost;
        let connection = self.clients.channels[slot].id.connection;
        let most = QUEUES_MAX.min(most as usize);
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(self.queues.slots());
        let end = self.queues.slots().min(from.saturating_add(QUEUE_PLACES_MAX));
        let mut queues = Vec::new();
        let mut next = end;
        let named: Vec<(usize, String)> = self
            .queues
            .iter_in(from..end)
            .filter(|(_, queue)| queue.vhost == vhost)
            .map(|(place, queue)| (place as usize, queue.name.to_string()))
            .collect();
        for (place, name) in named {
            if queues.len() >= most {
                next = place;
                break;
            }
            if self.may_anything(connection, &name)
                && let Some(queue) = self.queues.get(place as u32)
            {
                queues.push(describe(queue));
            }
        }
        self.work_budget.count_routing((next - from) as u64);
        let next = (next < self.queues.slots()).then_some(next as u64);
        Reply::QueueDescriptions { queues, next }
    }

    /// Whether the connection's user has any right on a queue of that name.
    fn may_anything(&mut self, connection: crate::ConnectionId, name: &str) -> bool {
        let Some(grant) = self.clients.grant(connection) else { return true };
        let rights = [Right::Read, Right::Write, Right::Configure];
        rights.into_iter().any(|right| grant.may(&self.access, right, name))
    }

    /// The bindings from an exchange to a queue or an exchange, with a key.
    pub(super) fn describe_bindings(
        &mut self,
        slot: u32,
        source: &str,
        target: &BindingTarget,
        key: &str,
    ) -> Result<Reply, Refusal> {
        let router = &self.vhost_of(slot).router;
        router.exchange(source)?;
        let mut bindings = Vec::new();
        let mut looked_at = 0;
        for view in router.bindings_of_target(target)? {
            looked_at += 1;
            if view.source != source || view.key != key {
                continue;
            }
            if bindings.len() >= BINDINGS_MAX {
                refuse!(
                    LimitExceeded,
                    "more than {BINDINGS_MAX} bindings from '{source}' with '{key}'"
                );
            }
            bindings.push(view.to_binding());
        }
        self.work_budget.count_routing(looked_at);
        Ok(Reply::Bindings(bindings))
    }
}

fn describe(queue: &Queue) -> QueueDescription {
    QueueDescription {
        name: queue.name.to_string(),
        options: queue.declared().clone(),
        ready: queue.ready,
        unsettled: queue.unsettled,
        consumers: u32::try_from(queue.consumers.len()).unwrap_or(u32::MAX),
    }
}
