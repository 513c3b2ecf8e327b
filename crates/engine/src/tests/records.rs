//! The bytes of records and snapshots: known ones stay readable, nonsense is refused.

use super::TestHost;
use crate::interface::message::NO_ANNOTATIONS;
use crate::kept::{LogCursor, LogPart};
use crate::queue::entry::{Entry, Fetch};
use crate::queue::stored::{Incoming, Stored};
use crate::selector::{Filter, ParseOptions};
use crate::storage::record::{
    BindingRecord, Numbers, Place, Record, Requeued, SessionRecord, SubscriptionRecord, message_of,
};
use crate::*;
use std::fmt::Write as _;
use std::time::Duration;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// The record's bytes are those, and mean that record.
fn golden(record: &Record<'_>, expect: &str) {
    let mut bytes = Vec::new();
    record.write(&mut bytes);
    assert_eq!(hex(&bytes), expect, "{record:?}");
    assert_eq!(&Record::parse(&bytes).unwrap(), record);
    for length in 0..bytes.len() {
        // A record cut short is an error or, where a message is its rest, another message.
        let _ = Record::parse(&bytes[..length]);
    }
}

fn blob() -> Vec<u8> {
    let incoming = Incoming {
        exchange: "x",
        routing_key: "key",
        also_to: &["cc"],
        content: Content {
            format: Format(1),
            properties: b"pp",
            body: b"body",
            shared: None,
            persistent: true,
            priority: 3,
            ttl: Some(Duration::from_micros(9)),
        },
        redelivered: false,
        annotations: &NO_ANNOTATIONS,
        sent: None,
        from: None,
    };
    let mut blob = Vec::new();
    incoming.encode(&mut blob);
    blob
}

#[test]
fn golden_messages() {
    let blob = blob();
    assert_eq!(
        hex(&blob),
        "010103010100030002000000040000000900000000000000786b657902006363 7070626f6479"
            .replace(' ', "")
    );
    let place = Place { queue: 1, seq: 2, expires: Time(3) };
    let places = "0101000000000000000200000000000000 0300000000000000".replace(' ', "");
    let rest = hex(&blob);
    golden(
        &Record::Published { places: vec![place], message: &blob },
        &format!("0301{places}{rest}"),
    );
    golden(&Record::Moved { places: vec![place], message: &blob }, &format!("0306{places}{rest}"));
    golden(&Record::Spooled { message: &blob }, &format!("0302{rest}"));
    golden(
        &Record::Delayed { number: 1, vhost: "/", due: Time(2), by: "u", message: &blob },
        &format!("03070100000000000000012f02000000000000000175{rest}"),
    );
    let mut record = Vec::new();
    Record::Published { places: vec![place, place], message: &blob }.write(&mut record);
    assert_eq!(message_of(&record), Ok(&blob[..]));
}

#[test]
fn golden_retained() {
    let blob = blob();
    let retained = Record::Retained { vhost: "/", number: 1, expires: Time(2), message: &blob };
    golden(&retained, &format!("032b012f01000000000000000200000000000000{}", hex(&blob)));
    golden(
        &Record::RetainedGone { vhost: "/", subject: "a.b", number: 3 },
        "032c012f03612e620300000000000000",
    );
    let mut record = Vec::new();
    retained.write(&mut record);
    assert_eq!(message_of(&record), Ok(&blob[..]));
}

