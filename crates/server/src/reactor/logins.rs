//! Passwords and other credentials of a shard's clients and admin_replies: what hashing takes is done on
//! threads, whose answers come by mailbox.

use super::shard::Shard;
use crate::authenticate::{Authenticator, Check, Checked, Next, Threads};
use angarium_engine::{ConnectionId, Time};
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

/// A time as the authenticator counts it.
fn counted(now: Time) -> Duration {
    Duration::from_micros(now.0)
}

impl Shard {
    /// Checks credentials, here or on a thread.
    pub(super) fn verify(&mut self, verification: Verification) {
        let Verification { connection, serial, credentials, password_hash, address, .. } =
            verification;
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host).to_owned();
        let since = counted(self.now);
        let stored = password_hash.as_deref();
        let answer = match self.logins.authenticator.next(&credentials, &host, stored, since) {
            Next::Answer(answer) => answer,
            Next::Hash => {
                let Credentials::Password { user, password } = credentials else {
                    unreachable!("only passwords are hashed");
                };
                let mailbox = self.mailbox.clone();
                let then = move |checked: Checked| {
                    // A shard that has ended needs no answer.
                    let _ = mailbox
                        .tell(move |shard| shard.checked(connection, serial, &checked, &host));
                };
                let check = Check { user, password, stored: password_hash };
                if self.logins.threads.check(check, then) {
                    return;
                }
                Err("too many password checks wait already".into())
            }
        };
        self.answer_credentials(connection, serial, answer);
    }

    fn checked(&mut self, connection: ConnectionId, serial: u64, checked: &Checked, host: &str) {
        let since = counted(self.now);
        let answer = self.logins.authenticator.checked(checked, host, since);
        self.answer_credentials(connection, serial, answer);
    }

    fn answer_credentials(
        &mut self,
        connection: ConnectionId,
        serial: u64,
        answer: Authentication,
    ) {
        if let Err(why) = &answer {
            self.complain(why);
        }
        self.node.verified(self.now, connection, serial, answer);
    }

    /// Logs why a login was refused, at most once a second.
    pub(super) fn complain(&mut self, why: &str) {
        if let Some(held_back) = self.complaints.pass(Instant::now()) {
            tracing::warn!(%why, held_back, "login refused");
        }
    }

    /// Checks a password as a client's would be, for the administration API; `then` gets whether it
    /// was right, on some thread.
    pub fn check_password(
        &mut self,
        address: &str,
        user: String,
        password: String,
        then: impl FnOnce(bool) + Send + 'static,
    ) {
        let stored = self.node.engine().password_hash(&user).map(str::to_owned);
        let credentials = Credentials::Password { user: user.clone(), password: password.clone() };
        let since = counted(self.now);
        match self.logins.authenticator.next(&credentials, address, stored.as_deref(), since) {
            Next::Answer(answer) => then(answer.is_ok()),
            Next::Hash => {
                let mailbox = self.mailbox.clone();
                let address = address.to_owned();
                self.logins.threads.check(Check { user, password, stored }, move |checked| {
                    then(checked.right);
                    // Without a shard there is nothing to remember it.
                    let _ = mailbox.tell(move |shard| {
                        let since = counted(shard.now);
                        // The caller has its answer; this one is for the memory's sake.
                        let _ = shard.logins.authenticator.checked(&checked, &address, since);
                    });
                });
            }
        }
    }
}
