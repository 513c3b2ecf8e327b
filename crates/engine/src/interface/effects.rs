//! Every output: what the host must do, in the order in which the engine calls.

use crate::{
    CancelReason, ChannelId, ConnectionId, Forward, Grant, MessageView, PageSearch, Position,
    Publish, Refusal, RefusalKind, Reply, Request, SessionLoss, Settle, Shards, SlowConsumerPolicy,
    Subscribe, Time,
};
use bytes::Bytes;
use std::sync::Arc;

/// What the host does for the engine. Calls come in the order in which they must take effect; none
/// may call back into the engine.
pub trait Effects: Hints {
    /// Sends a queued message to a consumer.
    fn deliver(&mut self, delivery: &Delivery<'_>);
    /// Sends the message that answers a [`crate::Request::Get`]; comes before its reply.
    fn answer_get(&mut self, answer: &GetAnswer<'_>);
    /// Sends a direct message to a subscriber, now or never.
    fn send_direct(&mut self, message: &DirectMessage<'_>) -> SendOutcome;
    /// Sends other shards direct messages with these payloads, which have everything else in common with
    /// `forward`; each shard gets them by [`crate::Engine::forwarded`]. Several payloads only where
    /// [`Forward::cached_route`] is set. Returns the best outcome of any shard.
    fn forward_to_shards(&mut self, _: Shards, _: &Forward<'_>, _bodies: &[&[u8]]) -> SendOutcome {
        SendOutcome::Dropped
    }
    /// Sends a change of routing or access to all other shards, by
    /// [`crate::Engine::apply_sync`], in order. `by`: the connection that caused it; no shard
    /// may see what that connection does next before the change.
    fn broadcast(&mut self, _by: Option<ConnectionId>, _news: &[u8]) {}
    /// A change that `by` would cause was broadcast before, on account of another connection: no shard may
    /// see what `by` does next before that change.
    fn await_broadcasts(&mut self, _by: ConnectionId) {}
    /// Asks the home shard for an operation on queues; only on other shards.
    fn call_home(&mut self, _call: Call<'_>) {}
    /// Tells a publisher the outcome of its publishes.
    fn confirm(&mut self, channel: ChannelId, confirm: Confirm<'_>);
    /// A publish of a channel with explained confirms went into a queue that has more than its consumers keep
    /// up with, named by a number of its own: what sends there should pause until [`Effects::eased`].
    fn congested(&mut self, _channel: ChannelId, _publish: u64, _queue: u64) {}
    /// The pause that [`Effects::congested`] asked for is over, for all of the channel that sends to that
    /// queue.
    fn eased(&mut self, _channel: ChannelId, _queue: u64) {}
    /// Returns a mandatory message that no queue took; comes before its confirm.
    fn return_unroutable(&mut self, channel: ChannelId, message: &MessageView<'_>);
    /// Tells a client that the broker has ended one of its consumers.
    fn consumer_cancelled(&mut self, channel: ChannelId, consumer: &str, why: CancelReason);
    /// Tells a client, once for each [`Grant`] that drains, that there is nothing more to deliver to a
    /// consumer, which has had `delivered` deliveries since it began and gets no more without another grant.
    fn drained(&mut self, _channel: ChannelId, _consumer: &str, _delivered: u64) {}
    /// Tells a client that a subscription has ended because its user has lost the right to it.
    fn subscription_revoked(&mut self, _channel: ChannelId, _subscribed: &Subscribe<'_>) {}
    /// Tells a channel that it does not hold a session any more: once, and before the reply to the claim that
    /// took it. Not where the channel gave it up itself.
    fn session_lost(&mut self, _channel: ChannelId, _session: &str, _why: SessionLoss) {}
    /// A client claims what this connection of the same user has to itself: it may have lost that one without
    /// the host's knowing it. The host finds out, and ends the connection if so.
    fn client_doubted(&mut self, _connection: ConnectionId) {}
    /// Tells a client that the engine has closed one of its channels, and why. What the channel asks for
    /// afterwards is refused as on one that was never open.
    fn channel_failed(&mut self, _channel: ChannelId, _why: Refusal) {}
    /// A queue was created that is to have copies on several nodes, and has one.
    fn lacks_copies(&mut self, _vhost: &str, _queue: &str) {}
    /// Answers a [`crate::Request`]; exactly once for each, in order per channel.
    fn reply(&mut self, channel: ChannelId, reply: Result<Reply, Refusal>);
    /// Whether the connection's output has room for another delivery. Where not, the host calls
    /// [`crate::Engine::writable`] once it has.
    fn has_room(&self, connection: ConnectionId) -> bool;

    /// Appends one record made of `parts` to the journal's current batch. `durable`: a confirm waits for it
    /// to be flushed; a batch without such a record is written and not flushed.
    fn append(&mut self, parts: &[&[u8]], durable: bool) -> Position;
    /// Appends a record with a large shared part, which may be copied later.
    fn append_shared(&mut self, record: SharedRecord<'_>, durable: bool) -> Position {
        let SharedRecord { before, shared, after } = record;
        self.append(&[before, &[shared, after]].concat(), durable)
    }
    /// Makes sure that the next `records` appends, of `bytes` in sum, are recovered all or none.
    fn reserve(&mut self, bytes: usize, records: usize);
    /// `count` more live references to the record at `position` keep its segment.
    fn retain(&mut self, position: Position, count: u32);
    /// Drops `count` live references to the record at `position`.
    fn release(&mut self, position: Position, count: u32);
    /// Asks for records; the host answers with [`crate::Engine::finish_load`], later, once.
    fn load(&mut self, load: Load);
}

/// What makes a host faster. A host may ignore all of it, as the defaults do.
pub trait Hints {
    /// Writes several direct messages in a row to one subscriber, if there is room for all of them: they
    /// have these payloads and everything else in common with `message`, which has the first one's number.
    /// Returns the last one's outcome; `None`: each comes by [`Effects::send_direct`] instead.
    fn send_direct_batch(
        &mut self,
        _: &DirectMessage<'_>,
        _bodies: &[&[u8]],
    ) -> Option<SendOutcome> {
        None
    }
    /// The last appended record is to be written without delay although no confirm waits for it.
    fn write_soon(&mut self) {}
    /// A message to very many subscribers has reached the last of them. `is_slow`: none of them keeps up.
    fn fanned_out(&mut self, _: Time, _publisher: ConnectionId, _is_slow: bool) {}
    /// A queue grows faster than its consumers take from it: the host may pause reading from the publisher.
    fn consumers_outrun(&mut self) {}
}

/// A journal record whose parts before and after a large shared one are copied at once.
#[derive(Clone, Copy, Debug)]
pub struct SharedRecord<'a> {
    /// What comes before the shared part.
    pub before: &'a [&'a [u8]],
    /// The large part.
    pub shared: &'a Bytes,
    /// What comes after it.
    pub after: &'a [u8],
}

/// The outcome of sending a direct message to a subscriber or to another shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// It is on its way.
    Sent,
    /// It is on its way, and the receiver's unsent output is above its high-water mark.
    Congested,
    /// The receiver is too slow: the message is dropped for it.
    Dropped,
}

/// Direct messages that were written for a subscriber and dropped before they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// How many.
    pub messages: u64,
    /// Messages missed earlier that the dropped ones would have reported.
    pub untold: u64,
}

impl Lost {
    /// One message that would have reported `untold` missed ones.
    #[must_use]
    pub fn one(untold: u64) -> Lost {
        Lost { messages: 1, untold }
    }

    /// Whether it is none.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Lost::default()
    }

    /// Without those of `other`.
    #[must_use]
    pub fn without(self, other: Lost) -> Lost {
        Lost {
            messages: self.messages.saturating_sub(other.messages),
            untold: self.untold.saturating_sub(other.untold),
        }
    }
}

impl std::ops::AddAssign for Lost {
    fn add_assign(&mut self, more: Lost) {
        self.messages += more.messages;
        self.untold += more.untold;
    }
}

/// A queued message for a consumer.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// The consumer's channel.
    pub channel: ChannelId,
    /// The consumer's name.
    pub consumer: &'a str,
    /// Counted up from 1 per channel.
    pub tag: u64,
    /// Its place in its queue: the same whenever it is delivered, also after a restart if it is stored, and
    /// never another message's then. 0: it has none, since it did not wait and is settled.
    pub place: u64,
    /// It may have been delivered before.
    pub redelivered: bool,
    /// The group whose shared queue has handed it over to the session, if one has.
    pub group: Option<&'a str>,
    /// The message.
    pub message: &'a MessageView<'a>,
}

/// The message that answers a [`crate::Request::Get`].
#[derive(Clone, Copy, Debug)]
pub struct GetAnswer<'a> {
    /// The channel that asked.
    pub channel: ChannelId,
    /// Counted with the deliveries of the channel.
    pub tag: u64,
    /// It may have been delivered before.
    pub redelivered: bool,
    /// Messages left in the queue.
    pub messages_left: u64,
    /// The message.
    pub message: MessageView<'a>,
}

