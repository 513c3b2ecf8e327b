//! Threads that hash passwords for all shards: the first from the start on, the others with the first check.

use super::checks::{Check, Waiter};
use super::{Attempt, Authenticator, Decision, password};
use crate::threads;
use angarium_protocol::Authentication;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// After which time a check begins again for which there was no memory.
const MEMORY_PAUSE: Duration = Duration::from_millis(250);

/// What all shards share of logins. Clones are the same.
#[derive(Clone)]
pub struct Logins(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// A check has come.
    wake: Condvar,
}

struct State {
    authenticator: Authenticator,
    /// Threads to be started.
    to_start: u64,
}

impl std::fmt::Debug for Logins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logins").finish_non_exhaustive()
    }
}

impl Logins {
    /// With at most `threads` threads.
    pub fn new(threads: u64) -> Logins {
        let state = State { authenticator: Authenticator::default(), to_start: threads };
        Logins(Arc::new(Shared { state: Mutex::new(state), wake: Condvar::new() }))
    }

    /// Decides about an attempt at `now`, which counts from any fixed moment.
    pub fn decide(&self, attempt: &Attempt, now: Duration) -> Decision {
        self.lock().authenticator.decide(attempt, now)
    }

    /// Has an attempt checked that was decided to need it; `then` gets the answer, on one of the threads.
    pub fn check(
        &self,
        attempt: Attempt,
        now: Duration,
        then: impl FnOnce(Authentication) + Send + 'static,
    ) {
        let mut state = self.lock();
        let waiter = Waiter { address: attempt.address.clone(), then: Box::new(then) };
        state.authenticator.wait(attempt, now, waiter);
        drop(state);
        self.0.wake.notify_one();
        self.start(u64::MAX);
    }

    /// Starts up to `most` of the threads that do not run yet. Later there may be no memory for them.
    pub(crate) fn start(&self, most: u64) {
        let mut state = self.lock();
        let count = state.to_start.min(most);
        state.to_start -= count;
        drop(state);
        for _ in 0..count {
            let logins = self.clone();
            let started = threads::spawn("password", move || logins.work());
            if let Err(error) = started {
                tracing::error!(%error, "no thread for password checks");
                // The next check tries again.
                self.lock().to_start += 1;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no holder panics")
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            let Some(check) = state.authenticator.next_check() else {
                state = self.0.wake.wait(state).expect("no holder panics");
                continue;
            };
            drop(state);
            let is_right = is_right(&check);
            let (answer, waiters) =
                self.lock().authenticator.checked(&check, is_right, Instant::now());
            for waiter in waiters {
                (waiter.then)(answer.clone());
            }
            state = self.lock();
        }
    }
}

/// Checks a password. Waits while there is no memory for that.
fn is_right(check: &Check) -> bool {
    let mut waits = false;
    loop {
        if let Some(is_right) = password::is_right(&check.password, &check.key.stored) {
            return is_right;
        }
        if !std::mem::replace(&mut waits, true) {
            tracing::error!(
                "the system refuses the memory that the check of a password takes (19 MiB): logins by \
                 password wait until there is some; raise the limit of the process (ulimit -v and -d; \
                 LimitAS=, LimitDATA= of the service)"
            );
        }
        std::thread::sleep(MEMORY_PAUSE);
    }
}
