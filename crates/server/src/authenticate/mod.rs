//! Whether a client is the user that it claims to be: passwords against argon2 hashes, names in certificates,
//! nkeys.
//!
//! Does not know permissions.

mod backoff;
mod cache;
mod nkey;
mod password;
#[cfg(test)]
mod tests;
mod threads;

pub use nkey::is_mistyped as is_mistyped_nkey;
pub use password::{GUEST, NO_PASSWORD, hash};
pub use threads::{Check, Threads};

use angarium_protocol::{Authentication, Credentials, Identity};
use backoff::Backoff;
use cache::Cache;
use std::time::Duration;

/// Everything one shard remembers about credentials.
#[derive(Debug, Default)]
pub struct Authenticator {
    cache: Cache,
    backoff: Backoff,
}

impl Authenticator {
    /// Decides about credentials. `None`: the password has to be hashed, on a thread where that may take its
    /// time. `address` is where the client comes from, without its port; `stored` the user's hash; `now`
    /// counts from any fixed moment.
    pub fn decide(
        &mut self,
        credentials: &Credentials,
        address: &str,
        stored: Option<&str>,
        now: Duration,
    ) -> Option<Authentication> {
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
            Credentials::Password { password, .. } if self.cache.holds(user, password, stored) => {
                (true, String::new())
            }
            Credentials::Password { .. } => {
                let seconds = self.backoff.remaining(address, user, now)?.as_secs() + 1;
                let many = format!("too many wrong passwords for user '{shown}' from {address}");
                (false, format!("{many}: refused for {seconds} s"))
            }
        };
        Some(if is_right { Ok(Identity { user: user.to_owned() }) } else { Err(why) })
    }

    /// Remembers how a check ended and words the answer.
    pub fn checked(
        &mut self,
        check: &Check,
        is_right: bool,
        address: &str,
        now: Duration,
    ) -> Authentication {
        let Check { user, password, stored } = check;
        if let (true, Some(stored)) = (is_right, stored) {
            self.cache.keep(user, password, stored);
            self.backoff.succeeded(address, user);
            return Ok(Identity { user: user.clone() });
        }
        self.backoff.failed(address, user, now);
        let user = user.escape_debug();
        Err(format!("wrong user name or password for '{user}' from {address}"))
    }
}
