//! What shards send each other: parcels, which are words one after the other, and the words' bytes.
//!
//! Parcels never leave the process, so their layout has no version. Knows nothing of what is done
//! about a word.

use angarium_engine::{
    Confirm, ConnectionId, Delivery, Forward, Outcome, Refusal, Reply, Request, SessionId, Settle,
};
use std::collections::VecDeque;

/// What one shard sends another.
#[derive(Debug, Default)]
pub struct Parcel {
    /// Words, in order.
    pub(crate) words: Vec<u8>,
    /// What some of them carry along, in the same order.
    pub(crate) values: VecDeque<Value>,
}

/// What goes along with a word as it is.
#[derive(Debug)]
pub(crate) enum Value {
    Request(Request),
    Reply(Result<Reply, Refusal>),
}

impl Parcel {
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

/// A session as two shards know it: named by its own shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionName {
    pub(crate) id: SessionId,
    /// Tells it from earlier ones of its number.
    pub(crate) opening: u32,
}

/// One word of a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    /// Something that every shard has to know, for [`angarium_engine::Engine::told`].
    News(&'a [u8]),
    /// A direct message, as [`Forward::parse`] reads it.
    Forward(&'a [u8]),
    /// All news up to this number are known, and so many bytes of messages were taken since the last
    /// word of this kind.
    Taken {
        news: u64,
        bytes: u64,
    },
    /// All who hear what a connection of the receiver emits have much unsent: it is to wait.
    Crowded(ConnectionId),
    /// It may go on.
    Relieved(ConnectionId),
    /// A connection that was told to wait has gone.
    Forgotten(ConnectionId),
    /// Nobody took a request that a connection of the receiver has emitted.
    Unheard {
        publisher: ConnectionId,
        subject: &'a str,
        reply: &'a str,
    },
    /// Connections of a user, or to a virtual host, end.
    Ended {
        whose: Whose<'a>,
        why: &'a str,
    },
    /// Counts as news and says nothing: an answer shows that all before it has been dealt with.
    Sync,

    // To home, on account of a session that uses queues.
    Connect {
        connection: ConnectionId,
        user: &'a str,
        vhost: &'a str,
    },
    Open(SessionName),
    /// A message, as [`angarium_engine::Publish::parse`] reads it.
    Publish(SessionId, &'a [u8]),
    Settle(SessionId, Settle),
    /// Its value is the request.
    Request(SessionId),
    Close(SessionId),
    Disconnect(ConnectionId),
    /// So many bytes of deliveries to a connection have left its shard.
    Drained {
        connection: ConnectionId,
        bytes: u64,
    },

    // From home, to such a session or its connection.
    Deliver(SessionName, Delivered<'a>),
    Confirm(SessionName, Confirm),
    /// A message that no queue took, as [`angarium_engine::MessageView::parse`] reads it.
    Returned(SessionName, &'a [u8]),
    Cancelled(SessionName, &'a str),
    /// Its value is the reply.
    Reply(SessionName),
    /// A publish, or a settle, was refused; its value says why.
    Refused(SessionName, Option<Settle>),
    /// The connection stores messages.
    Stores(ConnectionId),
    /// It puts more into a queue than its consumers get.
    Outrun(ConnectionId),
    /// Persistent messages cannot be taken, or can again.
    Blocked(Option<&'a str>),
    /// The journal has more than the disk takes, or no longer.
    Congested(bool),
}

/// A delivery but for its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivered<'a> {
    pub(crate) subscription: &'a str,
    pub(crate) tag: u64,
    pub(crate) redelivered: bool,
    pub(crate) messages_left: u64,
    /// As [`angarium_engine::MessageView::parse`] reads it.
    pub(crate) message: &'a [u8],
}

/// Whose connections end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose<'a> {
    User(&'a str),
    Vhost(&'a str),
}

const NEWS: u8 = 0;
const FORWARD: u8 = 1;
const TAKEN: u8 = 2;
const CROWDED: u8 = 3;
const RELIEVED: u8 = 4;
const FORGOTTEN: u8 = 5;
const UNHEARD: u8 = 6;
const USER_ENDED: u8 = 7;
const VHOST_ENDED: u8 = 8;
const SYNC: u8 = 9;
const CONNECT: u8 = 10;
const OPEN: u8 = 11;
const PUBLISH: u8 = 12;
const SETTLE: u8 = 13;
const REQUEST: u8 = 14;
const CLOSE: u8 = 15;
const DISCONNECT: u8 = 16;
const DRAINED: u8 = 17;
const DELIVER: u8 = 18;
const CONFIRM: u8 = 19;
const RETURNED: u8 = 20;
const CANCELLED: u8 = 21;
const REPLY: u8 = 22;
const REFUSED: u8 = 23;
const STORES: u8 = 24;
const OUTRUN: u8 = 25;
const BLOCKED: u8 = 26;
const UNBLOCKED: u8 = 27;
const CONGESTED: u8 = 28;

/// Bytes before each word: its kind, and how many follow.
const HEAD_BYTES: usize = 5;

impl Word<'_> {
    /// Appends it to a parcel.
    pub(crate) fn write(&self, parcel: &mut Vec<u8>) {
        match *self {
            Word::News(news) => put(parcel, NEWS, &[news]),
            Word::Forward(message) => put(parcel, FORWARD, &[message]),
            Word::Taken { news, bytes } => {
                put(parcel, TAKEN, &[&news.to_le_bytes(), &bytes.to_le_bytes()]);
            }
            Word::Crowded(connection) => put(parcel, CROWDED, &[&connection.0.to_le_bytes()]),
            Word::Relieved(connection) => put(parcel, RELIEVED, &[&connection.0.to_le_bytes()]),
            Word::Forgotten(connection) => put(parcel, FORGOTTEN, &[&connection.0.to_le_bytes()]),
            Word::Unheard { publisher, subject, reply } => {
                let publisher = publisher.0.to_le_bytes();
                put(parcel, UNHEARD, &[&publisher, &text(subject), &text(reply)]);
            }
            Word::Ended { whose, why } => {
                let (kind, name) = match whose {
                    Whose::User(name) => (USER_ENDED, name),
                    Whose::Vhost(name) => (VHOST_ENDED, name),
                };
                put(parcel, kind, &[&text(name), &text(why)]);
            }
            Word::Sync => put(parcel, SYNC, &[]),
            Word::Connect { connection, user, vhost } => {
                put(parcel, CONNECT, &[&connection.0.to_le_bytes(), &text(user), &text(vhost)]);
            }
            Word::Open(name) => put(parcel, OPEN, &[&name_bytes(name)]),
            Word::Publish(session, message) => {
                put(parcel, PUBLISH, &[&session_bytes(session), message]);
            }
            Word::Settle(session, settle) => {
                put(parcel, SETTLE, &[&session_bytes(session), &settle_bytes(settle)]);
            }
            Word::Request(session) => put(parcel, REQUEST, &[&session_bytes(session)]),
            Word::Close(session) => put(parcel, CLOSE, &[&session_bytes(session)]),
            Word::Disconnect(connection) => put(parcel, DISCONNECT, &[&connection.0.to_le_bytes()]),
            Word::Drained { connection, bytes } => {
                put(parcel, DRAINED, &[&connection.0.to_le_bytes(), &bytes.to_le_bytes()]);
            }
            Word::Deliver(name, delivered) => {
                let Delivered { subscription, tag, redelivered, messages_left, message } =
                    delivered;
                let head = delivery_bytes(name, tag, redelivered, messages_left);
                put(parcel, DELIVER, &[&head, &text(subscription), message]);
            }
            Word::Confirm(name, Confirm { number, multiple, accepted }) => {
                let flags = [u8::from(multiple), u8::from(accepted)];
                put(parcel, CONFIRM, &[&name_bytes(name), &number.to_le_bytes(), &flags]);
            }
            Word::Returned(name, message) => put(parcel, RETURNED, &[&name_bytes(name), message]),
            Word::Cancelled(name, subscription) => {
                put(parcel, CANCELLED, &[&name_bytes(name), &text(subscription)]);
            }
            Word::Reply(name) => put(parcel, REPLY, &[&name_bytes(name)]),
            Word::Refused(name, settle) => match settle {
                Some(settle) => put(parcel, REFUSED, &[&name_bytes(name), &settle_bytes(settle)]),
                None => put(parcel, REFUSED, &[&name_bytes(name)]),
            },
            Word::Stores(connection) => put(parcel, STORES, &[&connection.0.to_le_bytes()]),
            Word::Outrun(connection) => put(parcel, OUTRUN, &[&connection.0.to_le_bytes()]),
            Word::Blocked(Some(why)) => put(parcel, BLOCKED, &[&text(why)]),
            Word::Blocked(None) => put(parcel, UNBLOCKED, &[]),
            Word::Congested(is_congested) => put(parcel, CONGESTED, &[&[u8::from(is_congested)]]),
        }
    }
}

fn session_bytes(session: SessionId) -> [u8; 6] {
    let mut bytes = [0; 6];
    bytes[..4].copy_from_slice(&session.connection.0.to_le_bytes());
    bytes[4..].copy_from_slice(&session.number.to_le_bytes());
    bytes
}

fn name_bytes(name: SessionName) -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[..6].copy_from_slice(&session_bytes(name.id));
    bytes[6..].copy_from_slice(&name.opening.to_le_bytes());
    bytes
}

fn settle_bytes(settle: Settle) -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&settle.tag.to_le_bytes());
    bytes[8] = u8::from(settle.multiple);
    bytes[9] = match settle.outcome {
        Outcome::Accept => 0,
        Outcome::Requeue => 1,
        Outcome::Discard => 2,
    };
    bytes
}

fn delivery_bytes(name: SessionName, tag: u64, redelivered: bool, messages_left: u64) -> [u8; 27] {
    let mut bytes = [0; 27];
    bytes[..10].copy_from_slice(&name_bytes(name));
    bytes[10..18].copy_from_slice(&tag.to_le_bytes());
    bytes[18] = u8::from(redelivered);
    bytes[19..].copy_from_slice(&messages_left.to_le_bytes());
    bytes
}

/// Appends [`Word::Forward`] of a message that has no bytes yet; returns how many it took.
#[inline]
pub(crate) fn write_forward(forward: &Forward<'_>, parcel: &mut Vec<u8>) -> usize {
    put_with(parcel, FORWARD, |out| forward.write(out))
}

/// The same for [`Word::Publish`].
#[inline]
pub(crate) fn write_publish(
    session: SessionId,
    publish: &angarium_engine::Publish<'_>,
    parcel: &mut Vec<u8>,
) -> usize {
    put_with(parcel, PUBLISH, |out| {
        out.extend_from_slice(&session_bytes(session));
        publish.write(out);
    })
}

/// The same for [`Word::Deliver`].
#[inline]
pub(crate) fn write_delivery(
    name: SessionName,
    delivery: &Delivery<'_>,
    parcel: &mut Vec<u8>,
) -> usize {
    let Delivery { subscription, tag, redelivered, messages_left, message, .. } = *delivery;
    put_with(parcel, DELIVER, |out| {
        out.extend_from_slice(&delivery_bytes(name, tag, redelivered, messages_left));
        out.extend_from_slice(&length(subscription.len()));
        out.extend_from_slice(subscription.as_bytes());
        message.write(out);
    })
}

#[inline]
fn put_with(parcel: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> usize {
    let start = parcel.len();
    parcel.extend_from_slice(&[kind, 0, 0, 0, 0]);
    write(parcel);
    let bytes = parcel.len() - start;
    parcel[start + 1..start + HEAD_BYTES].copy_from_slice(&length(bytes - HEAD_BYTES));
    bytes
}

fn put(parcel: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    parcel.push(kind);
    parcel.extend_from_slice(&length(parts.iter().map(|part| part.len()).sum()));
    for part in parts {
        parcel.extend_from_slice(part);
    }
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).expect("limits keep words below 4 GiB").to_le_bytes()
}

/// A text with its length before it.
fn text(text: &str) -> Vec<u8> {
    [&length(text.len()), text.as_bytes()].concat()
}

/// Takes a parcel apart. It comes from this very program, so what it cannot read is a bug, which is
/// said and ends the parcel.
#[derive(Debug)]
pub(crate) struct Words<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = Result<(Word<'a>, usize), &'static str>;

    /// The next word and how many bytes it took.
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let before = self.0.len();
        let word = self.read();
        if word.is_none() {
            self.0 = &[];
        }
        Some(word.map(|word| (word, before - self.0.len())).ok_or("a parcel is malformed"))
    }
}

impl<'a> Words<'a> {
    fn read(&mut self) -> Option<Word<'a>> {
        let (&kind, rest) = self.0.split_first()?;
        let mut fields = Fields(rest);
        let bytes = fields.u32()? as usize;
        let (content, rest) = fields.0.split_at_checked(bytes)?;
        self.0 = rest;
        let mut fields = Fields(content);
        Some(match kind {
            NEWS => Word::News(content),
            FORWARD => Word::Forward(content),
            TAKEN => Word::Taken { news: fields.u64()?, bytes: fields.u64()? },
            CROWDED => Word::Crowded(ConnectionId(fields.u32()?)),
            RELIEVED => Word::Relieved(ConnectionId(fields.u32()?)),
            FORGOTTEN => Word::Forgotten(ConnectionId(fields.u32()?)),
            UNHEARD => Word::Unheard {
                publisher: ConnectionId(fields.u32()?),
                subject: fields.text()?,
                reply: fields.text()?,
            },
            USER_ENDED => Word::Ended { whose: Whose::User(fields.text()?), why: fields.text()? },
            VHOST_ENDED => Word::Ended { whose: Whose::Vhost(fields.text()?), why: fields.text()? },
            SYNC => Word::Sync,
            CONNECT => Word::Connect {
                connection: ConnectionId(fields.u32()?),
                user: fields.text()?,
                vhost: fields.text()?,
            },
            OPEN => Word::Open(fields.name()?),
            PUBLISH => Word::Publish(fields.session()?, fields.0),
            SETTLE => Word::Settle(fields.session()?, fields.settle()?),
            REQUEST => Word::Request(fields.session()?),
            CLOSE => Word::Close(fields.session()?),
            DISCONNECT => Word::Disconnect(ConnectionId(fields.u32()?)),
            DRAINED => {
                Word::Drained { connection: ConnectionId(fields.u32()?), bytes: fields.u64()? }
            }
            DELIVER => Word::Deliver(fields.name()?, fields.delivered()?),
            CONFIRM => {
                let (name, number) = (fields.name()?, fields.u64()?);
                let (multiple, accepted) = (fields.bool()?, fields.bool()?);
                Word::Confirm(name, Confirm { number, multiple, accepted })
            }
            RETURNED => Word::Returned(fields.name()?, fields.0),
            CANCELLED => Word::Cancelled(fields.name()?, fields.text()?),
            REPLY => Word::Reply(fields.name()?),
            REFUSED => {
                let name = fields.name()?;
                let settle = if fields.0.is_empty() { None } else { Some(fields.settle()?) };
                Word::Refused(name, settle)
            }
            STORES => Word::Stores(ConnectionId(fields.u32()?)),
            OUTRUN => Word::Outrun(ConnectionId(fields.u32()?)),
            BLOCKED => Word::Blocked(Some(fields.text()?)),
            UNBLOCKED => Word::Blocked(None),
            CONGESTED => Word::Congested(fields.bool()?),
            _ => return None,
        })
    }
}

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

    fn session(&mut self) -> Option<SessionId> {
        let connection = ConnectionId(self.u32()?);
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(SessionId { connection, number: u16::from_le_bytes(*number) })
    }

    fn name(&mut self) -> Option<SessionName> {
        Some(SessionName { id: self.session()?, opening: self.u32()? })
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

    fn delivered(&mut self) -> Option<Delivered<'a>> {
        Some(Delivered {
            tag: self.u64()?,
            redelivered: self.bool()?,
            messages_left: self.u64()?,
            subscription: self.text()?,
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

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: SessionName = SessionName {
        id: SessionId { connection: ConnectionId(7), number: 513 },
        opening: u32::MAX - 1,
    };
    const SETTLE_ALL: Settle = Settle { tag: u64::MAX, multiple: true, outcome: Outcome::Discard };

    #[test]
    fn words_come_back() {
        let words = [
            Word::News(b"news"),
            Word::Forward(b""),
            Word::Taken { news: u64::MAX, bytes: 7 },
            Word::Crowded(ConnectionId(3)),
            Word::Relieved(ConnectionId(u32::MAX)),
            Word::Forgotten(ConnectionId(0)),
            Word::Unheard { publisher: ConnectionId(1), subject: "a.b", reply: "_INBOX.1" },
            Word::Ended { whose: Whose::User("guest"), why: "deleted" },
            Word::Ended { whose: Whose::Vhost("/"), why: "" },
            Word::Sync,
            Word::Connect { connection: ConnectionId(7), user: "guest", vhost: "/" },
            Word::Open(NAME),
            Word::Publish(NAME.id, b"message"),
            Word::Settle(NAME.id, SETTLE_ALL),
            Word::Request(NAME.id),
            Word::Close(NAME.id),
            Word::Disconnect(ConnectionId(7)),
            Word::Drained { connection: ConnectionId(7), bytes: 1 << 40 },
            Word::Deliver(
                NAME,
                Delivered {
                    subscription: "ctag",
                    tag: 3,
                    redelivered: true,
                    messages_left: 4,
                    message: b"message",
                },
            ),
            Word::Confirm(NAME, Confirm { number: 9, multiple: true, accepted: false }),
            Word::Returned(NAME, b"message"),
            Word::Cancelled(NAME, "ctag"),
            Word::Reply(NAME),
            Word::Refused(NAME, None),
            Word::Refused(NAME, Some(SETTLE_ALL)),
            Word::Stores(ConnectionId(7)),
            Word::Outrun(ConnectionId(7)),
            Word::Blocked(Some("full")),
            Word::Blocked(None),
            Word::Congested(true),
        ];
        let mut parcel = Vec::new();
        for word in &words {
            word.write(&mut parcel);
        }
        let read: Vec<_> = Words(&parcel).map(|word| word.map(|(word, _)| word)).collect();
        assert_eq!(read, words.map(Ok));
        let bytes: usize = Words(&parcel).map(|word| word.map_or(0, |(_, bytes)| bytes)).sum();
        assert_eq!(bytes, parcel.len());
    }

    #[test]
    fn what_cannot_be_read_ends_a_parcel() {
        let mut parcel = Vec::new();
        Word::Crowded(ConnectionId(3)).write(&mut parcel);
        for cut in 1..parcel.len() {
            let words: Vec<_> = Words(&parcel[..cut]).collect();
            assert_eq!(words, [Err("a parcel is malformed")], "{cut}");
        }
        assert_eq!(Words(&[99, 0, 0, 0, 0, 1]).count(), 1);
    }
}
