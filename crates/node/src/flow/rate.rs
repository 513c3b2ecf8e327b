//! Publish rates: token buckets of connections and users, and the connections that are over their rate.
//!
//! What has arrived is always taken; a connection over its rate is not read from until it is paid for. Time
//! is an argument.

use angarium_engine::{ConnectionId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The burst that is allowed is what may come in this time.
const BURST: Duration = Duration::from_millis(100);
const NANOS: u64 = 1_000_000_000;

/// A token bucket, kept as the time at which it will be full again.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// In a second; at least one.
    rate: u64,
    /// When all that was taken is paid for, in nanoseconds.
    paid_at: u64,
}

impl Bucket {
    fn new(rate: u64) -> Bucket {
        Bucket { rate: rate.max(1), paid_at: 0 }
    }

    /// Takes `amount` at `now`; says when that is paid for, less the burst that is allowed.
    fn take(&mut self, now: Time, amount: u64) -> Time {
        let now = now.0.saturating_mul(1_000);
        let cost = u128::from(amount) * u128::from(NANOS) / u128::from(self.rate);
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        self.paid_at = self.paid_at.max(now).saturating_add(cost);
        self.due()
    }

    /// When all that was taken is paid for, less the burst that is allowed.
    fn due(&self) -> Time {
        let burst = u64::try_from(BURST.as_nanos()).unwrap_or(u64::MAX);
        Time(self.paid_at.saturating_sub(burst) / 1_000)
    }
}

/// The buckets of one connection, or of one user.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    messages: Option<Bucket>,
    bytes: Option<Bucket>,
}

impl Meter {
    /// Sets what may come in a second. What has come stays counted where that is as before; a debt that
    /// another rate has made is forgiven.
    pub(crate) fn set(&mut self, messages: Option<u64>, bytes: Option<u64>) {
        for (bucket, rate) in [(&mut self.messages, messages), (&mut self.bytes, bytes)] {
            let new = rate.map(Bucket::new);
            if bucket.map(|bucket| bucket.rate) != new.map(|bucket| bucket.rate) {
                *bucket = new;
            }
        }
    }

    /// Whether it measures nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.messages.is_none() && self.bytes.is_none()
    }

    /// Takes what has come; says when more may.
    fn take(&mut self, now: Time, messages: u64, bytes: u64) -> Time {
        let pairs = [(&mut self.messages, messages), (&mut self.bytes, bytes)];
        let times = pairs
            .into_iter()
            .filter_map(|(bucket, amount)| bucket.as_mut().map(|bucket| bucket.take(now, amount)));
        times.max().unwrap_or(now)
    }

    /// Whether what has come is not paid for yet.
    fn is_in_debt(&self, now: Time) -> bool {
        [self.messages, self.bytes].into_iter().flatten().any(|bucket| bucket.due() > now)
    }
}

/// What is measured of one connection.
#[derive(Debug, Default)]
pub(crate) struct Metered {
    pub(crate) own: Meter,
    /// Its user, where the user is measured too.
    pub(crate) user: Option<String>,
    /// Bytes that have come and were not counted yet.
    pub(crate) uncounted: usize,
    /// It is not read from before this time.
    waits_until: Option<Time>,
    /// That is its user's rate, not its own.
    pub(crate) waits_for_user: bool,
}

impl Metered {
    pub(crate) fn is_waiting(&self) -> bool {
        self.waits_until.is_some()
    }
}

/// What all connections of one user share.
#[derive(Debug, Default)]
struct User {
    meter: Meter,
    /// What was taken here that other shards do not know of: messages and bytes.
    untold: (u64, u64),
}

/// The users' meters, and the connections that wait.
///
/// Each shard has a meter of each user that it has connections of, and tells the others what it took: so
/// all of them measure the same, except what is underway.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    users: BTreeMap<String, User>,
    waiting: BTreeSet<(Time, ConnectionId)>,
    /// There are other shards.
    has_others: bool,
    /// Users whose counts are to be sent to other shards.
    untold: Vec<String>,
}

