//! The plan of a client that speaks NATS.

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
#[allow(missing_docs)]
#[derive(Clone, Debug)]
pub enum Part {
    Subscribe(Subscribing),
    Publish(Publishing),
    Request(Requesting),
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
