//! ShardMessages to bytes.

use super::{
    BATCH_ITEM_HEAD_BYTES, ChannelName, DeliveryMessage, FromHome, GetAnswerMessage, HEAD_BYTES,
    ShardMessage, ToHome, kind,
};
use angarium_engine::{
    ChannelId, Confirm, Deletion, Delivery, Forward, GetAnswer, Outcome, Publish, SessionLoss,
    Settle,
};

impl ShardMessage<'_> {
    /// Appends it to a batch's messages.
    pub(crate) fn write(&self, batch: &mut Vec<u8>) {
        match *self {
            ShardMessage::News(news) => put(batch, kind::NEWS, &[news]),
            ShardMessage::Forward(message) => put(batch, kind::FORWARD, &[message]),
            ShardMessage::BatchHead(head) => put(batch, kind::BATCH_HEAD, &[head]),
            ShardMessage::BatchItem { properties, body } => put_batch_item(batch, properties, body),
            ShardMessage::Taken { news, bytes } => {
                put(batch, kind::TAKEN, &[&news.to_le_bytes(), &bytes.to_le_bytes()]);
            }
            ShardMessage::SubscriberPace { publisher, pace } => {
                let publisher = publisher.0.to_le_bytes();
                put(batch, kind::SUBSCRIBER_PACE, &[&publisher, &[pace as u8]]);
            }
            ShardMessage::Unheard { publisher, subject, reply } => {
                let publisher = publisher.0.to_le_bytes();
                put(batch, kind::UNHEARD, &[&publisher, &text(subject), &text(reply)]);
            }
            ShardMessage::Ended(Deletion::User(name)) => {
                put(batch, kind::USER_ENDED, &[&text(name)])
            }
            ShardMessage::Ended(Deletion::Vhost(name)) => {
                put(batch, kind::VHOST_ENDED, &[&text(name)])
            }
            ShardMessage::Spent { user, messages, bytes } => {
                let amounts = [messages.to_le_bytes(), bytes.to_le_bytes()];
                put(batch, kind::SPENT, &[amounts.as_flattened(), &text(user)]);
            }
            ShardMessage::ConnectionQuery { connection, serial } => {
                put(
                    batch,
                    kind::CONNECTION_QUERY,
                    &[&connection.0.to_le_bytes(), &serial.to_le_bytes()],
                );
            }
            ShardMessage::QueryResult { connection, serial } => {
                put(
                    batch,
                    kind::QUERY_RESULT,
                    &[&connection.0.to_le_bytes(), &serial.to_le_bytes()],
                );
            }
            ShardMessage::Sync => put(batch, kind::SYNC, &[]),
            ShardMessage::ToHome(request) => request.write(batch),
            ShardMessage::FromHome(answer) => answer.write(batch),
        }
    }
}

impl ToHome<'_> {
    fn write(&self, batch: &mut Vec<u8>) {
        match *self {
            ToHome::Connect { connection, user, vhost } => {
                put(
                    batch,
                    kind::CONNECT,
                    &[&connection.0.to_le_bytes(), &text(user), &text(vhost)],
                );
            }
            ToHome::Admit { connection, serial, user } => {
                let connection = connection.0.to_le_bytes();
                put(batch, kind::ADMIT, &[&connection, &serial.to_le_bytes(), &text(user)]);
            }
            ToHome::Left(connection) => put(batch, kind::LEFT, &[&connection.0.to_le_bytes()]),
            ToHome::Ended => put(batch, kind::ENDED, &[]),
            ToHome::Open(name) => put(batch, kind::OPEN, &[&name_bytes(name)]),
            ToHome::Publish(channel, message) => {
                put(batch, kind::PUBLISH, &[&channel_bytes(channel), message]);
            }
            ToHome::Settle(channel, settle) => {
                put(batch, kind::SETTLE, &[&channel_bytes(channel), &settle_bytes(settle)]);
            }
            ToHome::Request(channel) => put(batch, kind::REQUEST, &[&channel_bytes(channel)]),
            ToHome::Close(channel) => put(batch, kind::CLOSE, &[&channel_bytes(channel)]),
            ToHome::Disconnect(connection) => {
                put(batch, kind::DISCONNECT, &[&connection.0.to_le_bytes()])
            }
            ToHome::Drained { connection, bytes } => {
                put(batch, kind::DRAINED, &[&connection.0.to_le_bytes(), &bytes.to_le_bytes()]);
            }
        }
    }
}