impl Rates {
    pub(crate) fn new(shards: usize) -> Rates {
        Rates { has_others: shards > 1, ..Rates::default() }
    }

    /// Sets what a user may send in a second, all its connections together; says whether that is
    /// bounded at all.
    pub(crate) fn set_user(
        &mut self,
        user: &str,
        messages: Option<u64>,
        bytes: Option<u64>,
    ) -> bool {
        if messages.is_none() && bytes.is_none() {
            self.users.remove(user);
            return false;
        }
        self.users.entry(user.to_owned()).or_default().meter.set(messages, bytes);
        true
    }

    /// So much came from a connection; says whether it is not to be read from for a while.
    pub(crate) fn take(
        &mut self,
        now: Time,
        id: ConnectionId,
        metered: &mut Metered,
        messages: u64,
        bytes: u64,
    ) -> bool {
        let own = metered.own.take(now, messages, bytes);
        let mut until = own;
        if let Some(name) = metered.user.as_deref()
            && let Some(user) = self.users.get_mut(name)
        {
            until = until.max(user.meter.take(now, messages, bytes));
            if self.has_others {
                if user.untold == (0, 0) {
                    self.untold.push(name.to_owned());
                }
                user.untold.0 += messages;
                user.untold.1 += bytes;
            }
        }
        if until <= now || metered.is_waiting() {
            return metered.is_waiting();
        }
        metered.waits_until = Some(until);
        metered.waits_for_user = until > own;
        self.waiting.insert((until, id));
        true
    }

    /// Whether a user is measured here.
    pub(crate) fn knows(&self, user: &str) -> bool {
        self.users.contains_key(user)
    }

    /// Whether the connection's user has sent more than it may, by whichever of its connections.
    pub(crate) fn is_user_in_debt(&self, now: Time, metered: &Metered) -> bool {
        let user = metered.user.as_deref().and_then(|name| self.users.get(name));
        user.is_some_and(|user| user.meter.is_in_debt(now))
    }

    /// The next user whose counts are to be sent to other shards, with messages and bytes.
    pub(crate) fn next_untold(&mut self) -> Option<(String, u64, u64)> {
        let name = self.untold.pop()?;
        let user = self.users.get_mut(&name);
        let (messages, bytes) = user.map_or((0, 0), |user| std::mem::take(&mut user.untold));
        Some((name, messages, bytes))
    }

    /// So much of a user came to another shard.
    pub(crate) fn spent_elsewhere(&mut self, now: Time, user: &str, messages: u64, bytes: u64) {
        if let Some(user) = self.users.get_mut(user) {
            // Who waits already goes on when that was due, and then waits for this too.
            user.meter.take(now, messages, bytes);
        }
    }

