//! What shards send each other: batches of shard messages, and their encoding.
//!
//! Batches never leave the process, so their layout has no version. Independent of how a message is handled.

mod codec;
#[cfg(test)]
mod tests;

pub(crate) use codec::{Measured, plain_batch_item};

use self::codec::{Field, messages, put_batch_item, structs};
use crate::connection::key::ConnectionKey;
use crate::flow::publisher_stall::Pace;
use angarium_engine::{
    Annotations, Bytes, CancelReason, ChannelId, Confirm, ConnectionId, Forward, Grant,
    MessageView, Refusal, Reply, Request, Revocation, SessionLoss, Settle, is_body_apart,
};
use angarium_protocol::{ConnectionQuery, QueryResult};
use std::collections::VecDeque;

/// Why what another shard sends can be read.
pub(crate) const UNDERSTOOD: &str = "shards of one program understand each other";

/// What one shard sends another.
#[derive(Debug, Default)]
pub struct ShardBatch {
    /// Shard messages, in order.
    pub(crate) messages: Vec<u8>,
    /// What some of them carry along, in the same order.
    pub(crate) values: VecDeque<Value>,
    /// How many of them are news.
    pub(crate) news: usize,
}

/// Bytes that each news counts beyond its length: news are short and much work.
const NEWS_BYTES: usize = 128;

impl ShardBatch {
    /// How much work it is to take it, as bytes of its messages.
    #[inline]
    #[must_use]
    pub fn weight(&self) -> usize {
        self.messages.len() + self.news * NEWS_BYTES
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Appends a shard message.
    pub(crate) fn push(&mut self, message: ShardMessage<'_>) {
        codec::write(message, &mut self.messages, |_| {});
    }

    /// Appends a shard message whose last field is what `write` writes, and has `body` go along where that is
    /// large. Returns the bytes of both.
    #[inline(always)]
    pub(crate) fn push_with<'a>(
        &mut self,
        message: impl Into<ShardMessage<'a>>,
        body: Option<&Bytes>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> usize {
        let bytes = codec::write(message.into(), &mut self.messages, write);
        let Some(body) = body else { return bytes };
        self.values.push_back(Value::Body(body.clone()));
        bytes + body.len()
    }

    /// Appends messages of a batch with these payloads as a [`ShardMessage::BatchItem`] each, after their
    /// [`ShardMessage::BatchHead`] unless that is the last one here, `row`; returns the bytes appended.
    #[inline]
    pub(crate) fn push_batch_items(
        &mut self,
        forward: &Forward<'_>,
        bodies: &[&[u8]],
        row: &mut u64,
    ) -> usize {
        let before = self.messages.len();
        if std::mem::replace(row, forward.cached_route) != forward.cached_route {
            let head = ShardMessage::BatchHead { head: &[] };
            codec::write(head, &mut self.messages, |out| forward.write_header(out));
        }
        for body in bodies {
            put_batch_item(&mut self.messages, forward.message.properties, body);
        }
        self.messages.len() - before
    }
}

/// What goes along with a message as it is.
#[derive(Debug)]
pub(crate) enum Value {
    Request(Request),
    Reply(Result<Reply, Refusal>),
    ConnectionQuery(Box<ConnectionQuery>),
    QueryResult(Box<QueryResult>),
    /// A message's body that is large.
    Body(Bytes),
}

/// The body of a message where it goes along as a value.
#[derive(Debug)]
pub(crate) struct CarriedBody {
    pub(crate) body: Option<Bytes>,
    /// Bytes of the shard message and this body.
    pub(crate) bytes: usize,
}

impl CarriedBody {
    /// Takes the body of a message in a shard message of `bytes` bytes, if it goes along.
    #[inline]
    pub(crate) fn of(message: &[u8], bytes: usize, values: &mut VecDeque<Value>) -> CarriedBody {
        if is_body_apart(message)
            && let Some(Value::Body(body)) = values.pop_front()
        {
            return CarriedBody { bytes: bytes + body.len(), body: Some(body) };
        }
        CarriedBody { body: None, bytes }
    }

    /// The message with this body.
    pub(crate) fn parse<'a>(
        &'a self,
        message: &'a [u8],
        annotations: &'a mut Annotations,
    ) -> MessageView<'a> {
        MessageView::parse(message, annotations, self.body.as_ref()).expect(UNDERSTOOD)
    }
}

/// A channel as two shards know it: named by its own shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelName {
    pub(crate) id: ChannelId,
    /// Tells it from earlier ones of its number.
    pub(crate) opening: u32,
}

structs!(ChannelName { id, opening });

impl<'a> ShardMessage<'a> {
    /// The message that `batch` begins with, and how many bytes it takes; `None`: it begins with none, which
    /// is a bug, since it comes from this very program.
    #[inline]
    pub(crate) fn read(batch: &'a [u8]) -> Option<(ShardMessage<'a>, usize)> {
        codec::read(batch)
    }
}