impl FromHome<'_> {
    fn write(&self, batch: &mut Vec<u8>) {
        match *self {
            FromHome::Deliver(name, delivered) => {
                let DeliveryMessage { consumer, tag, redelivered, message } = delivered;
                let head = delivery_bytes(name, tag, redelivered);
                put(batch, kind::DELIVER, &[&head, &text(consumer), message]);
            }
            FromHome::GetAnswer(name, answer) => {
                let GetAnswerMessage { tag, redelivered, messages_left, message } = answer;
                let head = delivery_bytes(name, tag, redelivered);
                put(batch, kind::GET_ANSWER, &[&head, &messages_left.to_le_bytes(), message]);
            }
            FromHome::Confirm(name, Confirm { number, multiple, accepted }) => {
                let flags = [u8::from(multiple), u8::from(accepted)];
                put(batch, kind::CONFIRM, &[&name_bytes(name), &number.to_le_bytes(), &flags]);
            }
            FromHome::Returned(name, message) => {
                put(batch, kind::RETURNED, &[&name_bytes(name), message])
            }
            FromHome::Cancelled(name, subscription) => {
                put(batch, kind::CANCELLED, &[&name_bytes(name), &text(subscription)]);
            }
            FromHome::SessionLost(name, session, why) => {
                let is_taken_over = [u8::from(why == SessionLoss::TakenOver)];
                let parts: [&[u8]; 3] = [&name_bytes(name), &is_taken_over, &text(session)];
                put(batch, kind::SESSION_LOST, &parts);
            }
            FromHome::Reply(name) => put(batch, kind::REPLY, &[&name_bytes(name)]),
            FromHome::Refused(name, settle) => match settle {
                Some(settle) => {
                    put(batch, kind::REFUSED, &[&name_bytes(name), &settle_bytes(settle)])
                }
                None => put(batch, kind::REFUSED, &[&name_bytes(name)]),
            },
            FromHome::Admitted { connection, serial, is_admitted } => {
                let connection = connection.0.to_le_bytes();
                let is_admitted = [u8::from(is_admitted)];
                put(batch, kind::ADMITTED, &[&connection, &serial.to_le_bytes(), &is_admitted]);
            }
            FromHome::Stores(name) => put(batch, kind::STORES, &[&name_bytes(name)]),
            FromHome::Outrun(name) => put(batch, kind::OUTRUN, &[&name_bytes(name)]),
            FromHome::Blocked(Some(why)) => put(batch, kind::BLOCKED, &[&text(why)]),
            FromHome::Blocked(None) => put(batch, kind::UNBLOCKED, &[]),
            FromHome::Congested(is_congested) => {
                put(batch, kind::CONGESTED, &[&[u8::from(is_congested)]])
            }
            FromHome::Yield(yields) => put(batch, kind::YIELD, &[&[u8::from(yields)]]),
        }
    }
}

fn channel_bytes(channel: ChannelId) -> [u8; 6] {
    let mut bytes = [0; 6];
    bytes[..4].copy_from_slice(&channel.connection.0.to_le_bytes());
    bytes[4..].copy_from_slice(&channel.number.to_le_bytes());
    bytes
}

fn name_bytes(name: ChannelName) -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[..6].copy_from_slice(&channel_bytes(name.id));
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

fn delivery_bytes(name: ChannelName, tag: u64, redelivered: bool) -> [u8; 19] {
    let mut bytes = [0; 19];
    bytes[..10].copy_from_slice(&name_bytes(name));
    bytes[10..18].copy_from_slice(&tag.to_le_bytes());
    bytes[18] = u8::from(redelivered);
    bytes
}

