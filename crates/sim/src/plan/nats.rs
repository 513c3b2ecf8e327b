//! What clients that speak NATS are going to do, as data.

use super::{Plan, Role};
use angarium_engine::{QUEUE_SUBJECT_PREFIX, SlowConsumerPolicy};
use angarium_protocol::SUBJECT_EXCHANGE;

/// Bytes of a message beside its body: names, numbers, headers.
const AROUND_BYTES: usize = 600;

/// A client: a connection, and what it does on it.
#[derive(Clone, Debug, Default)]
pub struct Nats {
    /// It wants its own messages back where it listens to them.
    pub echo: bool,
    /// It takes headers, and hears when nobody takes its request.
    pub headers: bool,
    /// It wants `+OK` for everything.
    pub verbose: bool,
    /// It takes what comes slowly.
    pub slow: bool,
    /// What it does.
    pub parts: Vec<Part>,
}

/// One of the things that a client does on its connection.
#[derive(Clone, Debug)]
pub enum Part {
    /// Listens.
    Listen(Listening),
    /// Publishes.
    Publish(Publishing),
    /// Asks and waits for answers.
    Request(Requesting),
    /// Answers.
    Respond(Responding),
}

/// A subscription, and what becomes of it.
#[derive(Clone, Debug)]
pub struct Listening {
    /// What to.
    pub pattern: String,
    /// The queue group.
    pub group: Option<String>,
    /// It ends after so many messages, and another one begins.
    pub until: Option<u64>,
    /// That is said when some messages have come already, instead of at once.
    pub until_later: bool,
    /// It is ended after up to so many microseconds, and another one begins.
    pub life_max: Option<u64>,
}

/// A source of messages.
#[derive(Clone, Debug)]
pub struct Publishing {
    /// Subjects to choose from.
    pub subjects: Vec<String>,
    /// Most messages, last words not counted.
    pub messages: u32,
    /// Most messages in one go.
    pub burst_max: u64,
    /// Longest body.
    pub body_max: u64,
    /// How many in a hundred have headers.
    pub headers_percent: u64,
    /// Longest pause after a burst, in microseconds.
    pub pause_max: u64,
}

/// A source of requests.
#[derive(Clone, Debug)]
pub struct Requesting {
    /// Subjects to choose from.
    pub subjects: Vec<String>,
    /// Most requests.
    pub messages: u32,
    /// Most requests without an answer.
    pub window: u32,
    /// Each request has a subscription of its own for its answer, which ends with it.
    pub own_inboxes: bool,
    /// Longest pause, in microseconds.
    pub pause_max: u64,
}

/// A service.
#[derive(Clone, Debug)]
pub struct Responding {
    /// The requests that it takes.
    pub pattern: String,
    /// The queue group.
    pub group: Option<String>,
    /// Longest time that it thinks, in microseconds.
    pub think_max: u64,
}

impl Plan {
    /// Clients that speak NATS.
    pub fn nats(&self) -> impl Iterator<Item = &Nats> {
        self.clients.iter().filter_map(|role| match role {
            Role::Nats(client) => Some(client),
            _ => None,
        })
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.nats().flat_map(|client| &client.parts)
    }

    /// Whether an exchange is the one whose routing keys are subjects.
    #[must_use]
    pub fn has_subjects(&self, exchange: Option<usize>) -> bool {
        exchange.is_some_and(|exchange| self.exchanges[exchange].name == SUBJECT_EXCHANGE)
    }

    /// The queues that catch what a NATS client publishes.
    #[must_use]
    pub fn caught(&self, subject: &str) -> Vec<usize> {
        if let Some(name) = subject.strip_prefix(QUEUE_SUBJECT_PREFIX) {
            return self.route(None, name, &[]);
        }
        let exchange = (0..self.exchanges.len()).find(|at| self.has_subjects(Some(*at)));
        exchange.map(|at| self.route(Some(at), subject, &[])).unwrap_or_default()
    }

    /// Whether so much is published that a client could be too far behind for more, and would miss it:
    /// else nothing may get lost on its way.
    #[must_use]
    pub fn can_lag(&self) -> bool {
        // What is spooled makes room for the journal.
        let makes_room = self.faults.disk_fulls > 0;
        if self.slow_consumer_policy == SlowConsumerPolicy::Spool
            && !self.spool.loses()
            && !makes_room
        {
            return false;
        }
        let answers = self.parts().filter(|part| matches!(part, Part::Respond(_))).count();
        let sized = |count: u32, body: u64| count as usize * (body as usize + AROUND_BYTES);
        let direct = self.parts().map(|part| match part {
            Part::Publish(plan) => {
                let last_words = u32::try_from(plan.subjects.len()).unwrap_or(u32::MAX);
                sized(plan.messages + last_words, plan.body_max)
            }
            Part::Request(plan) => sized(plan.messages, 0) * (1 + answers),
            _ => 0,
        });
        let stored = self.roles().map(|role| match role {
            Role::Producer(plan) if self.has_subjects(plan.exchange) => {
                sized(plan.messages, plan.body_max)
            }
            _ => 0,
        });
        // Each part of a client may hear everything; a requester's inboxes are one.
        let ears = self.nats().map(|client| client.parts.len()).max().unwrap_or(0);
        (direct.sum::<usize>() + stored.sum::<usize>()) * ears >= self.sizes.direct_bytes_max()
    }

    /// Bytes of the longest body that NATS clients publish.
    pub(super) fn direct_body_max(&self) -> u64 {
        let bodies = self.parts().map(|part| match part {
            Part::Publish(plan) => plan.body_max,
            _ => 0,
        });
        bodies.max().unwrap_or(0)
    }
}
