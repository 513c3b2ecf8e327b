//! Slows guessing down. Tries count when they begin, so that many at once are no way around it: by address
//! and user, by address, and by user.
//!
//! A user has some tries from an address, then has to wait after each, twice as long every time. Where many
//! tries failed from an address, each user has one try from there; where many failed for a user, it has one
//! from each address where it never logged in. So nobody is locked out by what others try.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

/// Wrong passwords in a row that cost nothing.
const FREE_TRIES: u32 = 5;
/// Failures from one address, or for one user, from which on there is one try instead.
const MANY_FAILURES: u32 = 50;
/// First pause; doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// What failed is forgotten after this long without another failure.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
/// Entries of each kind that are remembered at once.
const ENTRIES_MAX: usize = 10_000;

/// An address and a user's name.
type Pair = (String, String);

/// Who tried how often.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    pairs: Tries<Pair>,
    addresses: Tries<String>,
    users: Tries<String>,
    /// Users and the addresses where they have logged in.
    known: HashSet<Pair>,
}

impl Backoff {
    /// Whether the user has logged in from that address.
    pub(super) fn knows(&self, address: &str, user: &str) -> bool {
        self.known.contains(&pair(address, user))
    }

    /// Whether many tries from that address have failed.
    pub(super) fn is_suspect(&self, address: &str, now: Duration) -> bool {
        self.addresses.count(&network(address), now) >= MANY_FAILURES
    }

    /// Counts a try that begins; it has failed until [`Backoff::succeeded`]. Refused: for how long.
    pub(super) fn begin(
        &mut self,
        address: &str,
        user: &str,
        now: Duration,
    ) -> Result<(), Duration> {
        let pair = pair(address, user);
        let is_attacked =
            self.is_suspect(address, now) || self.users.count(&pair.1, now) >= MANY_FAILURES;
        let free = if is_attacked && !self.known.contains(&pair) { 1 } else { FREE_TRIES };
        if let Some(left) = self.pairs.pause(&pair, free, now) {
            return Err(left);
        }
        self.addresses.add(pair.0.clone(), now);
        self.users.add(pair.1.clone(), now);
        self.pairs.add(pair, now);
        Ok(())
    }

    /// Counts a try for a user that there is not: it fails.
    pub(super) fn unknown(&mut self, address: &str, now: Duration) {
        self.addresses.add(network(address), now);
    }

    /// A try that was counted has not failed.
    pub(super) fn succeeded(&mut self, address: &str, user: &str) {
        let pair = pair(address, user);
        self.addresses.take_back(&pair.0);
        self.users.take_back(&pair.1);
        self.pairs.0.remove(&pair);
        self.known(address, user);
    }

    /// A user has logged in from an address.
    pub(super) fn known(&mut self, address: &str, user: &str) {
        if self.known.len() >= ENTRIES_MAX {
            self.known.clear();
        }
        self.known.insert(pair(address, user));
    }
}

fn pair(address: &str, user: &str) -> Pair {
    (network(address), user.to_owned())
}

/// An address; of IPv6 the network of 64 bits, which one host usually has alone.
fn network(address: &str) -> String {
    match address.trim_start_matches('[').trim_end_matches(']').parse() {
        Ok(IpAddr::V6(address)) => format!("{:x}", address.to_bits() >> 64),
        _ => address.to_owned(),
    }
}

/// How often each has tried without success.
#[derive(Debug)]
struct Tries<K>(HashMap<K, Failures>);

impl<K> Default for Tries<K> {
    fn default() -> Self {
        Tries(HashMap::new())
    }
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Duration,
}

impl Failures {
    fn is_forgotten(self, now: Duration) -> bool {
        now >= self.last + FORGOTTEN_AFTER
    }
}

impl<K: Eq + Hash> Tries<K> {
    fn of(&self, key: &K, now: Duration) -> Option<Failures> {
        self.0.get(key).copied().filter(|failures| !failures.is_forgotten(now))
    }

    fn count(&self, key: &K, now: Duration) -> u32 {
        self.of(key, now).map_or(0, |failures| failures.count)
    }

