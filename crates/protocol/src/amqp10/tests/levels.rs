//! At which level the broker reports each error: of the delivery, the link, the session or the connection.
//! What is above that level goes on.

use super::client::{Client, begin, closing, credit, data, receiver, sender, settled, transfer};
use crate::amqp10::codec::{
    ACCEPTED, AnyTarget, Attach, Begin, Coordinator, DeliveryState, DistributionMode, End, Field,
    Flow, Open, OwnedValue, Properties, Source, Target, TransactionalState, Transfer,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Delivery,
    Link,
    Session,
    Connection,
}
use Level::{Connection, Delivery, Link, Session};

/// An error: what the peer does on session 0, which has a sender to queue `q` as link 0 and a receiver as
/// link 1, and what it gets.
struct Case {
    what: &'static str,
    level: Level,
    condition: &'static str,
    act: fn(&mut Client),
}

const fn case(
    what: &'static str,
    level: Level,
    condition: &'static str,
    act: fn(&mut Client),
) -> Case {
    Case { what, level, condition, act }
}

fn within(txn_id: &[u8]) -> Transfer<'_> {
    let state = DeliveryState::TransactionalState(TransactionalState { txn_id, outcome: None });
    Transfer { state: Some(state), ..transfer(0, 0) }
}

const CASES: &[Case] = &[
    case("a message that is none", Delivery, "amqp:decode-error", |client| {
        client.send_with(0, &transfer(0, 0), b"nonsense");
    }),
    case("a message to nobody", Delivery, "amqp:not-found", |client| {
        let target = Some(AnyTarget::Target(Target::default()));
        client.send(0, &Attach { name: "relay", target, ..sender(2, "") });
        let mut message = Vec::new();
        let to = Some("/queues/none");
        Properties { to, ..Properties::default() }.write(&mut message);
        client.send_with(0, &transfer(2, 0), &[message, data("m")].concat());
    }),
    case("a request that is none", Delivery, "amqp:invalid-field", |client| {
        let target = Some(AnyTarget::Coordinator(Coordinator::default()));
        client.send(0, &Attach { name: "c", target, ..sender(2, "") });
        client.send_with(0, &transfer(2, 0), &data("no request"));
    }),
    case("a source without an address", Link, "amqp:invalid-field", |client| {
        client.send(0, &Attach { name: "n", source: Some(Source::default()), ..receiver(2, "") });
    }),
    case("an exchange that there is not", Link, "amqp:not-found", |client| {
        client.send(0, &Attach { name: "n", ..sender(2, "/exchanges/none") });
    }),
    case("no target", Link, "amqp:invalid-field", |client| {
        client.send(0, &Attach { name: "n", target: None, ..sender(2, "q") });
    }),
    case("a selector that is none", Link, "amqp:invalid-field", |client| {
        // A map of one entry, whose value is described.
        let filter = [
            &[0xc1, 51, 2, 0xa3, 3][..],
            b"jms\x00\xa3\x21apache.org:selector-filter:string",
            b"\xa1\x07color =",
        ];
        let filter = OwnedValue::decode(&filter.concat()).expect("a map");
        let source = Source {
            address: Some("q"),
            distribution_mode: Some(DistributionMode::Copy),
            filter: Some(filter.as_map()),
            ..Source::default()
        };
        client.send(0, &Attach { name: "n", source: Some(source), ..receiver(2, "q") });
    }),
    case("a transfer without a delivery-id", Link, "amqp:invalid-field", |client| {
        client.send_with(0, &Transfer { delivery_id: None, ..transfer(0, 0) }, &data("m"));
    }),
    case("a transaction that there is not", Link, "amqp:transaction:unknown-id", |client| {
        client.send_with(0, &within(b"none"), &data("m"));
    }),
    case("two deliveries at once on a link", Link, "amqp:illegal-state", |client| {
        client.send_with(0, &Transfer { more: true, ..transfer(0, 0) }, &data("m"));
        client.send_with(0, &transfer(0, 1), &data("m"));
    }),
    case("a link that is not there", Session, "amqp:session:unattached-handle", |client| {
        client.send_with(0, &transfer(9, 0), &data("m"));
    }),
    case("a flow for one", Session, "amqp:session:unattached-handle", |client| {
        client.send(0, &credit(9, 0, 1));
    }),
    case("a detach of one", Session, "amqp:session:unattached-handle", |client| {
        client.send(0, &closing(9));
    }),
    case("a handle that is in use", Session, "amqp:session:handle-in-use", |client| {
        client.send(0, &Attach { name: "n", ..sender(0, "q") });
    }),
    case("a transfer against the link", Session, "amqp:illegal-state", |client| {
        client.send_with(0, &transfer(1, 0), &data("m"));
    }),
    case("a channel without a session", Connection, "amqp:not-allowed", |client| {
        client.send(7, &settled(0, 0, ACCEPTED));
    }),
    case("an end of none", Connection, "amqp:not-allowed", |client| {
        client.send(7, &End::default());
    }),
    case("a session that is there", Connection, "amqp:not-allowed", |client| {
        client.send(0, &begin(100));
    }),
    case("a second open", Connection, "amqp:not-allowed", |client| {
        client.send(0, &Open { container_id: "again", ..Open::default() });
    }),
    case("a handle beyond the limit", Connection, "amqp:connection:framing-error", |client| {
        client.send(0, &Attach { name: "n", ..sender(5_000, "q") });
    }),
    case("a channel beyond the limit", Connection, "amqp:connection:framing-error", |client| {
        client.send(60_000, &Begin::default());
    }),
    case("a frame that is none", Connection, "amqp:connection:framing-error", |client| {
        client.raw(&[0, 0, 0, 4, 2, 0, 0, 0]);
    }),
    case("a performative that is none", Connection, "amqp:not-implemented", |client| {
        client.raw(&[0, 0, 0, 12, 2, 0, 0, 0, 0, 0x53, 0x99, 0x45]);
    }),
    case("an attach without fields", Connection, "amqp:invalid-field", |client| {
        client.raw(&[0, 0, 0, 12, 2, 0, 0, 0, 0, 0x53, 0x12, 0x45]);
    }),
];

