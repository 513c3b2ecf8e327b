//! How much is read from a client at once: what each gets of a turn where others send too, and twice as much
//! from one that is alone, for whom every read and every wake-up of its receivers counts. If its messages
//! are large it is more still: the fewer there are in so many bytes, the shorter is the turn.
//!
//! Where most of the others send little at a time, all of it waits for what is read at once from the few who
//! send as much as they can: those get less.
//!
//! Where many receive what one sends, less is more: what lies ready for all of them is to fit the
//! processor's cache until it is sent. Too little, and sending costs more than that.

/// Most bytes read from one connection in one turn.
const SHARE_BYTES: usize = 64 << 10;
/// And from one that is alone and sends to few.
const SHARE_BYTES_ALONE: usize = 128 << 10;
/// And from one that sends large messages besides: just four segments over loopback, with what the messages'
/// lines grow by. With 320 KiB and more, what is read and what is sent of it leave the processor's cache.
pub(super) const SHARE_BYTES_MAX: usize = 248 << 10;
/// Bytes of input for each message from which on messages are large.
const LARGE_BYTES: u64 = 512;
/// And from one that sends to many.
const SHARE_BYTES_MIN: usize = 32 << 10;
/// And where many send little: what their messages wait for is half as long.
const SHARE_BYTES_AMONG: usize = 32 << 10;
/// Nobody who sends as much as it can brings less at once.
const LITTLE_BYTES: usize = 8 << 10;
/// So many small reads for each other one, and many send little: more than acknowledge what that brings.
const LITTLE_READS: u16 = 8;
/// So far the small reads are counted: what was before is forgotten.
const LITTLE_MAX: u16 = 32 * LITTLE_READS;
/// So many reads in a row from one client, and it is alone.
const READS_ALONE: u8 = 32;
/// So many receivers of one client are few.
const FEW: usize = 4;
/// More than these are many.
const SOME: usize = 25;

/// Who was read from last, and who is sent to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    last: usize,
    /// How often in a row before this.
    reads: u8,
    /// How often in this turn.
    reads_in_turn: usize,
    /// Small reads beyond [`LITTLE_READS`] for each other one.
    little: u16,
    /// How many were sent to for each read, in the last turn with any.
    receivers: usize,
    /// Bytes read in this turn.
    bytes_in_turn: u64,
    /// Messages from clients up to the last turn.
    messages: u64,
    /// Messages of the last turn with any were large.
    are_large: bool,
}

impl Share {
    /// A client in this slot is about to be read from; how many bytes, at most.
    #[inline]
    pub(super) fn of(&mut self, slot: usize) -> usize {
        self.reads_in_turn += 1;
        self.reads = if self.last == slot { self.reads.saturating_add(1) } else { 0 };
        self.last = slot;
        if self.receivers > SOME {
            SHARE_BYTES_MIN
        } else if self.little > LITTLE_MAX / 2 {
            SHARE_BYTES_AMONG
        } else if self.receivers > FEW || self.reads < READS_ALONE {
            SHARE_BYTES
        } else if self.are_large {
            SHARE_BYTES_MAX
        } else {
            SHARE_BYTES_ALONE
        }
    }

    /// So many bytes came.
    #[inline]
    pub(super) fn received(&mut self, bytes: usize) {
        self.bytes_in_turn += bytes as u64;
        self.little = if bytes < LITTLE_BYTES {
            (self.little + 1).min(LITTLE_MAX)
        } else {
            self.little.saturating_sub(LITTLE_READS)
        };
    }

