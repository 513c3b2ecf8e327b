//! Hostile input: a recorded connection with its frames and bytes changed.

use super::client::{Client, login};
use super::fragmentation::recorded;
use super::show;
use crate::amqp10::Settings;
use crate::amqp10::frame;
use crate::tests::fuzz::{self, Fuzzed};
use crate::tests::host::TestHost;
use crate::tests::random::Random;

/// A dialogue with a broker of the usual settings, whose parts are frames.
pub(super) trait Dialogue {
    /// Most parts that follow the beginning.
    const PARTS_MAX: usize = 40;
    /// What follows the beginning, changed or not, in any order.
    fn parts() -> Vec<Vec<u8>>;
    /// What comes first, unchanged.
    fn beginning(parts: &[Vec<u8>], random: &mut Random) -> Vec<u8>;
    /// Changes a part.
    fn mutate(part: &mut Vec<u8>, random: &mut Random) {
        mutate_frame(part, random);
    }
    /// A host and a connection that has sent nothing.
    fn connect() -> (TestHost, usize) {
        let Client { host, number } = Client::accepted(Settings::default());
        (host, number)
    }
}

impl<D: Dialogue> Fuzzed for D {
    const PARTS_MAX: usize = D::PARTS_MAX;
    fn parts() -> Vec<Vec<u8>> {
        D::parts()
    }
    fn beginning(parts: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        D::beginning(parts, random)
    }
    fn mutate(part: &mut Vec<u8>, random: &mut Random) {
        D::mutate(part, random);
    }
    fn connect() -> (TestHost, usize) {
        D::connect()
    }
    fn check_output(output: &[u8]) {
        show::lines(output);
    }
}

struct Recorded;

impl Dialogue for Recorded {
    fn parts() -> Vec<Vec<u8>> {
        let bytes = recorded();
        let mut rest = &bytes[login("guest").len()..];
        let mut frames = Vec::new();
        while let Ok(Some((_, used))) = frame::read(rest, u32::MAX) {
            frames.push(rest[..used].to_vec());
            rest = &rest[used..];
        }
        frames
    }

    fn beginning(parts: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        let begins = random.below(8) > 0;
        let first = &parts[..if begins { 3 } else { 0 }];
        [login("guest"), first.concat()].concat()
    }

    fn connect() -> (TestHost, usize) {
        let settings = Settings { body_bytes_max: 1 << 40, ..Settings::default() };
        let Client { host, number } = Client::accepted(settings);
        (host, number)
    }
}

/// Changes a frame of at least 8 octets.
pub(super) fn mutate_frame(frame: &mut Vec<u8>, random: &mut Random) {
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

#[test]
fn changed_connections_do_no_harm() {
    fuzz::changed::<Recorded>(0..1_000);
}

#[test]
fn noise_does_no_harm() {
    fuzz::noise::<Recorded>(0..500);
}

#[test]
#[ignore = "runs for minutes; cargo test --release -- --ignored fuzz_long"]
fn fuzz_long() {
    fuzz::long::<Recorded>();
}
