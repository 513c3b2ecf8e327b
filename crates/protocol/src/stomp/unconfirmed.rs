//! Publishes of a connection that wait for their outcome.

use std::collections::VecDeque;

/// Publishes that may wait for their outcome, and bytes of their receipts; with more, the connection is not
/// read from.
const UNCONFIRMED_MAX: usize = 65_536;
const RECEIPTS_BYTES_MAX: usize = 4 << 20;

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

impl Waiting {
    fn bytes(&self) -> usize {
        match self {
            Waiting::Receipt(receipt) => receipt.len(),
            Waiting::Silent | Waiting::Done => 0,
        }
    }
}

/// The publishes that wait, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// How many were taken out.
    gone: u64,
    waiting: VecDeque<Waiting>,
    /// Of their receipts.
    bytes: usize,
}

impl Ring {
    /// Adds the next publish.
    #[inline]
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.bytes();
        self.waiting.push_back(waiting);
    }

    /// The last publish was refused before it got a number.
    pub(super) fn pop(&mut self) {
        if let Some(waiting) = self.waiting.pop_back() {
            self.bytes -= waiting.bytes();
        }
    }

    /// Takes out the first one, if its number is at most `number`.
    pub(super) fn take_first_of(&mut self, number: u64) -> Option<Waiting> {
        if self.gone >= number {
            return None;
        }
        let taken = self.waiting.pop_front()?;
        self.gone += 1;
        self.bytes -= taken.bytes();
        self.drop_done();
        Some(taken)
    }

    /// Takes the one of that number.
    pub(super) fn take_one(&mut self, number: u64) -> Option<Waiting> {
        let index = number.checked_sub(self.gone + 1)?;
        let waiting = self.waiting.get_mut(usize::try_from(index).ok()?)?;
        let taken = std::mem::replace(waiting, Waiting::Done);
        self.bytes -= taken.bytes();
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

    /// More wait than may.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() > UNCONFIRMED_MAX || self.bytes > RECEIPTS_BYTES_MAX
    }

    /// There is room for many more.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() <= UNCONFIRMED_MAX / 2 && self.bytes <= RECEIPTS_BYTES_MAX / 2
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<Waiting>() + self.bytes
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
        assert_eq!((ring.take_first_of(3), ring.waiting.len()), (None, 1));
        ring.push(receipt("e"));
        assert_eq!(ring.take_one(5), Some(receipt("e")));
        assert_eq!(ring.take_one(4), Some(receipt("d")));
        assert!(ring.is_empty());
        assert_eq!(ring.bytes, 0);
        assert_eq!(ring.take_one(4), None);
    }

    #[test]
    fn it_is_full_of_publishes_or_of_receipts() {
        let long: Box<str> = "r".repeat(1_024).into();
        for (waiting, most) in [
            (Waiting::Silent, UNCONFIRMED_MAX),
            (Waiting::Receipt(long), RECEIPTS_BYTES_MAX / 1_024),
        ] {
            let mut ring = Ring::default();
            (0..most).for_each(|_| ring.push(waiting.clone()));
            assert!(!ring.is_full() && !ring.has_room());
            ring.push(waiting);
            assert!(ring.is_full());
            while ring.take_first_of(most as u64 / 2).is_some() {}
            assert!(!ring.is_full() && !ring.has_room());
            ring.take_first_of(u64::MAX);
            assert!(ring.has_room());
        }
    }
}
