//! The plans of clients that speak AMQP 1.0.

use super::queue::QueueIndex;

/// Longest body of a transactor's message.
pub const TRANSACTOR_BODY_MAX: usize = 300;

/// What a client does.
#[allow(missing_docs)]
#[derive(Clone, Debug)]
pub enum Client {
    Taker(Taker),
    Transactor(Transactor),
    Browser(Browser),
}

impl Client {
    /// The queue that it alone consumes from.
    pub fn takes_from(&self) -> Option<QueueIndex> {
        match self {
            Client::Taker(taker) => Some(taker.queue),
            Client::Transactor(transactor) => Some(transactor.from),
            Client::Browser(_) => None,
        }
    }
}

/// A client that takes messages from one queue, which no other client consumes from: as far as it gives
/// credit, with drains, and with returns that count and returns that do not.
#[derive(Clone, Debug)]
pub struct Taker {
    /// The queue.
    pub queue: QueueIndex,
    /// Most credit that it gives.
    pub credit_max: u32,
    /// Percentage of settles that return messages as failed.
    pub fail_percent: u64,
    /// Percentage of settles that return messages as if they had not been delivered.
    pub release_percent: u64,
    /// Percentage of wake-ups at which it drains.
    pub drain_percent: u64,
    /// Longest pause between two wake-ups, in microseconds.
    pub think_max: u64,
    /// Longest time after which it leaves and comes back, in microseconds.
    pub life_max: Option<u64>,
}

/// A client that takes messages from one queue, which no other client consumes from, and publishes to others,
/// in transactions and beside them.
#[derive(Clone, Debug)]
pub struct Transactor {
    /// The queue it takes from.
    pub from: QueueIndex,
    /// The queues it publishes to.
    pub to: Vec<QueueIndex>,
    /// Its sessions.
    pub sessions: u16,
    /// Transactions that each session has declared at a time.
    pub at_once: usize,
    /// Most publishes and settles in a transaction.
    pub operations_max: u64,
    /// Percentage of transactions that are rolled back.
    pub rollback_percent: u64,
    /// Percentage of publishes and settles that are in no transaction.
    pub plain_percent: u64,
    /// Percentage of persistent messages among the plain ones.
    pub persistent_percent: u64,
    /// Most messages that it publishes.
    pub messages: u32,
    /// Most credit that it gives.
    pub credit_max: u32,
    /// Percentage of wake-ups at which it drains.
    pub drain_percent: u64,
    /// Longest pause between two wake-ups, in microseconds.
    pub think_max: u64,
    /// Longest time after which it leaves and comes back, in microseconds.
    pub life_max: Option<u64>,
}

/// A client that browses a queue again and again.
#[derive(Clone, Debug)]
pub struct Browser {
    /// The queue.
    pub queue: QueueIndex,
    /// Most credit that it gives at once.
    pub credit_max: u32,
    /// It asks for settled deliveries.
    pub is_settled: bool,
    /// Longest pause between two wake-ups, in microseconds.
    pub think_max: u64,
}