#[test]
fn golden_changes() {
    golden(&Record::Nothing, "0300");
    golden(
        &Record::Settled { queue: 1, ranges: vec![2..=2, 300..=310] },
        "03030100000000000000020200ac020a",
    );
    golden(
        &Record::Purged { queue: 1, before: 9, kept: vec![2..=4] },
        "030401000000000000000900000000000000010202",
    );
    let entry = Entry {
        seq: 5,
        position: Position(7),
        expires: Time(u64::MAX),
        message: None,
        bytes: 4,
        requeues: 0,
        durable: true,
        redelivered: false,
        fetch: Fetch::Idle,
        lane: 0,
        mark: false,
    };
    let next = Entry {
        seq: 6,
        position: Position(200),
        expires: Time(1),
        requeues: 2,
        redelivered: true,
        ..entry.clone()
    };
    let apart = Record::Apart { queue: 1, lane: 2, entries: vec![entry.clone()] };
    golden(&apart, "030f0100000000000000020101050704");
    let (queue, seq, session, returns, to) = (1, 2, 3, true, 7);
    let entries = vec![entry.clone()];
    golden(
        &Record::HandedOver { queue, seq, session, returns, to, entries },
        "033f 0100000000000000 0200000000000000 0300000000000000 01 0700000000000000 0101050704"
            .replace(' ', "")
            .as_str(),
    );
    golden(
        &Record::Page { queue: 1, lane: 2, durable: true, entries: vec![entry, next] },
        "030501000000000000000201020105070 40f01c10104010000000000000002".replace(' ', "").as_str(),
    );
    let messages = vec![
        Requeued { queue: 1, seq: 300, requeues: 2 },
        Requeued { queue: 1, seq: 2, requeues: u32::MAX },
    ];
    golden(&Record::Requeued { messages }, "03090201ac02020000000102ffffffff");
    golden(
        &Record::Annotated { queue: 1, seq: 2, changed: b"added" },
        "030a010000000000000002000000000000006164646564",
    );
    golden(&Record::DelayEnded { number: 1 }, "03080100000000000000");
    golden(&Record::QueueDeleted { number: 1 }, "03110100000000000000");
}

#[test]
fn golden_topology() {
    let options = QueueOptions {
        durable: true,
        message_ttl: Some(Duration::from_millis(5)),
        length_max: Some(6),
        dead_letter_exchange: Some("d".to_owned()),
        ..QueueOptions::default()
    };
    golden(
        &Record::QueueDeclared { number: 1, vhost: "/", name: "q", options, by: "u" },
        "03100100000000000000012f0171010003020205000000000000000402060000000000000007040164 000175"
            .replace(' ', "")
            .as_str(),
    );
    golden(&Record::ExchangeDeleted { vhost: "/", name: "x" }, "0313012f0178");
    let binding = BindingRecord {
        vhost: "/",
        source: "x",
        target: BindingTarget::Queue("q".to_owned()),
        key: "k",
        arguments: Arguments::from([("a".to_owned(), Value::Int(1))]),
        filter: Some(Filter::parse("a = 1", &ParseOptions::default()).unwrap()),
        not_from: Some("c"),
    };
    let bytes = "012f0178000171016b01016102 0100000000000000 01 00 0561203d2031 01 0163";
    let bytes = bytes.replace(' ', "");
    golden(&Record::Bound { binding: binding.clone(), by: "u" }, &format!("0314{bytes}0175"));
    golden(&Record::Unbound(binding), &format!("0315{bytes}"));
    golden(&Record::VhostCreated { name: "v" }, "03160176");
    golden(&Record::VhostDeleted { name: "v" }, "03170176");
    golden(
        &Record::UserPut { name: "u", password_hash: "h", administrator: true },
        "03180175016801",
    );
    golden(&Record::UserDeleted { name: "u" }, "03190175");
    let (user, vhost) = ("u", "/");
    let permissions = PermissionListing { user, vhost, configure: "c", write: "w", read: "r" };
    golden(&Record::PermissionsSet(permissions), "031a0175012f016301770172");
    golden(&Record::PermissionsCleared { user, vhost }, "031b0175012f");
    let rules = |allow: &[&str], deny: &[&str]| SubjectRules {
        allow: allow.iter().map(|&pattern| pattern.to_owned()).collect(),
        deny: deny.iter().map(|&pattern| pattern.to_owned()).collect(),
    };
    let subjects = SubjectPermissions {
        publish: rules(&["a.>"], &["a.b"]),
        subscribe: rules(&[], &["c"]),
        responses: Some(Responses { messages: 1, within: Duration::from_secs(120) }),
    };
    golden(
        &Record::SubjectPermissionsSet { user, vhost, subjects },
        "031c0175012f0103612e3e0103612e62000101630101000000000e270700000000",
    );
    let rules = ExchangeRules { publish: rules(&["a.>"], &[]), subscribe: rules(&[], &["b"]) };
    golden(
        &Record::ExchangeRulesSet { user, vhost, exchange: "e", rules },
        "03220175012f01650103612e3e0000010162",
    );
    let quota = Quota::default().with_slow_consumer_policy(SlowConsumerPolicy::DropOldest);
    let quota = quota.with(Bound::Connections, 2).with(Bound::ConnectionBytes, 256);
    golden(
        &Record::QuotaSet { user, quota },
        "031d017502070102000000000000000000000000010001000000000000",
    );
    // Bounds that came later are there where they say something.
    let quota = Quota::default().with(Bound::Subscriptions, 3);
    golden(&Record::QuotaSet { user, quota }, "031d0175000800000000000000010300000000000000");
}

