//! Messages: what a publisher hands in, what is stored, and what the broker adds to it.

use crate::Time;
use bytes::Bytes;
use std::time::Duration;

/// The number of the encoding that `properties` are in; those who publish and deliver give them out. The
/// engine keeps properties as they came and reads them only through [`ReadHeaders`](crate::ReadHeaders).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format(pub u8);

/// A message as a publisher hands it in, borrowed from the connection's input.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// The encoding of `properties`.
    pub format: Format,
    /// The properties in that encoding.
    pub properties: &'a [u8],
    /// The payload.
    pub body: &'a [u8],
    /// The payload again, where it is large: its receivers share this buffer.
    pub shared: Option<&'a Bytes>,
    /// Whether it is to survive a restart (in durable queues).
    pub persistent: bool,
    /// 0 where the publisher set none.
    pub priority: u8,
    /// Time to live, counted from when it was sent, also in a transaction; that of a delayed message from the
    /// end of its delay.
    pub ttl: Option<Duration>,
}

/// A message as a delivery shows it.
#[derive(Clone, Copy, Debug)]
pub struct MessageView<'a> {
    /// The exchange it was (last) published to.
    pub exchange: &'a str,
    /// The routing key it was (last) published with.
    pub routing_key: &'a str,
    /// The encoding of `properties`.
    pub format: Format,
    /// The properties as they were published.
    pub properties: &'a [u8],
    /// The payload.
    pub body: &'a [u8],
    /// The payload again, where it is large: its receivers share this buffer.
    pub shared: Option<&'a Bytes>,
    /// Whether it was published as persistent.
    pub persistent: bool,
    /// 0 where the publisher set none.
    pub priority: u8,
    /// What is left now of the time to live that its publisher set.
    pub ttl: Option<Duration>,
    /// What the broker adds.
    pub annotations: &'a Annotations,
}

/// What the broker knows about a message beyond what its publisher said. Each protocol's mapping
/// shows it in its own terms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Annotations {
    /// Times it was requeued after a delivery.
    pub delivery_count: u32,
    /// Why and where it was dead-lettered, most recent first.
    pub deaths: Vec<Death>,
    /// The publisher's expiry was removed because the message was dead-lettered.
    pub ttl_removed: bool,
    /// So were its further routing keys: the queue it left gives its dead letters a key of their own.
    pub further_keys_removed: bool,
    /// It was held back as long as its publisher asked for.
    pub delayed: bool,
    /// Messages that its full queue has dropped from its head since the last delivery.
    pub dropped: u64,
    /// What consumers have added that returned it ([`crate::Engine::settle_annotated`]), one after the other.
    pub changed: Bytes,
}

/// One entry of a message's dead-letter history.
#[derive(Clone, Debug, PartialEq)]
pub struct Death {
    /// Why it left the queue.
    pub reason: DeathReason,
    /// The queue it left.
    pub queue: String,
    /// The exchange it had been published to.
    pub exchange: String,
    /// The routing keys (key and CC) it had been published with.
    pub routing_keys: Vec<String>,
    /// How often it left that queue for that reason.
    pub count: u64,
    /// When it first did.
    pub time: Time,
    /// The time to live its publisher had set, if that expired it.
    pub original_ttl: Option<Duration>,
}

/// Why a message was dead-lettered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DeathReason {
    /// A consumer discarded it.
    Rejected = 0,
    /// Its time to live passed.
    Expired = 1,
    /// The queue was full.
    MaxLength = 2,
    /// It was requeued too often.
    DeliveryLimit = 3,
}

/// What a message has that was never requeued or dead-lettered.
pub(crate) static NO_ANNOTATIONS: Annotations = Annotations {
    delivery_count: 0,
    deaths: Vec::new(),
    ttl_removed: false,
    further_keys_removed: false,
    delayed: false,
    dropped: 0,
    changed: Bytes::new(),
};

/// The flag of a message on its way to another shard whose body, which is large, goes along beside the bytes
/// as one shared buffer.
pub(crate) const BODY_APART: u8 = 128;

/// Whether a message's body goes along beside its bytes, those that [`MessageView::write`],
/// [`Publish::write`](crate::Publish::write) or [`Forward::write`](crate::Forward::write) wrote.
#[must_use]
pub fn is_body_apart(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|flags| flags & BODY_APART != 0)
}
