//! Interest and access rights that the shards of a broker send each other: their encoding, and how
//! they are applied.
//!
//! News tell the present state, not what has changed, and arrive in order; repeating them does no harm.
//! The bytes never leave the process, so their layout has no version.

use super::interest::{Interest, Place};
use crate::access::User;
use crate::engine::Engine;
use crate::routing::vhost::Vhost;
use crate::storage::codec::{Codec, Malformed, Reader, Writer, codec_enum};
use crate::storage::record::Record;
use crate::{ConnectionId, Effects, PermissionListing, Revocation, ShardId};
use std::collections::BTreeSet;

codec_enum! {
    /// What one shard tells the others.
    #[derive(Debug)]
    enum News<'a>, NewsKind, "kind of news" {
        /// A change to users, permissions or virtual hosts, as a record.
        0 Access { ; record },
        /// How many subscribe there; of those outside of groups only whether there are any: then 1.
        1 Subscription { vhost: &'a str, pattern: &'a str, group: Option<&'a str>, members: u32 },
        /// Whether queues at home catch what matches a pattern of the topic exchange of subjects.
        2 Caught { vhost: &'a str, pattern: &'a str, is_caught: bool },
        /// How many subjects a user subscribes to there.
        3 UserSubscriptions { user: &'a str, count: u64 }
    }
}

impl News<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        self.encode(&mut Writer(&mut out));
        out
    }
}

fn access(record: &Record<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.write(&mut bytes);
    News::Access { record: &bytes }.bytes()
}

impl Engine {
    /// Whether other shards are to be told anything.
    #[inline]
    pub(crate) fn has_others(&self) -> bool {
        !self.options.others.is_empty()
    }

    /// Tells the other shards that a subscriber has come to a place, or is about to leave it, where they
    /// need to know.
    pub(super) fn tell_subscribing<F: Effects>(
        &self,
        by: Option<ConnectionId>,
        vhost: u32,
        place: Place,
        comes: bool,
        fx: &mut F,
    ) {
        if !self.has_others() {
            return;
        }
        let vhost = &self.topology.vhosts[vhost];
        let (pattern, group, members) = vhost.interest.place(place);
        // Outside of groups others need not know whether there is more than one.
        if group.is_none() && members > 1 {
            // They may not have heard yet of the one who came before.
            if let (true, Some(by)) = (comes, by) {
                fx.await_broadcasts(by);
            }
            return;
        }
        let members = u32::try_from(if comes { members } else { members - 1 }).unwrap_or(u32::MAX);
        let vhost = &vhost.name;
        fx.broadcast(by, &News::Subscription { vhost, pattern, group, members }.bytes());
    }

    /// Tells the other shards of a change to users, permissions or virtual hosts.
    pub(crate) fn tell_access<F: Effects>(&self, record: &Record<'_>, fx: &mut F) {
        if self.has_others() {
            fx.broadcast(None, &access(record));
        }
    }

    /// Tells the other shards which subjects queues of a virtual host catch, where that has changed.
    pub(crate) fn tell_catching<F: Effects>(&mut self, vhost: u32, fx: &mut F) {
        let has_others = self.has_others();
        let Some(host) = self.topology.vhosts.get_mut(vhost).filter(|_| has_others) else { return };
        for (pattern, is_caught) in host.router.take_subject_changes() {
            let caught = News::Caught { vhost: &host.name, pattern: &pattern, is_caught };
            fx.broadcast(None, &caught.bytes());
        }
    }

    /// The end of a turn: tells the other shards how many subjects users subscribe to here,
    /// where their number is bounded and has changed.
    pub(crate) fn tell_subscribers<F: Effects>(&mut self, fx: &mut F) {
        let most = self.options.limits.user_subscriptions_max;
        while let Some((user, count)) = self.access.next_subscribing_change(most) {
            if self.has_others() {
                fx.broadcast(None, &News::UserSubscriptions { user: &user, count }.bytes());
            }
        }
    }

