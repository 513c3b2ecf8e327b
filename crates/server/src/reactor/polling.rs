//! Polls for a moment before the shard sleeps, where the client that it has just sent something to is about
//! to answer: to be woken takes longer than such an answer, on a virtual machine several times as long.
//!
//! That is so in a chain: one client is heard, one is sent to, and it is that one who is heard next, at
//! once. Streams, crowds and clients that think are no such chain. Knows clients as slots, and nothing about
//! sockets; time is an argument.

use angarium_engine::Time;
use std::time::Duration;

/// How long the shard polls: longer than a client takes that waits for a message and sends one, and no more
/// than a few times what a sleep costs.
const SPAN: Duration = Duration::from_micros(50);
/// Answers that come later were thought about.
const ANSWER_MAX: Duration = Duration::from_micros(200);
/// So many answers in a row, and there is likely to be another one.
const ANSWERS: u16 = 16;
/// The same where polling is in vain, more than once in about fifty times: it takes as good as nothing then.
const ANSWERS_MAX: u16 = 4096;

/// Who was heard, or sent to, in one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Whom {
    #[default]
    Nobody,
    One(usize),
    Several,
}

impl Whom {
    #[inline]
    fn and(self, slot: usize) -> Whom {
        match self {
            Whom::Nobody => Whom::One(slot),
            Whom::One(other) if other == slot => self,
            Whom::One(_) | Whom::Several => Whom::Several,
        }
    }
}

/// What is known of the shard's recent turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Polling {
    heard: Whom,
    sent: Whom,
    /// Who was sent to before, and when.
    last_sent: Whom,
    last_turn: Time,
    /// Answers in a row.
    answers: u16,
    /// How many it takes.
    answers_needed: u16,
}

impl Default for Polling {
    fn default() -> Polling {
        Polling {
            heard: Whom::Nobody,
            sent: Whom::Nobody,
            last_sent: Whom::Nobody,
            last_turn: Time::default(),
            answers: 0,
            answers_needed: ANSWERS,
        }
    }
}

impl Polling {
    /// Something came from the client in this slot.
    #[inline]
    pub(super) fn heard(&mut self, slot: usize) {
        self.heard = self.heard.and(slot);
    }

    /// Something was sent to it.
    #[inline]
    pub(super) fn sent(&mut self, slot: usize) {
        self.sent = self.sent.and(slot);
    }

    /// Ends a turn that began at `now`.
    #[inline]
    pub(super) fn end_turn(&mut self, now: Time) {
        let (heard, sent) = (std::mem::take(&mut self.heard), std::mem::take(&mut self.sent));
        if heard != Whom::Nobody {
            let is_answer = matches!(heard, Whom::One(_))
                && heard == self.last_sent
                && now.since(self.last_turn) <= ANSWER_MAX;
            self.answers = if is_answer { self.answers.saturating_add(1) } else { 0 };
        }
        // A turn for a timer or for another shard changes nothing.
        if (heard, sent) != (Whom::Nobody, Whom::Nobody) {
            (self.last_sent, self.last_turn) = (sent, now);
        }
    }

    /// How long to poll before the next turn.
    #[inline]
    pub(super) fn span(&self) -> Option<Duration> {
        let is_expected = self.answers >= self.answers_needed;
        (is_expected && matches!(self.last_sent, Whom::One(_))).then_some(SPAN)
    }

    /// Polls for so long at most, by the time that `now` tells; says whether `look` has found something.
    pub(super) fn poll(
        &mut self,
        span: Duration,
        mut look: impl FnMut() -> bool,
        now: impl Fn() -> Time,
    ) -> bool {
        let until = now().plus(span);
        loop {
            let found = look();
            let at = now();
            if found || at >= until {
                // What is found late may have come at once, while somebody else had the processor.
                self.learn(found && at <= until.plus(span));
                return found;
            }
        }
    }

