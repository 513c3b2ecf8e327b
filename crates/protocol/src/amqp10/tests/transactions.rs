//! Transactions by the coordinator, delays, and what cannot be routed.

use super::client::{Client, closing, credit, data, frame, receiver, sender, settled, transfer};
use crate::amqp10::codec::{
    Accepted, AnyTarget, Attach, Coordinator, Declare, DeliveryState, Discharge, Disposition,
    Field, Header, Outcome, SectionKind, Symbol, Target, TransactionalState, Transfer,
    put_map_section, put_section,
};
use std::time::Duration;

/// A client with a link to the coordinator (handle 0) and a sender to queue `q` (handle 1).
fn client() -> Client {
    let mut client = Client::open();
    let target = Some(AnyTarget::Coordinator(Coordinator::default()));
    client.send(0, &Attach { name: "coordinator", target, ..sender(0, "") });
    client.send(0, &sender(1, "q"));
    client.lines();
    client
}

fn coordinate<'v>(client: &mut Client, id: u32, request: &impl Field<'v>) {
    let mut message = Vec::new();
    put_section(&mut message, SectionKind::Value, request);
    client.send_with(0, &transfer(0, id), &message);
}

/// Begins a transaction; returns its id.
fn declare(client: &mut Client, id: u32) -> Vec<u8> {
    coordinate(client, id, &Declare::default());
    let lines = client.lines();
    let line = lines.iter().find(|line| line.contains("Declared")).expect("it is declared");
    let (_, list) = line.split_once("txn_id: [").unwrap();
    list.split(']').next().unwrap().split(", ").map(|octet| octet.parse().unwrap()).collect()
}

fn discharge(client: &mut Client, id: u32, txn_id: &[u8], fail: bool) {
    coordinate(client, id, &Discharge { txn_id, fail });
}

fn within(txn_id: &[u8]) -> Option<DeliveryState<'_>> {
    Some(DeliveryState::TransactionalState(TransactionalState { txn_id, outcome: None }))
}

fn accepted_within(txn_id: &[u8]) -> DeliveryState<'_> {
    let outcome = Some(Outcome::Accepted(Accepted {}));
    DeliveryState::TransactionalState(TransactionalState { txn_id, outcome })
}

