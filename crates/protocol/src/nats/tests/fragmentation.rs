//! However a session's bytes are cut into pieces, the output is the same.

use super::CONNECT;
use crate::Peer;
use crate::tests::fragmentation;
use crate::tests::host::Host;

/// What a client does in one session.
const SESSION: &[&str] = &[
    "SUB a.* 1",
    "PUB a.b 5|hello",
    "HPUB a.b reply 19 21|NATS/1.0|X: yz||hi",
    "sub a.b group 2",
    "PUB a.b 6|P|ING",
    "PING",
    "UNSUB 1 9",
    "PUB a..b 1|x",
    "SUB .. 3",
    "PONG",
    "+OK",
    "PUB a.b 0|",
    "UNSUB 1",
    "PUB a.b 3|end",
    "-ERR bye",
];

/// A session's bytes.
pub(super) fn recorded() -> Vec<u8> {
    let lines = std::iter::once(&CONNECT).chain(SESSION);
    lines.flat_map(|line| format!("{}\r\n", line.replace('|', "\r\n")).into_bytes()).collect()
}

/// The output where the input comes in pieces of those sizes.
fn output(pieces: &[&[u8]]) -> Vec<u8> {
    let mut host = Host::new(crate::amqp091::Settings::default());
    let number = host.accept_nats(Peer::default());
    for piece in pieces {
        host.receive(number, piece);
    }
    host.turn_ends();
    assert_eq!(host.closed(number).as_deref(), Some("the client said -ERR bye"));
    host.output(number)
}

#[test]
fn a_cut_anywhere_changes_nothing() {
    let bytes = recorded();
    let lines = super::decode(&output(&[&bytes]));
    assert!(lines.iter().any(|line| line.contains("-ERR 'Invalid Subject'")), "{lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.contains("MSG")).count(), 7, "{lines:#?}");
    fragmentation::cut_anywhere(&bytes, output);
}

/// Large messages: with headers and without, two in a row, one that does not end where it has to.
fn large() -> Vec<u8> {
    let body = "x".repeat(70_000);
    let session = [
        CONNECT.to_owned(),
        "SUB a.* 1".to_owned(),
        "PING".to_owned(),
        format!("PUB a.b 70000|{body}"),
        format!("HPUB a.b reply 19 70019|NATS/1.0|X: yz||{body}"),
        format!("hpub a.b 70012 70012|NATS/1.0||{body}"),
        format!("PUB a..b 70000|{body}"),
        "PUB a.b 5|small".to_owned(),
        format!("PUB a.b 70000|{body}too much"),
    ];
    session.map(|line| format!("{line}\r\n").replace('|', "\r\n")).concat().into_bytes()
}

/// The output where the large messages come in pieces of so many bytes.
fn large_output(bytes: &[u8], piece: usize) -> Vec<u8> {
    let mut host = Host::new(crate::amqp091::Settings::default());
    let number = host.accept_nats(Peer::default());
    for piece in bytes.chunks(piece) {
        host.receive(number, piece);
    }
    host.turn_ends();
    assert!(host.closed(number).is_some(), "what comes instead of a payload's end is none");
    host.output(number)
}

#[test]
fn large_messages_are_the_same_in_pieces() {
    let bytes = large();
    let whole = large_output(&bytes, bytes.len());
    let lines = super::decode(&whole);
    assert_eq!(lines.iter().filter(|line| line.contains("MSG")).count(), 4, "{}", lines.len());
    for piece in [1, 7, 1_000, 65_536, 69_990, 70_000, 70_013, 70_014, 70_015, 140_000, 250_000] {
        assert!(large_output(&bytes, piece) == whole, "by {piece}");
    }
    let end = bytes.windows(4).position(|four| four == b"HPUB").expect("it follows the first");
    for piece in end - 3..=end + 1 {
        assert!(large_output(&bytes, piece) == whole, "by {piece}");
    }
}

#[test]
fn byte_by_byte_changes_nothing() {
    fragmentation::byte_by_byte(&recorded(), output);
}

#[test]
fn random_pieces_change_nothing() {
    fragmentation::random_pieces(&recorded(), 60, output);
}
