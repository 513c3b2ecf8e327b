//! However a session's bytes are cut into pieces, the output is the same.

use super::{HELLO, TestHost, script};
use crate::Peer;
use crate::amqp091::Settings;
use crate::amqp091::frame::PROTOCOL_HEADER;
use crate::tests::fragmentation;

/// What a client does in one session; frames are small, so that bodies are split.
const SESSION: &[&str] = &[
    "1 queue.declare queue=q durable=true arguments={x-max-priority:3}",
    "1 confirm.select",
    "1 basic.publish routing_key=q | content_type=text/plain delivery_mode=2 \"small\"",
    "1 basic.publish routing_key=q | \"\"",
    "1 basic.publish routing_key=q | headers={BCC:[q],k:{deep:[a,b]}} priority=1 \"BODY\"",
    "2 channel.open",
    "2 basic.publish exchange=missing routing_key=q | \"lost\"",
    "2 basic.publish routing_key=q | \"ignored\"",
    "2 channel.close-ok",
    "1 basic.get queue=q",
    "1 basic.ack delivery_tag=1",
    "1 basic.get queue=q",
    "1 basic.nack delivery_tag=2 requeue=true",
    "1 basic.get queue=q no_ack=true",
    "1 basic.get queue=missing",
    "0 connection.close reply_code=200 reply_text=bye",
];

/// A session's bytes: the handshake, and [`SESSION`] with bodies that take several frames.
pub(super) fn recorded() -> Vec<u8> {
    let mut bytes = PROTOCOL_HEADER.to_vec();
    for line in HELLO.iter().chain(SESSION) {
        let line = line.replace("BODY", &"long ".repeat(30));
        bytes.extend_from_slice(&script::encode(&line, 64));
    }
    bytes
}

/// The output where the input comes in pieces of those sizes; a turn ends only where the session
/// waits, so that cuts are the only difference. It is the same whether or not bodies are large.
fn output(pieces: &[&[u8]]) -> Vec<u8> {
    let copied = output_of(TestHost::new(Settings::default()), pieces);
    assert_eq!(output_of(TestHost::sharing(), pieces), copied);
    copied
}

fn output_of(mut host: TestHost, pieces: &[&[u8]]) -> Vec<u8> {
    let number = host.accept(Peer::default());
    for piece in pieces {
        host.receive(number, piece);
    }
    host.turn_ends();
    assert_eq!(host.closed(number), None, "the client closes");
    host.output(number)
}

#[test]
fn a_cut_anywhere_changes_nothing() {
    let bytes = recorded();
    let lines = script::decode(&output(&[&bytes]), 0);
    assert!(lines.iter().any(|line| line.contains("NOT_FOUND - no exchange")), "{lines:#?}");
    fragmentation::cut_anywhere(&bytes, output);
}

#[test]
fn byte_by_byte_changes_nothing() {
    fragmentation::byte_by_byte(&recorded(), output);
}

#[test]
fn random_pieces_change_nothing() {
    fragmentation::random_pieces(&recorded(), 100, output);
}
