//! However a connection's bytes are cut into pieces, the output is the same.

use super::client::{
    Client, begin, closing, credit, data, frame, login, open, receiver, sender, settled, transfer,
};
use super::show;
use crate::amqp10::Settings;
use crate::amqp10::codec::{ACCEPTED, Attach, Close, End, Flow, Transfer};
use crate::tests::fragmentation;

/// What a client does in one connection.
pub(super) fn recorded() -> Vec<u8> {
    let mut bytes = login("guest");
    let (one, other) = (data("one"), data(&"long ".repeat(30)));
    let next = Transfer { handle: 0, ..Transfer::default() };
    for part in [
        frame(0, &open(), &[]),
        frame(0, &begin(100), &[]),
        frame(0, &sender(0, "q"), &[]),
        frame(0, &transfer(0, 0), &one),
        frame(0, &Transfer { more: true, ..transfer(0, 1) }, &other[..20]),
        frame(0, &next, &other[20..]),
        frame(0, &transfer(0, 2), b"nonsense"),
        frame(0, &receiver(1, "q"), &[]),
        frame(0, &Flow { drain: true, ..credit(1, 0, 5) }, &[]),
        frame(0, &settled(0, 1, ACCEPTED), &[]),
        frame(0, &Attach { name: "t", ..sender(2, "/exchanges/none") }, &[]),
        frame(0, &closing(2), &[]),
        frame(0, &closing(1), &[]),
        frame(0, &End::default(), &[]),
        frame(0, &begin(100), &[]),
        frame(0, &transfer(0, 2), &one),
        frame(0, &End::default(), &[]),
        frame(0, &Close::default(), &[]),
    ] {
        bytes.extend(part);
    }
    bytes
}

/// The output where the input comes in these pieces; a turn ends only where the connection waits, and behind
/// all of it.
fn output(pieces: &[&[u8]]) -> Vec<u8> {
    let mut client = Client::accepted(Settings::default());
    for piece in pieces {
        client.host.receive(client.number, piece);
        client.host.turn_ends();
    }
    client.host.output(client.number)
}

#[test]
fn a_cut_anywhere_changes_nothing() {
    let bytes = recorded();
    let whole = show::lines(&byte_by_byte(&bytes));
    assert!(whole.iter().any(|line| line.contains("unattached-handle")), "{whole:#?}");
    assert!(whole.iter().any(|line| line.contains("transfer 1 id=1")), "{whole:#?}");
    assert_eq!(whole.last().map(String::as_str), Some("0 close"));
    for cut in 1..bytes.len() {
        let cut = show::lines(&output(&[&bytes[..cut], &bytes[cut..]]));
        assert_eq!(told(&cut), told(&whole), "{cut:#?}");
    }
}

fn byte_by_byte(bytes: &[u8]) -> Vec<u8> {
    let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
    output(&pieces)
}

/// What does not depend on when turns end: which frames there are, besides flow, outcomes, and deliveries,
/// which a link that is detached in the same turn does not get.
fn told(lines: &[String]) -> Vec<&String> {
    let others = ["flow", "disposition", "transfer 1"];
    let is_told = |line: &&String| others.iter().all(|other| !line.contains(other));
    let mut told: Vec<_> = lines.iter().filter(is_told).collect();
    told.sort();
    told
}

#[test]
fn random_pieces_change_nothing() {
    let bytes = recorded();
    let whole = show::lines(&output(&[&bytes]));
    fragmentation::random_pieces(&bytes, 100, |pieces| {
        told(&show::lines(&output(pieces))).iter().flat_map(|line| line.bytes()).collect()
    });
    assert!(!whole.is_empty());
}
