//! What a plan says about direct messages: where they are routed, and whether a subscriber can become a
//! slow consumer.

use super::{ClientPlan, Plan, QueueIndex};
use angarium_engine::{QUEUE_SUBJECT_PREFIX, SlowConsumerPolicy};
use angarium_protocol::SUBJECT_EXCHANGE;

impl Plan {
    /// Whether an exchange is the one whose routing keys are subjects.
    #[must_use]
    pub fn has_subjects(&self, exchange: Option<usize>) -> bool {
        exchange.is_some_and(|exchange| self.exchanges[exchange].name == SUBJECT_EXCHANGE)
    }

    /// The index of that exchange.
    fn subject_exchange(&self) -> Option<usize> {
        (0..self.exchanges.len()).find(|at| self.has_subjects(Some(*at)))
    }

    /// The queues that direct messages to a subject are routed to.
    #[must_use]
    pub fn routed(&self, subject: &str) -> Vec<QueueIndex> {
        if let Some(name) = subject.strip_prefix(QUEUE_SUBJECT_PREFIX) {
            return self.route(None, name, &[]);
        }
        self.subject_exchange().map(|at| self.route(Some(at), subject, &[])).unwrap_or_default()
    }

    /// Whether a subscriber may become a slow consumer and miss messages: more bytes are published than
    /// its output may hold, and the policy does not keep them all.
    #[must_use]
    pub fn can_be_slow(&self) -> bool {
        // The spill gives way to the journal when the disk is full.
        let makes_room = self.faults.disk_fulls > 0;
        if self.slow_consumer_policy == SlowConsumerPolicy::Spool
            && !self.spill.loses()
            && !makes_room
        {
            return false;
        }
        let subjects = self.subject_exchange();
        let responders = self.client_plans().map(ClientPlan::responders).sum();
        let bytes: usize =
            self.client_plans().map(|client| client.direct_bytes(subjects, responders)).sum();
        let copies = self.client_plans().map(ClientPlan::direct_copies).max().unwrap_or(0);
        bytes * copies >= self.sizes.direct_bytes_max()
    }

    /// Whether clients take part in the rounds at the end of a run.
    #[must_use]
    pub fn has_rounds(&self) -> bool {
        self.client_plans().any(ClientPlan::takes_part_in_rounds)
    }
}