#[test]
fn golden_policies() {
    let vhost = "/";
    let policy = super::policy("policy p a.* about=queues priority=3 max-length=2");
    golden(
        &Record::PolicySet { vhost, operator: true, name: "p", policy },
        "0350012f010170 03612e2a 01 0300000000000000 01 0a6d61782d6c656e677468 02 0200000000000000"
            .replace(' ', "")
            .as_str(),
    );
    golden(&Record::PolicyCleared { vhost, operator: false, name: "p" }, "0351012f000170");
}

#[test]
fn golden_subscriptions() {
    let own = SubscriptionRecord {
        owner: Some("c"),
        name: "s",
        shared: false,
        source: "x",
        keys: vec!["k".to_owned(), "l".to_owned()],
        filter: Filter::parse("a > 1", &ParseOptions::default()).ok(),
        not_from: Some("me"),
    };
    golden(
        &Record::Subscribed { queue: 1, subscription: own.clone() },
        "0324010000000000000001016301730001780201 6b016c010005 61203e2031 01026d65"
            .replace(' ', "")
            .as_str(),
    );
    let (filter, not_from, keys) = (None, None, Vec::new());
    let global = SubscriptionRecord { owner: None, shared: true, keys, filter, not_from, ..own };
    golden(
        &Record::Subscribed { queue: 1, subscription: global },
        "032401000000000000000001730101 78000000".replace(' ', "").as_str(),
    );
}

/// Where a session is in a log, and that in bytes.
fn cursor() -> (LogCursor, String) {
    let part = LogPart { log: 1, from: 2, until: u64::MAX, dropped: 0 };
    let bytes = "01 0300000000000000 01 01000000000000000200000000000000ffffffffffffffff";
    (LogCursor { at: 3, parts: vec![part] }, bytes.replace(' ', ""))
}

#[test]
fn golden_sessions() {
    let held = SessionRecord {
        number: 1,
        vhost: "/",
        name: "s",
        user: "u",
        expiry: SessionExpiry::After(Duration::from_micros(2)),
        detached_at: None,
        state: b"st",
        queue: 0,
        attributes: Vec::new(),
        received: Numbers(Vec::new()),
        released: Numbers(Vec::new()),
        shared: Numbers(Vec::new()),
        handed: Vec::new(),
        will: None,
        cursor: None,
    };
    golden(
        &Record::SessionPut(held.clone()),
        "031e0100000000000000012f0173017501020000000000000000027374 0000000000000000 0000000000 00 00"
            .replace(' ', "")
            .as_str(),
    );
    let expiry = SessionExpiry::Never;
    let detached = SessionRecord { expiry, detached_at: Some(Time(3)), state: b"", ..held.clone() };
    golden(
        &Record::SessionPut(detached),
        "031e0100000000000000012f017301750201030000000000000000 0000000000000000 0000000000 00 00"
            .replace(' ', "")
            .as_str(),
    );
    let will = blob();
    let (cursor, cursor_bytes) = cursor();
    let full = SessionRecord {
        queue: 4,
        attributes: vec![(b"k", b"v")],
        received: Numbers(vec![1, 300]),
        released: Numbers(vec![5]),
        shared: Numbers(vec![6]),
        handed: vec![(7, 6, true)],
        will: Some((Duration::from_micros(7), true, &will)),
        cursor: Some(cursor),
        ..held
    };
    golden(
        &Record::SessionPut(full),
        &format!(
            "031e0100000000000000012f0173017501020000000000000000027374{}{}{cursor_bytes}",
            "0400000000000000 01016b0176 0201ac02 0105 0106 010700000000000000060000000000000001 \
             01070000000000000001"
                .replace(' ', ""),
            format_args!("{:02x}{}", will.len(), hex(&will))
        ),
    );
    golden(
        &Record::SessionDetached { number: 1, at: Time(3), expiry },
        "031f0100000000000000030000000000000002",
    );
    let expiry = SessionExpiry::AtDetach;
    golden(
        &Record::SessionDetached { number: 1, at: Time(3), expiry },
        "031f0100000000000000030000000000000000",
    );
    golden(&Record::SessionEnded { number: 1 }, "03200100000000000000");
}

