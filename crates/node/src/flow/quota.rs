//! Quotas of connections: those of their users, and the broker's where these set none.

use crate::flow::rate::{Metered, Party};
use crate::node::Node;
use crate::shard::message::ShardMessage;
use angarium_engine::{Bound, ConnectionId, Quota, Time};

/// Bytes that are taken at once from a connection whose rate is bounded.
const METERED_BYTES: usize = 2 << 10;
/// Bytes that are taken at once when its user is over its rate: a message at a time, so that new connections
/// do not get around the rate.
const METERED_BYTES_IN_DEBT: usize = 16;
/// Bytes of a connection that count only together with more, or with its next message: a client that has to
/// wait can still log in and subscribe.
const FREE_BYTES: usize = 128;

impl Node {
    /// The quota of a connection, from its user, its own wishes and its listener.
    pub(crate) fn quota_of(&self, id: ConnectionId) -> Quota {
        let Some(connection) = self.connections.get(id) else {
            return self.options.quota;
        };
        let info = connection.handler.info();
        let of_user = self.engine.quota(info.user);
        let mut quota = of_user.or(&self.options.quota);
        let own = self.effects.outbox[id.0 as usize].writer.output.slow_consumer_policy;
        let of_listener = info.peer.slow_consumer_policy;
        quota.slow_consumer_policy = own
            .or(of_user.slow_consumer_policy)
            .or(of_listener)
            .or(self.options.quota.slow_consumer_policy);
        quota
    }

    /// Applies their quotas to all connections anew, where a quota has changed since the last call.
    #[inline]
    pub(crate) fn apply_changed_quotas(&mut self) {
        let changes = self.engine.quota_changes();
        if std::mem::replace(&mut self.flow.quota_changes, changes) == changes {
            return;
        }
        for id in self.slots() {
            if self.connections.get(id).is_some() {
                self.apply_quota(id);
            }
        }
    }

    /// Holds a connection to what it may use from now on: it has logged in, or its user's quota was
    /// changed.
    pub(crate) fn apply_quota(&mut self, id: ConnectionId) {
        let quota = self.quota_of(id);
        let unsent_max = quota.get(Bound::UnsentBytes).unwrap_or(u64::MAX);
        let unsent_max = usize::try_from(unsent_max).unwrap_or(usize::MAX);
        self.effects.set_policy(id, quota.slow_consumer_policy.unwrap_or_default(), unsent_max);
        self.apply_rates(id, &quota);
    }

    fn apply_rates(&mut self, id: ConnectionId, quota: &Quota) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let info = connection.handler.info();
        let of_vhost = self.engine.vhost_quota(info.vhost);
        let shared = [
            (Party::User(info.user.to_owned()), !info.user.is_empty(), quota),
            (Party::Vhost(info.vhost.to_owned()), !info.vhost.is_empty(), &of_vhost),
        ];
        let mut metered = connection.metered.take().unwrap_or_default();
        metered.parties.clear();
        for (party, is_there, quota) in shared {
            let (messages, bytes) = (quota.get(Bound::Messages), quota.get(Bound::Bytes));
            if is_there && self.flow.rates.set_party(&party, messages, bytes) {
                metered.parties.push(party);
            }
        }
        let is_shared = !metered.parties.is_empty();
        let messages = quota.get(Bound::ConnectionMessages);
        metered.own.set(messages, quota.get(Bound::ConnectionBytes));
        let goes_on = metered.is_waiting() || metered.own.is_idle();
        if goes_on {
            // What it sends next is measured anew.
            self.flow.rates.release(id, &mut metered);
        }
        connection.metered = (is_shared || !metered.own.is_idle()).then_some(metered);
        if goes_on {
            self.connections.resumable.push(id);
        }
    }

    /// How much of a connection's input is presented to its handler at once.
    #[inline]
    pub(crate) fn portion(&self, now: Time, id: ConnectionId) -> usize {
        let connection = self.connections.get(id);
        match connection.and_then(|connection| connection.metered.as_deref()) {
            None => usize::MAX,
            Some(metered) if self.flow.rates.is_party_in_debt(now, metered) => {
                METERED_BYTES_IN_DEBT
            }
            Some(_) => METERED_BYTES,
        }
    }

    /// Counts messages and bytes of a connection: where its rate is bounded, it may have to wait.
    #[inline]
    pub(crate) fn meter(&mut self, now: Time, id: ConnectionId, messages: u64, bytes: usize) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(metered) = connection.metered.as_deref_mut() else { return };
        metered.uncounted += bytes;
        if messages == 0 && metered.uncounted <= FREE_BYTES {
            return;
        }
        let bytes = std::mem::take(&mut metered.uncounted);
        let was_waiting = metered.is_waiting();
        let waits = self.flow.rates.take(now, id, metered, messages, bytes as u64);
        self.stats.throttled += u64::from(waits && !was_waiting);
    }

    /// Counts what all of a user, or in a virtual host, have sent to another shard.
    pub(crate) fn spent_elsewhere(&mut self, now: Time, party: &Party, messages: u64, bytes: u64) {
        // It may come here next.
        if !self.flow.rates.knows(party) {
            let quota = match party {
                Party::User(user) => self.engine.quota(user).or(&self.options.quota),
                Party::Vhost(vhost) => self.engine.vhost_quota(vhost),
            };
            self.flow.rates.set_party(party, quota.get(Bound::Messages), quota.get(Bound::Bytes));
        }
        self.flow.rates.spent_elsewhere(now, party, messages, bytes);
    }

    /// Tells the other shards what was sent by users and to virtual hosts whose rates are bounded.
    pub(crate) fn tell_spent(&mut self) {
        while let Some((party, messages, bytes)) = self.flow.rates.next_untold() {
            let (user, vhost) = party.names();
            let spent = ShardMessage::Spent { user, vhost, messages, bytes };
            self.effects.links.say_to_all(spent);
        }
    }

    /// Lets connections go on that are within their rates again.
    pub(crate) fn let_paid_go_on(&mut self, now: Time) {
        while let Some(id) = self.flow.rates.next_due(now) {
            let connection = self.connections.get_mut(id);
            let metered: Option<&mut Metered> =
                connection.and_then(|connection| connection.metered.as_deref_mut());
            let metered = metered.expect("one that is gone waits no longer");
            self.flow.rates.release(id, metered);
            self.connections.resumable.push(id);
        }
    }
}
