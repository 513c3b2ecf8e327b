//! The plan of a client that speaks AMQP 1.0.

use super::queue::QueueIndex;

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
