//! Shard messages there and back.

use super::*;
use angarium_engine::{Outcome, PublishRefusal, RefusalKind, Return, TransactionId};

const NAME: ChannelName = ChannelName {
    id: ChannelId { connection: ConnectionId(7), number: 513 },
    opening: u32::MAX - 1,
};
const SETTLE_ALL: Settle = Settle {
    first: 0,
    last: u64::MAX,
    must_exist: true,
    outcome: Outcome::Discard,
    transaction: Some(TransactionId(1)),
};

#[test]
fn shard_messages_come_back() {
    let (channel, connection) = (NAME.id, ConnectionId(7));
    let key = ConnectionKey { id: connection, serial: 1 << 40 };
    let publisher = ConnectionId(u32::MAX);
    let item =
        |properties, body| ShardMessage::BatchItem { properties: Measured(properties), body };
    check_messages(&[
        ShardMessage::News { news: b"news" },
        ShardMessage::Forward { message: b"" },
        ShardMessage::BatchHead { head: b"what they have in common" },
        item(b"reply", b""),
        item(b"", b"body"),
        ShardMessage::Taken { news: u64::MAX, bytes: 7 },
        ShardMessage::SubscriberPace { publisher, pace: Pace::Slow },
        ShardMessage::SubscriberPace { publisher, pace: Pace::TooSlow },
        ShardMessage::SubscriberPace { publisher, pace: Pace::Drained },
        ShardMessage::Undelivered { publisher, subject: "a.b", reply: "_INBOX.1" },
        ShardMessage::Ended { revocation: Revocation::User("guest") },
        ShardMessage::Ended { revocation: Revocation::Vhost("/") },
        ShardMessage::Ended { revocation: Revocation::Password("guest") },
        ShardMessage::Ended { revocation: Revocation::Permissions { user: "guest", vhost: "/" } },
        ShardMessage::Spent { user: "guest", vhost: "", messages: 3, bytes: u64::MAX },
        ShardMessage::ConnectionQuery { asker: key },
        ShardMessage::QueryResult { asker: key },
        ShardMessage::Sync,
        ToHome::Connect { connection, user: "guest", vhost: "/", client: "ann" }.into(),
        ToHome::Admit { key, user: "ann" }.into(),
        ToHome::Enter { key, vhost: "/" }.into(),
        ToHome::Left { connection }.into(),
        ToHome::Ended.into(),
        ToHome::Open { name: NAME }.into(),
        ToHome::Publish { channel, message: b"message" }.into(),
        ToHome::PublishOnce { channel, number: u64::MAX, message: b"message" }.into(),
        ToHome::Settle { channel, settle: SETTLE_ALL, annotations: b"" }.into(),
        ToHome::Settle {
            channel,
            settle: Settle::range(3, 4, Outcome::Return(Return { failed: false, elsewhere: true })),
            annotations: b"annotations",
        }
        .into(),
        ToHome::Settle { channel, settle: Settle::one(3, Outcome::Accept), annotations: b"" }
            .into(),
        ToHome::Grant { channel, grant: Grant { up_to: 1 << 50, drain: true }, consumer: "7" }
            .into(),
        ToHome::Request { channel }.into(),
        ToHome::Close { channel }.into(),
        ToHome::Disconnect { connection }.into(),
        ToHome::Drained { connection, bytes: 1 << 40 }.into(),
    ]);
}

