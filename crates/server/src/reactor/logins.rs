//! Passwords and other credentials of a shard's clients and administrators. Passwords are hashed on threads,
//! whose answers come by mailbox.

use super::shard::Shard;
use crate::authenticate::{Authenticator, Check, Threads};
use angarium_node::Verification;
use angarium_protocol::{Authentication, Credentials};
use std::time::{Duration, Instant};

/// What a shard remembers of logins, and the threads that check passwords.
pub(super) struct Logins {
    authenticator: Authenticator,
    threads: Threads,
}

impl Logins {
    /// With at most `threads_max` threads.
    pub(super) fn new(threads_max: u64) -> Logins {
        Logins { authenticator: Authenticator::default(), threads: Threads::new(threads_max) }
    }
}

impl Shard {
    /// Checks a client's credentials.
    pub(super) fn verify(&mut self, verification: Verification) {
        let Verification { connection, serial, credentials, password_hash, address, .. } =
            verification;
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host).to_owned();
        self.check(credentials, password_hash, host, move |shard, answer| {
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
        let stored = self.node.engine().password_hash(credentials.user()).map(str::to_owned);
        self.check(credentials, stored, host, then);
    }

    /// Checks credentials, here or on a thread; `then` gets the answer on this one.
    fn check(
        &mut self,
        credentials: Credentials,
        stored: Option<String>,
        host: String,
        then: impl FnOnce(&mut Shard, Authentication) + Send + 'static,
    ) {
        let now = Duration::from_micros(self.now.0);
        let logins = &mut self.logins;
        let known = logins.authenticator.decide(&credentials, &host, stored.as_deref(), now);
        if let Some(answer) = known {
            return then(self, answer);
        }
        let Credentials::Password { user, password } = credentials else {
            unreachable!("only passwords are hashed");
        };
        let mailbox = self.mailbox.clone();
        logins.threads.check(Check { user, password, stored }, move |check, is_right| {
            // A shard that has ended needs no answer.
            let _ = mailbox.tell(move |shard| {
                let now = Duration::from_micros(shard.now.0);
                let authenticator = &mut shard.logins.authenticator;
                let answer = match is_right {
                    Some(is_right) => authenticator.checked(&check, is_right, &host, now),
                    None => Err("too many password checks wait already".into()),
                };
                then(shard, answer);
            });
        });
    }

    /// Logs why a login was refused, at most once a second.
    pub(crate) fn complain(&mut self, why: &str) {
        if let Some(held_back) = self.complaints.pass(Instant::now()) {
            tracing::warn!(why, held_back, "login refused");
        }
    }
}
