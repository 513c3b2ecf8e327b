//! Polls for a moment before the shard sleeps if the client or shard that it has just sent something to is
//! about to answer: a wake-up takes longer than such an answer, several times as long on a virtual machine.
//!
//! That is so in a chain: input from one party, output to one party, and the next input is from that one
//! within a moment. Streams, many clients and clients that take their time are no chain. Does not know
//! sockets, and clients only as slots; time is an argument.

use angarium_engine::{ShardId, Time};
use std::time::Duration;

/// How long the shard polls: longer than a client takes that waits for a message and sends one, and no more
/// than a few times what a sleep costs.
const SPAN: Duration = Duration::from_micros(50);
/// Answers that come later were thought about.
const ANSWER_MAX: Duration = Duration::from_micros(200);
/// Answers in a row after which another one is likely.
const ANSWERS: u16 = 16;
/// The most answers that it takes, if polling is in vain more often than once in about fifty times: its cost
/// is negligible then.
const ANSWERS_MAX: u16 = 4096;

/// Where input comes from and output goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    /// The client in this slot.
    Client(usize),
    /// Another shard, for clients of its own.
    Shard(ShardId),
}

impl Party {
    /// Its kind's place among the answers that are needed.
    fn kind(self) -> usize {
        usize::from(matches!(self, Party::Shard(_)))
    }
}

/// The parties of one turn's input or output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Parties {
    #[default]
    Nobody,
    One(Party),
    Several,
}

impl Parties {
    #[inline]
    fn and(self, party: Party) -> Parties {
        match self {
            Parties::Nobody => Parties::One(party),
            Parties::One(other) if other == party => self,
            Parties::One(_) | Parties::Several => Parties::Several,
        }
    }
}

/// The shard's recent turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct BusyPoll {
    received: Parties,
    sent: Parties,
    /// Where the last output went, and when.
    last_sent: Parties,
    last_turn: Time,
    /// Answers in a row.
    answers: u16,
    /// How many it takes to wait for a client, and for another shard, by which an answer takes longer.
    needed: [u16; 2],
}

impl Default for BusyPoll {
    fn default() -> BusyPoll {
        let (none, last_turn) = (Parties::Nobody, Time::default());
        let needed = [ANSWERS; 2];
        BusyPoll { received: none, sent: none, last_sent: none, last_turn, answers: 0, needed }
    }
}

impl BusyPoll {
    /// Something came from it.
    #[inline]
    pub(super) fn received(&mut self, party: Party) {
        self.received = self.received.and(party);
    }

    /// Something was sent to it.
    #[inline]
    pub(super) fn sent(&mut self, party: Party) {
        self.sent = self.sent.and(party);
    }

    /// Ends a turn that began at `now`.
    #[inline]
    pub(super) fn end_turn(&mut self, now: Time) {
        let (received, sent) = (std::mem::take(&mut self.received), std::mem::take(&mut self.sent));
        if received != Parties::Nobody {
            let is_answer = matches!(received, Parties::One(_))
                && received == self.last_sent
                && now.since(self.last_turn) <= ANSWER_MAX;
            self.answers = if is_answer { self.answers.saturating_add(1) } else { 0 };
        }
        // A turn for a timer changes nothing.
        if (received, sent) != (Parties::Nobody, Parties::Nobody) {
            (self.last_sent, self.last_turn) = (sent, now);
        }
    }

    /// How long to poll before the next turn.
    #[inline]
    pub(super) fn span(&self) -> Option<Duration> {
        let Parties::One(party) = self.last_sent else { return None };
        (self.answers >= self.needed[party.kind()]).then_some(SPAN)
    }