/// A direct message for a subscriber.
#[derive(Clone, Copy, Debug)]
pub struct DirectMessage<'a> {
    /// The subscriber's channel.
    pub channel: ChannelId,
    /// The subscription's name; the consumer's where it is a reply to an inbox.
    pub subscription: &'a str,
    /// Names the subscriber within its channel; a reply to an inbox has a delivery's tag.
    pub tag: u64,
    /// Direct messages that the subscriber missed since the last one it got.
    pub missed: u64,
    /// What becomes of the message if the connection is too slow; `None`: the connection's own policy.
    pub slow_consumer_policy: Option<SlowConsumerPolicy>,
    /// Names the message among all direct messages: all its subscribers get it with this number. 0: a reply
    /// to an inbox.
    pub emission: u64,
    /// Names the cached route of a batch: equal for messages in a row of one publisher to one subject.
    /// 0: it came by none.
    pub route: u64,
    /// The message.
    pub message: MessageView<'a>,
}

/// The outcome of publishes, by their number within the channel (from 1, in confirm mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm<'a> {
    /// The publish's number.
    pub number: u64,
    /// And every earlier one not yet confirmed.
    pub multiple: bool,
    /// Why the broker did not take responsibility; `None`: it did. Of a publish in a transaction: it will
    /// with the commit.
    pub refused: Option<PublishRefusal<'a>>,
}