/// The bodies of what queue `q` has.
fn ready(client: &mut Client) -> Vec<String> {
    client.send(0, &Attach { name: "look", ..receiver(9, "q") });
    client.send(0, &credit(9, 0, 100));
    let lines = client.lines();
    client.send(0, &closing(9));
    client.lines();
    let transfers = lines.iter().filter(|line| line.contains("transfer"));
    transfers.map(|line| line.split('"').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn messages_of_a_transaction_are_there_once_it_is_committed() {
    let mut client = client();
    let id = declare(&mut client, 0);
    let part = Transfer { state: within(&id), ..transfer(1, 1) };
    client.send_with(0, &part, &data("in"));
    client.send_with(0, &transfer(1, 2), &data("beside"));
    let lines = client.lines();
    assert!(lines.iter().any(|line| line.contains("TransactionalState")), "{lines:#?}");
    assert_eq!(ready(&mut client), ["beside"]);
    discharge(&mut client, 3, &id, false);
    client.expect(&["0 disposition receiver 3 settled accepted"]);
    let mut all = ready(&mut client);
    all.sort();
    assert_eq!(all, ["beside", "in"]);
    discharge(&mut client, 4, &id, false);
    let lines = client.lines();
    assert!(lines[0].contains("rejected amqp:transaction:"), "{lines:#?}");
}

#[test]
fn what_is_rolled_back_never_was_and_deliveries_return_to_their_places() {
    let mut client = client();
    for (id, body) in (1..).zip(["a", "b"]) {
        client.send_with(0, &transfer(1, id), &data(body));
    }
    client.send(0, &receiver(2, "q"));
    client.send(0, &credit(2, 0, 1));
    client.lines();
    let id = declare(&mut client, 0);
    client.send(0, &settled(0, 0, accepted_within(&id)));
    let part = Transfer { state: within(&id), ..transfer(1, 5) };
    client.send_with(0, &part, &data("c"));
    // The next one is asked for before the answer to this one has come.
    discharge(&mut client, 6, &id, true);
    client.send(0, &closing(2));
    client.lines();
    assert_eq!(ready(&mut client), ["a", "b"]);
}

#[test]
fn the_outcomes_of_a_transaction_count_once_it_is_committed() {
    let mut client = client();
    client.send_with(0, &transfer(1, 1), &data("a"));
    client.send(0, &receiver(2, "q"));
    client.send(0, &credit(2, 0, 1));
    client.lines();
    let id = declare(&mut client, 0);
    let told = settled(0, 0, accepted_within(&id));
    client.send(0, &Disposition { settled: false, ..told });
    let lines = client.lines();
    assert!(lines[0].starts_with("0 disposition sender 0-0 settled"), "{lines:#?}");
    discharge(&mut client, 6, &id, false);
    client.send(0, &closing(2));
    client.lines();
    assert_eq!(ready(&mut client), [""; 0]);
}

#[test]
fn a_commit_that_is_perhaps_stored_is_not_called_rolled_back() {
    let mut client = client();
    let id = declare(&mut client, 0);
    let part = Transfer { state: within(&id), ..transfer(1, 1) };
    let mut durable = Vec::new();
    Header { durable: true, ..Header::default() }.write(&mut durable);
    client.send_with(0, &part, &[durable, data("kept")].concat());
    client.lines();
    let mut request = Vec::new();
    put_section(&mut request, SectionKind::Value, &Discharge { txn_id: &id, fail: false });
    client.host.receive(client.number, &frame(0, &transfer(0, 2), &request));
    client.host.fail_journal();
    client.expect(&[
        "0 disposition receiver 2 settled rejected amqp:internal-error: the journal failed: \
         whether that is stored is unknown",
    ]);
}

#[test]
fn unknown_transactions_are_refused() {
    let mut client = client();
    discharge(&mut client, 0, b"none", false);
    client.expect(&[
        "0 disposition receiver 0 settled rejected amqp:transaction:unknown-id: there is no \
         transaction of that id",
    ]);
    client.send_with(0, &transfer(0, 1), &data("no request"));
    let lines = client.lines();
    assert!(lines[0].contains("rejected amqp:invalid-field"), "{lines:#?}");
}

fn delayed(name: &str, millis: i64) -> Vec<u8> {
    let mut message = Vec::new();
    put_map_section(&mut message, SectionKind::MessageAnnotations, |map| {
        map.put(&Symbol(name), &millis);
    });
    message.extend(data(name));
    message
}

#[test]
fn messages_wait_until_they_are_due() {
    let mut client = client();
    let start = (crate::tests::host::START.0 / 1000) as i64;
    client.send_with(0, &transfer(1, 1), &delayed("x-opt-delivery-delay", 5_000));
    client.send_with(0, &transfer(1, 2), &delayed("x-opt-delivery-time", start + 9_000));
    client.expect(&[
        "0 disposition receiver 1 settled accepted",
        "0 disposition receiver 2 settled accepted",
    ]);
    assert_eq!(ready(&mut client), [""; 0]);
    client.host.wait(Duration::from_secs(6));
    assert_eq!(ready(&mut client), ["x-opt-delivery-delay"]);
    client.host.wait(Duration::from_secs(6));
    assert_eq!(ready(&mut client), ["x-opt-delivery-delay", "x-opt-delivery-time"]);
}

#[test]
fn what_goes_nowhere_is_said() {
    let mut client = client();
    client.send(0, &Attach { name: "e", ..sender(2, "/exchanges/amq.direct/none") });
    client.send(0, &Attach { name: "t", ..sender(3, "topic://nobody") });
    let target = Some(AnyTarget::Target(Target::default()));
    client.send(0, &Attach { name: "relay", target, ..sender(4, "") });
    client.lines();
    client.host.delete_queue("q");
    client.send_with(0, &transfer(1, 1), &data("m"));
    client.send_with(0, &transfer(2, 2), &data("m"));
    client.send_with(0, &transfer(3, 3), &data("m"));
    let mut message = Vec::new();
    let to = Some("/queues/none");
    crate::amqp10::codec::Properties { to, ..Default::default() }.write(&mut message);
    message.extend(data("m"));
    client.send_with(0, &transfer(4, 4), &message);
    let lines = client.lines();
    assert!(
        lines[0].starts_with("0 disposition receiver 1 settled rejected amqp:not-found"),
        "{lines:#?}"
    );
    assert_eq!(lines[1], "0 disposition receiver 2 settled released");
    assert_eq!(lines[2], "0 disposition receiver 3 settled accepted");
    assert!(
        lines[3].starts_with("0 disposition receiver 4 settled rejected amqp:not-found"),
        "{lines:#?}"
    );
}