    fn learn(&mut self, found_in_time: bool) {
        if found_in_time {
            self.answers_needed -= (self.answers_needed / 64).max(1).min(self.answers_needed - 1);
        } else {
            self.answers_needed = (self.answers_needed * 2).min(ANSWERS_MAX);
            self.answers = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ANSWER_MAX, ANSWERS, ANSWERS_MAX, Polling, SPAN};
    use angarium_engine::Time;
    use std::cell::Cell;
    use std::time::Duration;

    const SOON: Duration = Duration::from_micros(20);

    /// Turns, so far apart: who is heard in each, and who is sent to.
    fn play<'a>(
        polling: &mut Polling,
        apart: Duration,
        turns: impl IntoIterator<Item = (&'a [usize], &'a [usize])>,
    ) {
        let mut now = polling.last_turn;
        for (heard, sent) in turns {
            heard.iter().for_each(|slot| polling.heard(*slot));
            sent.iter().for_each(|slot| polling.sent(*slot));
            now = now.plus(apart);
            polling.end_turn(now);
        }
    }

    /// Whether the shard polls after as many turns as it takes.
    #[track_caller]
    fn check(apart: Duration, turns: &[(&[usize], &[usize])], polls: bool) {
        let mut polling = Polling::default();
        play(&mut polling, apart, turns.iter().copied().cycle().take(100 * turns.len()));
        assert_eq!(polling.span(), polls.then_some(SPAN), "{turns:?}");
    }

    /// Two who ask and answer, for so many turns.
    fn ping_pong(polling: &mut Polling, turns: u16) {
        let both: [(&[usize], &[usize]); 2] = [(&[1], &[2]), (&[2], &[1])];
        play(polling, SOON, both.into_iter().cycle().take(usize::from(turns)));
    }

    /// Polls for something that is there after so long, where a look takes a microsecond, and the first one
    /// `held_up` longer.
    fn poll(polling: &mut Polling, after: Duration, held_up: Duration) -> bool {
        let now = Cell::new(Time::default());
        let span = polling.span().expect("an answer is expected");
        let look = || {
            let late = if now.get() == Time::default() { held_up } else { Duration::ZERO };
            now.set(now.get().plus(Duration::from_micros(1) + late));
            now.get().since(Time::default()) >= after
        };
        polling.poll(span, look, || now.get())
    }

    #[test]
    fn who_was_sent_to_and_answers_at_once_is_waited_for() {
        check(SOON, &[(&[1], &[2]), (&[2], &[1])], true);
        check(SOON, &[(&[1], &[1])], true);
        check(SOON, &[(&[1], &[2]), (&[2], &[3]), (&[3], &[1])], true);
        // The answer to a client comes by way of another shard.
        check(SOON, &[(&[1], &[]), (&[], &[1])], true);
        check(SOON, &[(&[1], &[2]), (&[], &[]), (&[2], &[1])], true);
    }

    #[test]
    fn who_thinks_streams_or_is_one_of_many_is_not() {
        check(ANSWER_MAX + SOON, &[(&[1], &[2]), (&[2], &[1])], false);
        check(SOON, &[(&[1], &[2])], false);
        check(SOON, &[(&[1], &[1, 2]), (&[1], &[1, 2])], false);
        check(SOON, &[(&[1, 2], &[1, 2])], false);
        check(SOON, &[(&[1], &[2]), (&[1], &[2]), (&[2], &[1])], false);
        check(SOON, &[(&[1], &[])], false);
    }

    #[test]
    fn it_takes_a_few_answers() {
        let mut polling = Polling::default();
        ping_pong(&mut polling, ANSWERS);
        assert_eq!(polling.span(), None);
        ping_pong(&mut polling, ANSWERS + 1);
        assert_eq!(polling.span(), Some(SPAN));
    }

    #[test]
    fn after_a_miss_among_many_hits_it_polls_again_at_once() {
        let mut polling = Polling::default();
        ping_pong(&mut polling, 2 * ANSWERS);
        for _ in 0..100 {
            assert!(poll(&mut polling, SOON, Duration::ZERO));
        }
        assert!(!poll(&mut polling, 2 * SPAN, Duration::ZERO));
        assert_eq!(polling.span(), None);
        ping_pong(&mut polling, 4);
        assert_eq!(polling.span(), Some(SPAN));
    }

    #[test]
    fn polling_in_vain_ends() {
        for (after, held_up) in [(2 * SPAN, Duration::ZERO), (SOON, 3 * SPAN)] {
            let mut polling = Polling::default();
            let mut polled = 0;
            for _ in 0..ANSWERS_MAX {
                ping_pong(&mut polling, 1);
                if polling.span().is_some() {
                    poll(&mut polling, after, held_up);
                    polled += 1;
                }
            }
            assert!(polled < 10, "{polled}");
        }
    }
}
