//! The history of a run: what clients did and saw, and what was done to the world, in order.
//! Checks read it.

use crate::plan::{Plan, QueueIndex};
use angarium_engine::{Refusal, SessionExpiry, SessionLoss, Time};
use std::fmt::Write;

/// A message's number: its producer in the upper 32 bits, its place among that producer's messages in
/// the lower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

impl MessageId {
    /// The number of `producer`'s message `sequence`.
    pub fn new(producer: u32, sequence: u32) -> MessageId {
        MessageId(u64::from(producer) << 32 | u64::from(sequence))
    }

    /// The number of its producer: a new one for each channel of each connection.
    pub fn producer(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The text of the [`Event::Fault`] of a full disk.
pub const DISK_FULL: &str = "the disk is full";
/// The texts of the faults of the spill disk.
pub const SPILL_FAULTS: [&str; 3] = [SPILL_FAILS, SPILL_FULL, SPILL_CORRUPTED];
/// A change of the spill disk fails.
pub const SPILL_FAILS: &str = "the spill disk fails";
/// The spill disk has no space left.
pub const SPILL_FULL: &str = "the spill disk is full";
/// Files of the spill disk are damaged.
pub const SPILL_CORRUPTED: &str = "the spill disk is damaged";

/// How a client settled deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// basic.ack.
    Accept,
    /// basic.nack with requeue; modified as failed.
    Requeue,
    /// Released: back as if it had not been delivered.
    Release,
    /// basic.reject without requeue.
    Discard,
}

impl Outcome {
    /// Whether the message is in its queue again.
    pub fn returns(self) -> bool {
        matches!(self, Outcome::Requeue | Outcome::Release)
    }
}

/// A publish as its producer knows it.
#[derive(Clone, Debug, Default)]
pub struct Publish {
    /// The message.
    pub message: MessageId,
    /// The queues that the plan's bindings route it to.
    pub to: Vec<QueueIndex>,
    /// Delivery mode 2.
    pub persistent: bool,
    /// Its priority property.
    pub priority: u8,
    /// The transaction it is part of.
    pub transaction: Option<u32>,
    /// It has a time to live of its own.
    pub expires: bool,
    /// It is held back before it is routed, at least until then.
    pub held_until: Option<Time>,
}

/// A delivery as its consumer sees it.
#[derive(Clone, Debug, Default)]
pub struct Delivery {
    /// The number of the consumer (or of the client that uses basic.get).
    pub consumer: u32,
    /// Its queue.
    pub queue: QueueIndex,
    /// The message that the body names; `None` if no producer made the body.
    pub message: Option<MessageId>,
    /// Its redelivered flag.
    pub redelivered: bool,
    /// Payload bytes.
    pub bytes: u64,
    /// The header `x-delivery-count`, or how many deliveries failed.
    pub requeues: u64,
}

/// A consumer as its client asked for it.
#[derive(Clone, Debug, Default)]
pub struct Consume {
    /// Its number.
    pub consumer: u32,
    /// Its queue.
    pub queue: QueueIndex,
    /// Prefetch count; 0 for none.
    pub messages_max: u64,
    /// Prefetch bytes; 0 for none.
    pub bytes_max: u64,
    /// Without acknowledgements.
    pub presettled: bool,
}

/// How a transaction ended as its client knows it; without such an event it is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The broker said so.
    Committed,
    /// The client asked for that, or never asked to commit.
    RolledBack,
}

/// A message as a client is shown it that browses.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// The number of the browse.
    pub browse: u32,
    /// The message that the body names; `None` if no producer made the body.
    pub message: Option<MessageId>,
    /// It is marked as delivered before.
    pub is_marked: bool,
}

/// A message that all subscribers of its subject are to receive.
#[derive(Clone, Debug, Default)]
pub struct DirectPublish {
    /// Its number; the [`Event::Publish`] comes just before.
    pub message: MessageId,
    /// The subject.
    pub subject: String,
    /// The publishing NATS connection; 0 for another protocol.
    pub connection: u32,
    /// Subscribers on the same connection receive it, too.
    pub echo: bool,
    /// The reply subject.
    pub reply: Option<String>,
    /// It has headers, or properties that become headers.
    pub has_headers: bool,
}

/// A subscription as its client asked for it.
#[derive(Clone, Debug, Default)]
pub struct Subscription {
    /// Its number, a new one for each.
    pub number: u32,
    /// Its connection.
    pub connection: u32,
    /// The subject pattern.
    pub pattern: String,
    /// The queue group.
    pub group: Option<String>,
    /// Its client takes headers.
    pub takes_headers: bool,
    /// It answers requests.
    pub answers: bool,
}

