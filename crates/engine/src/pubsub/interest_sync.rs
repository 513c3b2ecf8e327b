//! Interest and access rights that the shards of a broker send each other: their encoding, and how
//! they are applied.
//!
//! News say how things are now, not what has changed, and come in the order in which they were told;
//! telling the same twice does no harm. The bytes never leave the process, so their layout has no
//! version.

use super::interest::{Interest, Place};
use crate::access::{Access, PermissionView, User};
use crate::engine::Engine;
use crate::storage::codec::{Malformed, Reader, Writer};
use crate::storage::record::Record;
use crate::{ConnectionId, Effects, ShardId};
use std::collections::BTreeSet;

const ACCESS: u8 = 0;
const LISTENING: u8 = 1;
const CAUGHT: u8 = 2;
const LISTENERS: u8 = 3;

/// How many subscribe on the shard that tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subscription<'a> {
    vhost: &'a str,
    pattern: &'a str,
    group: Option<&'a str>,
    /// Of those outside of groups it is only told whether there are any: then 1.
    members: u32,
}

impl<'a> Subscription<'a> {
    fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + self.vhost.len() + self.pattern.len());
        let mut writer = Writer(&mut out);
        writer.u8(LISTENING);
        writer.text(self.vhost);
        writer.text(self.pattern);
        writer.option(self.group, |writer, group| writer.text(group));
        writer.u32(self.members);
        out
    }

    fn parse(bytes: &'a [u8]) -> Result<Subscription<'a>, Malformed> {
        let mut reader = Reader(bytes);
        let vhost = reader.text()?;
        let pattern = reader.text()?;
        let group = reader.option(Reader::text)?;
        let members = reader.u32()?;
        reader.end()?;
        Ok(Subscription { vhost, pattern, group, members })
    }
}

/// Whether queues at home catch what matches a pattern of the topic exchange of subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Caught<'a> {
    vhost: &'a str,
    pattern: &'a str,
    is_caught: bool,
}

impl<'a> Caught<'a> {
    fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + self.vhost.len() + self.pattern.len());
        let mut writer = Writer(&mut out);
        writer.u8(CAUGHT);
        writer.text(self.vhost);
        writer.text(self.pattern);
        writer.bool(self.is_caught);
        out
    }

    fn parse(bytes: &'a [u8]) -> Result<Caught<'a>, Malformed> {
        let mut reader = Reader(bytes);
        let (vhost, pattern, is_caught) = (reader.text()?, reader.text()?, reader.bool()?);
        reader.end()?;
        Ok(Caught { vhost, pattern, is_caught })
    }
}

/// How many subjects a user subscribes to on the shard that tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subscribers<'a> {
    user: &'a str,
    count: u64,
}

impl<'a> Subscribers<'a> {
    fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + self.user.len());
        let mut writer = Writer(&mut out);
        writer.u8(LISTENERS);
        writer.text(self.user);
        writer.u64(self.count);
        out
    }

    fn parse(bytes: &'a [u8]) -> Result<Subscribers<'a>, Malformed> {
        let mut reader = Reader(bytes);
        let (user, count) = (reader.text()?, reader.u64()?);
        reader.end()?;
        Ok(Subscribers { user, count })
    }
}

fn access(record: &Record<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.write(&mut bytes);
    bytes.insert(0, ACCESS);
    bytes
}

/// What is deleted, and whose connections end with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion<Name> {
    /// A user.
    User(Name),
    /// A virtual host.
    Vhost(Name),
}

impl<'a> Deletion<&'a str> {
    /// What news tell to be deleted, if they do: before they are taken in, connections that use it have to
    /// end.
    #[must_use]
    pub fn told_by(news: &'a [u8]) -> Option<Self> {
        let Some((&ACCESS, record)) = news.split_first() else { return None };
        match Record::parse(record) {
            Ok(Record::UserDeleted { name }) => Some(Deletion::User(name)),
            Ok(Record::VhostDeleted { name }) => Some(Deletion::Vhost(name)),
            _ => None,
        }
    }

    /// The same with a name of its own.
    #[must_use]
    pub fn to_owned(self) -> Deletion<String> {
        match self {
            Deletion::User(name) => Deletion::User(name.to_owned()),
            Deletion::Vhost(name) => Deletion::Vhost(name.to_owned()),
        }
    }

    /// Whether a connection of that user to that virtual host uses it.
    #[must_use]
    pub fn includes(self, user: &str, vhost: &str) -> bool {
        match self {
            Deletion::User(name) => name == user,
            Deletion::Vhost(name) => name == vhost,
        }
    }

    /// Why such a connection ends.
    #[must_use]
    pub fn reason(self) -> String {
        match self {
            Deletion::User(name) => format!("user '{name}' was deleted"),
            Deletion::Vhost(name) => format!("virtual host '{name}' was deleted"),
        }
    }
}

impl Deletion<String> {
    /// The same with the name borrowed.
    #[must_use]
    pub fn borrowed(&self) -> Deletion<&str> {
        match self {
            Deletion::User(name) => Deletion::User(name),
            Deletion::Vhost(name) => Deletion::Vhost(name),
        }
    }
}

