//! Publisher confirms of one session: numbers go out in order, many at once where that is possible.

use crate::{Confirm, Effects, Position, SessionId};
use std::collections::VecDeque;

/// What of a session's publishes is not confirmed yet. Refused ones are told at once, so that a
/// later confirm of several never speaks for them.
#[derive(Debug, Default)]
pub(crate) struct Confirms {
    /// The number of the last publish.
    last: u64,
    /// Every number up to this one was told.
    told: u64,
    /// Numbers up to this one can be told, but for refused ones.
    ready: u64,
    /// The last publish that each position waits for, both in order.
    waiting: VecDeque<(Position, u64)>,
    /// It is in the engine's list of those that have something to tell.
    pub(crate) is_listed: bool,
}

impl Confirms {
    /// Counts a publish and says its number.
    #[inline]
    pub(crate) fn count(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The publish of that number is taken over once the record at `position` is flushed, or at once
    /// where there is none. One that waits for nothing does not overtake one that waits.
    #[inline]
    pub(crate) fn taken(&mut self, number: u64, position: Option<Position>) {
        match (position, self.waiting.back_mut()) {
            (None, None) => self.ready = number,
            (None, Some((_, up_to))) => *up_to = number,
            (Some(position), Some((last, up_to))) if *last == position => *up_to = number,
            (Some(position), _) => self.waiting.push_back((position, number)),
        }
    }

    /// The publish of that number is refused.
    pub(crate) fn refused<F: Effects>(&mut self, number: u64, session: SessionId, fx: &mut F) {
        fx.confirm(session, Confirm { number, multiple: false, accepted: false });
        if self.told + 1 == number {
            self.told = number;
            self.ready = number;
        }
    }

    /// Everything before `position` is flushed.
    pub(crate) fn flushed(&mut self, position: Position) {
        while let Some((waits_for, number)) = self.waiting.front().copied() {
            if waits_for >= position {
                break;
            }
            self.waiting.pop_front();
            self.ready = number;
        }
    }

    /// Tells what is ready.
    pub(crate) fn tell<F: Effects>(&mut self, session: SessionId, fx: &mut F) {
        if self.ready > self.told {
            let multiple = self.ready > self.told + 1;
            fx.confirm(session, Confirm { number: self.ready, multiple, accepted: true });
            self.told = self.ready;
        }
    }

    /// Nothing will be flushed any more: refuses all that waits.
    pub(crate) fn fail<F: Effects>(&mut self, session: SessionId, fx: &mut F) {
        self.tell(session, fx);
        if let Some((_, number)) = self.waiting.back().copied() {
            fx.confirm(session, Confirm { number, multiple: true, accepted: false });
            self.waiting.clear();
            self.told = number;
            self.ready = number;
        }
    }

    /// Whether a flush is waited for.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}
