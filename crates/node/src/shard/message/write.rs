//! Words to bytes.

use super::{Delivered, FromHome, HEAD_BYTES, IN_ROW_HEAD_BYTES, SessionName, ToHome, Word, kind};
use crate::flow::slow_subscribers::Behind;
use angarium_engine::{ChannelId, Confirm, Deletion, Delivery, Forward, Outcome, Publish, Settle};

impl Word<'_> {
    /// Appends it to a parcel's words.
    pub(crate) fn write(&self, parcel: &mut Vec<u8>) {
        match *self {
            Word::News(news) => put(parcel, kind::NEWS, &[news]),
            Word::Forward(message) => put(parcel, kind::FORWARD, &[message]),
            Word::Row(head) => put(parcel, kind::ROW, &[head]),
            Word::InRow { properties, body } => put_in_row(parcel, properties, body),
            Word::Taken { news, bytes } => {
                put(parcel, kind::TAKEN, &[&news.to_le_bytes(), &bytes.to_le_bytes()]);
            }
            Word::Behind(publisher, behind) => {
                let publisher = publisher.0.to_le_bytes();
                match behind {
                    Some(Behind::Awaited { has_others }) => {
                        put(parcel, kind::AWAITED, &[&publisher, &[u8::from(has_others)]])
                    }
                    Some(Behind::Far) => put(parcel, kind::FAR_BEHIND, &[&publisher]),
                    None => put(parcel, kind::RELIEVED, &[&publisher]),
                }
            }
            Word::Forgotten(connection) => {
                put(parcel, kind::FORGOTTEN, &[&connection.0.to_le_bytes()])
            }
            Word::Unheard { publisher, subject, reply } => {
                let publisher = publisher.0.to_le_bytes();
                put(parcel, kind::UNHEARD, &[&publisher, &text(subject), &text(reply)]);
            }
            Word::Ended(Deletion::User(name)) => put(parcel, kind::USER_ENDED, &[&text(name)]),
            Word::Ended(Deletion::Vhost(name)) => put(parcel, kind::VHOST_ENDED, &[&text(name)]),
            Word::Spent { user, messages, bytes } => {
                let amounts = [messages.to_le_bytes(), bytes.to_le_bytes()];
                put(parcel, kind::SPENT, &[amounts.as_flattened(), &text(user)]);
            }
            Word::Survey { connection, serial } => {
                put(parcel, kind::SURVEY, &[&connection.0.to_le_bytes(), &serial.to_le_bytes()]);
            }
            Word::Surveyed { connection, serial } => {
                put(parcel, kind::SURVEYED, &[&connection.0.to_le_bytes(), &serial.to_le_bytes()]);
            }
            Word::Sync => put(parcel, kind::SYNC, &[]),
            Word::ToHome(word) => word.write(parcel),
            Word::FromHome(word) => word.write(parcel),
        }
    }
}

impl ToHome<'_> {
    fn write(&self, parcel: &mut Vec<u8>) {
        match *self {
            ToHome::Connect { connection, user, vhost } => {
                put(
                    parcel,
                    kind::CONNECT,
                    &[&connection.0.to_le_bytes(), &text(user), &text(vhost)],
                );
            }
            ToHome::Admit { connection, serial, user } => {
                let connection = connection.0.to_le_bytes();
                put(parcel, kind::ADMIT, &[&connection, &serial.to_le_bytes(), &text(user)]);
            }
            ToHome::Left(connection) => put(parcel, kind::LEFT, &[&connection.0.to_le_bytes()]),
            ToHome::Ended => put(parcel, kind::ENDED, &[]),
            ToHome::Open(name) => put(parcel, kind::OPEN, &[&name_bytes(name)]),
            ToHome::Publish(session, message) => {
                put(parcel, kind::PUBLISH, &[&session_bytes(session), message]);
            }
            ToHome::Settle(session, settle) => {
                put(parcel, kind::SETTLE, &[&session_bytes(session), &settle_bytes(settle)]);
            }
            ToHome::Request(session) => put(parcel, kind::REQUEST, &[&session_bytes(session)]),
            ToHome::Close(session) => put(parcel, kind::CLOSE, &[&session_bytes(session)]),
            ToHome::Disconnect(connection) => {
                put(parcel, kind::DISCONNECT, &[&connection.0.to_le_bytes()])
            }
            ToHome::Drained { connection, bytes } => {
                put(parcel, kind::DRAINED, &[&connection.0.to_le_bytes(), &bytes.to_le_bytes()]);
            }
        }
    }
}

