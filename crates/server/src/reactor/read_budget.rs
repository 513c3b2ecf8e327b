//! How many bytes are read from a client at once.
//!
//! - Twice the usual number from a client that is alone, for which the number of reads and of wake-ups of its
//!   receivers counts; more if its messages are large, since a turn is short if it has few messages.
//! - Less if most other clients send little at a time: their input waits for the long reads.
//! - Less if many clients receive it: their output is to fit the processor's cache until it is sent.

/// Bytes that are usually read from a client at once.
const READ_BYTES: usize = 64 << 10;
/// From a client that is alone and sends to few.
const READ_BYTES_ALONE: usize = 128 << 10;
/// From a client that sends large messages besides: four segments over loopback. With 320 KiB and more,
/// input and output leave the processor's cache.
pub(super) const READ_BYTES_MAX: usize = 248 << 10;
/// Bytes of input for each message from which on messages are large.
const LARGE_BYTES: u64 = 512;
/// From a client that sends to many.
const READ_BYTES_MIN: usize = 32 << 10;
/// Among many that send little: their messages wait half as long.
const READ_BYTES_AMONG: usize = 32 << 10;
/// Reads of fewer bytes are small: a client that sends as much as it can brings more at once.
const LITTLE_BYTES: usize = 8 << 10;
/// Small reads for each other read from which on many send little: more than the acknowledgements of one.
const LITTLE_READS: u16 = 8;
/// The count of small reads ends here: earlier ones are forgotten.
const LITTLE_MAX: u16 = 32 * LITTLE_READS;
/// Reads in a row from one client from which on it is alone.
const READS_ALONE: u8 = 32;
/// Most receivers of one client that are few.
const FEW: usize = 4;
/// Most receivers that are not many.
const SOME: usize = 25;

/// Recent reads of a shard, and how many clients it sends to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadBudget {
    last: usize,
    /// Reads in a row from the last client.
    reads: u8,
    /// Reads in this turn.
    reads_in_turn: usize,
    /// Small reads beyond [`LITTLE_READS`] for each other one.
    little: u16,
    /// Clients sent to for each read, in the last turn with reads.
    receivers: usize,
    /// Bytes read in this turn.
    bytes_in_turn: u64,
    /// Messages from clients up to the last turn.
    messages: u64,
    /// Messages of the last turn with any were large.
    are_large: bool,
}

impl ReadBudget {
    /// How many bytes to read from the client in this slot now.
    #[inline]
    pub(super) fn of(&mut self, slot: usize) -> usize {
        self.reads_in_turn += 1;
        self.reads = if self.last == slot { self.reads.saturating_add(1) } else { 0 };
        self.last = slot;
        if self.receivers > SOME {
            READ_BYTES_MIN
        } else if self.little > LITTLE_MAX / 2 {
            READ_BYTES_AMONG
        } else if self.receivers > FEW || self.reads < READS_ALONE {
            READ_BYTES
        } else if self.are_large {
            READ_BYTES_MAX
        } else {
            READ_BYTES_ALONE
        }
    }

    /// Records that `bytes` bytes came from a read.
    #[inline]
    pub(super) fn received(&mut self, bytes: usize) {
        self.bytes_in_turn += bytes as u64;
        self.little = if bytes < LITTLE_BYTES {
            (self.little + 1).min(LITTLE_MAX)
        } else {
            self.little.saturating_sub(LITTLE_READS)
        };
    }

    /// Ends a turn that sends to `receivers` clients; `messages` counts all messages of clients so far.
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
    use super::{FEW, READ_BYTES, READ_BYTES_ALONE, READ_BYTES_MIN, READS_ALONE};
    use super::{LARGE_BYTES, LITTLE_BYTES, LITTLE_READS, READ_BYTES_AMONG, READ_BYTES_MAX};
    use super::{ReadBudget, SOME};

    /// Reads from clients in this order; `bytes` is the budget of the last read.
    #[track_caller]
    fn check(clients: impl IntoIterator<Item = usize>, bytes: usize) {
        let mut budget = ReadBudget::default();
        let last = clients.into_iter().map(|slot| budget.of(slot)).last();
        assert_eq!(last, Some(bytes));
    }

