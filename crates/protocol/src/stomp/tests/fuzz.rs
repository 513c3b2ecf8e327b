//! Hostile input: recorded sessions with their lines and bytes changed. Nothing panics, the output is whole
//! frames, and what is kept is bounded by what arrived.

use super::fragmentation::recorded;
use super::{decode, settings};
use crate::Peer;
use crate::amqp091;
use crate::tests::host::TestHost;
use crate::tests::random::Random;
use std::time::Duration;

/// Sessions that are tried.
const SESSIONS: u64 = 500;

/// The frames of a recorded session.
fn frames() -> Vec<Vec<u8>> {
    recorded().split_inclusive(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

/// Changes a frame in one of the ways in which peers get them wrong, on purpose or not.
fn mutate(frame: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(frame.len());
    match random.below(8) {
        0 => frame[at] ^= 1 << random.below(8),
        1 => frame[at] = [0, b':', b'\r', b'\n', 0xff, b'\\'][random.below(6)],
        2 => frame.truncate(at),
        3 => drop(frame.remove(at)),
        4 => frame.insert(at, b":\n\r\\/%@0,"[random.below(9)]),
        5 => {
            // A number becomes another one.
            for byte in frame.iter_mut().filter(|byte| byte.is_ascii_digit()) {
                *byte = b"0129"[random.below(4)];
            }
        }
        6 => {
            let piece = frame[at..].to_vec();
            frame.extend_from_slice(&piece);
        }
        _ => frame.splice(at..at, vec![b'x'; random.below(9_000)]).for_each(drop),
    }
}

/// One session of changed frames, in random pieces.
fn run(seed: u64, frames: &[Vec<u8>]) {
    let mut random = Random(seed);
    let mut bytes = Vec::new();
    if random.below(4) > 0 {
        bytes.extend_from_slice(&frames[0]);
    }
    for _ in 0..random.below(20) {
        let mut frame = frames[random.below(frames.len())].clone();
        if random.below(3) == 0 {
            mutate(&mut frame, &mut random);
        }
        bytes.extend_from_slice(&frame);
    }
    let mut host = TestHost::new(amqp091::Settings::default());
    let number = host.accept_stomp(Peer::default(), settings());
    for piece in random.pieces(&bytes, 300) {
        host.receive(number, piece);
        host.turn_ends();
    }
    host.wait(Duration::from_secs(1));
    decode(&host.output(number));
    assert!(host.held_bytes(number) < 20_000 + 3 * bytes.len(), "{}", host.held_bytes(number));
    host.cut(number);
}

#[test]
fn changed_sessions_harm_nobody() {
    let frames = frames();
    (0..SESSIONS).for_each(|seed| run(seed, &frames));
}