/// The level of a line that tells an error.
fn level(line: &str) -> Option<Level> {
    let word = line.split(' ').nth(1)?;
    match word {
        "disposition" if line.contains("rejected") => Some(Delivery),
        "detach" => Some(Link),
        "end" => Some(Session),
        "close" => Some(Connection),
        _ => None,
    }
}

/// What is wrong with how a case ends.
fn judge(case: &Case) -> Result<(), String> {
    let mut client = Client::open();
    client.send(0, &sender(0, "q"));
    client.send(0, &receiver(1, "q"));
    client.send(0, &Attach { name: "other", ..sender(5, "other") });
    client.send(1, &begin(100));
    client.lines();
    (case.act)(&mut client);
    let lines = client.lines();
    let told = lines.iter().filter_map(|line| level(line)).max();
    let line = lines.iter().find(|line| level(line) == told && told.is_some());
    let condition = format!("{}: ", case.condition);
    if told != Some(case.level) || !line.is_some_and(|line| line.contains(&condition)) {
        return Err(format!("{lines:#?}"));
    }
    if case.level < Session {
        client.send_with(0, &transfer(5, 90), &data("goes on"));
        let lines = client.lines();
        if lines != ["0 disposition receiver 90 settled accepted"] {
            return Err(format!("the session does not go on: {lines:#?}"));
        }
    }
    if case.level < Connection {
        client.send(1, &Flow { echo: true, handle: None, ..credit(0, 0, 0) });
        let lines = client.lines();
        if !lines.iter().any(|line| line.starts_with("1 flow")) {
            return Err(format!("the connection does not go on: {lines:#?}"));
        }
    }
    Ok(())
}

#[test]
fn errors_end_no_more_than_they_have_to() {
    let wrong = |case: &Case| judge(case).err().map(|what| format!("{}: {what}", case.what));
    let wrong: Vec<String> = CASES.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