    const LONG: usize = READS_ALONE as usize;

    #[test]
    fn one_that_has_been_alone_for_long_gets_more() {
        check([7; LONG], READ_BYTES);
        check([7; LONG + 1], READ_BYTES_ALONE);
        check([7; 1_000], READ_BYTES_ALONE);
    }

    #[test]
    fn whoever_has_company_gets_its_share() {
        check((0..1_000).map(|at| at % 2), READ_BYTES);
        check((0..1_000).map(|at| usize::from(at % LONG == 0)), READ_BYTES);
    }

    #[test]
    fn somebody_else_ends_that_at_once() {
        check([7; 1_000].into_iter().chain([8]), READ_BYTES);
        check([7; 1_000].into_iter().chain([8, 7]), READ_BYTES);
    }

    #[test]
    fn the_more_receive_it_the_less_is_read() {
        let check = |readers: usize, receivers: usize, bytes: usize| {
            let mut budget = ReadBudget::default();
            let mut last = 0;
            for _ in 0..1_000 {
                last = (0..readers).map(|slot| budget.of(slot)).last().unwrap();
                budget.end_turn(receivers, 0);
                // A turn for others changes nothing.
                budget.end_turn(1, 0);
            }
            assert_eq!(last, bytes, "{receivers} of {readers}");
        };
        check(1, FEW, READ_BYTES_ALONE);
        check(1, FEW + 1, READ_BYTES);
        check(1, SOME, READ_BYTES);
        check(1, SOME + 1, READ_BYTES_MIN);
        check(10, 50, READ_BYTES);
        check(10, 1_000, READ_BYTES_MIN);
    }

    #[test]
    fn one_that_sends_much_gets_less_among_many_that_send_little() {
        let check = |small: u16, small_bytes: usize, bytes: usize| {
            let mut budget = ReadBudget::default();
            let mut last = 0;
            for _ in 0..1_000 {
                for slot in 1..=usize::from(small) {
                    budget.of(slot);
                    budget.received(small_bytes);
                }
                last = budget.of(0);
                budget.received(last);
            }
            assert_eq!(last, bytes, "among {small} with {small_bytes} bytes each");
        };
        check(LITTLE_READS + 1, 1_000, READ_BYTES_AMONG);
        check(20, LITTLE_BYTES - 1, READ_BYTES_AMONG);
        check(20, LITTLE_BYTES, READ_BYTES);
        // These may be acknowledgements of what the one sends.
        check(LITTLE_READS, 1_000, READ_BYTES);
        check(0, 0, READ_BYTES_ALONE);
    }

    #[test]
    fn once_those_who_send_little_have_gone_it_gets_more() {
        let mut budget = ReadBudget::default();
        (0..1_000).for_each(|_| budget.received(100));
        assert_eq!(budget.of(0), READ_BYTES_AMONG);
        (0..1_000).for_each(|_| budget.received(READ_BYTES));
        assert_eq!(budget.of(0), READ_BYTES);
    }

    #[test]
    fn more_is_read_of_large_messages() {
        let check = |bytes: u64, messages: u64, receivers: usize, read_bytes: usize| {
            let mut budget = ReadBudget::default();
            let (mut last, mut came) = (0, 0);
            for _ in 0..1_000 {
                last = budget.of(7);
                budget.received(bytes as usize);
                came += messages;
                budget.end_turn(receivers, came);
                // A turn without any changes nothing.
                budget.end_turn(1, came);
            }
            assert_eq!(last, read_bytes, "{bytes} bytes with {messages} messages to {receivers}");
        };
        check(100_000, 100, 1, READ_BYTES_MAX);
        check(100 * LARGE_BYTES, 100, 1, READ_BYTES_MAX);
        check(100 * LARGE_BYTES - 1, 100, 1, READ_BYTES_ALONE);
        check(100_000, 100, FEW + 1, READ_BYTES);
        // Nothing is known of what is no message.
        check(100_000, 0, 1, READ_BYTES_ALONE);
    }
}