#[test]
fn shard_messages_from_home_come_back() {
    let (name, key) = (NAME, ConnectionKey { id: ConnectionId(7), serial: 9 });
    let (tag, redelivered, messages_left, message) = (3, true, 4, &b"message"[..]);
    let place = 1 << 40;
    let text = "queue 'q' is full";
    let refused = Some(PublishRefusal { kind: RefusalKind::LimitExceeded, text });
    let confirm = Confirm { number: 9, multiple: true, refused };
    let answers = [
        FromHome::Deliver { name, tag, place, redelivered, consumer: "ctag", group: None, message },
        FromHome::Deliver {
            name,
            tag,
            place,
            redelivered,
            consumer: "",
            group: Some("g"),
            message,
        },
        FromHome::GetAnswer { name, tag, redelivered, messages_left, message },
        FromHome::Confirm { name, confirm },
        FromHome::Returned { name, message },
        FromHome::Cancelled { name, why: CancelReason::QueueDeleted, consumer: "ctag" },
        FromHome::Cancelled { name, why: CancelReason::QueueFailed, consumer: "" },
        FromHome::Cancelled { name, why: CancelReason::Forbidden, consumer: "" },
        FromHome::Cancelled { name, why: CancelReason::TakenOver, consumer: "7" },
        FromHome::Drained { name, delivered: 1 << 40, consumer: "ctag" },
        FromHome::SessionLost { name, session: "s", why: SessionLoss::TakenOver },
        FromHome::SessionLost { name, session: "", why: SessionLoss::Ended },
        FromHome::Reply { name },
        FromHome::Refused { name, settle: None },
        FromHome::Refused { name, settle: Some(SETTLE_ALL) },
        FromHome::Admitted { key, is_admitted: true },
        FromHome::Stores { name },
        FromHome::Outrun { name },
        FromHome::Flood { name, disturbs: true },
        FromHome::Blocked { why: Some("full") },
        FromHome::Blocked { why: None },
        FromHome::Congested { is_congested: true },
        FromHome::Yield { yields: true },
        FromHome::Failed { name },
    ];
    check_messages(&answers.map(ShardMessage::from));
}

/// Shard messages are the same after they were written and read.
#[track_caller]
fn check_messages(messages: &[ShardMessage<'_>]) {
    let mut batch = ShardBatch::default();
    messages.iter().for_each(|message| batch.push(*message));
    let mut rest = &batch.messages[..];
    for message in messages {
        let (read, bytes) = ShardMessage::read(rest).unwrap();
        assert_eq!(read, *message);
        rest = &rest[bytes..];
    }
    assert!(rest.is_empty());
}

/// What is appended to a message is the same as its last field.
#[test]
fn messages_are_written_into_place() {
    let (mut apart, mut whole) = (ShardBatch::default(), ShardBatch::default());
    let message = ToHome::Publish { channel: NAME.id, message: &[] };
    let bytes = apart.push_with(message, None, |out| out.extend_from_slice(b"message"));
    whole.push(ToHome::Publish { channel: NAME.id, message: b"message" }.into());
    assert_eq!((&apart.messages, bytes), (&whole.messages, whole.messages.len()));
    for (properties, body) in [(&b"reply"[..], &b""[..]), (b"", b"body")] {
        let (mut apart, mut whole) = (Vec::new(), ShardBatch::default());
        put_batch_item(&mut apart, properties, body);
        whole.push(ShardMessage::BatchItem { properties: Measured(properties), body });
        assert_eq!(apart, whole.messages);
    }
}

#[test]
fn payloads_of_a_row_come_alone_where_they_are_alone() {
    let item =
        |properties, body| ShardMessage::BatchItem { properties: Measured(properties), body };
    let cases = [
        (item(b"", b"body"), Some(&b"body"[..])),
        (item(b"", b""), Some(b"")),
        (item(b"reply", b"body"), None),
        (ShardMessage::BatchHead { head: b"body" }, None),
        (ShardMessage::Sync, None),
    ];
    for (message, expected) in cases {
        let mut batch = ShardBatch::default();
        batch.push(message);
        let bytes = batch.messages.len();
        batch.push(ShardMessage::Sync);
        let expected = expected.map(|body| (body, bytes));
        assert_eq!(plain_batch_item(&batch.messages), expected, "{message:?}");
        for cut in 0..bytes {
            assert_eq!(plain_batch_item(&batch.messages[..cut]), None, "{message:?} cut at {cut}");
        }
    }
}

#[test]
fn what_is_cut_off_is_no_message() {
    let mut batch = ShardBatch::default();
    batch.push(ShardMessage::SubscriberPace { publisher: ConnectionId(3), pace: Pace::Slow });
    for cut in 0..batch.messages.len() {
        assert_eq!(ShardMessage::read(&batch.messages[..cut]), None, "{cut}");
    }
    assert_eq!(ShardMessage::read(&[1, 0, 0, 0, 99]), None);
}
