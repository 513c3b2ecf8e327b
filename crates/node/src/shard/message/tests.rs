//! ShardMessages there and back.

use super::*;
use angarium_engine::Outcome;

const NAME: ChannelName = ChannelName {
    id: ChannelId { connection: ConnectionId(7), number: 513 },
    opening: u32::MAX - 1,
};
const SETTLE_ALL: Settle = Settle { tag: u64::MAX, multiple: true, outcome: Outcome::Discard };

#[test]
fn shard_messages_come_back() {
    check_messages(&[
        ShardMessage::News(b"news"),
        ShardMessage::Forward(b""),
        ShardMessage::BatchHead(b"what they have in common"),
        ShardMessage::BatchItem { properties: b"reply", body: b"" },
        ShardMessage::BatchItem { properties: b"", body: b"body" },
        ShardMessage::Taken { news: u64::MAX, bytes: 7 },
        ShardMessage::SubscriberPace { publisher: ConnectionId(3), pace: Pace::Slow },
        ShardMessage::SubscriberPace { publisher: ConnectionId(2), pace: Pace::TooSlow },
        ShardMessage::SubscriberPace { publisher: ConnectionId(u32::MAX), pace: Pace::Drained },
        ShardMessage::Unheard { publisher: ConnectionId(1), subject: "a.b", reply: "_INBOX.1" },
        ShardMessage::Ended(Deletion::User("guest")),
        ShardMessage::Ended(Deletion::Vhost("/")),
        ShardMessage::Spent { user: "guest", messages: 3, bytes: u64::MAX },
        ShardMessage::ConnectionQuery { connection: ConnectionId(7), serial: 1 << 40 },
        ShardMessage::QueryResult { connection: ConnectionId(7), serial: 1 << 40 },
        ShardMessage::Sync,
        ShardMessage::ToHome(ToHome::Connect {
            connection: ConnectionId(7),
            user: "guest",
            vhost: "/",
        }),
        ShardMessage::ToHome(ToHome::Admit {
            connection: ConnectionId(7),
            serial: 1 << 40,
            user: "ann",
        }),
        ShardMessage::ToHome(ToHome::Left(ConnectionId(7))),
        ShardMessage::ToHome(ToHome::Ended),
        ShardMessage::ToHome(ToHome::Open(NAME)),
        ShardMessage::ToHome(ToHome::Publish(NAME.id, b"message")),
        ShardMessage::ToHome(ToHome::Settle(NAME.id, SETTLE_ALL)),
        ShardMessage::ToHome(ToHome::Request(NAME.id)),
        ShardMessage::ToHome(ToHome::Close(NAME.id)),
        ShardMessage::ToHome(ToHome::Disconnect(ConnectionId(7))),
        ShardMessage::ToHome(ToHome::Drained { connection: ConnectionId(7), bytes: 1 << 40 }),
    ]);
}

#[test]
fn shard_messages_from_home_come_back() {
    let (redelivered, messages_left, message) = (true, 4, &b"message"[..]);
    check_messages(&[
        ShardMessage::FromHome(FromHome::Deliver(
            NAME,
            DeliveryMessage { consumer: "ctag", tag: 3, redelivered, message },
        )),
        ShardMessage::FromHome(FromHome::GetAnswer(
            NAME,
            GetAnswerMessage { tag: 3, redelivered, messages_left, message },
        )),
        ShardMessage::FromHome(FromHome::Confirm(
            NAME,
            Confirm { number: 9, multiple: true, accepted: false },
        )),
        ShardMessage::FromHome(FromHome::Returned(NAME, b"message")),
        ShardMessage::FromHome(FromHome::Cancelled(NAME, "ctag")),
        ShardMessage::FromHome(FromHome::SessionLost(NAME, "s", SessionLoss::TakenOver)),
        ShardMessage::FromHome(FromHome::SessionLost(NAME, "", SessionLoss::Ended)),
        ShardMessage::FromHome(FromHome::Reply(NAME)),
        ShardMessage::FromHome(FromHome::Refused(NAME, None)),
        ShardMessage::FromHome(FromHome::Refused(NAME, Some(SETTLE_ALL))),
        ShardMessage::FromHome(FromHome::Admitted {
            connection: ConnectionId(7),
            serial: 9,
            is_admitted: true,
        }),
        ShardMessage::FromHome(FromHome::Stores(NAME)),
        ShardMessage::FromHome(FromHome::Outrun(NAME)),
        ShardMessage::FromHome(FromHome::Blocked(Some("full"))),
        ShardMessage::FromHome(FromHome::Blocked(None)),
        ShardMessage::FromHome(FromHome::Congested(true)),
        ShardMessage::FromHome(FromHome::Yield(true)),
    ]);
}

/// Shard messages are the same after they were written and read.
#[track_caller]
fn check_messages(shard_messages: &[ShardMessage<'_>]) {
    let mut batch = Vec::new();
    for shard_message in shard_messages {
        shard_message.write(&mut batch);
    }
    let read: Vec<_> = ShardMessages(&batch)
        .map(|shard_message| shard_message.map(|(shard_message, _)| shard_message))
        .collect();
    assert_eq!(read, shard_messages.iter().copied().map(Ok).collect::<Vec<_>>());
    let bytes: usize = ShardMessages(&batch)
        .map(|shard_message| shard_message.map_or(0, |(_, bytes)| bytes))
        .sum();
    assert_eq!(bytes, batch.len());
}

#[test]
fn payloads_of_a_row_come_alone_where_they_are_alone() {
    let cases = [
        (ShardMessage::BatchItem { properties: b"", body: b"body" }, Some(&b"body"[..])),
        (ShardMessage::BatchItem { properties: b"", body: b"" }, Some(b"")),
        (ShardMessage::BatchItem { properties: b"reply", body: b"body" }, None),
        (ShardMessage::BatchHead(b"body"), None),
        (ShardMessage::Sync, None),
    ];
    for (shard_message, expected) in cases {
        let mut batch = Vec::new();
        shard_message.write(&mut batch);
        let bytes = batch.len();
        ShardMessage::Sync.write(&mut batch);
        let mut shard_messages = ShardMessages(&batch);
        let expected = expected.map(|body| (body, bytes));
        assert_eq!(shard_messages.next_plain_item(), expected, "{shard_message:?}");
        let next = if expected.is_some() { ShardMessage::Sync } else { shard_message };
        assert_eq!(
            shard_messages.next().and_then(Result::ok).map(|(shard_message, _)| shard_message),
            Some(next)
        );
        for cut in 0..bytes {
            assert_eq!(
                ShardMessages(&batch[..cut]).next_plain_item(),
                None,
                "{shard_message:?} cut at {cut}"
            );
        }
    }
}

#[test]
fn what_cannot_be_read_ends_a_batch() {
    let mut batch = Vec::new();
    let message = ShardMessage::SubscriberPace { publisher: ConnectionId(3), pace: Pace::Slow };
    message.write(&mut batch);
    for cut in 1..batch.len() {
        let shard_messages: Vec<_> = ShardMessages(&batch[..cut]).collect();
        assert_eq!(shard_messages, [Err("a batch is malformed")], "{cut}");
    }
    assert_eq!(ShardMessages(&[99, 0, 0, 0, 0, 1]).count(), 1);
}