/// The headers that came with a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeadersSeen {
    /// None.
    #[default]
    None,
    /// Those that were published with it.
    Own,
    /// Something else.
    Other,
}

/// A direct message as its subscriber receives it.
#[derive(Clone, Debug, Default)]
pub struct DirectMessage {
    /// The subscription's number.
    pub subscription: u32,
    /// The message that the body names; `None` if no publisher made the body.
    pub message: Option<MessageId>,
    /// The subject it came with.
    pub subject: String,
    /// The reply subject it came with.
    pub reply: Option<String>,
    /// Its headers.
    pub headers: HeadersSeen,
    /// How many messages the broker says this subscriber missed before.
    pub missed: u64,
}

/// What the host measured of the node after a turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Payload bytes that the engine holds in memory.
    pub resident_bytes: u64,
    /// Unsent bytes of the fullest connection.
    pub unsent_bytes: u64,
    /// Appended bytes that the disk has not taken.
    pub backlog_bytes: u64,
}

/// What a client of named sessions asks for.
#[allow(missing_docs)]
#[derive(Clone, Debug)]
pub enum SessionRequest {
    /// To be the holder of a session. `claim`: a new number for each, which is kept with the session.
    Claim { claim: u64, session: usize, fresh: bool, expiry: SessionExpiry, recorded: bool },
    /// To be the holder no more.
    Detach { session: usize, expiry: Option<SessionExpiry> },
    /// That the session ends.
    End { session: usize },
}

impl SessionRequest {
    /// The session that it is about.
    pub fn session(&self) -> usize {
        match *self {
            SessionRequest::Claim { session, .. }
            | SessionRequest::Detach { session, .. }
            | SessionRequest::End { session } => session,
        }
    }
}

/// What happened between a client of named sessions and the broker.
#[allow(missing_docs)]
#[derive(Clone, Debug)]
pub enum SessionEvent {
    /// It asked for something.
    Asked(SessionRequest),
    /// Its claim was answered: the session was there before, and whose claim was the last one.
    Claimed { request: SessionRequest, is_resumed: bool, before: Option<u64> },
    /// What it asked for was refused.
    Refused { request: SessionRequest, refusal: Refusal },
    /// What else it asked for is done.
    Done { request: SessionRequest },
    /// It was told that it does not hold a session any more.
    Lost { session: usize, why: SessionLoss },
    /// Its connection has ended.
    Gone,
}

/// What a client of MQTT did or saw.
#[allow(missing_docs)]
#[derive(Clone, Debug)]
pub enum MqttEvent {
    /// It sent a message for the first time, or CONNECT with it as its will.
    Published { message: MessageId, qos: u8, is_retained: bool },
    /// PUBACK or PUBREC came for it.
    Acknowledged { message: MessageId, is_accepted: bool },
    /// A session that outlives connections was told that it subscribes to everything.
    Subscribed { session: u32, qos: u8, is_shared: bool },
    /// A message came to it, and not only a further copy of one with QoS 2.
    Received { session: u32, message: MessageId, qos: u8, dup: bool },
    /// A client subscribed to everything in a new session; a new number for each.
    Watching { subscription: u32 },
    /// A message came to it.
    Seen { subscription: u32, message: MessageId, qos: u8, dup: bool, is_retained: bool },
    /// Its connection ended without DISCONNECT, and it had a will.
    Ended { subscription: u32, will: Option<MessageId> },
}

