//! A producer's unconfirmed messages, by delivery tag. Independent of sockets.

use crate::client::{Confirm, Error};

/// Messages sent and not confirmed, ordered by delivery tag, which counts from 1.
pub(super) struct Window {
    /// Per unconfirmed tag, at `tag % slots.len()`: when it was sent, or `CONFIRMED`.
    slots: Box<[u64]>,
    confirmed_below: u64,
    next: u64,
}

/// Marks a tag that was confirmed out of order.
const CONFIRMED: u64 = u64::MAX;

impl Window {
    pub(super) fn new(size: usize) -> Window {
        Window { slots: vec![0; size.max(1)].into(), confirmed_below: 1, next: 1 }
    }

    #[inline]
    pub(super) fn room(&self) -> u64 {
        self.slots.len() as u64 - (self.next - self.confirmed_below)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.next == self.confirmed_below
    }

    /// Notes that `count` messages were sent at `now_ns`; there must be room for them.
    #[inline]
    pub(super) fn sent(&mut self, count: u64, now_ns: u64) {
        assert!(count <= self.room(), "no more is sent than the window has room for");
        for tag in self.next..self.next + count {
            self.slots[(tag % self.slots.len() as u64) as usize] = now_ns;
        }
        self.next += count;
    }

    /// Notes a confirm and calls `each` with the send time of every newly confirmed message. Returns
    /// their count; a tag that was never sent is an error.
    #[inline]
    pub(super) fn confirm(
        &mut self,
        Confirm { tag, multiple, .. }: Confirm,
        mut each: impl FnMut(u64),
    ) -> Result<u64, Error> {
        if tag >= self.next || tag == 0 && !multiple {
            return Err(Error::Invalid(format!("a confirm of tag {tag}, which was never sent")));
        }
        let size = self.slots.len() as u64;
        let mut count = 0;
        // Tag 0 with `multiple` covers everything so far.
        let last = if tag == 0 { self.next - 1 } else { tag };
        let first = if multiple { self.confirmed_below } else { last.max(self.confirmed_below) };
        for tag in first..=last {
            let slot = &mut self.slots[(tag % size) as usize];
            if *slot != CONFIRMED {
                each(*slot);
                *slot = CONFIRMED;
                count += 1;
            }
        }
        while self.confirmed_below < self.next
            && self.slots[(self.confirmed_below % size) as usize] == CONFIRMED
        {
            self.confirmed_below += 1;
        }
        Ok(count)
    }
}
