//! What a plan says about direct messages: where they are routed, and whether a subscriber can become a
//! slow consumer.

use super::amqp091::Role;
use super::nats::Part;
use super::{Plan, QueueIndex};
use angarium_engine::{QUEUE_SUBJECT_PREFIX, SlowConsumerPolicy};
use angarium_protocol::SUBJECT_EXCHANGE;

/// Bytes of a message beside its body: names, numbers, headers.
const AROUND_BYTES: usize = 600;

impl Plan {
    /// Whether an exchange is the one whose routing keys are subjects.
    pub fn has_subjects(&self, exchange: Option<usize>) -> bool {
        exchange.is_some_and(|exchange| self.exchanges[exchange].name == SUBJECT_EXCHANGE)
    }

    /// The queues that direct messages to a subject are routed to.
    pub fn routed(&self, subject: &str) -> Vec<QueueIndex> {
        if let Some(name) = subject.strip_prefix(QUEUE_SUBJECT_PREFIX) {
            return self.route(None, name, &[]);
        }
        let at = (0..self.exchanges.len()).find(|at| self.has_subjects(Some(*at)));
        at.map(|at| self.route(Some(at), subject, &[])).unwrap_or_default()
    }

    /// Whether a subscriber may become a slow consumer and miss messages: more bytes are published than
    /// its output may hold, and the policy does not keep them all.
    pub fn can_be_slow(&self) -> bool {
        // The spill gives way to the journal when the disk is full.
        let may_lose = self.spill.loses() || self.faults.disk_fulls > 0;
        if self.slow_consumer_policy == SlowConsumerPolicy::Spool && !may_lose {
            return false;
        }
        // Each part may subscribe to everything; a requester's inboxes are one subscription.
        let copies = self.nats_clients().map(|client| client.parts.len()).max().unwrap_or(0);
        self.direct_bytes() * copies >= self.sizes.direct_bytes_max()
    }

    /// Bytes of all direct messages, as they are written; each request gets up to one answer of each
    /// service.
    fn direct_bytes(&self) -> usize {
        let bytes = |count: u32, body: u64| count as usize * (body as usize + AROUND_BYTES);
        let of_roles = self.roles().map(|role| match role {
            Role::Producer(producer) if self.has_subjects(producer.exchange) => {
                bytes(producer.messages, producer.body_max)
            }
            _ => 0,
        });
        let parts = || self.nats_clients().flat_map(|client| &client.parts);
        let responders = parts().filter(|part| matches!(part, Part::Respond(_))).count();
        let of_parts = parts().map(|part| match part {
            Part::Publish(publishing) => {
                let final_messages = publishing.subjects.len() as u32;
                bytes(publishing.messages + final_messages, publishing.body_max)
            }
            Part::Request(requesting) => bytes(requesting.messages, 0) * (1 + responders),
            _ => 0,
        });
        of_roles.chain(of_parts).sum()
    }

    /// Whether clients take part in the rounds at the end of a run.
    pub fn has_rounds(&self) -> bool {
        self.nats_clients().next().is_some() || self.has_mqtt()
    }

    /// Whether clients receive messages that no queue holds.
    pub fn has_direct_receivers(&self) -> bool {
        self.nats_clients().next().is_some()
            || self.roles().any(|role| matches!(role, Role::Requester(_)))
    }
}