/// One thing that happened.
#[allow(missing_docs)]
#[derive(Clone, Debug)]
pub enum Event {
    /// A producer sent a message.
    Publish(Publish),
    /// The broker confirmed it, or refused it.
    Confirm { message: MessageId, accepted: bool },
    /// The broker gave it back as unroutable; comes before its confirm.
    Return { message: MessageId },
    /// A client asked for a transaction to be committed.
    Committing { transaction: u32 },
    /// A transaction ended.
    Transaction { transaction: u32, ending: Ending },
    /// The broker said that a transaction is rolled back, as its client had asked.
    Undone { transaction: u32 },
    /// A consumer started; comes before its first delivery.
    Consume(Consume),
    /// A message came.
    Deliver(Delivery),
    /// Its consumer settled it.
    Settle {
        consumer: u32,
        queue: QueueIndex,
        message: MessageId,
        outcome: Outcome,
        transaction: Option<u32>,
    },
    /// This consumer sent a request to the broker.
    Asking { consumer: u32 },
    /// The broker has processed everything that this consumer sent before: it answered a later
    /// request on the same channel.
    Synced { consumer: u32 },
    /// The broker said that it had nothing left to deliver to this consumer, when that drained.
    NothingLeft { consumer: u32 },
    /// A client begins to browse a queue; a new number for each time.
    Browse { browse: u32, queue: QueueIndex },
    /// A client was shown a message.
    Saw(Sight),
    /// It asked to be told when it has been shown everything.
    BrowseAsks { browse: u32 },
    /// It was told so.
    Browsed { browse: u32 },
    /// The consumer ended with its connection or channel; its unsettled deliveries are requeued.
    Ended { consumer: u32 },
    /// This consumer started on the direct reply-to address.
    Inbox { consumer: u32 },
    /// The message published just before is a reply, to the inbox of this consumer.
    Reply { message: MessageId, requester: u32 },
    /// A reply came.
    Replied { consumer: u32, message: Option<MessageId> },
    /// A queue with `x-expires` was declared: when the client asked, and how many messages were in
    /// it.
    LeaseRenewed { queue: QueueIndex, asked: Time, messages: u64 },
    /// The connection ended before the declaration of a queue with `x-expires` was answered.
    LeaseUnanswered { queue: QueueIndex },
    /// The message published just before is a direct one; in a transaction, once that is committed.
    DirectPublish(DirectPublish),
    /// The broker has processed this message and all earlier ones of its publisher: it answered a
    /// later PING on the same connection.
    Flushed { message: MessageId },
    /// A client subscribed.
    Subscribe(Subscription),
    /// The broker knows the subscription: it answered a later PING on the same connection.
    Subscribed { subscription: u32 },
    /// A client unsubscribed, at once or after `after` messages in all.
    Unsubscribe { subscription: u32, after: Option<u64> },
    /// The broker knows that the client unsubscribed.
    Unsubscribed { subscription: u32 },
    /// A subscriber received a message.
    Receive(DirectMessage),
    /// The broker reported that the request to `subject` with this inbox has no responder.
    NoResponders { inbox: String, subject: String },
    /// A NATS connection has ended, as its client sees it.
    Disconnected { connection: u32 },
    /// The broker closed the connection of a client whose protocol does not carry the reason;
    /// `why` is the reason in its log.
    Dropped { client: usize, why: String },
    /// The broker sent `-ERR` to a NATS client.
    ErrorReported { connection: u32, text: String },
    /// Only final messages follow; slow consumers have received everything before.
    CaughtUp,
    /// Nothing is published any more, and every client was answered once more.
    AllReceived,
    /// The broker ended a channel or connection with an error.
    Refused { code: u16, text: String },
    /// The number of ready messages that the broker says a queue has.
    Depth { queue: QueueIndex, messages: u64 },
    /// The broker starts or stops carrying out settles over several turns, or reading dead letters
    /// back from disk.
    SettlesInParts(bool),
    /// What the host measured, whenever it is a new maximum.
    Measured(Sample),
    /// Something happened to a named session; `connection`: a new number for each.
    Session { connection: u32, event: SessionEvent },
    /// Something happened to a client of MQTT.
    Mqtt(MqttEvent),
    /// The node crashed.
    Crashed,
    /// The node was closed in order.
    Closed,
    /// A new node runs on what was on the disk.
    Recovered,
    /// A fault was injected.
    Fault(&'static str),
    /// Faults have ended, all clients are gone, and one client now empties every queue.
    Draining,
    /// All queues are empty.
    Drained,
}

/// All that happened in one run.
#[derive(Clone, Debug)]
pub struct History {
    /// What was planned.
    pub plan: Plan,
    /// The events with their times.
    pub events: Vec<(Time, Event)>,
    /// A running hash of the events and of all bytes that travelled.
    pub digest: Digest,
}

impl History {
    /// An empty history.
    pub fn new(plan: Plan) -> History {
        History { plan, events: Vec::new(), digest: Digest::EMPTY }
    }

    /// Records an event.
    pub fn note(&mut self, now: Time, event: Event) {
        write!(self.digest, "{} {event:?}", now.0).expect("hashing does not fail");
        self.events.push((now, event));
    }

    /// The last `count` events, a line each.
    pub fn tail(&self, count: usize) -> String {
        let tail = &self.events[self.events.len().saturating_sub(count)..];
        tail.iter().map(|(time, event)| format!("{:>12} {event:?}\n", time.0)).collect()
    }
}

/// FNV-1a, 64 bits: enough to tell two runs apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(pub u64);

impl Digest {
    /// The digest of nothing.
    pub const EMPTY: Digest = Digest(0xcbf2_9ce4_8422_2325);

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}
