//! Passwords that were found right lately, so that a storm of reconnects costs no hashing.
//!
//! Keeps no password: a keyed hash with a key of this process. An entry holds as long as the user's
//! stored hash is the one it was checked against.

use super::checks::CheckKey;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Users remembered at once; one more and all are forgotten, which only costs hashing again.
const USERS_MAX: usize = 10_000;

/// The passwords known to be right, one per user.
#[derive(Debug, Default)]
pub(super) struct Cache {
    known: HashMap<String, CheckKey>,
    keys: [RandomState; 2],
}

impl Cache {
    /// Whether this password was found right against this very hash.
    pub(super) fn holds(&self, key: &CheckKey) -> bool {
        self.known.get(&key.user) == Some(key)
    }

    /// Remembers a password that was found right.
    pub(super) fn keep(&mut self, key: &CheckKey) {
        if self.known.len() >= USERS_MAX {
            self.known.clear();
        }
        self.known.insert(key.user.clone(), key.clone());
    }

    /// What stands for a user's password here: 128 bits of SipHash under two random keys.
    pub(super) fn tag(&self, user: &str, password: &str) -> [u64; 2] {
        [self.keys[0].hash_one((user, password)), self.keys[1].hash_one((user, password))]
    }
}