/// Why a publish was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishRefusal<'a> {
    /// The kind.
    pub kind: RefusalKind,
    /// As [`Refusal::text`].
    pub text: &'a str,
}

/// Names one [`Load`] until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadId(pub u64);

/// Records to be read back from the journal, off the shard's thread.
#[derive(Clone, Debug)]
pub struct Load {
    /// Comes back with the answer.
    pub id: LoadId,
    /// What to read, in this order.
    pub positions: Vec<Position>,
    /// The engine appends as much as it reads: dead letters, messages whose delay is over, compaction. The
    /// host delays it while the disk is behind with appended records.
    pub appends: bool,
    /// It is for a consumer that drains a queue beside others: processor time matters more than latency.
    pub is_beside_others: bool,
    /// Instead of reading at the positions: the record of this search, once it has looked at every record
    /// that is whole in its segments.
    pub search: Option<Box<PageSearch>>,
}

/// The answer to a [`Load`]: the records in the order asked for, or why they cannot be read.
pub type Loaded = Result<Vec<Arc<[u8]>>, String>;

/// A request to home on behalf of a channel of another shard. The host carries it out there, in
/// order, as if the channel were home's, and carries the effects back.
#[derive(Debug)]
pub enum Call<'a> {
    /// A connection begins.
    Connect {
        /// The connection, on its own shard.
        connection: ConnectionId,
        /// Its user.
        user: &'a str,
        /// Its virtual host.
        vhost: &'a str,
        /// What its client calls itself; empty: nothing.
        client: &'a str,
    },
    /// A channel of it begins.
    Open {
        /// The channel.
        channel: ChannelId,
        /// Tells it from earlier ones of its number.
        opening: u32,
    },
    /// [`crate::Engine::publish`].
    Publish(ChannelId, &'a Publish<'a>),
    /// [`crate::Engine::publish_once`].
    PublishOnce(ChannelId, u64, &'a Publish<'a>),
    /// [`crate::Engine::settle_annotated`].
    Settle(ChannelId, Settle, &'a [u8]),
    /// [`crate::Engine::grant`].
    Grant(ChannelId, &'a str, Grant),
    /// [`crate::Engine::request`].
    Request(ChannelId, Request),
    /// The channel ends.
    Close(ChannelId),
    /// The connection ends.
    Disconnect(ConnectionId),
}
