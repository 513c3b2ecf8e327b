//! Facts about a queue, a message in it, and where a publish would go: what others explain to operators.

use crate::{ChannelId, Credit, Death, QueueListing, QueueOptions, Refusal, Time};
use std::time::Duration;

/// Why a consumer is handed nothing now, as far as the engine knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsumerHold {
    /// Another consumer of the queue gets everything.
    Second,
    /// Its client has stopped deliveries to the channel.
    Flow,
    /// As much is unsettled as its credit allows.
    Credit,
    /// As much is unsettled as the channel's credit, or the limit of one channel, allows.
    ChannelCredit,
    /// It has had as much as its client granted.
    Grant,
    /// It begins with the next turn.
    Starting,
}

/// A consumer of a queue.
#[derive(Clone, Debug)]
pub struct ConsumerFacts<'a> {
    /// Its channel; a remote shard's connection in the slot that home has it in.
    pub channel: ChannelId,
    /// Its name.
    pub name: &'a str,
    /// Deliveries count as accepted once sent.
    pub presettled: bool,
    /// It gets only messages that this selects.
    pub filter: Option<&'a str>,
    /// Deliveries that it has not settled.
    pub unsettled: u32,
    /// How many may be; 0: no limit.
    pub credit: Credit,
    /// The channel's.
    pub channel_credit: Credit,
    /// Why it is handed nothing now.
    pub hold: Option<ConsumerHold>,
}

/// Messages of a queue that one channel has not settled.
#[derive(Clone, Debug)]
pub struct OutFacts<'a> {
    /// The channel.
    pub channel: ChannelId,
    /// The consumer of the oldest, where it was not asked for singly and is still there.
    pub consumer: Option<&'a str>,
    /// How many there are.
    pub messages: u64,
    /// When the oldest is given up, if it ever is, and how long after its delivery that is.
    pub deadline: Option<(Time, Duration)>,
}

/// A queue as it stands.
#[derive(Clone, Debug)]
pub struct QueueFacts<'a> {
    /// What lists show.
    pub listing: QueueListing<'a>,
    /// What it was declared with and what policies make of that.
    pub options: &'a QueueOptions,
    /// Requeues after which a message is dead-lettered, however that came to be.
    pub delivery_limit: Option<u32>,
    /// Another message of no bytes would exceed its limits.
    pub is_full: bool,
    /// It rests, because it drains beside others.
    pub is_resting: bool,
    /// Channels give many messages back; until they are all there nothing is handed out.
    pub is_returning: bool,
    /// Messages are being read back from the journal.
    pub is_loading: bool,
    /// Sessions take its messages over: it has no consumers of its own.
    pub is_shared: bool,
    /// It is the queue of a session.
    pub is_own: bool,
    /// Its consumers, as many as [`crate::Engine::queue_facts`] shows.
    pub consumers: Vec<ConsumerFacts<'a>>,
    /// Who has not settled what of it, as many as are shown.
    pub out: Vec<OutFacts<'a>>,
    /// When it is deleted, if it is not used before.
    pub expires_at: Option<Time>,
}

/// A message that waits in a queue.
#[derive(Clone, Debug)]
pub struct MessageFacts {
    /// Messages that are handed out before it.
    pub ahead: u64,
    /// Its priority, as far as the queue tells priorities apart.
    pub priority: u8,
    /// Bytes of its body.
    pub bytes: u32,
    /// It survives a restart.
    pub durable: bool,
    /// How often it came back.
    pub requeues: u32,
    /// It may have been delivered before.
    pub redelivered: bool,
    /// When it expires.
    pub expires: Option<Time>,
    /// It is in the journal alone, and has to be read back.
    pub is_stored_only: bool,
    /// It cannot be read back.
    pub is_unreadable: bool,
    /// Some consumers do not get it: they have returned it.
    pub is_barred: bool,
    /// What its publisher gave it, where it is in memory.
    pub content: Option<MessageContent>,
    /// Filters of the queue's consumers that take it, where it is in memory.
    pub taking_filters: Vec<String>,
}

/// Where a message came from.
#[derive(Clone, Debug)]
pub struct MessageContent {
    /// The exchange it was published to.
    pub exchange: String,
    /// With which routing key.
    pub routing_key: String,
    /// It was held back as long as its publisher asked for.
    pub delayed: bool,
    /// Why and where it was dead-lettered, most recent first.
    pub deaths: Vec<Death>,
}

/// What was found of a message.
#[derive(Clone, Debug)]
pub enum FoundMessage {
    /// It waits, and this is known.
    Waits(Box<MessageFacts>),
    /// It is in a page, which is not in memory.
    Paged,
    /// Fewer wait.
    None,
}

/// A queue that a publish would reach.
#[derive(Clone, Debug)]
pub struct ReachedQueue {
    /// Its name.
    pub name: String,
    /// Messages that wait in it.
    pub ready: u64,
    /// Its consumers.
    pub consumers: usize,
    /// It is full: what becomes of the message, or of the oldest.
    pub full: Option<crate::Overflow>,
    /// Persistent messages in it survive a restart.
    pub durable: bool,
}

/// Where a publish would go.
#[derive(Clone, Debug)]
pub struct PublishFacts {
    /// The exchanges that it comes to, that it is published to first; empty where its way is long.
    pub exchanges: Vec<String>,
    /// The queues that take it.
    pub queues: Vec<ReachedQueue>,
    /// Further queues may get it: its way is long, and was not walked to its end.
    pub is_cut: bool,
    /// Some queues, or exchanges, take it under conditions on its properties.
    pub is_conditional: bool,
    /// Those who subscribe to its key as a subject get it, too.
    pub has_subjects: bool,
    /// Why clients may not publish to that exchange, whatever their rights.
    pub closed: Option<Refusal>,
    /// Users of the virtual host, and why each would be refused, if it would.
    pub users: Vec<(String, Option<Refusal>)>,
}
