//! Whether a client is the user that it claims to be: passwords against argon2 hashes, proofs that it knows
//! one, names in certificates, nkeys.
//!
//! Does not know permissions.

mod backoff;
mod cache;
mod checks;
mod nkey;
mod password;
mod secret;
#[cfg(test)]
mod tests;
mod threads;

pub use nkey::is_mistyped as is_mistyped_nkey;
pub use password::{GUEST, NO_PASSWORD, exported, hash, imported};
pub use secret::login_secret;
pub use threads::Logins;

use angarium_protocol::scram::{Proof, Verifier};
use angarium_protocol::{Authentication, Credentials, Identity};
use backoff::Backoff;
use cache::Cache;
use checks::{Check, CheckKey, Checks, Lane, Waiter};
use std::time::{Duration, Instant};

/// For how long the time that the last check took says how long one takes.
const RECENT: Duration = Duration::from_secs(10);

/// Somebody tries to log in.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// What was said.
    pub credentials: Credentials,
    /// The hash of the user that is named; none where there is no such user.
    pub stored: Option<String>,
    /// Where it comes from, without its port.
    pub address: String,
    /// That user may administer, or it comes by a Unix socket of this host: others do not hold it up.
    pub comes_first: bool,
}

/// What becomes of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is answered at once.
    Answered(Authentication),
    /// It is refused for that reason, and hears so when it would if its password had been checked: that takes
    /// about so long.
    Refused(String, Duration),
    /// Its password has to be checked ([`Logins::check`]).
    ToCheck,
}

/// Everything the broker remembers about credentials.
#[derive(Default)]
pub struct Authenticator {
    cache: Cache,
    backoff: Backoff,
    checks: Checks,
    /// How long the last check took, with its wait, and when it ended.
    last_check: Option<(Duration, Instant)>,
}

impl Authenticator {
    fn decide(&mut self, attempt: &Attempt, now: Duration) -> Decision {
        let Attempt { credentials, stored, address, .. } = attempt;
        let user = credentials.user();
        let shown = user.escape_debug();
        let (is_right, why) = match credentials {
            Credentials::Certificate { .. } => {
                (stored.is_some(), format!("the certificate names no user: '{shown}'"))
            }
            // The listener names the user of clients without credentials.
            Credentials::Anonymous { .. } => {
                (stored.is_some(), format!("no user '{shown}' for clients without credentials"))
            }
            Credentials::NKey { user_key, nonce, signature } => (
                stored.is_some() && nkey::is_signed(user_key, nonce, signature),
                format!("no nkey '{shown}', or not its signature, from {address}"),
            ),
            Credentials::Scram { proof, .. } => {
                return self.decide_proof(attempt, user, proof, now);
            }
            Credentials::Password { password, .. } => {
                return self.decide_password(attempt, user, password, now);
            }
        };
        let identity = || Identity { user: user.to_owned() };
        Decision::Answered(if is_right { Ok(identity()) } else { Err(why) })
    }

    fn decide_password(
        &mut self,
        attempt: &Attempt,
        user: &str,
        password: &str,
        now: Duration,
    ) -> Decision {
        let address = attempt.address.as_str();
        let Some(stored) = attempt.stored.as_deref().filter(|it| *it != NO_PASSWORD) else {
            self.backoff.unknown(address, now);
            return Decision::Refused(wrong(user, address), self.usual_duration());
        };
        let key = self.key(user, password, stored);
        if self.cache.holds(&key) {
            self.backoff.known(address, user);
            return Decision::Answered(Ok(Identity { user: user.to_owned() }));
        }
        if !self.checks.has_room(self.lane(attempt, user, now), &key) {
            let why = "too many password checks wait already".to_owned();
            return Decision::Refused(why, self.usual_duration());
        }
        if self.checks.has(&key) {
            return Decision::ToCheck;
        }
        match self.backoff.begin(address, user, now) {
            Ok(()) => Decision::ToCheck,
            Err(left) => Decision::Refused(too_many(user, address, left), self.usual_duration()),
        }
    }

    /// A proof is checked in microseconds: here, and whether it is right or wrong, or there is no such user,
    /// shows in nothing but the answer.
    fn decide_proof(
        &mut self,
        attempt: &Attempt,
        user: &str,
        proof: &Proof,
        now: Duration,
    ) -> Decision {
        let address = attempt.address.as_str();
        let refuse = |why| Decision::Refused(why, Duration::ZERO);
        let stored = attempt.stored.as_deref().filter(|it| Verifier::find(it).is_some());
        let Some(stored) = stored else {
            self.backoff.unknown(address, now);
            return refuse(wrong(user, address));
        };
        if let Err(left) = self.backoff.begin(address, user, now) {
            return refuse(too_many(user, address, left));
        }
        if !proof.is_right(stored) {
            return refuse(wrong(user, address));
        }
        self.backoff.succeeded(address, user);
        Decision::Answered(Ok(Identity { user: user.to_owned() }))
    }

    /// Has an attempt wait for the check of its password.
    fn wait(&mut self, attempt: Attempt, now: Duration, waiter: Waiter) {
        let lane = self.lane(&attempt, attempt.credentials.user(), now);
        let Attempt { credentials: Credentials::Password { user, password }, stored, .. } = attempt
        else {
            return (waiter.then)(Err("only passwords are checked".to_owned()));
        };
        let key = self.key(&user, &password, &stored.unwrap_or_default());
        self.checks.add(lane, Check { key, password, began: Instant::now() }, waiter);
    }

    fn next_check(&mut self) -> Option<Check> {
        self.checks.next()
    }

    /// Remembers how a check ended; returns the answer, and who waits for it.
    fn checked(
        &mut self,
        check: &Check,
        is_right: bool,
        ended: Instant,
    ) -> (Authentication, Vec<Waiter>) {
        self.last_check = Some((ended.duration_since(check.began), ended));
        let waiters = self.checks.take_waiters(&check.key);
        let user = &check.key.user;
        if !is_right {
            let first = waiters.first().map_or("", |waiter| &waiter.address);
            return (Err(wrong(user, first)), waiters);
        }
        for (index, waiter) in waiters.iter().enumerate() {
            // The first one was counted as a try.
            match index {
                0 => self.backoff.succeeded(&waiter.address, user),
                _ => self.backoff.known(&waiter.address, user),
            }
        }
        self.cache.keep(&check.key);
        (Ok(Identity { user: user.clone() }), waiters)
    }

    fn key(&self, user: &str, password: &str, stored: &str) -> CheckKey {
        let tag = self.cache.tag(user, password);
        CheckKey { user: user.to_owned(), tag, stored: stored.to_owned() }
    }

    fn lane(&self, attempt: &Attempt, user: &str, now: Duration) -> Lane {
        let address = attempt.address.as_str();
        if attempt.comes_first || self.backoff.knows(address, user) {
            Lane::First
        } else if self.backoff.is_suspect(address, now) {
            Lane::Last
        } else {
            Lane::Usual
        }
    }

    /// How long a check takes at present, with its wait.
    fn usual_duration(&self) -> Duration {
        let last = self.last_check.filter(|(_, ended)| ended.elapsed() < RECENT);
        last.map_or(Duration::ZERO, |(took, _)| took)
    }
}

fn too_many(user: &str, address: &str, left: Duration) -> String {
    let (user, seconds) = (user.escape_debug(), left.as_secs() + 1);
    format!("too many wrong passwords for user '{user}' from {address}: refused for {seconds} s")
}

fn wrong(user: &str, address: &str) -> String {
    format!("wrong user name or password for '{}' from {address}", user.escape_debug())
}