/// Appends [`ShardMessage::Forward`] of a message that has no bytes yet; returns how many it took.
#[inline]
pub(crate) fn write_forward(forward: &Forward<'_>, batch: &mut Vec<u8>) -> usize {
    put_with(batch, kind::FORWARD, |out| forward.write(out))
}

/// Appends messages of a batch with these payloads as a [`ShardMessage::BatchItem`] each, after their
/// [`ShardMessage::BatchHead`] unless that is the last one in this batch, `row`; returns the bytes appended.
#[inline]
pub(crate) fn write_batch_items(
    forward: &Forward<'_>,
    bodies: &[&[u8]],
    row: &mut u64,
    batch: &mut Vec<u8>,
) -> usize {
    let before = batch.len();
    if std::mem::replace(row, forward.cached_route) != forward.cached_route {
        put_with(batch, kind::BATCH_HEAD, |out| forward.write_row(out));
    }
    bodies.iter().for_each(|body| put_batch_item(batch, forward.message.properties, body));
    batch.len() - before
}

#[inline]
fn put_batch_item(batch: &mut Vec<u8>, properties: &[u8], body: &[u8]) {
    let mut head = [kind::BATCH_ITEM; BATCH_ITEM_HEAD_BYTES];
    head[1..5].copy_from_slice(&length(4 + properties.len() + body.len()));
    head[5..].copy_from_slice(&length(properties.len()));
    batch.reserve(head.len() + properties.len() + body.len());
    batch.extend_from_slice(&head);
    batch.extend_from_slice(properties);
    batch.extend_from_slice(body);
}

/// Appends [`ToHome::Publish`]; returns how many bytes it took.
#[inline]
pub(crate) fn write_publish(
    channel: ChannelId,
    publish: &Publish<'_>,
    batch: &mut Vec<u8>,
) -> usize {
    put_with(batch, kind::PUBLISH, |out| {
        out.extend_from_slice(&channel_bytes(channel));
        publish.write(out);
    })
}

/// Appends [`FromHome::Deliver`] of a message that has no bytes yet; returns how many it took.
#[inline]
pub(crate) fn write_delivery(
    name: ChannelName,
    delivery: &Delivery<'_>,
    batch: &mut Vec<u8>,
) -> usize {
    let Delivery { consumer, tag, redelivered, message, .. } = *delivery;
    put_with(batch, kind::DELIVER, |out| {
        out.extend_from_slice(&delivery_bytes(name, tag, redelivered));
        out.extend_from_slice(&length(consumer.len()));
        out.extend_from_slice(consumer.as_bytes());
        message.write(out);
    })
}

/// Appends [`FromHome::GetAnswer`] of a message that has no bytes yet; returns how many it took.
pub(crate) fn write_get_answer(
    name: ChannelName,
    answer: &GetAnswer<'_>,
    batch: &mut Vec<u8>,
) -> usize {
    let GetAnswer { tag, redelivered, messages_left, message, .. } = *answer;
    put_with(batch, kind::GET_ANSWER, |out| {
        out.extend_from_slice(&delivery_bytes(name, tag, redelivered));
        out.extend_from_slice(&messages_left.to_le_bytes());
        message.write(out);
    })
}

#[inline]
fn put_with(batch: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> usize {
    let start = batch.len();
    batch.extend_from_slice(&[kind, 0, 0, 0, 0]);
    write(batch);
    let bytes = batch.len() - start;
    batch[start + 1..start + HEAD_BYTES].copy_from_slice(&length(bytes - HEAD_BYTES));
    bytes
}

#[inline]
fn put(batch: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    batch.push(kind);
    batch.extend_from_slice(&length(parts.iter().map(|part| part.len()).sum()));
    for part in parts {
        batch.extend_from_slice(part);
    }
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).expect("limits keep shard messages below 4 GiB").to_le_bytes()
}

/// A text with its length before it.
fn text(text: &str) -> Vec<u8> {
    [&length(text.len()), text.as_bytes()].concat()
}
