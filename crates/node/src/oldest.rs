//! Takes the oldest direct messages out of what is not sent yet, whole ones only.
//!
//! Knows where in the output they lie and whose they are, not what they look like.

use angarium_engine::Lost;
use std::collections::VecDeque;

/// Where the direct messages lie that may be taken out of one connection's output. Kept only for
/// connections that say so: it costs some 32 bytes for each message that is not sent.
#[derive(Debug, Default)]
pub(crate) struct Droppable {
    /// Bytes of output that have left the buffer since the beginning.
    before: u64,
    /// The messages, oldest first.
    messages: VecDeque<Message>,
}

/// One message in the output.
#[derive(Clone, Copy, Debug)]
struct Message {
    /// Its first byte, counted from the beginning of the connection.
    start: u64,
    bytes: u32,
    whose: Whose,
    /// How many messages it tells of that were missed before.
    untold: u64,
}

/// Which listener a message is for: the number of its session, and the tag of its deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Whose {
    pub(crate) session: u16,
    pub(crate) tag: u64,
}

impl Droppable {
    /// A message was written at the end of the output, from `start` on. `untold`: those it tells of
    /// that were missed.
    pub(crate) fn written(&mut self, start: usize, end: usize, whose: Whose, untold: u64) {
        let bytes = u32::try_from(end - start).expect("limits keep messages below 4 GiB");
        let start = self.before + start as u64;
        self.messages.push_back(Message { start, bytes, whose, untold });
    }

    /// The first `bytes` of the buffer were taken out of it: all of them are sent.
    pub(crate) fn left(&mut self, bytes: usize) {
        self.before += bytes as u64;
        self.forget(self.before);
    }

    /// Forgets messages that begin before a place: they are sent, at least in part.
    fn forget(&mut self, place: u64) {
        while self.messages.front().is_some_and(|message| message.start < place) {
            self.messages.pop_front();
        }
    }

