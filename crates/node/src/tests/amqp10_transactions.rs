//! Transactions and drains of clients of AMQP 1.0 at any shard: what they published and settled is there once
//! they are committed, all of it or nothing, whatever happens to connections and to the broker.

use super::amqp10::{Client, Said};
use super::host::Host;
use angarium_protocol::amqp10::codec::{
    Accepted, AnyTarget, Attach, Coordinator, Declare, DeliveryState, Discharge, Disposition,
    Field, Flow, Header, Outcome, Role, SectionKind, Source, TransactionalState, Transfer,
    put_section, write_frame,
};

/// The handles of a client's links: to queue `out`, from queue `in`, to the coordinator.
const OUT: u32 = 0;
const IN: u32 = 1;
const COORDINATOR: u32 = 9;

/// A broker with a message in queue `in`, and a client that has got it.
fn prepared(shards: usize) -> (Host, Client) {
    let mut host = Host::new(shards);
    let mut client = attached(&mut host, shards - 1);
    client.sends_to(&mut host, 5, "in");
    send(&mut client, &mut host, 5, None);
    client.receives_from(&mut host, IN, "in", 1);
    assert!(client.said(&mut host).contains(&Said::Delivered(IN)));
    (host, client)
}

fn attached(host: &mut Host, shard: usize) -> Client {
    let client = Client::open(host, shard);
    client.sends_to(host, OUT, "out");
    let attach = Attach {
        role: Role::Sender,
        source: Some(Source::default()),
        target: Some(AnyTarget::Coordinator(Coordinator::default())),
        initial_delivery_count: Some(0),
        ..Attach::default()
    };
    client.attach(host, COORDINATOR, attach);
    client
}

fn state<'a>(txn_id: &'a [u8], outcome: Option<Outcome<'static>>) -> DeliveryState<'a> {
    DeliveryState::TransactionalState(TransactionalState { txn_id, outcome })
}

/// Sends a persistent message, in a transaction.
fn send(client: &mut Client, host: &mut Host, handle: u32, transaction: Option<&[u8]>) {
    let mut message = Vec::new();
    Header { durable: true, ..Header::default() }.write(&mut message);
    put_section(&mut message, SectionKind::Data, &&b"body"[..]);
    let state = transaction.map(|id| state(id, None));
    write(client, host, &Transfer { state, ..client.transfer(handle) }, &message);
}

fn coordinate<'v>(client: &mut Client, host: &mut Host, request: &impl Field<'v>) {
    let mut message = Vec::new();
    put_section(&mut message, SectionKind::Value, request);
    write(client, host, &client.transfer(COORDINATOR), &message);
}

fn write(client: &mut Client, host: &mut Host, transfer: &Transfer<'_>, message: &[u8]) {
    let mut bytes = Vec::new();
    write_frame(transfer, 0, message, &mut bytes);
    client.next_delivery += 1;
    host.send_bytes(client.number, &bytes);
    host.settle_down();
}

/// Begins a transaction; returns its id.
fn begin(client: &mut Client, host: &mut Host) -> Vec<u8> {
    coordinate(client, host, &Declare::default());
    let declared = |said| match said {
        Said::Declared(id) => Some(id),
        _ => None,
    };
    client.said(host).into_iter().find_map(declared).expect("it has begun")
}

/// Begins a transaction that publishes a message and settles the one that the client has got.
fn underway(client: &mut Client, host: &mut Host) -> Vec<u8> {
    let id = begin(client, host);
    send(client, host, OUT, Some(&id));
    let outcome = Some(Outcome::Accepted(Accepted {}));
    let settle = Disposition {
        role: Role::Receiver,
        first: 0,
        last: None,
        settled: true,
        state: Some(state(&id, outcome)),
        batchable: false,
    };
    client.send(host, &settle);
    client.said(host);
    id
}

