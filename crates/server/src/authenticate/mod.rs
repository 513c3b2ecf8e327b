//! Whether a client is who it says: passwords against argon2 hashes, names in certificates, nkeys.
//!
//! Does not know permissions.

mod backoff;
mod cache;
mod nkey;
mod password;
#[cfg(test)]
mod tests;
mod threads;

pub use backoff::Backoff;
pub use cache::Cache;
pub use nkey::is_mistyped as is_mistyped_nkey;
pub use password::{GUEST, NO_PASSWORD, hash, is_right};
pub use threads::{Check, Checked, Threads};

use angarium_protocol::{Authentication, Credentials, Identity};
use std::time::Duration;

/// What is to be done about credentials.
#[derive(Debug)]
pub enum Next {
    /// The answer is known.
    Answer(Authentication),
    /// The password has to be hashed, on a thread where that may take its time.
    Hash,
}

/// Everything one shard remembers about credentials.
#[derive(Debug, Default)]
pub struct Authenticator {
    cache: Cache,
    backoff: Backoff,
}

impl Authenticator {
    /// Decides about credentials. `address` is where the client comes from, without its port;
    /// `stored` the user's hash; `now` counts from any fixed moment.
    pub fn next(
        &mut self,
        credentials: &Credentials,
        address: &str,
        stored: Option<&str>,
        now: Duration,
    ) -> Next {
        match credentials {
            Credentials::Certificate { user } => Next::Answer(match stored {
                Some(_) => Ok(Identity { user: user.clone() }),
                None => Err(format!("the certificate names no user: '{}'", user.escape_debug())),
            }),
            // Where anybody may come, the listener says as whom.
            Credentials::Anonymous { user } => Next::Answer(match stored {
                Some(_) => Ok(Identity { user: user.clone() }),
                None => Err(format!(
                    "no user '{}' for clients without credentials",
                    user.escape_debug()
                )),
            }),
            Credentials::NKey { user_key, nonce, signature } => {
                let is_right = stored.is_some() && nkey::is_signed(user_key, nonce, signature);
                Next::Answer(if is_right {
                    Ok(Identity { user: user_key.clone() })
                } else {
                    let user = user_key.escape_debug();
                    Err(format!("no nkey '{user}', or not its signature, from {address}"))
                })
            }
            Credentials::Password { user, password } => {
                if self.cache.holds(user, password, stored) {
                    return Next::Answer(Ok(Identity { user: user.clone() }));
                }
                match self.backoff.remaining(address, user, now) {
                    Some(left) => Next::Answer(Err(format!(
                        "too many wrong passwords for user '{}' from {address}: refused for {} s",
                        user.escape_debug(),
                        left.as_secs() + 1,
                    ))),
                    None => Next::Hash,
                }
            }
        }
    }

    /// Remembers how a check ended and words the answer.
    pub fn checked(&mut self, checked: &Checked, address: &str, now: Duration) -> Authentication {
        let Check { user, password, stored } = &checked.check;
        match (checked.right, stored) {
            (true, Some(stored)) => {
                self.cache.keep(user, password, stored);
                self.backoff.succeeded(address, user);
                Ok(Identity { user: user.clone() })
            }
            _ => {
                self.backoff.failed(address, user, now);
                let user = user.escape_debug();
                Err(format!("wrong user name or password for '{user}' from {address}"))
            }
        }
    }
}
