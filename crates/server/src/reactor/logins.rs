//! Passwords and other credentials of a shard's clients and administrators. Passwords are hashed on threads,
//! whose answers come by mailbox. Refusals wait, so that their time does not tell which users there are.

use super::shard::Shard;
use crate::authenticate::{Attempt, Decision};
use angarium_engine::Time;
use angarium_node::Verification;
use angarium_protocol::{Authentication, Credentials};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Refusals of passwords come a multiple of this after the attempt.
const REFUSAL_STEP: Duration = Duration::from_millis(250);
/// Refusals that wait at once; further ones come immediately.
const REFUSALS_MAX: usize = 16_384;

/// Gets the answer to an attempt, on the shard's thread.
type Then = Box<dyn FnOnce(&mut Shard, Authentication) + Send>;

/// Refusals that wait for their time.
#[derive(Default)]
pub(super) struct Refusals {
    waiting: BTreeMap<(Time, u64), (String, Then)>,
    last: u64,
}

impl Refusals {
    pub(super) fn deadline(&self) -> Option<Time> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }
}

impl Shard {
    /// Checks a client's credentials.
    pub(super) fn verify(&mut self, verification: Verification) {
        let Verification { connection, serial, credentials, password_hash, address, .. } =
            verification;
        // By a Unix socket there is neither host nor port.
        let (host, by_socket) = match address.rsplit_once(':') {
            Some((host, _)) => (host.to_owned(), false),
            None => (address, true),
        };
        let comes_first = by_socket || self.node.engine().is_administrator(credentials.user());
        let attempt = Attempt { credentials, stored: password_hash, address: host, comes_first };
        self.check(attempt, move |shard, answer| {
            if let Err(why) = &answer {
                shard.complain(why);
            }
            shard.node.verified(shard.now, connection, serial, answer);
        });
    }

    /// Checks credentials as a client's would be, for the administration API.
    pub fn authenticate(
        &mut self,
        credentials: Credentials,
        host: String,
        then: impl FnOnce(&mut Shard, Authentication) + Send + 'static,
    ) {
        let engine = self.node.engine();
        let stored = engine.password_hash(credentials.user()).map(str::to_owned);
        let comes_first = engine.is_administrator(credentials.user());
        self.check(Attempt { credentials, stored, address: host, comes_first }, then);
    }

    /// Checks credentials, here or on a thread; `then` gets the answer on this one.
    fn check(
        &mut self,
        attempt: Attempt,
        then: impl FnOnce(&mut Shard, Authentication) + Send + 'static,
    ) {
        let began = self.now;
        let now = Duration::from_micros(began.0);
        match self.directory.logins.decide(&attempt, now) {
            Decision::Answered(answer) => then(self, answer),
            Decision::Refused(why, took) => self.refuse_later(began, took, why, Box::new(then)),
            Decision::ToCheck => {
                let mailbox = self.mailbox.clone();
                self.directory.logins.check(attempt, now, move |answer| {
                    // A shard that has ended needs no answer.
                    let _ = mailbox.tell(move |shard| match answer {
                        Ok(_) => then(shard, answer),
                        Err(why) => {
                            let took = shard.now.since(began);
                            shard.refuse_later(began, took, why, Box::new(then));
                        }
                    });
                });
            }
        }
    }

    /// Refuses an attempt at the next step of time after what its check took.
    fn refuse_later(&mut self, began: Time, took: Duration, why: String, then: Then) {
        if self.refusals.waiting.len() >= REFUSALS_MAX {
            return then(self, Err(why));
        }
        self.refusals.last += 1;
        let due = began.plus(told_after(took));
        self.refusals.waiting.insert((due, self.refusals.last), (why, then));
    }

    /// Refuses those whose time has come.
    pub(super) fn refuse_due(&mut self) {
        while self.refusals.deadline().is_some_and(|due| due <= self.now) {
            let Some((_, (why, then))) = self.refusals.waiting.pop_first() else { return };
            then(self, Err(why));
        }
    }

    /// Logs why a login was refused, at most once a second.
    pub(crate) fn complain(&mut self, why: &str) {
        if let Some(held_back) = self.complaints.pass(Instant::now()) {
            tracing::warn!(why, held_back, "login refused");
        }
    }
}

/// How long after an attempt its refusal comes, where its check took so long.
fn told_after(took: Duration) -> Duration {
    let step = REFUSAL_STEP.as_micros();
    let steps = took.as_micros().div_ceil(step).max(1);
    REFUSAL_STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_come_in_steps_of_time() {
        for (took, expected) in
            [(0, 250), (1, 250), (17, 250), (250, 250), (251, 500), (1_700, 1_750)]
        {
            let found = told_after(Duration::from_millis(took));
            assert_eq!(found, Duration::from_millis(expected), "{took}");
        }
    }
}