messages! {
    /// One message of a batch.
    enum ShardMessage<'a> {
        /// One of the messages that the last [`ShardMessage::BatchHead`] is about.
        0 BatchItem { properties: Measured<'a>, body: &'a [u8] },
        /// The header of the direct messages that follow, for [`angarium_engine::Forward::parse_header`].
        1 BatchHead { head: &'a [u8] },
        /// A direct message, as [`angarium_engine::Forward::parse`] reads it.
        2 Forward { message: &'a [u8] },
        /// Something that home is asked for.
        3 ToHome { request: ToHome<'a> },
        /// Something that home answers.
        4 FromHome { answer: FromHome<'a> },
        /// Something that every shard has to know, for [`angarium_engine::Engine::apply_sync`].
        5 News { news: &'a [u8] },
        /// Counts as news and says nothing: its receipt shows that all before it has been processed.
        6 Sync,
        /// All news up to this number are known; `bytes` of messages were processed since the last message of
        /// this kind.
        7 Taken { news: u64, bytes: u64 },
        /// How fast the subscribers on the sender's shard of a publisher of the receiver are.
        8 SubscriberPace { publisher: ConnectionId, pace: Pace },
        /// Nobody took a request that a connection of the receiver has emitted.
        9 Undelivered { publisher: ConnectionId, subject: &'a str, reply: &'a str },
        /// A message of a connection of the receiver has begun to reach very many on the sender's shard, or
        /// has reached all there: the connection's input waits meanwhile.
        15 WideFanout { publisher: ConnectionId, is_over: bool },
        /// Connections that use what is to be deleted end, whether or not it can be.
        10 Ended { revocation: Revocation<&'a str> },
        /// What a user whose rate is bounded has sent to the sender since its last message of this kind.
        11 Spent { user: &'a str, vhost: &'a str, messages: u64, bytes: u64 },
        /// What a user holds in memory on the sender's shard.
        14 Held { user: &'a str, bytes: u64 },
        /// A connection of the sender asks for those of the receiver; its value says which.
        12 ConnectionQuery { asker: ConnectionKey },
        /// Its value is what was found for one of the receiver.
        13 QueryResult { asker: ConnectionKey },
    }
}

messages! {
    /// A request to home of a channel that uses queues.
    enum ToHome<'a> {
        /// A message, as [`angarium_engine::Publish::parse`] reads it.
        0 Publish { channel: ChannelId, message: &'a [u8] },
        /// A settle, and what it adds to messages that go back.
        1 Settle { channel: ChannelId, settle: Settle, annotations: &'a [u8] },
        /// Its value is the request.
        2 Request { channel: ChannelId },
        3 Connect { connection: ConnectionId, user: &'a str, vhost: &'a str, client: &'a str },
        4 Disconnect { connection: ConnectionId },
        5 Open { name: ChannelName },
        6 Close { channel: ChannelId },
        /// Bytes of deliveries to a connection that have left its shard.
        7 Drained { connection: ConnectionId, bytes: u64 },
        /// A connection has logged in: is it one more than its user may have?
        8 Admit { key: ConnectionKey, user: &'a str },
        /// It has ended.
        9 Left { connection: ConnectionId },
        /// All connections have ended for the oldest [`ShardMessage::Ended`] that was not answered yet.
        10 Ended,
        /// How far a consumer may be delivered to.
        11 Grant { channel: ChannelId, grant: Grant, consumer: &'a str },
        /// A connection that is admitted wants to enter a virtual host: has that room?
        12 Enter { key: ConnectionKey, vhost: &'a str },
        /// A message that is taken once, as [`ToHome::Publish`], and its number.
        13 PublishOnce { channel: ChannelId, number: u64, message: &'a [u8] },
    }
}

messages! {
    /// An answer of home to such a channel or its connection.
    enum FromHome<'a> {
        /// A delivery; its message as [`angarium_engine::MessageView::parse`] reads it.
        0 Deliver {
            name: ChannelName,
            tag: u64,
            place: u64,
            redelivered: bool,
            consumer: &'a str,
            group: Option<&'a str>,
            message: &'a [u8]
        },
        /// The answer to a get.
        1 GetAnswer {
            name: ChannelName, tag: u64, redelivered: bool, messages_left: u64, message: &'a [u8]
        },
        2 Confirm { name: ChannelName, confirm: Confirm<'a> },
        /// A message that no queue took.
        3 Returned { name: ChannelName, message: &'a [u8] },
        4 Cancelled { name: ChannelName, why: CancelReason, consumer: &'a str },
        /// The channel does not hold this session any more.
        5 SessionLost { name: ChannelName, session: &'a str, why: SessionLoss },
        /// Its value is the reply.
        6 Reply { name: ChannelName },
        /// A publish, or a settle, was refused; its value says why.
        7 Refused { name: ChannelName, settle: Option<Settle> },
        /// The answer to [`ToHome::Admit`] or [`ToHome::Enter`].
        8 Admitted { key: ConnectionKey, is_admitted: bool },
        /// The channel's connection stores messages.
        9 Stores { name: ChannelName },
        /// It puts more into a queue than its consumers get.
        10 Outrun { name: ChannelName },
        /// Persistent messages cannot be taken, or can again.
        11 Blocked { why: Option<&'a str> },
        /// Whether the journal has more than the disk takes.
        12 Congested { is_congested: bool },
        /// Direct messages make room on the disk for persistent ones, or may wait there again.
        13 Yield { yields: bool },
        /// Most of its last messages reached nobody; whether that disturbs others at home.
        14 Flood { name: ChannelName, disturbs: bool },
        /// Home has closed the channel; its value says why.
        15 Failed { name: ChannelName },
        /// There is nothing more to deliver to a consumer, which has had that many deliveries.
        16 Drained { name: ChannelName, delivered: u64, consumer: &'a str },
        /// What sends to the queue that a publish of the channel went into is to pause.
        17 QueueCongested { name: ChannelName, publish: u64, queue: u64 },
        /// It goes on.
        18 QueueEased { name: ChannelName, queue: u64 },
    }
}

impl<'a> From<ToHome<'a>> for ShardMessage<'a> {
    fn from(request: ToHome<'a>) -> Self {
        ShardMessage::ToHome { request }
    }
}

impl<'a> From<FromHome<'a>> for ShardMessage<'a> {
    fn from(answer: FromHome<'a>) -> Self {
        ShardMessage::FromHome { answer }
    }
}
