//! Words there and back.

use super::*;
use crate::flow::slow_subscribers::Behind;
use angarium_engine::Outcome;

const NAME: SessionName = SessionName {
    id: ChannelId { connection: ConnectionId(7), number: 513 },
    opening: u32::MAX - 1,
};
const SETTLE_ALL: Settle = Settle { tag: u64::MAX, multiple: true, outcome: Outcome::Discard };

#[test]
fn words_come_back() {
    let (redelivered, messages_left, message) = (true, 4, &b"message"[..]);
    let words = [
        Word::News(b"news"),
        Word::Forward(b""),
        Word::Row(b"what they have in common"),
        Word::InRow { properties: b"reply", body: b"" },
        Word::InRow { properties: b"", body: b"body" },
        Word::Taken { news: u64::MAX, bytes: 7 },
        Word::Behind(ConnectionId(3), Some(Behind::Awaited { has_others: true })),
        Word::Behind(ConnectionId(2), Some(Behind::Far)),
        Word::Behind(ConnectionId(u32::MAX), None),
        Word::Forgotten(ConnectionId(0)),
        Word::Unheard { publisher: ConnectionId(1), subject: "a.b", reply: "_INBOX.1" },
        Word::Ended(Deletion::User("guest")),
        Word::Ended(Deletion::Vhost("/")),
        Word::Spent { user: "guest", messages: 3, bytes: u64::MAX },
        Word::Survey { connection: ConnectionId(7), serial: 1 << 40 },
        Word::Surveyed { connection: ConnectionId(7), serial: 1 << 40 },
        Word::Sync,
        Word::ToHome(ToHome::Connect { connection: ConnectionId(7), user: "guest", vhost: "/" }),
        Word::ToHome(ToHome::Admit { connection: ConnectionId(7), serial: 1 << 40, user: "ann" }),
        Word::ToHome(ToHome::Left(ConnectionId(7))),
        Word::ToHome(ToHome::Ended),
        Word::ToHome(ToHome::Open(NAME)),
        Word::ToHome(ToHome::Publish(NAME.id, b"message")),
        Word::ToHome(ToHome::Settle(NAME.id, SETTLE_ALL)),
        Word::ToHome(ToHome::Request(NAME.id)),
        Word::ToHome(ToHome::Close(NAME.id)),
        Word::ToHome(ToHome::Disconnect(ConnectionId(7))),
        Word::ToHome(ToHome::Drained { connection: ConnectionId(7), bytes: 1 << 40 }),
        Word::FromHome(FromHome::Deliver(
            NAME,
            Delivered { subscription: "ctag", tag: 3, redelivered, messages_left, message },
        )),
        Word::FromHome(FromHome::Confirm(
            NAME,
            Confirm { number: 9, multiple: true, accepted: false },
        )),
        Word::FromHome(FromHome::Returned(NAME, b"message")),
        Word::FromHome(FromHome::Cancelled(NAME, "ctag")),
        Word::FromHome(FromHome::Reply(NAME)),
        Word::FromHome(FromHome::Refused(NAME, None)),
        Word::FromHome(FromHome::Refused(NAME, Some(SETTLE_ALL))),
        Word::FromHome(FromHome::Admitted {
            connection: ConnectionId(7),
            serial: 9,
            is_admitted: true,
        }),
        Word::FromHome(FromHome::Stores(NAME)),
        Word::FromHome(FromHome::Outrun(NAME)),
        Word::FromHome(FromHome::Flood(NAME, true)),
        Word::FromHome(FromHome::Blocked(Some("full"))),
        Word::FromHome(FromHome::Blocked(None)),
        Word::FromHome(FromHome::Congested(true)),
        Word::FromHome(FromHome::Yield(true)),
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
fn payloads_of_a_row_come_alone_where_they_are_alone() {
    let cases = [
        (Word::InRow { properties: b"", body: b"body" }, Some(&b"body"[..])),
        (Word::InRow { properties: b"", body: b"" }, Some(b"")),
        (Word::InRow { properties: b"reply", body: b"body" }, None),
        (Word::Row(b"body"), None),
        (Word::Sync, None),
    ];
    for (word, expected) in cases {
        let mut parcel = Vec::new();
        word.write(&mut parcel);
        let bytes = parcel.len();
        Word::Sync.write(&mut parcel);
        let mut words = Words(&parcel);
        let expected = expected.map(|body| (body, bytes));
        assert_eq!(words.next_plain_in_row(), expected, "{word:?}");
        let next = if expected.is_some() { Word::Sync } else { word };
        assert_eq!(words.next().and_then(Result::ok).map(|(word, _)| word), Some(next));
        for cut in 0..bytes {
            assert_eq!(Words(&parcel[..cut]).next_plain_in_row(), None, "{word:?} cut at {cut}");
        }
    }
}

#[test]
fn what_cannot_be_read_ends_a_parcel() {
    let mut parcel = Vec::new();
    Word::Behind(ConnectionId(3), None).write(&mut parcel);
    for cut in 1..parcel.len() {
        let words: Vec<_> = Words(&parcel[..cut]).collect();
        assert_eq!(words, [Err("a parcel is malformed")], "{cut}");
    }
    assert_eq!(Words(&[99, 0, 0, 0, 0, 1]).count(), 1);
}
