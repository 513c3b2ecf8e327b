//! What shards send each other: batches of shard messages, and their encoding.
//!
//! Batches never leave the process, so their layout has no version. Independent of how a message is handled.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use read::ShardMessages;
pub(crate) use write::{
    write_batch_items, write_delivery, write_forward, write_get_answer, write_publish,
};

use crate::flow::publisher_stall::Pace;
use angarium_engine::{
    Bytes, ChannelId, Confirm, ConnectionId, Deletion, Refusal, Reply, Request, SessionLoss,
    Settle, is_body_apart,
};
use angarium_protocol::{ConnectionQuery, QueryResult};
use std::collections::VecDeque;

/// What one shard sends another.
#[derive(Debug, Default)]
pub struct ShardBatch {
    /// ShardMessages, in order.
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

    /// Has a message's body go along with the message that was written last, where that is large; returns its
    /// bytes.
    #[inline]
    pub(crate) fn carry(&mut self, body: Option<&Bytes>) -> usize {
        let Some(body) = body else { return 0 };
        self.values.push_back(Value::Body(body.clone()));
        body.len()
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

/// Takes the body of a message in a shard message of `bytes` bytes, if it goes along.
#[inline]
pub(crate) fn body_of(message: &[u8], bytes: usize, values: &mut VecDeque<Value>) -> CarriedBody {
    if is_body_apart(message)
        && let Some(Value::Body(body)) = values.pop_front()
    {
        return CarriedBody { bytes: bytes + body.len(), body: Some(body) };
    }
    CarriedBody { body: None, bytes }
}

impl ShardBatch {
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

/// A channel as two shards know it: named by its own shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelName {
    pub(crate) id: ChannelId,
    /// Tells it from earlier ones of its number.
    pub(crate) opening: u32,
}

/// One message of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShardMessage<'a> {
    /// Something that every shard has to know, for [`angarium_engine::Engine::apply_sync`].
    News(&'a [u8]),
    /// A direct message, as [`angarium_engine::Forward::parse`] reads it.
    Forward(&'a [u8]),
    /// What the direct messages that follow have in common, as [`angarium_engine::Row::parse`] reads it.
    BatchHead(&'a [u8]),
    /// One of them.
    BatchItem { properties: &'a [u8], body: &'a [u8] },
    /// All news up to this number are known; `bytes` of messages were processed since the last message of
    /// this kind.
    Taken { news: u64, bytes: u64 },
    /// How fast the subscribers on the sender's shard of a publisher of the receiver are.
    SubscriberPace { publisher: ConnectionId, pace: Pace },
    /// Nobody took a request that a connection of the receiver has emitted.
    Unheard { publisher: ConnectionId, subject: &'a str, reply: &'a str },
    /// Connections that use what is to be deleted end, whether or not it can be.
    Ended(Deletion<&'a str>),
    /// A user whose rate is bounded has sent so much to the shard that says it, since it last did.
    Spent { user: &'a str, messages: u64, bytes: u64 },
    /// A connection of the sender asks for those of the receiver; its value says which. `serial` tells it
    /// from earlier ones in its slot.
    ConnectionQuery { connection: ConnectionId, serial: u64 },
    /// Its value is what was found for one of the receiver.
    QueryResult { connection: ConnectionId, serial: u64 },
    /// Counts as news and says nothing: an answer shows that all before it has been dealt with.
    Sync,
    /// Something that home is asked for.
    ToHome(ToHome<'a>),
    /// Something that home answers.
    FromHome(FromHome<'a>),
}

/// A request to home of a channel that uses queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToHome<'a> {
    Connect {
        connection: ConnectionId,
        user: &'a str,
        vhost: &'a str,
    },
    /// All connections have ended for the oldest [`ShardMessage::Ended`] that was not answered yet.
    Ended,
    Open(ChannelName),
    /// A connection has logged in: is it one more than its user may have? `serial` tells it from
    /// earlier ones in its slot.
    Admit {
        connection: ConnectionId,
        serial: u64,
        user: &'a str,
    },
    /// It has ended.
    Left(ConnectionId),
    /// A message, as [`angarium_engine::Publish::parse`] reads it.
    Publish(ChannelId, &'a [u8]),
    Settle(ChannelId, Settle),
    /// Its value is the request.
    Request(ChannelId),
    Close(ChannelId),
    Disconnect(ConnectionId),
    /// Bytes of deliveries to a connection that have left its shard.
    Drained {
        connection: ConnectionId,
        bytes: u64,
    },
}

/// An answer of home to such a channel or its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FromHome<'a> {
    Deliver(ChannelName, DeliveryMessage<'a>),
    GetAnswer(ChannelName, GetAnswerMessage<'a>),
    Confirm(ChannelName, Confirm),
    /// A message that no queue took, as [`angarium_engine::MessageView::parse`] reads it.
    Returned(ChannelName, &'a [u8]),
    Cancelled(ChannelName, &'a str),
    /// The channel does not hold this session any more.
    SessionLost(ChannelName, &'a str, SessionLoss),
    /// Its value is the reply.
    Reply(ChannelName),
    /// A publish, or a settle, was refused; its value says why.
    Refused(ChannelName, Option<Settle>),
    /// The answer to [`ToHome::Admit`].
    Admitted {
        connection: ConnectionId,
        serial: u64,
        is_admitted: bool,
    },
    /// The channel's connection stores messages.
    Stores(ChannelName),
    /// It puts more into a queue than its consumers get.
    Outrun(ChannelName),
    /// Persistent messages cannot be taken, or can again.
    Blocked(Option<&'a str>),
    /// The journal has more than the disk takes, or no longer.
    Congested(bool),
    /// Direct messages make room on the disk for persistent ones, or may wait there again.
    Yield(bool),
}

/// A delivery without its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeliveryMessage<'a> {
    pub(crate) consumer: &'a str,
    pub(crate) tag: u64,
    pub(crate) redelivered: bool,
    /// As [`angarium_engine::MessageView::parse`] reads it.
    pub(crate) message: &'a [u8],
}

/// The answer to a get without its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GetAnswerMessage<'a> {
    pub(crate) tag: u64,
    pub(crate) redelivered: bool,
    pub(crate) messages_left: u64,
    /// As [`angarium_engine::MessageView::parse`] reads it.
    pub(crate) message: &'a [u8],
}

/// Bytes before each message: its kind, and how many follow.
const HEAD_BYTES: usize = 5;

/// Bytes before the properties of a [`ShardMessage::BatchItem`]: its head, and the properties' length.
const BATCH_ITEM_HEAD_BYTES: usize = HEAD_BYTES + 4;

/// Which message follows.
mod kind {
    pub(crate) const NEWS: u8 = 0;
    pub(crate) const FORWARD: u8 = 1;
    pub(crate) const TAKEN: u8 = 2;
    pub(crate) const SUBSCRIBER_PACE: u8 = 3;
    pub(crate) const UNHEARD: u8 = 6;
    pub(crate) const SYNC: u8 = 7;
    pub(crate) const CONNECT: u8 = 8;
    pub(crate) const OPEN: u8 = 9;
    pub(crate) const PUBLISH: u8 = 10;
    pub(crate) const SETTLE: u8 = 11;
    pub(crate) const REQUEST: u8 = 12;
    pub(crate) const CLOSE: u8 = 13;
    pub(crate) const DISCONNECT: u8 = 14;
    pub(crate) const DRAINED: u8 = 15;
    pub(crate) const DELIVER: u8 = 16;
    pub(crate) const CONFIRM: u8 = 17;
    pub(crate) const RETURNED: u8 = 18;
    pub(crate) const CANCELLED: u8 = 19;
    pub(crate) const REPLY: u8 = 20;
    pub(crate) const REFUSED: u8 = 21;
    pub(crate) const STORES: u8 = 22;
    pub(crate) const OUTRUN: u8 = 23;
    pub(crate) const BLOCKED: u8 = 24;
    pub(crate) const UNBLOCKED: u8 = 25;
    pub(crate) const CONGESTED: u8 = 26;
    pub(crate) const SPENT: u8 = 27;
    pub(crate) const ADMIT: u8 = 28;
    pub(crate) const LEFT: u8 = 29;
    pub(crate) const ADMITTED: u8 = 30;
    pub(crate) const BATCH_HEAD: u8 = 32;
    pub(crate) const BATCH_ITEM: u8 = 33;
    pub(crate) const USER_ENDED: u8 = 34;
    pub(crate) const VHOST_ENDED: u8 = 35;
    pub(crate) const YIELD: u8 = 36;
    pub(crate) const CONNECTION_QUERY: u8 = 37;
    pub(crate) const QUERY_RESULT: u8 = 38;
    pub(crate) const ENDED: u8 = 39;
    pub(crate) const GET_ANSWER: u8 = 40;
    pub(crate) const SESSION_LOST: u8 = 41;
}
