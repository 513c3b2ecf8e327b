//! Slows guessing down: after some wrong passwords, a user is refused from that address for a
//! while that doubles. Other users and other addresses are not concerned.

use std::collections::HashMap;
use std::time::Duration;

/// Wrong passwords in a row that cost nothing.
const FREE_FAILURES: u32 = 5;
/// First pause; doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A pair of address and user is forgotten after this long without a failure.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
/// Pairs remembered at once.
const PAIRS_MAX: usize = 10_000;

/// Who guessed wrong how often.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: HashMap<(String, String), Failures>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Duration,
}

impl Failures {
    fn until(self) -> Duration {
        let Some(doublings) = self.count.checked_sub(FREE_FAILURES) else { return self.last };
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings.min(16));
        self.last + pause.min(LONGEST_PAUSE)
    }
}

impl Backoff {
    /// How long the user is still refused from this address.
    pub(super) fn remaining(&self, address: &str, user: &str, now: Duration) -> Option<Duration> {
        let failures = self.failures.get(&(address.to_owned(), user.to_owned()))?;
        failures.until().checked_sub(now).filter(|left| !left.is_zero())
    }

    /// A wrong password.
    pub(super) fn failed(&mut self, address: &str, user: &str, now: Duration) {
        if self.failures.len() >= PAIRS_MAX {
            self.failures.retain(|_, failures| now < failures.last + FORGOTTEN_AFTER);
        }
        if self.failures.len() >= PAIRS_MAX {
            self.failures.clear();
        }
        let pair = (address.to_owned(), user.to_owned());
        let failures = self.failures.entry(pair).or_insert(Failures { count: 0, last: now });
        if now >= failures.last + FORGOTTEN_AFTER {
            failures.count = 0;
        }
        failures.count += 1;
        failures.last = now;
    }

    /// A right password.
    pub(super) fn succeeded(&mut self, address: &str, user: &str) {
        self.failures.remove(&(address.to_owned(), user.to_owned()));
    }
}
