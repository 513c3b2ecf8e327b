//! Lets small input gather: a client that writes one message per system call would otherwise wake the shard
//! for each message, and a wake-up costs more than the message.
//!
//! Only streams gather: input that the broker does not answer, while no other input comes. A client that
//! waits for an answer (a request, a confirm) is never delayed, nor is a stream so sparse that its wake-ups
//! take little of a processor. Does not know sockets; time is an argument.

use angarium_engine::Time;
use std::time::Duration;

/// How long input gathers: short for a stream, long compared with a wake-up.
const PAUSE: Duration = Duration::from_micros(50);
/// Reads without output to that client after which its input is a stream.
const STREAM_READS: u8 = 32;
/// Turns with nothing but streams after which their density is measured.
const STREAM_TURNS: u8 = 32;
/// The largest mean distance of messages at which input gathers: 100,000 a second.
const MESSAGE_GAP_MAX: Duration = Duration::from_micros(10);
/// Turns further apart than this have nothing to gather.
const GAP_MAX: Duration = Duration::from_micros(500);
/// A turn with this much input is a batch already.
const BATCH_BYTES: usize = 16 << 10;

/// One client's recent input.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stream {
    reads: u8,
}

impl Stream {
    /// Output was sent to the client, which may have waited for it.
    #[inline]
    pub(super) fn sent(&mut self) {
        self.reads = 0;
    }
}

/// The shard's recent turns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InputCoalescing {
    bytes: usize,
    has_other: bool,
    last_turn: Time,
    /// Turns with nothing but streams since the last measurement.
    stream_turns: u8,
    measured: Measurement,
    is_dense: bool,
}

/// How many messages had come at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Measurement {
    at: Time,
    messages: u64,
}

impl InputCoalescing {
    /// Records that `bytes` bytes came from a client.
    #[inline]
    pub(super) fn received(&mut self, stream: &mut Stream, bytes: usize) {
        stream.reads = stream.reads.saturating_add(1);
        self.bytes += bytes;
        self.has_other |= stream.reads < STREAM_READS;
    }

    /// Ends a turn that began at `now`; `messages` counts all messages of clients so far. Returns how long
    /// input is to gather before the next turn.
    #[inline]
    pub(super) fn end_turn(
        &mut self,
        now: Time,
        messages: impl FnOnce() -> u64,
    ) -> Option<Duration> {
        let bytes = std::mem::take(&mut self.bytes);
        let has_other = std::mem::take(&mut self.has_other);
        if bytes == 0 {
            return None;
        }
        let gap = now.since(std::mem::replace(&mut self.last_turn, now));
        if has_other || bytes >= BATCH_BYTES || gap >= GAP_MAX {
            self.stream_turns = 0;
            self.is_dense = false;
            return None;
        }
        if self.stream_turns == 0 {
            self.measured = Measurement { at: now, messages: messages() };
        } else if self.stream_turns == STREAM_TURNS {
            self.is_dense = self.look(now, messages());
            self.stream_turns = 0;
        }
        self.stream_turns += 1;
        self.is_dense.then_some(PAUSE)
    }

    /// Whether messages came close together since the last measurement.
    fn look(&mut self, now: Time, messages: u64) -> bool {
        let before = std::mem::replace(&mut self.measured, Measurement { at: now, messages });
        let come = messages.saturating_sub(before.messages);
        now.since(before.at) <= MESSAGE_GAP_MAX * u32::try_from(come).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH_BYTES, InputCoalescing, PAUSE, STREAM_READS, STREAM_TURNS, Stream};
    use angarium_engine::Time;

    /// Plays `turns` turns, `gap` microseconds apart, each with one read of `bytes` and `messages` and, if
    /// `answers`, output to the client. Whether the last one ends in a pause is `pauses`.
    #[track_caller]
    fn check(turns: u32, gap: u64, (bytes, messages): (usize, u64), answers: bool, pauses: bool) {
        let (mut coalescing, mut stream) = (InputCoalescing::default(), Stream::default());
        let mut pause = None;
        for turn in 0..u64::from(turns) {
            coalescing.received(&mut stream, bytes);
            if answers {
                stream.sent();
            }
            pause = coalescing.end_turn(Time(1_000_000 + turn * gap), || turn * messages);
        }
        assert_eq!(pause, pauses.then_some(PAUSE));
    }

    const LONG: u32 = STREAM_READS as u32 + STREAM_TURNS as u32;

    #[test]
    fn a_dense_stream_without_answers_gathers() {
        check(LONG, 10, (100, 1), false, true);
        check(LONG - 2, 10, (100, 1), false, false);
        check(10 * LONG, 100, (1_000, 10), false, true);
    }

    #[test]
    fn a_client_that_is_answered_is_never_held_up() {
        check(10 * LONG, 10, (100, 1), true, false);
    }

    #[test]
    fn sparse_input_and_batches_do_not_gather() {
        check(10 * LONG, 600, (100, 1), false, false);
        check(10 * LONG, 11, (100, 1), false, false);
        check(10 * LONG, 100, (900, 9), false, false);
        check(10 * LONG, 10, (BATCH_BYTES, 100), false, false);
    }

    #[test]
    fn a_stream_that_becomes_sparse_gathers_no_more() {
        let (mut coalescing, mut stream) = (InputCoalescing::default(), Stream::default());
        let (mut now, mut pauses) = (Time(1_000_000), Vec::new());
        for turn in 0..4 * u64::from(LONG) {
            let gap = if turn < 2 * u64::from(LONG) { 10 } else { 100 };
            now = now.plus(std::time::Duration::from_micros(gap));
            coalescing.received(&mut stream, 100);
            pauses.push(coalescing.end_turn(now, || turn).is_some());
        }
        let half = pauses.len() / 2;
        assert_eq!((pauses[half - 1], pauses[2 * half - 1]), (true, false));
    }

    #[test]
    fn another_clients_input_ends_the_pauses() {
        let (mut coalescing, mut stream) = (InputCoalescing::default(), Stream::default());
        for turn in 0..u64::from(LONG) {
            coalescing.received(&mut stream, 100);
            let _ = coalescing.end_turn(Time(1_000_000 + turn * 10), || turn);
        }
        coalescing.received(&mut stream, 100);
        coalescing.received(&mut Stream::default(), 8);
        assert_eq!(coalescing.end_turn(Time(1_001_000), || 100), None);
        coalescing.received(&mut stream, 100);
        assert_eq!(coalescing.end_turn(Time(1_001_010), || 101), None);
    }
}