    /// What a shard that begins now has to be told: users, virtual hosts, and what queues catch.
    #[must_use]
    pub fn introduction(&self) -> Vec<Vec<u8>> {
        let mut news = Vec::new();
        // An engine begins with this one.
        if !self.topology.vhost_slots.contains_key("/") {
            news.push(access(&Record::VhostDeleted { name: "/" }));
        }
        for (_, vhost) in self.topology.vhosts.iter() {
            news.push(access(&Record::VhostCreated { name: &vhost.name }));
        }
        self.access_records(|record| news.push(access(&record)));
        let exchange = self.names().subject_exchange;
        for (_, Vhost { name: vhost, router, .. }) in self.topology.vhosts.iter() {
            let subjects = router.bindings().filter(|binding| binding.source == exchange);
            let patterns: BTreeSet<&str> = subjects.map(|binding| binding.key).collect();
            let caught = |pattern| News::Caught { vhost, pattern, is_caught: true }.bytes();
            news.extend(patterns.into_iter().map(caught));
        }
        news
    }

    /// What news of another shard take away from connections here: before they are applied, connections that
    /// rest on it have to end.
    #[must_use]
    pub fn revoked_by<'a>(&self, news: &'a [u8]) -> Option<Revocation<&'a str>> {
        let Ok(News::Access { record }) = Reader(news).whole() else { return None };
        match Record::parse(record) {
            Ok(Record::UserDeleted { name }) => Some(Revocation::User(name)),
            Ok(Record::VhostDeleted { name }) => Some(Revocation::Vhost(name)),
            Ok(Record::PermissionsCleared { user, vhost }) => {
                Some(Revocation::Permissions { user, vhost })
            }
            Ok(Record::UserPut { name, password_hash, .. }) => {
                let before = self.access.user(name)?;
                (before.password_hash != password_hash).then_some(Revocation::Password(name))
            }
            _ => None,
        }
    }

    /// Applies what another shard told: users, virtual hosts, who subscribes there, what queues catch.
    /// Errors say what is wrong with it.
    pub fn apply_sync<F: Effects>(
        &mut self,
        from: ShardId,
        news: &[u8],
        fx: &mut F,
    ) -> Result<(), String> {
        match Reader(news).whole()? {
            News::Access { record } => {
                let record = Record::parse(record)?;
                self.replay_access(&record, fx)?;
                self.review_subscribers(&record, fx);
            }
            News::Subscription { vhost, pattern, group, members } => {
                if let Some(interest) = self.interest_in(vhost) {
                    interest.set_elsewhere(from, pattern, group, members);
                }
            }
            News::Caught { vhost, pattern, is_caught } => {
                if let Some(interest) = self.interest_in(vhost) {
                    interest.set_caught(pattern, is_caught);
                }
            }
            News::UserSubscriptions { user, count } => {
                self.access.subscribing.set_elsewhere(from, user, count);
            }
        }
        Ok(())
    }

    /// Who subscribes in a virtual host, which may have gone while that was told.
    fn interest_in(&mut self, vhost: &str) -> Option<&mut Interest> {
        let slot = self.vhost_slot(vhost).ok()?;
        self.topology.vhosts.get_mut(slot).map(|vhost| &mut vhost.interest)
    }

    /// All users and permissions as the records that would make them.
    fn access_records(&self, mut visit: impl FnMut(Record<'_>)) {
        for (name, User { password_hash, administrator }) in self.access.users() {
            visit(Record::UserPut { name, password_hash, administrator: *administrator });
        }
        self.access.permissions().for_each(|set| visit(Record::PermissionsSet(set)));
        for (user, vhost, subjects) in self.access.subject_permissions() {
            let subjects = subjects.clone();
            visit(Record::SubjectPermissionsSet { user, vhost, subjects });
        }
        for PermissionListing { user, vhost, .. } in self.access.permissions() {
            for (exchange, rules) in self.access.exchange_rules_of(user, vhost) {
                let rules = rules.clone();
                visit(Record::ExchangeRulesSet { user, vhost, exchange, rules });
            }
        }
        for (user, quota) in self.access.quotas() {
            visit(Record::QuotaSet { user, quota: *quota });
        }
        for (vhost, quota) in self.access.vhost_quotas() {
            visit(Record::VhostQuotaSet { vhost, quota: *quota });
        }
    }
}
