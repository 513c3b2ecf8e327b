//! Hostile input for any protocol: recorded connections with their parts changed, in random pieces. Nothing
//! panics, the output can be read, and what is kept is bounded by what arrived.

use super::host::TestHost;
use super::random::Random;
use std::ops::Range;
use std::time::Duration;

/// Seeds of a run of minutes.
const LONG: Range<u64> = 0..2_000_000;

/// What a protocol's connections are made of in these tests.
pub(crate) trait Fuzzed {
    /// Most parts of a connection.
    const PARTS_MAX: usize = 30;
    /// One part of this number is changed.
    const CHANGED: usize = 3;

    /// The frames or lines of a recorded connection, whole.
    fn parts() -> Vec<Vec<u8>>;
    /// What a connection begins with.
    fn beginning(parts: &[Vec<u8>], random: &mut Random) -> Vec<u8>;
    /// Changes a part, which is not empty, in one of the ways in which peers get them wrong, on purpose or
    /// not.
    fn mutate(part: &mut Vec<u8>, random: &mut Random);
    /// A host with a connection.
    fn connect() -> (TestHost, usize);
    /// Reads everything that a connection got.
    fn check_output(output: &[u8]);

    /// Checks what is kept of a connection that has sent this number of bytes.
    fn check_kept(host: &TestHost, number: usize, sent: usize) {
        let kept = host.held_bytes(number);
        assert!(kept <= 4 * sent + (64 << 10), "{kept} bytes kept of {sent}");
    }
}

/// A connection for each of these seeds.
pub(crate) fn changed<F: Fuzzed>(seeds: Range<u64>) {
    let parts = F::parts();
    seeds.for_each(|seed| run::<F>(&mut Random(seed), &parts));
}

/// A connection of noise for each of these seeds.
pub(crate) fn noise<F: Fuzzed>(seeds: Range<u64>) {
    seeds.for_each(|seed| run::<F>(&mut Random(seed), &Random(seed).noise()));
}

/// A run of minutes. Every hundred connections it says how many there were, for who ends it before.
pub(crate) fn long<F: Fuzzed>() {
    use std::io::Write as _;
    for first in LONG.step_by(100) {
        changed::<F>(first..first + 100);
        let _ = writeln!(std::io::stderr(), "{} connections", first + 100);
    }
}

fn run<F: Fuzzed>(random: &mut Random, parts: &[Vec<u8>]) {
    let mut bytes = F::beginning(parts, random);
    for _ in 0..random.below(F::PARTS_MAX) {
        let mut part = parts[random.below(parts.len())].clone();
        if random.below(F::CHANGED) == 0 && !part.is_empty() {
            F::mutate(&mut part, random);
        }
        bytes.extend_from_slice(&part);
    }
    let (mut host, number) = F::connect();
    for piece in random.pieces(&bytes, 200) {
        host.receive(number, piece);
        host.turn_ends();
        F::check_kept(&host, number, bytes.len());
    }
    host.wait(Duration::from_secs(3600));
    F::check_output(&host.output(number));
    assert!(host.unused_bytes(number) <= bytes.len());
    host.cut(number);
}
