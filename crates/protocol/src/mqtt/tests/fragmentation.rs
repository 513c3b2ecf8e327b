//! A connection in pieces gives the same output as the whole; changed, it does no harm.

use super::speech::{packet, show};
use crate::mqtt::Settings;
use crate::mqtt::codec::Version;
use crate::mqtt::frame::Frame;
use crate::tests::fragmentation::{byte_by_byte, cut_anywhere, random_pieces};
use crate::tests::host::TestHost;
use crate::tests::random::Random;
use crate::{Peer, amqp091};
use std::time::Duration;

/// What a client sends that uses everything.
const LINES: &[&str] = &[
    "connect client=a keep-alive=60 v5",
    "subscribe id=1 a/# identifier=5",
    "subscribe id=2 a/b $share/g/a/+ no-such",
    "publish a/b one",
    "publish a/b two",
    "publish a/b three",
    "publish a/b four user-property=k:v topic-alias=1",
    "publish _ five topic-alias=1",
    "unsubscribe id=3 a/b",
    "ping",
    "publish a/c eight",
    "pubrel id=9",
    "publish a/c six qos=1 id=1",
    "publish a/c seven qos=2 id=2",
];

fn recorded(version: Version) -> Vec<u8> {
    LINES.iter().flat_map(|line| packet(line, version)).collect()
}

fn output(pieces: &[&[u8]]) -> Vec<u8> {
    let mut host = TestHost::new(amqp091::Settings::default());
    let number = host.accept_mqtt(Peer::default(), Settings::default());
    for piece in pieces {
        host.receive(number, piece);
    }
    host.turn_ends();
    host.output(number)
}

#[test]
fn pieces_give_the_same_output() {
    for version in [Version::V311, Version::V5] {
        let bytes = recorded(version);
        cut_anywhere(&bytes, output);
        byte_by_byte(&bytes, output);
        random_pieces(&bytes, 40, output);
        assert!(show(&output(&[&bytes]), version).len() > 10);
    }
}

/// The packets of the recorded connection.
fn packets(version: Version) -> Vec<Vec<u8>> {
    let bytes = recorded(version);
    let (mut rest, mut packets) = (&bytes[..], Vec::new());
    while let Ok(Some((_, used))) = Frame::read(rest, usize::MAX) {
        packets.push(rest[..used].to_vec());
        rest = &rest[used..];
    }
    packets
}

fn run(seed: u64, packets: &[Vec<u8>]) {
    let mut random = Random(seed);
    let mut bytes = packets[0].clone();
    for _ in 0..random.below(20) {
        let mut packet = packets[random.below(packets.len())].clone();
        let at = random.below(packet.len());
        match random.below(12) {
            0 => packet[at] ^= 1 << random.below(8),
            1 => packet[at] = [0, 1, 0x7F, 0x80, 0xFF][random.below(5)],
            2 => packet.truncate(at),
            3 => packet.insert(at, random.next() as u8),
            _ => {}
        }
        bytes.extend_from_slice(&packet);
    }
    let mut host = TestHost::new(amqp091::Settings::default());
    let number = host.accept_mqtt(Peer::default(), Settings::default());
    for piece in random.pieces(&bytes, 100) {
        host.receive(number, piece);
        host.turn_ends();
    }
    let held = host.held_bytes(number);
    assert!(held <= 8 * bytes.len() + (64 << 10), "{held} bytes kept of {}", bytes.len());
    host.wait(Duration::from_secs(3600));
    let output = host.output(number);
    let mut rest = &output[..];
    while let Some((_, used)) = Frame::read(rest, usize::MAX).expect("whole packets") {
        rest = &rest[used..];
    }
    assert!(rest.is_empty());
}

#[test]
fn changed_connections_do_no_harm() {
    for version in [Version::V311, Version::V5] {
        let packets = packets(version);
        for seed in 0..1_000 {
            run(seed, &packets);
        }
    }
}

#[test]
#[ignore = "runs for minutes; cargo test --release -- --ignored fuzz_long"]
fn fuzz_long() {
    let packets = packets(Version::V5);
    for seed in 0..2_000_000 {
        run(seed, &packets);
    }
}
