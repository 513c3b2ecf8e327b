//! Random choices of the tests, from a seed.

use crate::foundation::random;

pub(super) struct Random(random::Random);

impl Random {
    pub(super) fn new(seed: u8) -> Random {
        Random(random::Random::new([seed; 32]))
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.0.next() >> 32) as usize % bound
    }

    pub(super) fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }
}
