//! Passwords that were found right lately, so that a storm of reconnects costs no hashing.
//!
//! Keeps no password: a keyed hash with a key of this process. An entry holds as long as the user's
//! stored hash is the one it was checked against.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Users remembered at once; one more and all are forgotten, which only costs hashing again.
const USERS_MAX: usize = 10_000;

/// The passwords known to be right, one per user.
#[derive(Debug, Default)]
pub(super) struct Cache {
    known: HashMap<String, Known>,
    keys: [RandomState; 2],
}

#[derive(Debug)]
struct Known {
    stored: String,
    tag: [u64; 2],
}

impl Cache {
    /// Whether this password was found right against this very hash.
    pub(super) fn holds(&self, user: &str, password: &str, stored: Option<&str>) -> bool {
        self.known.get(user).is_some_and(|known| {
            Some(known.stored.as_str()) == stored && known.tag == self.tag(user, password)
        })
    }

    /// Remembers a password that was found right.
    pub(super) fn keep(&mut self, user: &str, password: &str, stored: &str) {
        if self.known.len() >= USERS_MAX {
            self.known.clear();
        }
        let tag = self.tag(user, password);
        self.known.insert(user.to_owned(), Known { stored: stored.to_owned(), tag });
    }

    /// 128 bits of SipHash under two random keys.
    fn tag(&self, user: &str, password: &str) -> [u64; 2] {
        [self.keys[0].hash_one((user, password)), self.keys[1].hash_one((user, password))]
    }
}
