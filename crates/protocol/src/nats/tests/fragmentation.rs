//! However a session's bytes are cut into pieces, the output is the same.

use super::CONNECT;
use crate::Peer;
use crate::tests::fragmentation;
use crate::tests::host::TestHost;

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
    "HPUB a.b 12 12|NATS/1.0||",
    "PUB a.b 3|end",
    "-ERR bye",
];

/// A session's bytes.
pub(super) fn recorded() -> Vec<u8> {
    let lines = std::iter::once(&CONNECT).chain(SESSION);
    lines.flat_map(|line| format!("{}\r\n", line.replace('|', "\r\n")).into_bytes()).collect()
}

/// The output where the input comes in pieces of those sizes, whether or not bodies are large.
fn output(pieces: &[&[u8]]) -> Vec<u8> {
    let copied = output_of(TestHost::new(crate::amqp091::Settings::default()), pieces);
    assert_eq!(output_of(TestHost::sharing(), pieces), copied);
    copied
}

fn output_of(mut host: TestHost, pieces: &[&[u8]]) -> Vec<u8> {
    let number = host.accept_nats(Peer::default());
    for piece in pieces {
        host.receive(number, piece);
    }
    host.turn_ends();
    let mut output = host.output(number);
    output.extend(host.closed(number).expect("it ends").bytes());
    output
}

#[test]
fn a_cut_anywhere_changes_nothing() {
    let bytes = recorded();
    let output_and_end = output(&[&bytes]);
    let all = output_and_end.strip_suffix(b"the client said -ERR bye").expect("it ends so");
    let lines = super::decode(all);
    assert!(lines.iter().any(|line| line.contains("-ERR 'Invalid Subject'")), "{lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.contains("MSG")).count(), 8, "{lines:#?}");
    fragmentation::cut_anywhere(&bytes, output);
}

#[test]
fn a_payload_that_is_longer_than_announced_is_seen_wherever_it_is_cut() {
    for line in ["PUB a 3|longer", "HPUB a r 12 13|NATS/1.0||longer", "PUB a 0|x", "PUB a 3|end\n"]
    {
        let lines = [CONNECT, "SUB a 1", "PING", "PUB a 2|is", line, "PING"];
        let bytes = lines.map(|line| format!("{}\r\n", line.replace('|', "\r\n"))).concat();
        fragmentation::cut_anywhere(bytes.as_bytes(), output);
        fragmentation::byte_by_byte(bytes.as_bytes(), output);
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
