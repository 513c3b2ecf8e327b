//! The plan of a client that speaks NATS.

use super::client_plan::{ClientPlan, direct_bytes};
use super::queue::QueueIndex;

/// A client: a connection, and what it does on it.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// CONNECT with echo: it receives its own messages.
    pub echo: bool,
    /// CONNECT with headers and no_responders.
    pub headers: bool,
    /// CONNECT with verbose.
    pub verbose: bool,
    /// It reads slowly.
    pub slow: bool,
    /// What it does.
    pub parts: Vec<Part>,
}

/// One activity of a client on its connection.
#[derive(Clone, Debug)]
pub enum Part {
    /// Subscribes.
    Subscribe(Subscribing),
    /// Publishes.
    Publish(Publishing),
    /// Sends requests.
    Request(Requesting),
    /// Answers requests.
    Respond(Responding),
}

/// A subscriber.
#[derive(Clone, Debug)]
pub struct Subscribing {
    /// The subject pattern.
    pub pattern: String,
    /// The queue group.
    pub group: Option<String>,
    /// The number of messages after which it unsubscribes and subscribes anew.
    pub until: Option<u64>,
    /// UNSUB is sent after half of these messages instead of at once.
    pub until_later: bool,
    /// Longest time after which it unsubscribes and subscribes anew, in microseconds.
    pub life_max: Option<u64>,
}

/// A source of messages.
#[derive(Clone, Debug)]
pub struct Publishing {
    /// Subjects to choose from.
    pub subjects: Vec<String>,
    /// Most messages, final messages not counted.
    pub messages: u32,
    /// Most messages per wake-up.
    pub burst_max: u64,
    /// Longest body.
    pub body_max: u64,
    /// Percentage of messages with headers.
    pub headers_percent: u64,
    /// Longest pause between two wake-ups, in microseconds.
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
    /// Each request has a subscription of its own for its answer, limited to one message.
    pub own_inboxes: bool,
    /// Longest pause, in microseconds.
    pub pause_max: u64,
}

/// A service.
#[derive(Clone, Debug)]
pub struct Responding {
    /// The subject pattern of its requests.
    pub pattern: String,
    /// The queue group.
    pub group: Option<String>,
    /// Longest time before an answer, in microseconds.
    pub think_max: u64,
}

impl ClientPlan for Client {
    fn body_max(&self) -> u64 {
        let bodies = self.parts.iter().map(|part| match part {
            Part::Publish(publishing) => publishing.body_max,
            _ => 0,
        });
        bodies.max().unwrap_or(0)
    }

    fn takes_presettled(&self, _: QueueIndex) -> bool {
        false
    }

    fn direct_bytes(&self, _: Option<usize>, responders: usize) -> usize {
        let published = self.parts.iter().map(|part| match part {
            Part::Publish(publishing) => {
                let final_messages = u32::try_from(publishing.subjects.len()).unwrap_or(u32::MAX);
                let messages = publishing.messages + final_messages;
                direct_bytes(messages, publishing.body_max)
            }
            Part::Request(requesting) => direct_bytes(requesting.messages, 0) * (1 + responders),
            _ => 0,
        });
        published.sum()
    }

    fn responders(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, Part::Respond(_))).count()
    }

    // Each part may subscribe to everything; a requester's inboxes are one subscription.
    fn direct_copies(&self) -> usize {
        self.parts.len()
    }

    fn receives_direct(&self) -> bool {
        true
    }

    fn takes_part_in_rounds(&self) -> bool {
        true
    }
}
