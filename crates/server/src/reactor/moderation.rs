//! Lets small input gather: a client that writes one message per system call would otherwise have
//! the shard woken for each of them, and a wake-up costs more than the message.
//!
//! Only input that nobody waits for is let gather: streams that the broker answers nothing to, while
//! nothing else comes in. A client that waits for an answer (a request, a confirm) is never held up.
//! Knows nothing about sockets; time is an argument.

use angarium_engine::Time;
use std::time::Duration;

/// How long input may gather. Short against what a stream takes to notice, long against a wake-up.
const PAUSE: Duration = Duration::from_micros(50);
/// Reads without any output to that client, after which its input is a stream.
const STREAM_READS: u8 = 32;
/// Turns with nothing but streams, after which the shard lets input gather.
const STREAM_TURNS: u8 = 32;
/// Turns further apart than this are no stream: there is nothing to gather.
const GAP_MAX: Duration = Duration::from_micros(500);
/// A turn that brought this much is a batch already.
const BATCH_BYTES: usize = 16 << 10;

/// What is known of one client's input.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stream {
    reads: u8,
}

impl Stream {
    /// Something was sent to the client: it may have waited for that.
    #[inline]
    pub(super) fn sent(&mut self) {
        self.reads = 0;
    }
}

/// What is known of the shard's recent turns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moderation {
    bytes: usize,
    has_other: bool,
    stream_turns: u8,
    last_turn: Time,
}

impl Moderation {
    /// `bytes` came from a client.
    #[inline]
    pub(super) fn received(&mut self, stream: &mut Stream, bytes: usize) {
        stream.reads = stream.reads.saturating_add(1);
        self.bytes += bytes;
        self.has_other |= stream.reads < STREAM_READS;
    }

    /// Ends a turn that began at `now`; says how long to let input gather before the next one.
    #[inline]
    pub(super) fn end_turn(&mut self, now: Time) -> Option<Duration> {
        let has_input = self.bytes > 0;
        let is_stream = has_input
            && !self.has_other
            && self.bytes < BATCH_BYTES
            && now.since(self.last_turn) < GAP_MAX;
        if is_stream {
            self.stream_turns = self.stream_turns.saturating_add(1);
        } else if has_input {
            self.stream_turns = 0;
        }
        if has_input {
            self.last_turn = now;
        }
        self.bytes = 0;
        self.has_other = false;
        (is_stream && self.stream_turns >= STREAM_TURNS).then_some(PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH_BYTES, Moderation, PAUSE, STREAM_READS, STREAM_TURNS, Stream};
    use angarium_engine::Time;

    /// Plays `turns` turns, `gap` microseconds apart, each with one read of `bytes` from the client
    /// and, where `answers`, something sent to it; says whether the last one ends in a pause.
    #[track_caller]
    fn check(turns: u32, gap: u64, bytes: usize, answers: bool, pauses: bool) {
        let (mut moderation, mut stream) = (Moderation::default(), Stream::default());
        let mut pause = None;
        for turn in 0..turns {
            moderation.received(&mut stream, bytes);
            if answers {
                stream.sent();
            }
            pause = moderation.end_turn(Time(1_000_000 + u64::from(turn) * gap));
        }
        assert_eq!(pause, pauses.then_some(PAUSE));
    }

    const LONG: u32 = STREAM_READS as u32 + STREAM_TURNS as u32;

    #[test]
    fn a_dense_stream_without_answers_gathers() {
        check(LONG, 10, 100, false, true);
        check(LONG - 2, 10, 100, false, false);
    }

    #[test]
    fn a_client_that_is_answered_is_never_held_up() {
        check(10 * LONG, 10, 100, true, false);
    }

    #[test]
    fn sparse_input_and_batches_do_not_gather() {
        check(10 * LONG, 600, 100, false, false);
        check(10 * LONG, 10, BATCH_BYTES, false, false);
    }

    #[test]
    fn another_clients_input_ends_the_pauses() {
        let (mut moderation, mut stream) = (Moderation::default(), Stream::default());
        for turn in 0..u64::from(LONG) {
            moderation.received(&mut stream, 100);
            let _ = moderation.end_turn(Time(1_000_000 + turn * 10));
        }
        moderation.received(&mut stream, 100);
        moderation.received(&mut Stream::default(), 8);
        assert_eq!(moderation.end_turn(Time(1_001_000)), None);
        moderation.received(&mut stream, 100);
        assert_eq!(moderation.end_turn(Time(1_001_010)), None);
    }
}