    /// Polls for `span` at most, by the clock `now`; says whether `look` has found something.
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
                // What is found late may have come soon, while another thread had the processor.
                self.learn(found && at <= until.plus(span));
                return found;
            }
        }
    }

    fn learn(&mut self, found_in_time: bool) {
        let Parties::One(party) = self.last_sent else { return };
        let needed = &mut self.needed[party.kind()];
        if found_in_time {
            *needed -= (*needed / 64).max(1).min(*needed - 1);
        } else {
            *needed = (*needed * 2).min(ANSWERS_MAX);
            self.answers = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ANSWER_MAX, ANSWERS, ANSWERS_MAX, BusyPoll, Party, SPAN};
    use angarium_engine::{ShardId, Time};
    use std::cell::Cell;
    use std::time::Duration;

    const SOON: Duration = Duration::from_micros(20);
    /// From here on numbers are other shards.
    const SHARDS: usize = 100;

    fn party(number: usize) -> Party {
        match number.checked_sub(SHARDS) {
            Some(shard) => Party::Shard(ShardId(u8::try_from(shard).unwrap())),
            None => Party::Client(number),
        }
    }

    /// Turns, so far apart: who is received in each, and who is sent to.
    fn play<'a>(
        busy_poll: &mut BusyPoll,
        apart: Duration,
        turns: impl IntoIterator<Item = (&'a [usize], &'a [usize])>,
    ) {
        let mut now = busy_poll.last_turn;
        for (received, sent) in turns {
            received.iter().for_each(|number| busy_poll.received(party(*number)));
            sent.iter().for_each(|number| busy_poll.sent(party(*number)));
            now = now.plus(apart);
            busy_poll.end_turn(now);
        }
    }

    /// Whether the shard polls after as many turns as it takes.
    #[track_caller]
    fn check(apart: Duration, turns: &[(&[usize], &[usize])], polls: bool) {
        let mut busy_poll = BusyPoll::default();
        play(&mut busy_poll, apart, turns.iter().copied().cycle().take(100 * turns.len()));
        assert_eq!(busy_poll.span(), polls.then_some(SPAN), "{turns:?}");
    }

    /// Two clients that ask and answer, for `turns` turns.
    fn ping_pong(busy_poll: &mut BusyPoll, turns: u16) {
        let both: [(&[usize], &[usize]); 2] = [(&[1], &[2]), (&[2], &[1])];
        play(busy_poll, SOON, both.into_iter().cycle().take(usize::from(turns)));
    }

    /// Polls for something that is there after `after`; a look takes a microsecond, the first one `held_up`
    /// longer.
    fn poll(busy_poll: &mut BusyPoll, after: Duration, held_up: Duration) -> bool {
        let now = Cell::new(Time::default());
        let span = busy_poll.span().expect("an answer is expected");
        let look = || {
            let late = if now.get() == Time::default() { held_up } else { Duration::ZERO };
            now.set(now.get().plus(Duration::from_micros(1) + late));
            now.get().since(Time::default()) >= after
        };
        busy_poll.poll(span, look, || now.get())
    }

    #[test]
    fn who_was_sent_to_and_answers_at_once_is_waited_for() {
        check(SOON, &[(&[1], &[2]), (&[2], &[1])], true);
        check(SOON, &[(&[1], &[1])], true);
        check(SOON, &[(&[1], &[2]), (&[2], &[3]), (&[3], &[1])], true);
        check(SOON, &[(&[1], &[2]), (&[], &[]), (&[2], &[1])], true);
        // One who asks here, another who answers elsewhere: as either shard sees it.
        check(SOON, &[(&[1], &[SHARDS]), (&[SHARDS], &[1])], true);
        check(SOON, &[(&[SHARDS], &[2]), (&[2], &[SHARDS])], true);
        // Home, where both are elsewhere.
        check(SOON, &[(&[SHARDS], &[SHARDS + 1]), (&[SHARDS + 1], &[SHARDS])], true);
    }

    #[test]
    fn who_thinks_streams_or_is_one_of_many_is_not() {
        check(ANSWER_MAX + SOON, &[(&[1], &[2]), (&[2], &[1])], false);
        check(SOON, &[(&[1], &[2])], false);
        check(SOON, &[(&[1], &[1, 2]), (&[1], &[1, 2])], false);
        check(SOON, &[(&[1, 2], &[1, 2])], false);
        check(SOON, &[(&[1], &[2]), (&[1], &[2]), (&[2], &[1])], false);
        check(SOON, &[(&[1], &[])], false);
        check(SOON, &[(&[1], &[SHARDS])], false);
        check(SOON, &[(&[SHARDS], &[1])], false);
        check(SOON, &[(&[1], &[SHARDS, SHARDS + 1]), (&[SHARDS], &[1])], false);
    }

    #[test]
    fn it_takes_a_few_answers() {
        let mut busy_poll = BusyPoll::default();
        ping_pong(&mut busy_poll, ANSWERS);
        assert_eq!(busy_poll.span(), None);
        ping_pong(&mut busy_poll, ANSWERS + 1);
        assert_eq!(busy_poll.span(), Some(SPAN));
    }

    #[test]
    fn after_a_miss_among_many_hits_it_polls_again_at_once() {
        let mut busy_poll = BusyPoll::default();
        ping_pong(&mut busy_poll, 2 * ANSWERS);
        for _ in 0..100 {
            assert!(poll(&mut busy_poll, SOON, Duration::ZERO));
        }
        assert!(!poll(&mut busy_poll, 2 * SPAN, Duration::ZERO));
        assert_eq!(busy_poll.span(), None);
        ping_pong(&mut busy_poll, 4);
        assert_eq!(busy_poll.span(), Some(SPAN));
    }

    #[test]
    fn that_other_shards_take_too_long_does_not_end_the_polling_for_clients() {
        let mut busy_poll = BusyPoll::default();
        let (mut for_client, mut for_shard) = (0, 0);
        let (client, shard): (&[usize], &[usize]) = (&[1], &[SHARDS]);
        for _ in 0..ANSWERS_MAX {
            play(&mut busy_poll, SOON, [(shard, client)]);
            if busy_poll.span().is_some() {
                assert!(poll(&mut busy_poll, SOON, Duration::ZERO));
                for_client += 1;
            }
            play(&mut busy_poll, SOON, [(client, shard)]);
            if busy_poll.span().is_some() {
                assert!(!poll(&mut busy_poll, 2 * SPAN, Duration::ZERO));
                for_shard += 1;
            }
        }
        assert!(for_client > ANSWERS_MAX * 9 / 10, "{for_client}");
        assert!(for_shard < 10, "{for_shard}");
    }

    #[test]
    fn polling_in_vain_ends() {
        for (after, held_up) in [(2 * SPAN, Duration::ZERO), (SOON, 3 * SPAN)] {
            let mut busy_poll = BusyPoll::default();
            let mut polled = 0;
            for _ in 0..ANSWERS_MAX {
                ping_pong(&mut busy_poll, 1);
                if busy_poll.span().is_some() {
                    poll(&mut busy_poll, after, held_up);
                    polled += 1;
                }
            }
            assert!(polled < 10, "{polled}");
        }
    }
}