    /// The connection waits no longer: it may go on, or is gone.
    pub(crate) fn release(&mut self, id: ConnectionId, metered: &mut Metered) {
        if let Some(until) = metered.waits_until.take() {
            self.waiting.remove(&(until, id));
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.waiting.first().map(|(until, _)| *until)
    }

    /// One that goes on now.
    pub(crate) fn next_due(&self, now: Time) -> Option<ConnectionId> {
        self.waiting.first().filter(|(until, _)| *until <= now).map(|(_, id)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time(1_000_000_000);
    const ID: ConnectionId = ConnectionId(1);

    fn metered(messages: Option<u64>, bytes: Option<u64>) -> Metered {
        let mut metered = Metered::default();
        metered.own.set(messages, bytes);
        metered
    }

    /// Sends as fast as it may for ten seconds, in portions; returns how much that was.
    fn sent(rates: &mut Rates, metered: &mut [Metered], messages: u64, bytes: u64) -> u64 {
        let times = (0..10_000).map(|millis| START.plus(Duration::from_millis(millis)));
        times.map(|now| sent_at(now, rates, metered, messages, bytes)).sum()
    }

    /// The same at one moment.
    fn sent_at(
        now: Time,
        rates: &mut Rates,
        metered: &mut [Metered],
        messages: u64,
        bytes: u64,
    ) -> u64 {
        let mut count = 0;
        while let Some(id) = rates.next_due(now) {
            rates.release(id, &mut metered[id.0 as usize]);
        }
        for (number, metered) in (0..).zip(metered.iter_mut()) {
            let mut portions = 0;
            while !metered.is_waiting() && portions < 1_000 {
                rates.take(now, ConnectionId(number), metered, messages, bytes);
                count += 1;
                portions += 1;
            }
        }
        count
    }

    #[track_caller]
    fn about(found: u64, expected: u64) {
        assert!(found.abs_diff(expected) <= expected / 50 + 2, "{found}, not {expected}");
    }

    #[test]
    fn the_rate_is_what_passes_in_the_long_run() {
        for rate in [1, 7, 100, 12_345, 900_000] {
            let mut one = [metered(Some(rate), None)];
            about(sent(&mut Rates::default(), &mut one, 1, 500), rate * 10 + rate / 10 + 1);
            let mut one = [metered(None, Some(rate * 500))];
            about(sent(&mut Rates::default(), &mut one, 1, 500), rate * 10 + rate / 10 + 1);
        }
        // The tighter one counts.
        let mut one = [metered(Some(100), Some(50_000_000))];
        about(sent(&mut Rates::default(), &mut one, 1, 500), 1_011);
        // Large portions are paid for afterwards.
        let mut one = [metered(Some(100), None)];
        about(sent(&mut Rates::default(), &mut one, 250, 500), 5);
    }

    #[test]
    fn a_users_connections_share() {
        let mut rates = Rates::default();
        assert!(rates.set_user("ann", Some(1_000), None));
        let mut all: Vec<Metered> = (0..5)
            .map(|_| Metered { user: Some("ann".to_owned()), ..Metered::default() })
            .collect();
        about(sent(&mut rates, &mut all, 1, 100), 10_100);
        assert!(!rates.set_user("ann", None, None));
    }

    #[test]
    fn a_users_connections_to_several_shards_share() {
        for shards in [2, 3, 16] {
            let mut all: Vec<(Rates, [Metered; 1])> = (0..shards)
                .map(|_| {
                    let mut rates = Rates::new(shards);
                    rates.set_user("ann", Some(1_000), Some(u64::MAX));
                    (rates, [Metered { user: Some("ann".to_owned()), ..Metered::default() }])
                })
                .collect();
            let mut count = 0;
            for millis in 0..10_000 {
                let now = START.plus(Duration::from_millis(millis));
                for (rates, metered) in &mut all {
                    count += sent_at(now, rates, metered, 1, 100);
                }
                for from in 0..shards {
                    while let Some((user, messages, bytes)) = all[from].0.next_untold() {
                        let others = (0..shards).filter(|at| *at != from);
                        others.for_each(|at| {
                            all[at].0.spent_elsewhere(now, &user, messages, bytes);
                        });
                    }
                }
            }
            about(count, 10_100);
        }
    }

    #[test]
    fn what_is_not_bounded_never_waits() {
        let mut rates = Rates::default();
        let mut free = metered(None, None);
        assert!(free.own.is_idle());
        assert!(!rates.take(START, ID, &mut free, u64::MAX, u64::MAX));
        let mut most = metered(Some(u64::MAX), Some(u64::MAX));
        assert!(!rates.take(START, ID, &mut most, 1_000_000, 1_000_000));
    }

    #[test]
    fn one_that_is_gone_is_waited_for_no_longer() {
        let mut rates = Rates::default();
        let mut one = metered(Some(0), None);
        assert!(rates.take(START, ID, &mut one, 1_000, 1));
        assert!(rates.deadline() > Some(START));
        rates.release(ID, &mut one);
        assert_eq!(rates.deadline(), None);
        // An idle time is not saved up beyond a burst.
        let later = START.plus(Duration::from_secs(1_000_000));
        let mut one = metered(Some(10), None);
        assert!(!rates.take(later, ID, &mut one, 1, 1));
        assert!(rates.take(later, ID, &mut one, 1, 1));
    }
}
