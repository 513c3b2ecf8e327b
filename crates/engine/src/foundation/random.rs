//! Random numbers from a seed: the same seed gives the same numbers, and some of them do not reveal
//! the others.

use chacha20::ChaCha12Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// The key stream of ChaCha with 12 rounds. Names and addresses that clients see come from it, and
/// an inbox's address is all that keeps strangers from writing to it.
#[derive(Debug)]
pub(crate) struct Random(ChaCha12Rng);

/// Letters of made-up names: safe in routing keys and URLs.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Random {
    pub(crate) fn new(seed: [u8; 32]) -> Random {
        Random(ChaCha12Rng::from_seed(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// `letters` random letters, six bits each.
    pub(crate) fn name(&mut self, letters: usize) -> String {
        (0..letters).map(|_| char::from(LETTERS[(self.next() >> 58) as usize])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_the_seed_alone() {
        let name = |seed| Random::new(seed).name(32);
        assert_eq!(name([7; 32]), name([7; 32]));
        assert_ne!(name([7; 32]), name([8; 32]));
        let mut last_bit = [7; 32];
        last_bit[31] ^= 0x80;
        assert_ne!(name([7; 32]), name(last_bit), "every bit of the seed counts");
    }

    /// The key stream for a key of zeros, as draft-strombergson-chacha-test-vectors gives it (test
    /// case 1, 12 rounds, 256-bit key).
    #[test]
    fn numbers_are_those_of_chacha12() {
        let mut random = Random::new([0; 32]);
        assert_eq!(random.next().to_le_bytes(), [0x9b, 0xf4, 0x9a, 0x6a, 0x07, 0x55, 0xf9, 0x53]);
    }
}
