//! Hostile input: recorded sessions with their frames and bytes changed; every frame of the output is whole,
//! and every body complete before the next frame.

use super::fragmentation::recorded;
use super::{HELLO, TestHost, script};
use crate::Peer;
use crate::amqp091::Settings;
use crate::amqp091::channel::Content;
use crate::amqp091::codec::{ContentHeader, METHODS, Method};
use crate::amqp091::frame::{self, PROTOCOL_HEADER};
use crate::tests::fuzz::{self, Fuzzed};
use crate::tests::random::Random;

struct Amqp091;

impl Fuzzed for Amqp091 {
    fn parts() -> Vec<Vec<u8>> {
        let bytes = recorded();
        let mut rest = &bytes[PROTOCOL_HEADER.len()..];
        let mut frames = Vec::new();
        while let Ok(Some((_, used))) = frame::read(rest, 0) {
            frames.push(rest[..used].to_vec());
            rest = &rest[used..];
        }
        frames
    }

    fn beginning(_: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        let lines = HELLO[..random.below(HELLO.len() + 1)].iter();
        let frames = lines.flat_map(|line| script::encode(line, 0));
        PROTOCOL_HEADER.into_iter().chain(frames).collect()
    }

    fn mutate(frame: &mut Vec<u8>, random: &mut Random) {
        let at = random.below(frame.len());
        match random.below(8) {
            0 => frame[at] ^= 1 << random.below(8),
            1 => frame[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            2 => frame.truncate(at),
            3 => frame[0] = [1, 2, 3, 8, 4][random.below(5)],
            4 => frame[2] = random.below(4) as u8,
            5 => {
                // Another method with the same fields behind it; the size stays right.
                if frame.len() > 11 {
                    let info = METHODS[random.below(METHODS.len())];
                    frame[7..9].copy_from_slice(&info.class.to_be_bytes());
                    frame[9..11].copy_from_slice(&info.id.to_be_bytes());
                }
            }
            6 => {
                // Payload cut or prolonged, the size made to fit.
                frame.pop();
                frame.resize(7 + random.below(frame.len() + 20), random.next() as u8);
                let size = (frame.len() - 7) as u32;
                frame[3..7].copy_from_slice(&size.to_be_bytes());
                frame.push(frame::END);
            }
            _ => {
                // A length inside of the payload becomes huge.
                let end = (at + 4).min(frame.len());
                frame[at..end].fill(0xff);
            }
        }
    }

    fn connect() -> (TestHost, usize) {
        let settings = Settings { body_bytes_max: 1 << 40, ..Settings::default() };
        let mut host = TestHost::new(settings);
        let number = host.accept(Peer::default());
        (host, number)
    }

    fn check_kept(host: &TestHost, number: usize, sent: usize) {
        let channels = &host.amqp091(number).channels.all;
        let contents = channels.iter().filter_map(|channel| channel.content.as_deref());
        let capacity = |content: &Content| {
            content.method.capacity() + content.properties.capacity() + content.body.capacity()
        };
        let gathered: usize = contents.map(capacity).sum();
        assert!(gathered <= 2 * sent + 1024, "{gathered} bytes kept of {sent}");
    }

    fn check_output(output: &[u8]) {
        let mut rest = output.strip_prefix(&PROTOCOL_HEADER).unwrap_or(output);
        let mut missing = 0;
        while !rest.is_empty() {
            let (frame, used) = frame::read(rest, 0).unwrap().expect("whole frames only");
            rest = &rest[used..];
            match frame.kind {
                frame::BODY => missing -= frame.payload.len() as u64,
                kind => {
                    assert_eq!(missing, 0, "a body is not complete");
                    if kind == frame::HEADER {
                        missing = ContentHeader::decode(frame.payload).unwrap().body_bytes;
                    } else if kind == frame::METHOD {
                        Method::decode(frame.payload).unwrap();
                    }
                }
            }
        }
        assert_eq!(missing, 0, "a body is not complete");
    }
}

#[test]
fn changed_sessions_do_no_harm() {
    fuzz::changed::<Amqp091>(0..2_000);
}

#[test]
fn noise_does_no_harm() {
    fuzz::noise::<Amqp091>(0..500);
}

#[test]
#[ignore = "runs for minutes; cargo test --release -- --ignored fuzz_long"]
fn fuzz_long() {
    fuzz::long::<Amqp091>();
}