    /// Takes the oldest messages out of `buffer`, of which `sent` bytes are sent, until `wanted` bytes
    /// are free or none is left. What is between them stays, and what is before them is moved
    /// towards the rest: `sent` grows. Says which listener misses what.
    pub(crate) fn drop_oldest(
        &mut self,
        buffer: &mut [u8],
        sent: &mut usize,
        wanted: usize,
        mut lost: impl FnMut(Whose, Lost),
    ) {
        self.forget(self.before + *sent as u64);
        let mut freed = 0;
        let mut chosen = 0;
        while freed < wanted && chosen < self.messages.len() {
            freed += self.messages[chosen].bytes as usize;
            chosen += 1;
        }
        let Some(last) = chosen.checked_sub(1).map(|last| self.messages[last]) else { return };
        let place = |message: &Message| (message.start - self.before) as usize;
        // From the last one back, what lies between two of them moves up to what was moved before.
        let mut kept_from = place(&last) + last.bytes as usize;
        let mut end = kept_from;
        for at in (0..chosen).rev() {
            let message = &self.messages[at];
            let between = place(message) + message.bytes as usize..end;
            kept_from -= between.len();
            buffer.copy_within(between, kept_from);
            end = place(message);
        }
        kept_from -= end - *sent;
        buffer.copy_within(*sent..end, kept_from);
        *sent = kept_from;
        for message in self.messages.drain(..chosen) {
            lost(message.whose, Lost::one(message.untold));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output as letters: a run of small ones is a message, large ones are other output.
    struct Output {
        bytes: Vec<u8>,
        sent: usize,
        droppable: Droppable,
    }

    impl Output {
        fn new(text: &str) -> Output {
            let mut output = Output { bytes: Vec::new(), sent: 0, droppable: Droppable::default() };
            for run in text.as_bytes().chunk_by(|one, other| one == other) {
                let start = output.bytes.len();
                output.bytes.extend_from_slice(run);
                if run[0].is_ascii_lowercase() {
                    let whose = Whose { session: 0, tag: run[0].into() };
                    output.droppable.written(start, output.bytes.len(), whose, 0);
                }
            }
            output
        }

        fn free(&mut self, wanted: usize) -> String {
            let mut lost = String::new();
            let Output { bytes, sent, droppable } = self;
            droppable.drop_oldest(bytes, sent, wanted, |whose, count| {
                assert_eq!(count, Lost::one(0));
                lost.push(whose.tag as u8 as char);
            });
            lost
        }

        fn pending(&self) -> &str {
            std::str::from_utf8(&self.bytes[self.sent..]).unwrap()
        }
    }

    #[track_caller]
    fn check(text: &str, sent: usize, wanted: usize, lost: &str, left: &str) {
        let mut output = Output::new(text);
        output.sent = sent;
        assert_eq!((output.free(wanted).as_str(), output.pending()), (lost, left));
    }

    #[test]
    fn the_oldest_go_first_and_no_more_than_have_to() {
        check("aabbccdd", 0, 0, "", "aabbccdd");
        check("aabbccdd", 0, 1, "a", "bbccdd");
        check("aabbccdd", 0, 2, "a", "bbccdd");
        check("aabbccdd", 0, 3, "ab", "ccdd");
        check("aabbccdd", 0, 8, "abcd", "");
        check("aabbccdd", 0, 100, "abcd", "");
    }

    #[test]
    fn one_that_is_sent_in_part_stays() {
        check("aabbccdd", 1, 2, "b", "accdd");
        check("aabbccdd", 2, 2, "b", "ccdd");
        check("aabbccdd", 3, 100, "cd", "b");
        check("aabbccdd", 7, 100, "", "d");
        check("aabbccdd", 8, 100, "", "");
    }

    #[test]
    fn other_output_stays_where_it_was_between_them() {
        check("XXaaYbbZZccW", 0, 4, "ab", "XXYZZccW");
        check("XXaaYbbZZccW", 1, 100, "abc", "XYZZW");
        check("XXXX", 0, 100, "", "XXXX");
    }

    #[test]
    fn a_buffer_that_is_cut_at_its_front_changes_nothing() {
        let mut output = Output::new("aabbcc");
        output.sent = 3;
        output.bytes.drain(..output.sent);
        output.droppable.left(output.sent);
        output.sent = 0;
        let start = output.bytes.len();
        output.bytes.extend_from_slice(b"dd");
        let whose = Whose { session: 0, tag: b'd'.into() };
        output.droppable.written(start, start + 2, whose, 0);
        assert_eq!(output.free(2), "c");
        assert_eq!(output.pending(), "bdd");
        assert_eq!(output.free(100), "d");
        assert_eq!(output.pending(), "b");
    }

    #[test]
    fn what_a_message_would_have_told_of_is_missed_with_it() {
        let mut droppable = Droppable::default();
        let whose = Whose { session: 3, tag: 7 };
        droppable.written(0, 2, whose, 5);
        let mut lost = Vec::new();
        droppable.drop_oldest(&mut [1, 2], &mut 0, 1, |whose, count| lost.push((whose, count)));
        assert_eq!(lost, [(whose, Lost::one(5))]);
    }

    #[test]
    fn any_history_leaves_whole_messages_in_order() {
        let mut random = 1_u64;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..200 {
            let mut output = Output::new("");
            let (mut expected, mut received) = (Vec::new(), Vec::new());
            for number in 0..100_u8 {
                // A message is its number, so many times, behind how many times.
                let length = 1 + draw(9) as u8;
                let start = output.bytes.len();
                output.bytes.push(length);
                output.bytes.extend(std::iter::repeat_n(number, length.into()));
                let end = output.bytes.len();
                if draw(4) > 0 {
                    let whose = Whose { session: 0, tag: number.into() };
                    output.droppable.written(start, end, whose, 0);
                }
                expected.push(number);
                let pending = output.bytes.len() - output.sent;
                let count = draw(pending as u64 / 2 + 1) as usize;
                received.extend_from_slice(&output.bytes[output.sent..output.sent + count]);
                output.sent += count;
                if draw(3) == 0 {
                    output.bytes.drain(..output.sent);
                    output.droppable.left(output.sent);
                    output.sent = 0;
                }
                if draw(3) == 0 {
                    let wanted = draw(20) as usize;
                    let Output { bytes, sent, droppable } = &mut output;
                    droppable.drop_oldest(bytes, sent, wanted, |whose, _| {
                        expected.retain(|number| u64::from(*number) != whose.tag);
                    });
                }
            }
            received.extend_from_slice(&output.bytes[output.sent..]);
            let mut found = Vec::new();
            let mut rest = &received[..];
            while let Some((&length, after)) = rest.split_first() {
                let (body, after) = after.split_at(length.into());
                assert!(body.iter().all(|byte| *byte == body[0]), "{body:?}");
                found.push(body[0]);
                rest = after;
            }
            assert_eq!(found, expected);
        }
    }
}
