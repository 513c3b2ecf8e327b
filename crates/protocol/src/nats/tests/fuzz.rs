//! Hostile input: recorded sessions with their lines and bytes changed. Nothing panics, the output is
//! whole operations, and what is kept is bounded by what arrived.

use super::fragmentation::recorded;
use super::{CONNECT, decode};
use crate::Peer;
use crate::amqp091;
use crate::tests::host::TestHost;
use crate::tests::random::Random;
use std::time::Duration;

/// The lines of a recorded session, each with its line end.
fn lines() -> Vec<Vec<u8>> {
    recorded().split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Changes a line in one of the ways in which peers get them wrong, on purpose or not.
fn mutate(line: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(line.len());
    match random.below(8) {
        0 => line[at] ^= 1 << random.below(8),
        1 => line[at] = [0, b' ', b'\r', b'\n', 0xff][random.below(5)],
        2 => line.truncate(at),
        3 => drop(line.remove(at)),
        4 => line.insert(at, b" \t\r\n.*>{}\"\\:0"[random.below(12)]),
        5 => {
            // A number becomes another one.
            for byte in line.iter_mut().filter(|byte| byte.is_ascii_digit()) {
                *byte = b"0129"[random.below(4)];
            }
        }
        6 => {
            let piece = line[at..].to_vec();
            line.extend_from_slice(&piece);
        }
        _ => line.splice(at..at, vec![b'x'; random.below(9000)]).for_each(drop),
    }
}

/// One session of changed lines, in random pieces.
fn run(seed: u64, lines: &[Vec<u8>]) {
    let mut random = Random(seed);
    let mut bytes = Vec::new();
    if random.below(4) > 0 {
        bytes.extend_from_slice(CONNECT.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    for _ in 0..random.below(30) {
        let mut line = lines[random.below(lines.len())].clone();
        if random.below(4) == 0 && !line.is_empty() {
            mutate(&mut line, &mut random);
        }
        bytes.extend_from_slice(&line);
    }
    let mut host = TestHost::new(amqp091::Settings::default());
    let number = host.accept_nats(Peer::default());
    for piece in random.pieces(&bytes, 200) {
        host.receive(number, piece);
        host.turn_ends();
    }
    host.wait(Duration::from_secs(3600));
    decode(&host.output(number));
    assert!(host.unused_bytes(number) <= bytes.len());
}

#[test]
fn changed_sessions_do_no_harm() {
    let lines = lines();
    for seed in 0..2_000 {
        run(seed, &lines);
    }
}

#[test]
fn noise_does_no_harm() {
    for seed in 0..500 {
        run(seed, &Random(seed).noise());
    }
}

#[test]
#[ignore = "runs for minutes; cargo test --release -- --ignored fuzz_long"]
fn fuzz_long() {
    let lines = lines();
    for seed in 0..2_000_000 {
        run(seed, &lines);
    }
}
