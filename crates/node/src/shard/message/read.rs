//! Decodes shard messages.

use super::{
    BATCH_ITEM_HEAD_BYTES, ChannelName, DeliveryMessage, FromHome, GetAnswerMessage, HEAD_BYTES,
    ShardMessage, ToHome, kind,
};
use crate::flow::publisher_stall::Pace;
use angarium_engine::{ChannelId, Confirm, ConnectionId, Deletion, Outcome, SessionLoss, Settle};

/// Takes a batch apart. It comes from this very program, so what it cannot read is a bug, which is
/// said and ends the batch.
#[derive(Debug)]
pub(crate) struct ShardMessages<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for ShardMessages<'a> {
    type Item = Result<(ShardMessage<'a>, usize), &'static str>;

    /// The next message and how many bytes it took.
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let before = self.0.len();
        let shard_message = self.read();
        if shard_message.is_none() {
            self.0 = &[];
        }
        Some(
            shard_message
                .map(|shard_message| (shard_message, before - self.0.len()))
                .ok_or("a batch is malformed"),
        )
    }
}

impl<'a> ShardMessages<'a> {
    /// The payload of the next message if it is a [`ShardMessage::BatchItem`] without properties, and how
    /// many bytes the message took.
    #[inline]
    pub(crate) fn next_plain_item(&mut self) -> Option<(&'a [u8], usize)> {
        let (head, rest) = self.0.split_first_chunk::<BATCH_ITEM_HEAD_BYTES>()?;
        let [kind::BATCH_ITEM, a, b, c, d, 0, 0, 0, 0] = *head else { return None };
        let bytes = u32::from_le_bytes([a, b, c, d]) as usize;
        let (body, rest) = rest.split_at_checked(bytes.checked_sub(4)?)?;
        self.0 = rest;
        Some((body, HEAD_BYTES + bytes))
    }

    fn read(&mut self) -> Option<ShardMessage<'a>> {
        let (&kind, rest) = self.0.split_first()?;
        let mut fields = Fields(rest);
        let bytes = fields.u32()? as usize;
        let (content, rest) = fields.0.split_at_checked(bytes)?;
        self.0 = rest;
        let mut fields = Fields(content);
        Some(match kind {
            kind::NEWS => ShardMessage::News(content),
            kind::FORWARD => ShardMessage::Forward(content),
            kind::BATCH_HEAD => ShardMessage::BatchHead(content),
            kind::BATCH_ITEM => {
                let bytes = fields.u32()? as usize;
                let (properties, body) = fields.0.split_at_checked(bytes)?;
                ShardMessage::BatchItem { properties, body }
            }
            kind::TAKEN => ShardMessage::Taken { news: fields.u64()?, bytes: fields.u64()? },
            kind::SUBSCRIBER_PACE => {
                let publisher = ConnectionId(fields.u32()?);
                let (pace, _) = fields.0.split_first()?;
                let paces = [Pace::Drained, Pace::Slow, Pace::TooSlow];
                let pace = paces.into_iter().find(|known| *known as u8 == *pace)?;
                ShardMessage::SubscriberPace { publisher, pace }
            }
            kind::UNHEARD => ShardMessage::Unheard {
                publisher: ConnectionId(fields.u32()?),
                subject: fields.text()?,
                reply: fields.text()?,
            },
            kind::USER_ENDED => ShardMessage::Ended(Deletion::User(fields.text()?)),
            kind::VHOST_ENDED => ShardMessage::Ended(Deletion::Vhost(fields.text()?)),
            kind::SPENT => ShardMessage::Spent {
                messages: fields.u64()?,
                bytes: fields.u64()?,
                user: fields.text()?,
            },
            kind::CONNECTION_QUERY => ShardMessage::ConnectionQuery {
                connection: ConnectionId(fields.u32()?),
                serial: fields.u64()?,
            },
            kind::QUERY_RESULT => ShardMessage::QueryResult {
                connection: ConnectionId(fields.u32()?),
                serial: fields.u64()?,
            },
            kind::SYNC => ShardMessage::Sync,
            kind => match to_home(kind, fields) {
                Some(request) => ShardMessage::ToHome(request),
                None => ShardMessage::FromHome(from_home(kind, fields)?),
            },
        })
    }
}

