//! Timers: what is due when, in one order.

use crate::Time;
use std::collections::BTreeSet;

/// What a timer is for; numbers are slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The head of a queue expires.
    Head(u32),
    /// A queue expires because it is not used.
    Queue(u32),
    /// A channel's unsettled deliveries return.
    Settle(u32),
    /// A transaction has been open for long.
    Transaction(u32),
    /// A queue that hands out much has rested.
    Share(u32),
    /// Producers paused because of a queue that grows, and go on.
    Pauses,
    /// A delayed message is due.
    Delay,
    /// A detached session expires.
    Session(u32),
    /// The will of a detached session is due.
    Will(u32),
    /// A retained message expires.
    Retained,
    /// A temporary queue goes if it has become empty.
    Lifetime(u32),
}

/// Timers by time. One that is not wanted any more may stay: the receiver checks that.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeSet<(Time, Timer)>,
}

impl Timers {
    pub(crate) fn set(&mut self, at: Time, timer: Timer) {
        self.due.insert((at, timer));
    }

    pub(crate) fn clear(&mut self, at: Time, timer: Timer) {
        self.due.remove(&(at, timer));
    }

    /// Has a timer that is kept in `current` go off at another time, or not at all.
    pub(crate) fn reset(&mut self, current: &mut Option<Time>, at: Option<Time>, timer: Timer) {
        if let Some(before) = std::mem::replace(current, at) {
            self.clear(before, timer);
        }
        if let Some(at) = at {
            self.set(at, timer);
        }
    }

    /// Has a timer that is kept in `current` go off no later than `at`.
    #[inline]
    pub(crate) fn bring_forward(&mut self, current: &mut Option<Time>, at: Time, timer: Timer) {
        if current.is_none_or(|current| at < current) {
            self.reset(current, Some(at), timer);
        }
    }

    pub(crate) fn first(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The first timer that is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Timer> {
        let (at, _) = self.due.first()?;
        if *at > now { None } else { self.due.pop_first().map(|(_, timer)| timer) }
    }
}