    /// How long there is no further try, after `free` ones.
    fn pause(&self, key: &K, free: u32, now: Duration) -> Option<Duration> {
        let failures = self.of(key, now)?;
        let doublings = failures.count.checked_sub(free)?;
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings.min(16)).min(LONGEST_PAUSE);
        (failures.last + pause).checked_sub(now).filter(|left| !left.is_zero())
    }

    fn add(&mut self, key: K, now: Duration) {
        if self.0.len() >= ENTRIES_MAX && !self.0.contains_key(&key) {
            self.make_room(now);
        }
        let failures = self.0.entry(key).or_insert(Failures { count: 0, last: now });
        if failures.is_forgotten(now) {
            failures.count = 0;
        }
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
    }

    /// Forgets what is old, else those who have tries left, else all.
    fn make_room(&mut self, now: Duration) {
        self.0.retain(|_, failures| !failures.is_forgotten(now));
        if self.0.len() >= ENTRIES_MAX {
            self.0.retain(|_, failures| failures.count > FREE_TRIES);
        }
        if self.0.len() >= ENTRIES_MAX {
            self.0.clear();
        }
    }

    fn take_back(&mut self, key: &K) {
        if let Some(failures) = self.0.get_mut(key) {
            failures.count = failures.count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn guessing_is_slowed_down_for_that_user_and_address_only() {
        let mut backoff = Backoff::default();
        for _ in 0..5 {
            assert_eq!(backoff.begin("a", "u", at(10)), Ok(()));
        }
        assert_eq!(backoff.begin("a", "u", at(10)), Err(at(1)));
        assert_eq!(backoff.begin("b", "u", at(10)), Ok(()));
        assert_eq!(backoff.begin("a", "v", at(10)), Ok(()));
        assert_eq!(backoff.begin("a", "u", at(11)), Ok(()));
        let mut now = 11;
        for pause in [2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(backoff.begin("a", "u", at(now)), Err(at(pause)));
            now += pause;
            assert_eq!(backoff.begin("a", "u", at(now)), Ok(()));
        }
        backoff.succeeded("a", "u");
        assert_eq!(backoff.begin("a", "u", at(now)), Ok(()));
    }

    #[test]
    fn what_failed_long_ago_is_forgotten() {
        let mut backoff = Backoff::default();
        for _ in 0..5 {
            backoff.begin("a", "u", at(0)).unwrap();
        }
        assert_eq!(backoff.begin("a", "u", at(600)), Ok(()));
        assert_eq!(backoff.begin("a", "u", at(600)), Ok(()));
    }

    #[test]
    fn an_address_of_many_failures_has_one_try_for_each_user() {
        let mut backoff = Backoff::default();
        backoff.known("a", "old");
        for _ in 0..50 {
            backoff.unknown("a", at(0));
        }
        assert!(backoff.is_suspect("a", at(0)) && !backoff.is_suspect("b", at(0)));
        for (address, user, tries) in [("a", "u", 1), ("a", "v", 1), ("a", "old", 5), ("b", "u", 5)]
        {
            for _ in 0..tries {
                assert_eq!(backoff.begin(address, user, at(0)), Ok(()), "{address} {user}");
            }
            assert_eq!(backoff.begin(address, user, at(0)), Err(at(1)), "{address} {user}");
        }
        assert!(!backoff.is_suspect("a", at(600)));
    }

    #[test]
    fn a_user_who_is_guessed_at_from_everywhere_has_one_try_from_new_addresses() {
        let mut backoff = Backoff::default();
        backoff.known("home", "u");
        for number in 0..50 {
            backoff.begin(&number.to_string(), "u", at(0)).unwrap();
        }
        for (address, tries) in [("new", 1), ("home", 5)] {
            for _ in 0..tries {
                assert_eq!(backoff.begin(address, "u", at(0)), Ok(()), "{address}");
            }
            assert_eq!(backoff.begin(address, "u", at(0)), Err(at(1)), "{address}");
        }
    }

    #[test]
    fn who_succeeds_again_and_again_is_not_suspect() {
        let mut backoff = Backoff::default();
        for number in 0..200 {
            let user = format!("u{number}");
            backoff.begin("a", &user, at(0)).unwrap();
            backoff.succeeded("a", &user);
        }
        assert!(!backoff.is_suspect("a", at(0)));
        assert!(backoff.knows("a", "u7") && !backoff.knows("b", "u7"));
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        assert_eq!(network("2001:db8::1"), network("[2001:db8::2:3]"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_ne!(network("10.0.0.1"), network("10.0.0.2"));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_who_guessed_much_stays_in_it() {
        let mut backoff = Backoff::default();
        for _ in 0..5 {
            backoff.begin("guesser", "u", at(0)).unwrap();
        }
        backoff.begin("guesser", "u", at(1)).unwrap();
        for number in 0..30_000 {
            let _ = backoff.begin(&number.to_string(), "v", at(1));
            backoff.known(&number.to_string(), "v");
        }
        assert_eq!(backoff.begin("guesser", "u", at(1)), Err(at(2)));
        assert!(backoff.pairs.0.len() <= ENTRIES_MAX && backoff.known.len() <= ENTRIES_MAX);
    }
}