fn to_home(kind: u8, mut fields: Fields<'_>) -> Option<ToHome<'_>> {
    Some(match kind {
        kind::CONNECT => ToHome::Connect {
            connection: ConnectionId(fields.u32()?),
            user: fields.text()?,
            vhost: fields.text()?,
        },
        kind::ADMIT => ToHome::Admit {
            connection: ConnectionId(fields.u32()?),
            serial: fields.u64()?,
            user: fields.text()?,
        },
        kind::LEFT => ToHome::Left(ConnectionId(fields.u32()?)),
        kind::ENDED => ToHome::Ended,
        kind::OPEN => ToHome::Open(fields.name()?),
        kind::PUBLISH => ToHome::Publish(fields.channel()?, fields.0),
        kind::SETTLE => ToHome::Settle(fields.channel()?, fields.settle()?),
        kind::REQUEST => ToHome::Request(fields.channel()?),
        kind::CLOSE => ToHome::Close(fields.channel()?),
        kind::DISCONNECT => ToHome::Disconnect(ConnectionId(fields.u32()?)),
        kind::DRAINED => {
            ToHome::Drained { connection: ConnectionId(fields.u32()?), bytes: fields.u64()? }
        }
        _ => return None,
    })
}

fn from_home(kind: u8, mut fields: Fields<'_>) -> Option<FromHome<'_>> {
    Some(match kind {
        kind::DELIVER => FromHome::Deliver(fields.name()?, fields.delivery()?),
        kind::GET_ANSWER => FromHome::GetAnswer(fields.name()?, fields.get_answer()?),
        kind::CONFIRM => {
            let (name, number) = (fields.name()?, fields.u64()?);
            let (multiple, accepted) = (fields.bool()?, fields.bool()?);
            FromHome::Confirm(name, Confirm { number, multiple, accepted })
        }
        kind::RETURNED => FromHome::Returned(fields.name()?, fields.0),
        kind::CANCELLED => FromHome::Cancelled(fields.name()?, fields.text()?),
        kind::SESSION_LOST => {
            let (name, is_taken_over) = (fields.name()?, fields.bool()?);
            let why = if is_taken_over { SessionLoss::TakenOver } else { SessionLoss::Ended };
            FromHome::SessionLost(name, fields.text()?, why)
        }
        kind::REPLY => FromHome::Reply(fields.name()?),
        kind::REFUSED => {
            let name = fields.name()?;
            let settle = if fields.0.is_empty() { None } else { Some(fields.settle()?) };
            FromHome::Refused(name, settle)
        }
        kind::ADMITTED => FromHome::Admitted {
            connection: ConnectionId(fields.u32()?),
            serial: fields.u64()?,
            is_admitted: fields.bool()?,
        },
        kind::STORES => FromHome::Stores(fields.name()?),
        kind::OUTRUN => FromHome::Outrun(fields.name()?),
        kind::BLOCKED => FromHome::Blocked(Some(fields.text()?)),
        kind::UNBLOCKED => FromHome::Blocked(None),
        kind::CONGESTED => FromHome::Congested(fields.bool()?),
        kind::YIELD => FromHome::Yield(fields.bool()?),
        _ => return None,
    })
}

#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn bool(&mut self) -> Option<bool> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte != 0)
    }

    fn channel(&mut self) -> Option<ChannelId> {
        let connection = ConnectionId(self.u32()?);
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(ChannelId { connection, number: u16::from_le_bytes(*number) })
    }

    fn name(&mut self) -> Option<ChannelName> {
        Some(ChannelName { id: self.channel()?, opening: self.u32()? })
    }

    fn settle(&mut self) -> Option<Settle> {
        let (tag, multiple) = (self.u64()?, self.bool()?);
        let (outcome, rest) = self.0.split_first()?;
        self.0 = rest;
        let outcome = match outcome {
            0 => Outcome::Accept,
            1 => Outcome::Requeue,
            _ => Outcome::Discard,
        };
        Some(Settle { tag, multiple, outcome })
    }

    fn delivery(&mut self) -> Option<DeliveryMessage<'a>> {
        Some(DeliveryMessage {
            tag: self.u64()?,
            redelivered: self.bool()?,
            consumer: self.text()?,
            message: self.0,
        })
    }

    fn get_answer(&mut self) -> Option<GetAnswerMessage<'a>> {
        Some(GetAnswerMessage {
            tag: self.u64()?,
            redelivered: self.bool()?,
            messages_left: self.u64()?,
            message: self.0,
        })
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.u32()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        str::from_utf8(text).ok()
    }
}
