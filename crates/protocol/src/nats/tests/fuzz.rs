//! Hostile input: recorded sessions with their lines and bytes changed.

use super::fragmentation::recorded;
use super::{CONNECT, decode};
use crate::Peer;
use crate::amqp091;
use crate::tests::fuzz::{self, Fuzzed};
use crate::tests::host::TestHost;
use crate::tests::random::Random;

struct Nats;

impl Fuzzed for Nats {
    const CHANGED: usize = 4;

    fn parts() -> Vec<Vec<u8>> {
        recorded().split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
    }

    fn beginning(_: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        match random.below(4) {
            0 => Vec::new(),
            _ => format!("{CONNECT}\r\n").into_bytes(),
        }
    }

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

    fn connect() -> (TestHost, usize) {
        let mut host = TestHost::new(amqp091::Settings::default());
        let number = host.accept_nats(Peer::default());
        (host, number)
    }

    fn check_output(output: &[u8]) {
        decode(output);
    }
}

#[test]
fn changed_sessions_do_no_harm() {
    fuzz::changed::<Nats>(0..2_000);
}

#[test]
fn noise_does_no_harm() {
    fuzz::noise::<Nats>(0..500);
}

#[test]
#[ignore = "runs for minutes; cargo test --release -- --ignored fuzz_long"]
fn fuzz_long() {
    fuzz::long::<Nats>();
}
