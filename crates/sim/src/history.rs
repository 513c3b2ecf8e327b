//! What clients saw and did, and what was done to the world, in order: the material of every check.

use crate::plan::Plan;
use angarium_engine::{Refusal, SessionExpiry, SessionLoss, Time};
use std::fmt::Write;

/// A message's number: its producer in the upper 32 bits, its place among that producer's messages in
/// the lower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

impl MessageId {
    /// The number of `producer`'s message `sequence`.
    #[must_use]
    pub fn new(producer: u32, sequence: u32) -> MessageId {
        MessageId(u64::from(producer) << 32 | u64::from(sequence))
    }

    /// Who published it: a new number for each client, and for each of its channels.
    #[must_use]
    pub fn producer(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The [`Event::Fault`] that the disk has no space left.
pub const DISK_FULL: &str = "the disk is full";
/// Faults of the disks on which direct messages wait for slow clients.
pub const SPOOL_FAULTS: [&str; 3] = [SPOOL_FAILS, SPOOL_FULL, SPOOL_ROTS];
/// The first.
pub const SPOOL_FAILS: &str = "the spool fails";
/// The second.
pub const SPOOL_FULL: &str = "the spool is full";
/// The third.
pub const SPOOL_ROTS: &str = "the spool rots";

/// A queue's index in [`Plan::queues`].
pub type QueueIndex = usize;

/// How a client settled deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// basic.ack.
    Accept,
    /// basic.nack with requeue.
    Requeue,
    /// basic.nack without requeue.
    Discard,
}

/// A publish as its producer knows it.
#[derive(Clone, Debug)]
pub struct Publish {
    /// The message.
    pub message: MessageId,
    /// The queues that the plan's bindings lead it to.
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

impl Publish {
    /// One that is neither persistent nor part of a transaction, without priority, expiry or delay.
    #[must_use]
    pub fn new(message: MessageId, to: Vec<QueueIndex>) -> Publish {
        Publish {
            message,
            to,
            persistent: false,
            priority: 0,
            transaction: None,
            expires: false,
            held_until: None,
        }
    }
}

/// A delivery as its consumer sees it.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The subscription (or getter) that took it, a new number for each.
    pub consumer: u32,
    /// Its queue.
    pub queue: QueueIndex,
    /// The message that the body names; `None` if the body is none that a producer makes.
    pub message: Option<MessageId>,
    /// As marked.
    pub redelivered: bool,
    /// Payload bytes.
    pub bytes: u64,
    /// How often the broker says it was requeued.
    pub requeues: u64,
}

/// A subscription as its consumer asked for it.
#[derive(Clone, Debug)]
pub struct Subscription {
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
    /// tx.commit-ok came.
    Committed,
    /// tx.rollback-ok came, or the client never asked to commit.
    RolledBack,
}

/// A message that whoever listens to its subject is to hear.
#[derive(Clone, Debug, Default)]
pub struct Emit {
    /// Published just before.
    pub message: MessageId,
    /// To which subject.
    pub subject: String,
    /// The NATS connection on which it was; 0: by another protocol.
    pub connection: u32,
    /// Listeners on the same connection hear it, too.
    pub echo: bool,
    /// Where its publisher wants replies.
    pub reply: Option<String>,
    /// It has headers, or properties that become some.
    pub has_headers: bool,
}

/// A subscription to a subject as its client asked for it.
#[derive(Clone, Debug, Default)]
pub struct Listen {
    /// Its number, a new one for each.
    pub listener: u32,
    /// The connection on which it is.
    pub connection: u32,
    /// What it listens to.
    pub pattern: String,
    /// The queue group.
    pub group: Option<String>,
    /// Its client takes headers.
    pub takes_headers: bool,
    /// It answers what it hears.
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

/// A direct message as its listener hears it.
#[derive(Clone, Debug, Default)]
pub struct Hear {
    /// Who.
    pub listener: u32,
    /// The message that the body names; `None` if the body is none that a publisher makes.
    pub message: Option<MessageId>,
    /// The subject it came with.
    pub subject: String,
    /// The reply subject it came with.
    pub reply: Option<String>,
    /// Its headers.
    pub headers: HeadersSeen,
    /// How many messages the broker says this listener missed before.
    pub missed: u64,
}

/// What the host measured of the node after a turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Payload bytes that the engine holds in memory.
    pub resident_bytes: u64,
    /// Unsent bytes of the fullest connection.
    pub outlet_bytes: u64,
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
    #[must_use]
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
    /// A subscription began (before its first delivery).
    Subscribe(Subscription),
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
    /// This consumer asked the broker something.
    Asking { consumer: u32 },
    /// The broker has processed everything that this consumer sent before: it answered something
    /// later on the same channel.
    Synced { consumer: u32 },
    /// The subscription ended with its connection or channel; what it had not settled goes back.
    Ended { consumer: u32 },
    /// An address for replies of its own was opened for this consumer.
    Inbox { consumer: u32 },
    /// The message published just before is a reply, to the inbox of this consumer.
    Reply { message: MessageId, requester: u32 },
    /// A reply came.
    Replied { consumer: u32, message: Option<MessageId> },
    /// A queue that expires was declared, perhaps anew: when its client asked, and what was in it.
    Visited { queue: QueueIndex, asked: Time, messages: u64 },
    /// The same was asked, and the connection ended before an answer came.
    Unanswered { queue: QueueIndex },
    /// A message was published just before, or is to be when its transaction is committed, to a subject.
    Emit(Emit),
    /// The broker has processed all that the publisher of this message had sent up to it: it answered
    /// something that was sent later on the same connection.
    Flushed { message: MessageId },
    /// A client asked to listen.
    Listen(Listen),
    /// It does: something was answered that was asked later on the same connection.
    Listens { listener: u32 },
    /// It asked to listen no more, at once or once it has heard so many messages in all.
    Unlisten { listener: u32, after: Option<u64> },
    /// The broker knows of that.
    Unlistened { listener: u32 },
    /// A listener heard a message.
    Hear(Hear),
    /// The broker says that nobody takes the request with this inbox, which was sent to this subject.
    NoResponders { inbox: String, subject: String },
    /// A NATS connection has ended, as its client sees it.
    Parted { connection: u32 },
    /// The broker ended the connection of a NATS client of its own accord, and why as its log has it.
    Dropped { client: usize, why: String },
    /// The broker told a NATS client of an error.
    Complained { connection: u32, text: String },
    /// Nobody publishes any more but for last words; whoever was behind has got everything.
    CaughtUp,
    /// Nobody publishes any more; what was under way has had its time, and everybody was answered
    /// once more.
    AllSaid,
    /// The broker ended a channel or connection with an error.
    Refused { code: u16, text: String },
    /// The number of ready messages that the broker says a queue has.
    Depth { queue: QueueIndex, messages: u64 },
    /// The broker begins, or has ended, to settle what was settled at once a part in each turn, or to
    /// read what was settled to be a dead letter.
    SettlesInParts(bool),
    /// What the host measured, whenever it is a new maximum.
    Measured(Sample),
    /// Something about named sessions; `connection`: a new number for each.
    Session { connection: u32, event: SessionEvent },
    /// The node is gone, in whatever state it was.
    Crashed,
    /// It was closed in order.
    Closed,
    /// A new node runs on what was on the disk.
    Recovered,
    /// A fault was injected; for the reader.
    Fault(&'static str),
    /// Faults have ended, all clients are gone, and every queue is now emptied by one consumer.
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
    /// An empty one.
    #[must_use]
    pub fn new(plan: Plan) -> History {
        History { plan, events: Vec::new(), digest: Digest::default() }
    }

    /// Notes an event.
    pub fn note(&mut self, now: Time, event: Event) {
        write!(self.digest, "{} {event:?}", now.0).expect("hashing does not fail");
        self.events.push((now, event));
    }

    /// The last `count` events, a line each.
    #[must_use]
    pub fn tail(&self, count: usize) -> String {
        let start = self.events.len().saturating_sub(count);
        let mut text = String::new();
        for (time, event) in &self.events[start..] {
            writeln!(text, "{:>12} {event:?}", time.0).expect("a string takes everything");
        }
        text
    }
}

/// FNV-1a, 64 bits: enough to tell two runs apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(pub u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Takes bytes in.
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
