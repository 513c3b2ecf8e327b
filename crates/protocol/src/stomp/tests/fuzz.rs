//! Hostile input: recorded sessions with their frames and bytes changed.

use super::fragmentation::recorded;
use super::{decode, settings};
use crate::Peer;
use crate::amqp091;
use crate::tests::fuzz::{self, Fuzzed};
use crate::tests::host::TestHost;
use crate::tests::random::Random;

struct Stomp;

impl Fuzzed for Stomp {
    const PARTS_MAX: usize = 20;

    fn parts() -> Vec<Vec<u8>> {
        recorded().split_inclusive(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
    }

    fn beginning(parts: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        match random.below(4) {
            0 => Vec::new(),
            _ => parts[0].clone(),
        }
    }

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

    fn connect() -> (TestHost, usize) {
        let mut host = TestHost::new(amqp091::Settings::default());
        let number = host.accept_stomp(Peer::default(), settings());
        (host, number)
    }

    fn check_output(output: &[u8]) {
        decode(output);
    }

    fn check_kept(host: &TestHost, number: usize, sent: usize) {
        let kept = host.held_bytes(number);
        assert!(kept < 20_000 + 3 * sent, "{kept} bytes kept of {sent}");
    }
}

#[test]
fn changed_sessions_do_no_harm() {
    fuzz::changed::<Stomp>(0..500);
}

#[test]
fn noise_does_no_harm() {
    fuzz::noise::<Stomp>(0..500);
}

#[test]
#[ignore = "runs for minutes; cargo test --release -- --ignored fuzz_long"]
fn fuzz_long() {
    fuzz::long::<Stomp>();
}
