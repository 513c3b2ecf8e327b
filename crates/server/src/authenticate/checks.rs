//! Passwords that wait to be checked: which comes first, and who waits for the same one.

use angarium_protocol::Authentication;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// Checks that wait for a thread in each lane, and attempts that wait for each check; more are refused.
const WAITING_MAX: usize = 4_096;

/// What comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// Administrators, clients by a Unix socket, and users where they have logged in before.
    First,
    /// Everybody else.
    Usual,
    /// Those from addresses of many failures.
    Last,
}

/// What is checked, told from other checks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CheckKey {
    /// The user it is said to belong to.
    pub(super) user: String,
    /// What stands for the password, which is not kept twice.
    pub(super) tag: [u64; 2],
    /// The user's hash.
    pub(super) stored: String,
}

/// A password to be checked.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) key: CheckKey,
    pub(super) password: String,
    pub(super) began: Instant,
}

/// An attempt that waits for a check.
pub(super) struct Waiter {
    /// Where it comes from.
    pub(super) address: String,
    /// Gets the answer, on the thread that checked.
    pub(super) then: Box<dyn FnOnce(Authentication) + Send>,
}

/// All that wait, and those under way.
#[derive(Default)]
pub(super) struct Checks {
    lanes: [VecDeque<Check>; 3],
    waiters: HashMap<CheckKey, Vec<Waiter>>,
}

impl Checks {
    /// Whether this very password waits to be checked, or is being checked.
    pub(super) fn has(&self, key: &CheckKey) -> bool {
        self.waiters.contains_key(key)
    }

    /// Whether one more may wait.
    pub(super) fn has_room(&self, lane: Lane, key: &CheckKey) -> bool {
        match self.waiters.get(key) {
            Some(waiters) => waiters.len() < WAITING_MAX,
            None => self.lanes[lane as usize].len() < WAITING_MAX,
        }
    }

    /// Adds an attempt: to the check of the same password if there is one.
    pub(super) fn add(&mut self, lane: Lane, check: Check, waiter: Waiter) {
        let waiters = self.waiters.entry(check.key.clone()).or_default();
        waiters.push(waiter);
        if waiters.len() == 1 {
            self.lanes[lane as usize].push_back(check);
        }
    }

    /// The next to be checked.
    pub(super) fn next(&mut self) -> Option<Check> {
        self.lanes.iter_mut().find_map(VecDeque::pop_front)
    }

    /// Takes out those who waited for a check that has ended.
    pub(super) fn take_waiters(&mut self, key: &CheckKey) -> Vec<Waiter> {
        self.waiters.remove(key).unwrap_or_default()
    }
}
