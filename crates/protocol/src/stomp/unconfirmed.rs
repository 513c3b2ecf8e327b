//! Publishes of a connection that wait for their outcome.

use std::collections::VecDeque;

/// A publish that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Nobody hears of its outcome, unless it is refused.
    Silent,
    /// The receipt that tells of it.
    Receipt(Box<str>),
    /// It has had its outcome.
    Done,
}

/// The publishes that wait, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// How many were taken out.
    gone: u64,
    waiting: VecDeque<Waiting>,
}

impl Ring {
    /// Adds the next publish.
    #[inline]
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// The last publish was refused before it got a number.
    pub(super) fn pop(&mut self) {
        self.waiting.pop_back();
    }

    /// Takes out the first one, if its number is at most `number`.
    pub(super) fn take_first_of(&mut self, number: u64) -> Option<Waiting> {
        if self.gone >= number {
            return None;
        }
        let taken = self.waiting.pop_front()?;
        self.gone += 1;
        self.drop_done();
        Some(taken)
    }

    /// Takes the one of that number.
    pub(super) fn take_one(&mut self, number: u64) -> Option<Waiting> {
        let index = number.checked_sub(self.gone + 1)?;
        let waiting = self.waiting.get_mut(usize::try_from(index).ok()?)?;
        let taken = std::mem::replace(waiting, Waiting::Done);
        self.drop_done();
        Some(taken)
    }

    /// Takes out those at the front that are done.
    fn drop_done(&mut self) {
        while self.waiting.front() == Some(&Waiting::Done) {
            self.waiting.pop_front();
            self.gone += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<Waiting>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_find_their_publishes() {
        let mut ring = Ring::default();
        let receipt = |name: &str| Waiting::Receipt(name.into());
        for waiting in [Waiting::Silent, receipt("b"), Waiting::Silent, receipt("d")] {
            ring.push(waiting);
        }
        assert_eq!(ring.take_one(2), Some(receipt("b")));
        assert_eq!((ring.take_one(0), ring.take_one(5)), (None, None));
        assert_eq!(ring.take_first_of(3), Some(Waiting::Silent));
        assert_eq!(ring.take_first_of(3), Some(Waiting::Silent));
        assert_eq!((ring.take_first_of(3), ring.len()), (None, 1));
        ring.push(receipt("e"));
        assert_eq!(ring.take_one(5), Some(receipt("e")));
        assert_eq!(ring.take_one(4), Some(receipt("d")));
        assert!(ring.is_empty());
        assert_eq!(ring.take_one(4), None);
    }
}