impl Engine {
    /// Whether other shards are to be told anything.
    #[inline]
    pub(crate) fn has_others(&self) -> bool {
        !self.options.others.is_empty()
    }

    /// Tells the other shards that somebody has come to a place, or is about to leave it, where they
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
        let vhost = self.topology.vhosts.get(vhost).expect("channels end first");
        let (pattern, group, members) = vhost.interest.place(place);
        // Whether there are more than one outside of groups is no matter for others.
        if group.is_none() && members > 1 {
            // They may not have heard yet of the one who came before.
            if let (true, Some(by)) = (comes, by) {
                fx.await_broadcasts(by);
            }
            return;
        }
        let members = u32::try_from(if comes { members } else { members - 1 }).unwrap_or(u32::MAX);
        fx.broadcast(by, &Subscription { vhost: &vhost.name, pattern, group, members }.write());
    }

    /// Tells the other shards of a change to users, permissions or virtual hosts.
    pub(crate) fn tell_access<F: Effects>(&self, record: &Record<'_>, fx: &mut F) {
        if self.has_others() {
            fx.broadcast(None, &access(record));
        }
    }

    /// Tells the other shards which subjects queues of a virtual host catch, where that has changed.
    pub(crate) fn tell_catching<F: Effects>(&mut self, vhost: u32, fx: &mut F) {
        let Some(host) =
            self.topology.vhosts.get_mut(vhost).filter(|_| !self.options.others.is_empty())
        else {
            return;
        };
        for (pattern, is_caught) in host.router.take_subject_changes() {
            let caught = Caught { vhost: &host.name, pattern: &pattern, is_caught };
            fx.broadcast(None, &caught.write());
        }
    }

    /// The end of a turn: tells the other shards how many subjects users subscribe to here,
    /// where their number is bounded and has changed.
    pub(crate) fn tell_subscribers<F: Effects>(&mut self, fx: &mut F) {
        let most = self.options.limits.user_subscriptions_max;
        while let Some((user, count)) = self.access.next_subscribing_change(most) {
            if self.has_others() {
                fx.broadcast(None, &Subscribers { user: &user, count }.write());
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
        access_records(&self.access, |record| news.push(access(record)));
        let exchange = self.names().subject_exchange;
        for (_, vhost) in self.topology.vhosts.iter() {
            let subjects = vhost.router.bindings().filter(|binding| binding.source == exchange);
            let patterns: BTreeSet<&str> = subjects.map(|binding| binding.key).collect();
            news.extend(
                patterns
                    .iter()
                    .map(|pattern| Caught { vhost: &vhost.name, pattern, is_caught: true }.write()),
            );
        }
        news
    }

    /// Applies what another shard told: users, virtual hosts, who subscribes there, what queues catch.
    /// Errors say what is wrong with it.
    pub fn apply_sync<F: Effects>(
        &mut self,
        from: ShardId,
        news: &[u8],
        fx: &mut F,
    ) -> Result<(), String> {
        match news.split_first() {
            Some((&ACCESS, record)) => {
                let record = Record::parse(record)?;
                self.replay_access(&record, fx)?;
                self.review_subscribers(&record, fx);
                Ok(())
            }
            Some((&LISTENING, subscribing)) => {
                let Subscription { vhost, pattern, group, members } =
                    Subscription::parse(subscribing)?;
                if let Some(interest) = self.interest_in(vhost) {
                    interest.set_elsewhere(from, pattern, group, members);
                }
                Ok(())
            }
            Some((&CAUGHT, caught)) => {
                let Caught { vhost, pattern, is_caught } = Caught::parse(caught)?;
                if let Some(interest) = self.interest_in(vhost) {
                    interest.set_caught(pattern, is_caught);
                }
                Ok(())
            }
            Some((&LISTENERS, subscribers)) => {
                let Subscribers { user, count } = Subscribers::parse(subscribers)?;
                self.access.subscribing.set_elsewhere(from, user, count);
                Ok(())
            }
            _ => Err("news of an unknown kind".to_owned()),
        }
    }

    /// Who subscribes in a virtual host, which may have gone while that was told.
    fn interest_in(&mut self, vhost: &str) -> Option<&mut Interest> {
        let slot = self.vhost_slot(vhost).ok()?;
        self.topology.vhosts.get_mut(slot).map(|vhost| &mut vhost.interest)
    }
}

/// All users and permissions as the records that would make them.
fn access_records(access: &Access, mut visit: impl FnMut(&Record<'_>)) {
    for (name, user) in access.users() {
        let User { password_hash, administrator } = user;
        visit(&Record::UserPut { name, password_hash, administrator: *administrator });
    }
    for PermissionView { user, vhost, configure, write, read } in access.permissions() {
        visit(&Record::PermissionsSet { user, vhost, configure, write, read });
    }
    for (user, vhost, subjects) in access.subject_permissions() {
        let subjects = subjects.clone();
        visit(&Record::SubjectPermissionsSet { user, vhost, subjects });
    }
    for (user, quota) in access.quotas() {
        visit(&Record::QuotaSet { user, quota: *quota });
    }
}
