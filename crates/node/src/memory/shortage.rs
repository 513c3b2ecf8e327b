//! When memory is short in all, who holds most of it then, and when that is over: for the host's log.

use super::account::{Account, Owner};
use angarium_engine::{MemoryKind, Time};
use std::time::Duration;

/// Eighths of the limit in all from which on memory is short: two connections that hold as much as they may
/// hold more.
const SHORT_EIGHTHS: u64 = 5;
/// It is no longer at this many: one such connection holds as much.
const RELIEVED_EIGHTHS: u64 = 4;
/// How long after a shortage was logged the next one may be.
const PAUSE: Duration = Duration::from_secs(60);

/// Memory is short, or no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryNews {
    /// It is short.
    pub is_short: bool,
    /// What is held in all.
    pub held: u64,
    /// What may be held in all.
    pub max: u64,
    /// The user who holds most.
    pub largest: Option<Owner>,
    /// What messages hold that are nobody's: those of queues, delayed and spooled ones.
    pub messages: u64,
}

/// Whether memory is short, and what the host was told of it.
#[derive(Debug, Default)]
pub(crate) struct Shortage {
    is_short: bool,
    is_told: bool,
    told_at: Option<Time>,
    pub(crate) untold: Option<MemoryNews>,
}

impl Shortage {
    /// Looks at what is held; says whether the host is to be told, and that it is short or no longer is.
    pub(crate) fn look(&mut self, now: Time, held: u64, max: u64) -> Option<bool> {
        let eighths = if self.is_short { RELIEVED_EIGHTHS } else { SHORT_EIGHTHS };
        self.is_short = held > max / 8 * eighths;
        let is_due = self.told_at.is_none_or(|at| now.since(at) >= PAUSE);
        if self.is_short == self.is_told || (self.is_short && !is_due) {
            return None;
        }
        self.is_told = self.is_short;
        if self.is_short {
            self.told_at = Some(now);
        }
        Some(self.is_short)
    }
}

impl MemoryNews {
    /// As an account stands.
    pub(crate) fn of(account: &Account, is_short: bool, max: u64) -> MemoryNews {
        let here = account.here();
        let messages = here.get(MemoryKind::Messages) + here.get(MemoryKind::Spooled);
        MemoryNews { is_short, held: account.all(), max, largest: account.largest(), messages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shortage_is_told_once_a_minute_and_its_end_once() {
        let mut shortage = Shortage::default();
        for (seconds, held, told) in [
            (0, 40, None),
            (1, 50, None),
            (2, 51, Some(true)),
            (3, 80, None),
            (4, 41, None),
            (5, 40, Some(false)),
            (6, 45, None),
            // One that comes soon after counts only if it lasts.
            (7, 60, None),
            (8, 40, None),
            (9, 60, None),
            (61, 60, None),
            (62, 60, Some(true)),
            (63, 0, Some(false)),
            (200, 80, Some(true)),
        ] {
            let now = Time(seconds * 1_000_000);
            assert_eq!(shortage.look(now, held, 80), told, "after {seconds} s");
        }
    }
}
