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

#[test]
fn byte_by_byte_changes_nothing() {
    fragmentation::byte_by_byte(&recorded(), output);
}

#[test]
fn random_pieces_change_nothing() {
    fragmentation::random_pieces(&recorded(), 60, output);
}