#[test]
fn golden_logs() {
    let (cursor, cursor_bytes) = cursor();
    golden(
        &Record::CursorSet { session: 1, cursor: Some(cursor) },
        &format!("03460100000000000000{cursor_bytes}"),
    );
    golden(
        &Record::Drained { session: 1, at: 2, queue: 3, entries: Vec::new() },
        "034701000000000000000200000000000000030000000000000000",
    );
    golden(&Record::Trimmed { log: 1, before: 2 }, "034801000000000000000200000000000000");
}

#[test]
fn golden_numbers_and_wills_of_sessions() {
    let session = 1;
    golden(
        &Record::SessionChanged {
            number: 1,
            expiry: SessionExpiry::Never,
            state: Some(b"st"),
            put: vec![(b"k", b"v")],
            removed: vec![b"r"],
        },
        "03230100000000000000 02 01027374 01016b0176 010172".replace(' ', "").as_str(),
    );
    golden(&Record::Received { session, number: 2 }, "032501000000000000000200000000000000");
    golden(
        &Record::ReceivedForgotten { session, number: 2 },
        "032601000000000000000200000000000000",
    );
    golden(
        &Record::Released { session, queue: 3, place: 2 },
        "0327010000000000000003000000000000000200000000000000",
    );
    golden(
        &Record::ReleasedForgotten { session, place: 2 },
        "032801000000000000000200000000000000",
    );
    let delay = Duration::from_micros(5);
    let message = &blob();
    golden(
        &Record::WillSet { session, delay, retain: true, message },
        &format!("03290100000000000000050000000000000001{}", hex(message)),
    );
    golden(&Record::WillGone { session }, "032a0100000000000000");
    golden(&Record::SharedQueue { queue: 3, group: "g" }, "033c03000000000000000167");
    golden(&Record::SharedJoined { session, queue: 3 }, "033d01000000000000000300000000000000");
    golden(&Record::SharedLeft { session, queue: 3 }, "033e01000000000000000300000000000000");
    let places = vec![Place { queue: 3, seq: 4, expires: Time(5) }];
    let once = Record::PublishedOnce { session, number: 2, places, message };
    let place = "03000000000000000400000000000000 0500000000000000".replace(' ', "");
    golden(&once, &format!("030b0100000000000000020000000000000001{place}{}", hex(message)));
    let mut record = Vec::new();
    once.write(&mut record);
    assert_eq!(message_of(&record), Ok(&message[..]));
}

#[test]
fn golden_snapshot_of_sessions() {
    let mut host = TestHost::new();
    host.client("c");
    for line in ["c claim s recorded expiry=2 state=st", "c claim t", "c claim u recorded expiry=-"]
    {
        host.run(line);
        host.run("flush");
    }
    host.run("c detach u");
    let mut whole = Vec::new();
    host.engine.snapshot(&mut whole);
    // The number of the next session, the two that are recorded, the end.
    let sessions = "0400000000000000\
        030100000000000000012f017303616e6e01d007000000000000000273740000000000000000\
        00000000000000030300000000000000012f017503616e6e020100ca9a3b000000000000000000000000000000000000\
        000000";
    assert!(hex(&whole).ends_with(sessions), "{}", hex(&whole));
    host.engine.begin_snapshot();
    let pieces = host.engine.take_snapshot().unwrap();
    assert_eq!(pieces.concat(), whole);
    check_damaged(&whole);
}

#[test]
fn nonsense_is_refused() {
    for bytes in [&[][..], &[3], &[2, 0], &[3, 99], &[3, 0, 0], &[3, 3, 1], &[3, 1, 255, 255]] {
        assert!(Record::parse(bytes).is_err(), "{bytes:?}");
    }
    for length in 0..blob().len() {
        assert!(Stored::parse(&blob()[..length]).is_err(), "{length}");
    }
    assert!(message_of(&[3, 3]).is_err());
}

