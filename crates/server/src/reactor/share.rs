//! How much is read from a client at once: what each gets of a turn where others send too, and twice as much
//! from one that is alone, for whom every read and every wake-up of its receivers counts.
//!
//! Where many receive what one sends, less is more: what lies ready for all of them is to fit the
//! processor's cache until it is sent.

/// Most bytes read from one connection in one turn.
const SHARE_BYTES: usize = 64 << 10;
/// And from one that is alone.
pub(super) const SHARE_BYTES_MAX: usize = 128 << 10;
/// So many reads in a row from one client, and it is alone.
const READS_ALONE: u8 = 32;
/// Where more are sent to in a turn, nobody is alone.
const RECEIVERS_MAX: usize = 4;

/// Who was read from last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    last: usize,
    /// How often in a row before this.
    reads: u8,
}

impl Share {
    /// A client in this slot is about to be read from; how many bytes, at most.
    #[inline]
    pub(super) fn of(&mut self, slot: usize) -> usize {
        self.reads = if self.last == slot { self.reads.saturating_add(1) } else { 0 };
        self.last = slot;
        if self.reads < READS_ALONE { SHARE_BYTES } else { SHARE_BYTES_MAX }
    }

    /// So many clients are sent to in this turn.
    #[inline]
    pub(super) fn sent_to(&mut self, receivers: usize) {
        if receivers > RECEIVERS_MAX {
            self.reads = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{READS_ALONE, RECEIVERS_MAX, SHARE_BYTES, SHARE_BYTES_MAX, Share};

    /// What the last of these clients gets, read from in this order.
    #[track_caller]
    fn check(clients: impl IntoIterator<Item = usize>, bytes: usize) {
        let mut share = Share::default();
        let last = clients.into_iter().map(|slot| share.of(slot)).last();
        assert_eq!(last, Some(bytes));
    }

    const LONG: usize = READS_ALONE as usize;

    #[test]
    fn one_that_has_been_alone_for_long_gets_more() {
        check([7; LONG], SHARE_BYTES);
        check([7; LONG + 1], SHARE_BYTES_MAX);
        check([7; 1_000], SHARE_BYTES_MAX);
    }

    #[test]
    fn whoever_has_company_gets_its_share() {
        check((0..1_000).map(|at| at % 2), SHARE_BYTES);
        check((0..1_000).map(|at| usize::from(at % LONG == 0)), SHARE_BYTES);
    }

    #[test]
    fn somebody_else_ends_that_at_once() {
        check([7; 1_000].into_iter().chain([8]), SHARE_BYTES);
        check([7; 1_000].into_iter().chain([8, 7]), SHARE_BYTES);
    }

    #[test]
    fn who_sends_to_many_gets_its_share() {
        for (receivers, bytes) in
            [(RECEIVERS_MAX, SHARE_BYTES_MAX), (RECEIVERS_MAX + 1, SHARE_BYTES)]
        {
            let mut share = Share::default();
            let mut last = 0;
            for _ in 0..1_000 {
                last = share.of(7);
                share.sent_to(receivers);
            }
            assert_eq!(last, bytes, "{receivers}");
        }
    }
}
