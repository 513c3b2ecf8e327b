//! Hostile input: a recorded connection with its frames and bytes changed. Nothing panics, the output is
//! whole frames, and memory stays bounded by what arrived.

use super::client::{Client, login};
use super::fragmentation::recorded;
use super::show;
use crate::amqp10::Settings;
use crate::amqp10::frame;
use crate::tests::random::Random;
use std::time::Duration;

/// The frames of the recorded connection behind its login, whole.
fn frames() -> Vec<Vec<u8>> {
    let bytes = recorded();
    let mut rest = &bytes[login("guest").len()..];
    let mut frames = Vec::new();
    while let Ok(Some((_, used))) = frame::read(rest, u32::MAX) {
        frames.push(rest[..used].to_vec());
        rest = &rest[used..];
    }
    frames
}

/// Changes a frame in one of the ways in which peers get them wrong, on purpose or not.
fn mutate(frame: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(frame.len());
    match random.below(8) {
        0 => frame[at] ^= 1 << random.below(8),
        1 => frame[at] = [0, 1, 0x40, 0x43, 0x45, 0x7f, 0x80, 0xd0, 0xff][random.below(9)],
        2 => frame.truncate(at),
        3 => frame[4] = random.below(4) as u8,
        4 => frame[7] = random.below(3) as u8,
        5 => {
            // Another performative with the same fields.
            if frame.len() > 11 {
                frame[10] = 0x10 + random.below(9) as u8;
            }
        }
        6 => {
            // The body cut or prolonged, the size made to fit.
            frame.resize(8 + random.below(frame.len() + 20), random.next() as u8);
            let size = (frame.len() as u32).to_be_bytes();
            frame[..4].copy_from_slice(&size);
        }
        _ => {
            // A number within becomes huge.
            let end = (at + 4).min(frame.len());
            frame[at..end].fill(0xff);
        }
    }
}

/// One connection of changed frames, in random pieces.
fn run(seed: u64, frames: &[Vec<u8>]) {
    let mut random = Random(seed);
    let mut bytes = login("guest");
    let begins = random.below(8) > 0;
    for frame in frames.iter().take(if begins { 3 } else { 0 }) {
        bytes.extend_from_slice(frame);
    }
    for _ in 0..random.below(30) {
        let mut frame = frames[random.below(frames.len())].clone();
        if random.below(3) == 0 {
            mutate(&mut frame, &mut random);
        }
        bytes.extend_from_slice(&frame);
    }
    let mut client = Client::accepted(Settings { body_bytes_max: 1 << 40, ..Settings::default() });
    for piece in random.pieces(&bytes, 200) {
        client.host.receive(client.number, piece);
        client.host.turn_ends();
        let held = client.host.held_bytes(client.number);
        assert!(held <= 4 * bytes.len() + (64 << 10), "{held} bytes kept of {}", bytes.len());
    }
    client.host.wait(Duration::from_secs(3600));
    show::lines(&client.host.output(client.number));
    assert!(client.host.unused_bytes(client.number) <= bytes.len());
}

#[test]
fn changed_connections_do_no_harm() {
    let frames = frames();
    for seed in 0..1_000 {
        run(seed, &frames);
    }
}

#[test]
fn noise_does_no_harm() {
    for seed in 0..500 {
        let mut random = Random(seed);
        let mut client = Client::accepted(Settings::default());
        let mut bytes = login("guest");
        bytes.truncate(random.below(bytes.len() + 1));
        bytes.extend(random.noise().iter().flatten());
        for piece in random.pieces(&bytes, 200) {
            client.host.receive(client.number, piece);
            client.host.turn_ends();
        }
        show::lines(&client.host.output(client.number));
    }
}

#[test]
#[ignore = "runs for minutes; cargo test --release -- --ignored fuzz_long"]
fn fuzz_long() {
    let frames = frames();
    for seed in 0..2_000_000 {
        run(seed, &frames);
    }
}
