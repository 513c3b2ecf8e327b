//! Lets small input gather: a client that writes one message per system call would otherwise have
//! the shard woken for each of them, and a wake-up costs more than the message.
//!
//! Only input that nobody waits for is let gather: streams that the broker answers nothing to, while
//! nothing else comes in. A client that waits for an answer (a request, a confirm) is never held up, nor is
//! a stream so sparse that its wake-ups take little of a processor. Knows nothing about sockets; time is an
//! argument.

use angarium_engine::Time;
use std::time::Duration;

/// How long input may gather. Short against what a stream takes to notice, long against a wake-up.
const PAUSE: Duration = Duration::from_micros(50);
/// Reads without any output to that client, after which its input is a stream.
const STREAM_READS: u8 = 32;
/// Turns with nothing but streams, after which the shard looks how dense they are.
const STREAM_TURNS: u8 = 32;
/// How far apart their messages may be, for the shard to let input gather: there are 100,000 a second.
const MESSAGE_GAP_MAX: Duration = Duration::from_micros(10);
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
    last_turn: Time,
    /// Turns with nothing but streams, since a time when there had been so many messages.
    stream_turns: u8,
    since: (Time, u64),
    is_dense: bool,
}

impl Moderation {
    /// `bytes` came from a client.
    #[inline]
    pub(super) fn received(&mut self, stream: &mut Stream, bytes: usize) {
        stream.reads = stream.reads.saturating_add(1);
        self.bytes += bytes;
        self.has_other |= stream.reads < STREAM_READS;
    }

    /// Ends a turn that began at `now`, with so many `messages` from clients since the beginning; says how
    /// long to let input gather before the next one.
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
            self.since = (now, messages());
        } else if self.stream_turns == STREAM_TURNS {
            self.is_dense = self.look(now, messages());
            self.stream_turns = 0;
        }
        self.stream_turns += 1;
        self.is_dense.then_some(PAUSE)
    }

    /// Whether messages have come close upon each other.
    fn look(&mut self, now: Time, messages: u64) -> bool {
        let (since, before) = std::mem::replace(&mut self.since, (now, messages));
        let come = u32::try_from(messages.saturating_sub(before)).unwrap_or(u32::MAX);
        now.since(since) <= MESSAGE_GAP_MAX * come
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH_BYTES, Moderation, PAUSE, STREAM_READS, STREAM_TURNS, Stream};
    use angarium_engine::Time;

    /// Plays `turns` turns, `gap` microseconds apart, each with one read of `bytes` and so many messages from
    /// the client and, where `answers`, something sent to it; says whether the last one ends in a pause.
    #[track_caller]
    fn check(turns: u32, gap: u64, (bytes, messages): (usize, u64), answers: bool, pauses: bool) {
        let (mut moderation, mut stream) = (Moderation::default(), Stream::default());
        let mut pause = None;
        for turn in 0..u64::from(turns) {
            moderation.received(&mut stream, bytes);
            if answers {
                stream.sent();
            }
            pause = moderation.end_turn(Time(1_000_000 + turn * gap), || turn * messages);
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
        let (mut moderation, mut stream) = (Moderation::default(), Stream::default());
        let (mut now, mut pauses) = (Time(1_000_000), Vec::new());
        for turn in 0..4 * u64::from(LONG) {
            let gap = if turn < 2 * u64::from(LONG) { 10 } else { 100 };
            now = now.plus(std::time::Duration::from_micros(gap));
            moderation.received(&mut stream, 100);
            pauses.push(moderation.end_turn(now, || turn).is_some());
        }
        let half = pauses.len() / 2;
        assert_eq!((pauses[half - 1], pauses[2 * half - 1]), (true, false));
    }

    #[test]
    fn another_clients_input_ends_the_pauses() {
        let (mut moderation, mut stream) = (Moderation::default(), Stream::default());
        for turn in 0..u64::from(LONG) {
            moderation.received(&mut stream, 100);
            let _ = moderation.end_turn(Time(1_000_000 + turn * 10), || turn);
        }
        moderation.received(&mut stream, 100);
        moderation.received(&mut Stream::default(), 8);
        assert_eq!(moderation.end_turn(Time(1_001_000), || 100), None);
        moderation.received(&mut stream, 100);
        assert_eq!(moderation.end_turn(Time(1_001_010), || 101), None);
    }
}
