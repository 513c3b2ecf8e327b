//! Publish rates: token buckets of connections, users and virtual hosts, and the connections that are over
//! their rate.
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

/// The buckets of one connection, or of all of a user or in a virtual host.
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

/// Whose connections share a rate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Party {
    /// A user's.
    User(String),
    /// Those to a virtual host.
    Vhost(String),
}

/// Whose rate a connection waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RateOf {
    #[default]
    Connection,
    User,
    Vhost,
}

impl Party {
    /// One of both, where the other name is empty.
    pub(crate) fn of(user: &str, vhost: &str) -> Party {
        if user.is_empty() { Party::Vhost(vhost.to_owned()) } else { Party::User(user.to_owned()) }
    }

    /// The names of the user and of the virtual host, of which one is empty.
    pub(crate) fn names(&self) -> (&str, &str) {
        match self {
            Party::User(name) => (name, ""),
            Party::Vhost(name) => ("", name),
        }
    }

    fn rate_of(&self) -> RateOf {
        match self {
            Party::User(_) => RateOf::User,
            Party::Vhost(_) => RateOf::Vhost,
        }
    }
}

/// What is measured of one connection.
#[derive(Debug, Default)]
pub(crate) struct Metered {
    pub(crate) own: Meter,
    /// Its user and its virtual host, where these are measured too.
    pub(crate) parties: Vec<Party>,
    /// Bytes that have come and were not counted yet.
    pub(crate) uncounted: usize,
    /// It is not read from before this time.
    waits_until: Option<Time>,
    /// For whose rate.
    pub(crate) waits_for: RateOf,
}

impl Metered {
    pub(crate) fn is_waiting(&self) -> bool {
        self.waits_until.is_some()
    }
}

/// What all connections of one party share.
#[derive(Debug, Default)]
struct Shared {
    meter: Meter,
    /// What was taken here that other shards do not know of: messages and bytes.
    untold: (u64, u64),
}

/// The meters of users and virtual hosts, and the connections that wait.
///
/// Each shard has a meter of each of them that it has connections of, and tells the others what it took: so
/// all of them measure the same, except what is underway.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    parties: BTreeMap<Party, Shared>,
    waiting: BTreeSet<(Time, ConnectionId)>,
    /// There are other shards.
    has_others: bool,
    /// Those whose counts are to be sent to other shards.
    untold: Vec<Party>,
}

impl Rates {
    pub(crate) fn new(shards: usize) -> Rates {
        Rates { has_others: shards > 1, ..Rates::default() }
    }

    /// Sets what all connections of a party together may send in a second; says whether that is bounded at
    /// all.
    pub(crate) fn set_party(
        &mut self,
        party: &Party,
        messages: Option<u64>,
        bytes: Option<u64>,
    ) -> bool {
        if messages.is_none() && bytes.is_none() {
            self.parties.remove(party);
            return false;
        }
        self.parties.entry(party.clone()).or_default().meter.set(messages, bytes);
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
        let (mut until, mut waits_for) = (own, RateOf::Connection);
        for party in &metered.parties {
            let Some(shared) = self.parties.get_mut(party) else { continue };
            let due = shared.meter.take(now, messages, bytes);
            if due > until {
                (until, waits_for) = (due, party.rate_of());
            }
            if self.has_others {
                if shared.untold == (0, 0) {
                    self.untold.push(party.clone());
                }
                shared.untold.0 += messages;
                shared.untold.1 += bytes;
            }
        }
        if until <= now || metered.is_waiting() {
            return metered.is_waiting();
        }
        metered.waits_until = Some(until);
        metered.waits_for = waits_for;
        self.waiting.insert((until, id));
        true
    }

    /// Whether a party is measured here.
    pub(crate) fn knows(&self, party: &Party) -> bool {
        self.parties.contains_key(party)
    }

    /// Whether all of the connection's user, or in its virtual host, have sent more than they may.
    pub(crate) fn is_party_in_debt(&self, now: Time, metered: &Metered) -> bool {
        let mut parties = metered.parties.iter().filter_map(|party| self.parties.get(party));
        parties.any(|shared| shared.meter.is_in_debt(now))
    }

    /// The next party whose counts are to be sent to other shards, with messages and bytes.
    pub(crate) fn next_untold(&mut self) -> Option<(Party, u64, u64)> {
        let party = self.untold.pop()?;
        let shared = self.parties.get_mut(&party);
        let (messages, bytes) = shared.map_or((0, 0), |it| std::mem::take(&mut it.untold));
        Some((party, messages, bytes))
    }

    /// So much of a party came to another shard.
    pub(crate) fn spent_elsewhere(&mut self, now: Time, party: &Party, messages: u64, bytes: u64) {
        if let Some(shared) = self.parties.get_mut(party) {
            // Who waits already goes on when that was due, and then waits for this too.
            shared.meter.take(now, messages, bytes);
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

    fn ann() -> Party {
        Party::User("ann".to_owned())
    }

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
        assert!(rates.set_party(&ann(), Some(1_000), None));
        let mut all: Vec<Metered> =
            (0..5).map(|_| Metered { parties: vec![ann()], ..Metered::default() }).collect();
        about(sent(&mut rates, &mut all, 1, 100), 10_100);
        assert!(!rates.set_party(&ann(), None, None));
    }

    #[test]
    fn a_users_connections_to_several_shards_share() {
        for shards in [2, 3, 16] {
            let mut all: Vec<(Rates, [Metered; 1])> = (0..shards)
                .map(|_| {
                    let mut rates = Rates::new(shards);
                    rates.set_party(&ann(), Some(1_000), Some(u64::MAX));
                    (rates, [Metered { parties: vec![ann()], ..Metered::default() }])
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
    fn all_in_a_virtual_host_share() {
        let mut rates = Rates::default();
        let vhost = Party::Vhost("v".to_owned());
        rates.set_party(&vhost, Some(1_000), None);
        rates.set_party(&ann(), Some(300), None);
        let of_ann = Metered { parties: vec![ann(), vhost.clone()], ..Metered::default() };
        let others = (0..3).map(|_| Metered { parties: vec![vhost.clone()], ..Metered::default() });
        let mut all: Vec<Metered> = others.chain([of_ann]).collect();
        about(sent(&mut rates, &mut all, 1, 100), 10_100);
        let waits_for: Vec<RateOf> = all.iter().map(|it| it.waits_for).collect();
        assert!(waits_for.contains(&RateOf::Vhost), "{waits_for:?}");
        about(sent(&mut Rates::default(), &mut [metered(Some(5), None)], 1, 1), 51);
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