    /// A turn ends in which so many clients are sent to; `messages` came from clients since the beginning.
    #[inline]
    pub(super) fn end_turn(&mut self, receivers: usize, messages: u64) {
        let reads = std::mem::take(&mut self.reads_in_turn);
        if let Some(receivers) = receivers.checked_div(reads) {
            self.receivers = receivers;
        }
        let bytes = std::mem::take(&mut self.bytes_in_turn);
        let came = messages.saturating_sub(std::mem::replace(&mut self.messages, messages));
        if let Some(mean) = bytes.checked_div(came) {
            self.are_large = mean >= LARGE_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW, READS_ALONE, SHARE_BYTES, SHARE_BYTES_ALONE, SHARE_BYTES_MIN};
    use super::{LARGE_BYTES, LITTLE_BYTES, LITTLE_READS, SHARE_BYTES_AMONG, SHARE_BYTES_MAX};
    use super::{SOME, Share};

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
        check([7; LONG + 1], SHARE_BYTES_ALONE);
        check([7; 1_000], SHARE_BYTES_ALONE);
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
    fn the_more_receive_it_the_less_is_read() {
        let check = |readers: usize, receivers: usize, bytes: usize| {
            let mut share = Share::default();
            let mut last = 0;
            for _ in 0..1_000 {
                last = (0..readers).map(|slot| share.of(slot)).last().unwrap();
                share.end_turn(receivers, 0);
                // A turn for others changes nothing.
                share.end_turn(1, 0);
            }
            assert_eq!(last, bytes, "{receivers} of {readers}");
        };
        check(1, FEW, SHARE_BYTES_ALONE);
        check(1, FEW + 1, SHARE_BYTES);
        check(1, SOME, SHARE_BYTES);
        check(1, SOME + 1, SHARE_BYTES_MIN);
        check(10, 50, SHARE_BYTES);
        check(10, 1_000, SHARE_BYTES_MIN);
    }

    #[test]
    fn one_that_sends_much_gets_less_among_many_that_send_little() {
        let check = |small: u16, small_bytes: usize, bytes: usize| {
            let mut share = Share::default();
            let mut last = 0;
            for _ in 0..1_000 {
                for slot in 1..=usize::from(small) {
                    share.of(slot);
                    share.received(small_bytes);
                }
                last = share.of(0);
                share.received(last);
            }
            assert_eq!(last, bytes, "among {small} with {small_bytes} bytes each");
        };
        check(LITTLE_READS + 1, 1_000, SHARE_BYTES_AMONG);
        check(20, LITTLE_BYTES - 1, SHARE_BYTES_AMONG);
        check(20, LITTLE_BYTES, SHARE_BYTES);
        // These may be acknowledgements of what the one sends.
        check(LITTLE_READS, 1_000, SHARE_BYTES);
        check(0, 0, SHARE_BYTES_ALONE);
    }

    #[test]
    fn once_those_who_send_little_have_gone_it_gets_more() {
        let mut share = Share::default();
        (0..1_000).for_each(|_| share.received(100));
        assert_eq!(share.of(0), SHARE_BYTES_AMONG);
        (0..1_000).for_each(|_| share.received(SHARE_BYTES));
        assert_eq!(share.of(0), SHARE_BYTES);
    }

    #[test]
    fn more_is_read_of_large_messages() {
        let check = |bytes: u64, messages: u64, receivers: usize, share_bytes: usize| {
            let mut share = Share::default();
            let (mut last, mut came) = (0, 0);
            for _ in 0..1_000 {
                last = share.of(7);
                share.received(bytes as usize);
                came += messages;
                share.end_turn(receivers, came);
                // A turn without any changes nothing.
                share.end_turn(1, came);
            }
            assert_eq!(last, share_bytes, "{bytes} bytes with {messages} messages to {receivers}");
        };
        check(100_000, 100, 1, SHARE_BYTES_MAX);
        check(100 * LARGE_BYTES, 100, 1, SHARE_BYTES_MAX);
        check(100 * LARGE_BYTES - 1, 100, 1, SHARE_BYTES_ALONE);
        check(100_000, 100, FEW + 1, SHARE_BYTES);
        // Nothing is known of what is no message.
        check(100_000, 0, 1, SHARE_BYTES_ALONE);
    }
}