impl FromHome<'_> {
    fn write(&self, parcel: &mut Vec<u8>) {
        match *self {
            FromHome::Deliver(name, delivered) => {
                let Delivered { subscription, tag, redelivered, messages_left, message } =
                    delivered;
                let head = delivery_bytes(name, tag, redelivered, messages_left);
                put(parcel, kind::DELIVER, &[&head, &text(subscription), message]);
            }
            FromHome::Confirm(name, Confirm { number, multiple, accepted }) => {
                let flags = [u8::from(multiple), u8::from(accepted)];
                put(parcel, kind::CONFIRM, &[&name_bytes(name), &number.to_le_bytes(), &flags]);
            }
            FromHome::Returned(name, message) => {
                put(parcel, kind::RETURNED, &[&name_bytes(name), message])
            }
            FromHome::Cancelled(name, subscription) => {
                put(parcel, kind::CANCELLED, &[&name_bytes(name), &text(subscription)]);
            }
            FromHome::Reply(name) => put(parcel, kind::REPLY, &[&name_bytes(name)]),
            FromHome::Refused(name, settle) => match settle {
                Some(settle) => {
                    put(parcel, kind::REFUSED, &[&name_bytes(name), &settle_bytes(settle)])
                }
                None => put(parcel, kind::REFUSED, &[&name_bytes(name)]),
            },
            FromHome::Admitted { connection, serial, is_admitted } => {
                let connection = connection.0.to_le_bytes();
                let is_admitted = [u8::from(is_admitted)];
                put(parcel, kind::ADMITTED, &[&connection, &serial.to_le_bytes(), &is_admitted]);
            }
            FromHome::Stores(name) => put(parcel, kind::STORES, &[&name_bytes(name)]),
            FromHome::Outrun(name) => put(parcel, kind::OUTRUN, &[&name_bytes(name)]),
            FromHome::Flood(name, disturbs) => {
                put(parcel, kind::FLOOD, &[&name_bytes(name), &[u8::from(disturbs)]]);
            }
            FromHome::Blocked(Some(why)) => put(parcel, kind::BLOCKED, &[&text(why)]),
            FromHome::Blocked(None) => put(parcel, kind::UNBLOCKED, &[]),
            FromHome::Congested(is_congested) => {
                put(parcel, kind::CONGESTED, &[&[u8::from(is_congested)]])
            }
            FromHome::Yield(yields) => put(parcel, kind::YIELD, &[&[u8::from(yields)]]),
        }
    }
}

fn session_bytes(session: ChannelId) -> [u8; 6] {
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
    put_with(parcel, kind::FORWARD, |out| forward.write(out))
}

/// Appends messages of a streak, with these payloads, as a [`Word::InRow`] each, behind their [`Word::Row`]
/// where that is another than `row`, the last one in this parcel; returns how many bytes they took.
#[inline]
pub(crate) fn write_in_row(
    forward: &Forward<'_>,
    bodies: &[&[u8]],
    row: &mut u64,
    parcel: &mut Vec<u8>,
) -> usize {
    let before = parcel.len();
    if std::mem::replace(row, forward.streak) != forward.streak {
        put_with(parcel, kind::ROW, |out| forward.write_row(out));
    }
    bodies.iter().for_each(|body| put_in_row(parcel, forward.message.properties, body));
    parcel.len() - before
}

#[inline]
fn put_in_row(parcel: &mut Vec<u8>, properties: &[u8], body: &[u8]) {
    let mut head = [kind::IN_ROW; IN_ROW_HEAD_BYTES];
    head[1..5].copy_from_slice(&length(4 + properties.len() + body.len()));
    head[5..].copy_from_slice(&length(properties.len()));
    parcel.reserve(head.len() + properties.len() + body.len());
    parcel.extend_from_slice(&head);
    parcel.extend_from_slice(properties);
    parcel.extend_from_slice(body);
}

/// The same as [`write_forward`] for [`ToHome::Publish`].
#[inline]
pub(crate) fn write_publish(
    session: ChannelId,
    publish: &Publish<'_>,
    parcel: &mut Vec<u8>,
) -> usize {
    put_with(parcel, kind::PUBLISH, |out| {
        out.extend_from_slice(&session_bytes(session));
        publish.write(out);
    })
}

/// The same for [`FromHome::Deliver`].
#[inline]
pub(crate) fn write_delivery(
    name: SessionName,
    delivery: &Delivery<'_>,
    parcel: &mut Vec<u8>,
) -> usize {
    let Delivery { subscription, tag, redelivered, messages_left, message, .. } = *delivery;
    put_with(parcel, kind::DELIVER, |out| {
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

#[inline]
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