/// Asks for the end of a transaction; says whether it was answered.
fn end(client: &mut Client, host: &mut Host, txn_id: &[u8], fail: bool) -> bool {
    let number = client.next_delivery;
    coordinate(client, host, &Discharge { txn_id, fail });
    client.said(host).contains(&Said::Accepted(number))
}

/// How many messages are ready in the queues `in` and `out`.
fn ready(host: &mut Host) -> (u32, u32) {
    let looks = host.client_on(0);
    (host.count(looks, "in"), host.count(looks, "out"))
}

#[test]
fn a_commit_publishes_and_settles_and_a_rollback_neither() {
    for shards in [1, 3] {
        for (commits, after) in [(true, (0, 1)), (false, (1, 0))] {
            let (mut host, mut client) = prepared(shards);
            let id = underway(&mut client, &mut host);
            assert_eq!(ready(&mut host), (0, 0), "{shards}: before its end");
            assert!(end(&mut client, &mut host, &id, !commits), "{shards}");
            assert_eq!(ready(&mut host), after, "{shards} {commits}");
            // What was rolled back goes to the next consumer.
            let other = Client::open(&mut host, 0);
            other.receives_from(&mut host, IN, "in", 10);
            let got = other.said(&mut host).contains(&Said::Delivered(IN));
            assert_eq!(got, !commits, "{shards}");
            host.crash();
            let left = if commits { (0, 1) } else { (1, 0) };
            assert_eq!(ready(&mut host), left, "{shards} {commits} after a crash");
        }
    }
}

#[test]
fn a_connection_that_is_lost_rolls_back() {
    for shards in [1, 3] {
        let (mut host, mut client) = prepared(shards);
        underway(&mut client, &mut host);
        let looks = host.client_on(0);
        let (slot, now) = (host.slot(client.number), host.now);
        host.nodes[shards - 1].disconnected(now, slot);
        host.settle_down();
        let left = (host.count(looks, "in"), host.count(looks, "out"));
        assert_eq!(left, (1, 0), "{shards}");
    }
}

#[test]
fn a_commit_is_answered_once_it_is_flushed_and_a_crash_leaves_all_or_nothing() {
    for shards in [1, 3] {
        for flushes in [false, true] {
            let (mut host, mut client) = prepared(shards);
            let id = underway(&mut client, &mut host);
            host.holds_jobs = true;
            assert!(!end(&mut client, &mut host, &id, false), "{shards}: it is not flushed");
            let number = client.next_delivery - 1;
            if flushes {
                host.holds_jobs = false;
                assert!(client.said(&mut host).contains(&Said::Accepted(number)), "{shards}");
            }
            host.crash();
            host.holds_jobs = false;
            let expected = if flushes { (0, 1) } else { (1, 0) };
            assert_eq!(ready(&mut host), expected, "{shards} {flushes}");
        }
    }
}

#[test]
fn a_drain_is_answered_after_what_is_there_whichever_shard_asks() {
    for shards in [1, 3] {
        let mut host = Host::new(shards);
        let mut client = attached(&mut host, shards - 1);
        (0..3).for_each(|_| send(&mut client, &mut host, OUT, None));
        let reader = Client::open(&mut host, shards - 1);
        reader.receives_from(&mut host, IN, "out", 1);
        assert_eq!(reader.said(&mut host), [Said::Delivered(IN)], "{shards}");
        let drain = |count, credit| Flow {
            next_incoming_id: Some(0),
            incoming_window: 10_000,
            outgoing_window: 10_000,
            handle: Some(IN),
            delivery_count: Some(count),
            link_credit: Some(credit),
            drain: true,
            ..Flow::default()
        };
        reader.send(&mut host, &drain(1, 10));
        let said = reader.said(&mut host);
        let expected = [Said::Delivered(IN), Said::Delivered(IN), Said::Credit(IN, 0)];
        assert_eq!(said, expected, "{shards}");
        // The credit is used up by that: what comes now waits.
        send(&mut client, &mut host, OUT, None);
        assert_eq!(reader.said(&mut host), [], "{shards}");
    }
}