#[test]
fn a_damaged_snapshot_is_refused_and_never_panics() {
    let mut host = TestHost::new();
    for line in [
        "a queue q durable priorities=2 dlx=x",
        "a exchange x direct durable",
        "a bind x q k",
        "a publish - q 1 persistent",
        "a user me hash",
    ] {
        host.run(line);
    }
    let mut snapshot = Vec::new();
    host.engine.snapshot(&mut snapshot);
    check_damaged(&snapshot);
}

/// A little of all that snapshots hold.
fn kept() -> TestHost {
    let mut host = TestHost::new();
    for line in [
        "a queue q durable priorities=2 dlx=x",
        "a exchange x direct durable delaying",
        "a bind x q k",
        "a publish - q 1 persistent",
        "a publish x k 2 persistent delay=100",
        "a user me hash",
        "a quota me connections=3",
        "a open s amq.topic k owner=c durable shared",
        "a policy p x max-length=2",
        "restart",
    ] {
        host.run(line);
    }
    host
}

/// That in bytes.
const KEPT: &str = "\
    1203000000000000000100000000000000000000000000000001012f0700000001000000000a616d712e646972656374\
    000001000000000a616d712e66616e6f7574010001000000000b616d712e686561646572730300010000000009616d71\
    2e6d617463680300010000000009616d712e746f70696302000100000000017800010100000000010001700178000000\
    000000000000010a6d61782d6c656e67746802020000000000000001026d650468617368000002010000000000000001\
    2f0171010002070401780902020000000000000000000200000000000000030103019880808010010000000000000000\
    0000000200000000000000012f0f616d712e64757261626c652d632f7301000000000100000000000000010000000000\
    0002012f0178000171016b00000000012f09616d712e746f706963000f616d712e64757261626c652d632f73016b0000\
    000001020000000000000001016301730109616d712e746f70696301016b000000010000000000000000012fa0509c3b\
    000000002000000001000000250000000000000001026d650007010300000000000000000000000000000100ca9a3b00\
    000000010000000000000002010000000000000002000000000000000200000000000000010000000000000001000000\
    0000000000";

#[test]
fn golden_snapshot() {
    let of = |host: &TestHost| {
        let mut snapshot = Vec::new();
        host.engine.snapshot(&mut snapshot);
        snapshot
    };
    let golden = of(&kept());
    assert_eq!(hex(&golden), KEPT);
    let mut again = TestHost::new();
    again.engine.restore(&golden).unwrap();
    assert_eq!(of(&again), golden);
    let mut older = golden;
    older[0] -= 1;
    let why = TestHost::new().engine.restore(&older).unwrap_err();
    assert!(why.starts_with("the store has format 17; this program reads format 18"), "{why}");
}

#[test]
fn golden_parted_snapshot() {
    let mut host = kept();
    let whole = {
        let mut snapshot = Vec::new();
        host.engine.snapshot(&mut snapshot);
        snapshot
    };
    host.engine.begin_snapshot();
    let pieces = host.engine.take_snapshot().unwrap();
    let first = hex(&pieces.concat());
    // What is held back, then the run of what is in lane 0 of queue number 1, then the end.
    let apart = "020000000000000000012fa0509c3b000000002000000001000000250000000001010001030198808080100100";
    assert!(first.ends_with(apart), "{first}");
    let mut again = TestHost::new();
    again.engine.restore(&pieces.concat()).unwrap();
    let mut snapshot = Vec::new();
    again.engine.snapshot(&mut snapshot);
    assert_eq!(snapshot, whole);
}

/// A snapshot is restored whole, refused cut short, and does no harm where any of its bytes is another.
#[track_caller]
fn check_damaged(snapshot: &[u8]) {
    let restore = |bytes: &[u8]| TestHost::new().engine.restore(bytes);
    assert_eq!(restore(snapshot), Ok(()));
    for length in 0..snapshot.len() {
        assert!(restore(&snapshot[..length]).is_err(), "{length}");
    }
    for index in 0..snapshot.len() {
        for change in [1, 0x80, 0xff] {
            let mut damaged = snapshot.to_vec();
            damaged[index] ^= change;
            let _ = restore(&damaged);
        }
    }
}

#[test]
fn a_damaged_parted_snapshot_is_refused_and_never_panics() {
    let mut host = kept();
    host.run("b get q");
    host.engine.begin_snapshot();
    let snapshot = host.engine.take_snapshot().unwrap().concat();
    check_damaged(&snapshot);
}
