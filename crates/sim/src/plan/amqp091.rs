//! The plan of a client that speaks AMQP 0-9-1: a role for each channel.

use super::queue::QueueIndex;

/// What a client does on one of its channels.
#[allow(missing_docs)]
#[derive(Clone, Debug)]
pub enum Role {
    Producer(Producer),
    Consumer(Consumer),
    Relay(Relay),
    QueueDeleter(QueueDeleter),
    Requester(Requester),
    Responder(Responder),
    LeaseKeeper(LeaseKeeper),
}

/// How a producer's publishes are confirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Publisher confirms.
    #[default]
    Confirm,
    /// Not at all.
    Plain,
    /// Transactions with this number of messages.
    Transactional(u64),
}

/// Which messages have an expiration property.
#[derive(Clone, Copy, Debug)]
pub struct Expiration {
    /// Percentage of messages.
    pub percent: u64,
    /// Longest time to live, in milliseconds.
    pub millis_max: u64,
}

/// A publishing client.
#[derive(Clone, Debug, Default)]
pub struct Producer {
    /// Index in `Plan::exchanges`; `None` for the default exchange.
    pub exchange: Option<usize>,
    /// Routing keys to choose from.
    pub keys: Vec<String>,
    /// Most messages.
    pub messages: u32,
    /// Most unconfirmed messages.
    pub window: u32,
    /// How they are confirmed.
    pub mode: Mode,
    /// Percentage of persistent messages.
    pub persistent_percent: u64,
    /// Percentage of mandatory messages.
    pub mandatory_percent: u64,
    /// Longest body.
    pub body_max: u64,
    /// Highest priority.
    pub priority_max: u8,
    /// Messages with an expiration property.
    pub expiration: Option<Expiration>,
    /// Longest `x-delay` in milliseconds.
    pub delay_max: Option<u64>,
    /// Delays end at multiples of these milliseconds, so that many messages become due together.
    pub delay_step: Option<u64>,
    /// Names of headers to choose from.
    pub headers: Vec<String>,
    /// Longest pause between two wake-ups, in microseconds.
    pub pause_max: u64,
    /// Percentage of transactions that are rolled back.
    pub rollback_percent: u64,
}

/// How a consumer acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// No acknowledgements: settled once sent.
    Auto,
    /// Each delivery by itself, in any order.
    Single,
    /// All up to the newest, after this number of deliveries.
    Multiple(u64),
}

/// A consuming client.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// The queue.
    pub queue: QueueIndex,
    /// How it acknowledges.
    pub acks: Acks,
    /// Prefetch count; 0 for none.
    pub prefetch: u64,
    /// Prefetch bytes; 0 for none.
    pub prefetch_bytes: u64,
    /// Percentage of deliveries that it requeues.
    pub requeue_percent: u64,
    /// Percentage of deliveries that it discards.
    pub discard_percent: u64,
    /// Longest time before a settle, in microseconds.
    pub think_max: u64,
    /// It uses basic.get instead of basic.consume.
    pub gets: bool,
    /// Longest time after which it leaves and comes back, in microseconds.
    pub life_max: Option<u64>,
}

/// A client that consumes and publishes in one transaction.
#[derive(Clone, Debug)]
pub struct Relay {
    /// The source queue.
    pub from: QueueIndex,
    /// The target queues: one message to each.
    pub to: Vec<QueueIndex>,
    /// Deliveries in one transaction.
    pub batch: u64,
    /// Percentage of transactions that are rolled back.
    pub rollback_percent: u64,
}

/// A client that purges or deletes a queue which others use.
#[derive(Clone, Debug)]
pub struct QueueDeleter {
    /// The queue it purges or deletes.
    pub queue: QueueIndex,
    /// Percentage of deletes; the others are purges.
    pub delete_percent: u64,
    /// Longest pause, in microseconds.
    pub pause_max: u64,
}

/// A client that publishes requests, and consumes the replies by direct reply-to.
#[derive(Clone, Debug)]
pub struct Requester {
    /// The queue of the requests.
    pub queue: QueueIndex,
    /// Most requests.
    pub messages: u32,
    /// Most requests without a reply.
    pub window: u32,
    /// Percentage of persistent messages.
    pub persistent_percent: u64,
    /// Longest pause, in microseconds.
    pub pause_max: u64,
}

/// A client that consumes requests and sends each a reply.
#[derive(Clone, Debug)]
pub struct Responder {
    /// The queue of the requests.
    pub queue: QueueIndex,
    /// Prefetch count.
    pub prefetch: u16,
    /// Percentage of mandatory replies.
    pub mandatory_percent: u64,
    /// Longest time before a reply, in microseconds.
    pub think_max: u64,
}

/// A client that declares a queue with `x-expires` repeatedly, and keeps a message in it.
#[derive(Clone, Debug)]
pub struct LeaseKeeper {
    /// The queue.
    pub queue: QueueIndex,
    /// Longest time between two uses, in microseconds.
    pub away_max: u64,
}
