//! Read-only listings for administration and metrics.

use crate::channel::Channel;
use crate::engine::Engine;
use crate::routing::vhost::Vhost;
use crate::routing::{Router, TargetView};
use crate::selector::Filter;
use crate::{
    Arguments, ConnectionId, Counters, Discards, ExchangeOptions, ExchangeRules, Followed,
    NamedSubscriptionListing, PermissionListing, Position, QueueCounters, QueueOptions, Quota,
    SessionExpiry, SubjectPermissions, SubscriptionListing, Time,
};
use std::ops::Range;

/// A virtual host.
#[derive(Clone, Copy, Debug)]
pub struct VhostListing<'a> {
    /// Its name.
    pub name: &'a str,
    /// How many queues it has.
    pub queues: usize,
    /// How many bytes of messages are stored in them, delayed, or on their way to very many of them.
    pub stored_bytes: u64,
    /// How many connections of clients it has, as far as shards have told.
    pub connections: u64,
    /// What all in it may use together.
    pub quota: Quota,
}

/// A user.
#[derive(Clone, Copy, Debug)]
pub struct UserListing<'a> {
    /// The user's name.
    pub name: &'a str,
    /// May administer.
    pub administrator: bool,
    /// What it may use.
    pub quota: Quota,
    /// How many queues it has declared.
    pub queues: u64,
    /// How many bytes of messages are stored in them, and how many it has published with a delay.
    pub stored_bytes: u64,
}

/// An exchange.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeListing<'a> {
    /// Its virtual host.
    pub vhost: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What it was declared with.
    pub options: &'a ExchangeOptions,
    /// The policies it follows.
    pub followed: Followed<'a>,
}

/// A queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueListing<'a> {
    /// Its virtual host.
    pub vhost: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What it was declared with.
    pub options: &'a QueueOptions,
    /// The policies it follows.
    pub followed: Followed<'a>,
    /// Messages that wait for a consumer.
    pub ready: u64,
    /// Their payload bytes.
    pub ready_bytes: u64,
    /// Messages that are out and not settled.
    pub unsettled: u64,
    /// What it takes up in memory.
    pub resident_bytes: u64,
    /// Its consumers.
    pub consumers: usize,
    /// Where the record is that cannot be read back, at which deliveries have stopped until the queue
    /// is purged or deleted.
    pub unreadable: Option<Position>,
    /// What happened to its messages.
    pub counters: QueueCounters,
    /// Which of them are gone for good.
    pub discarded: Discards,
}

/// A session.
#[derive(Clone, Copy, Debug)]
pub struct SessionListing<'a> {
    /// Its virtual host.
    pub vhost: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Who owns it.
    pub user: &'a str,
    /// How long it lives on without a holder.
    pub expiry: SessionExpiry,
    /// It survives a restart.
    pub recorded: bool,
    /// Since when no channel holds it; `None`: one does.
    pub detached_at: Option<Time>,
    /// When it ends, if it is not claimed before.
    pub expires_at: Option<Time>,
    /// The name of its queue, if it has one.
    pub queue: Option<&'a str>,
    /// How many attributes it has.
    pub attributes: usize,
    /// Numbers of publishes that it does not take again.
    pub received: usize,
    /// Places of its queue that were released and are still in use.
    pub released: usize,
    /// Whether it has a will.
    pub has_will: bool,
}

/// A binding.
#[derive(Clone, Copy, Debug)]
pub struct BindingListing<'a> {
    /// Its virtual host.
    pub vhost: &'a str,
    /// The exchange it leads from.
    pub source: &'a str,
    /// The queue or exchange it leads to.
    pub target: &'a str,
    /// Whether that is a queue.
    pub to_queue: bool,
    /// Its key or pattern.
    pub key: &'a str,
    /// Its arguments, if it has any.
    pub arguments: Option<&'a Arguments>,
    /// The text of its filter, if it has one.
    pub filter: Option<&'a str>,
    /// The client whose messages it does not take.
    pub not_from: Option<&'a str>,
}

impl Engine {
    /// What happened since the engine was made.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Messages that clients have published so far, in any way.
    #[inline]
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.counters.published + self.counters.sent_home + self.counters.emitted
    }

    /// Of what there was so far, messages that came to nothing: nobody subscribed and no queue took them,
    /// or a full queue let go of one for them, which became no dead letter.
    #[inline]
    #[must_use]
    pub fn wasted(&self) -> u64 {
        self.counters.direct_undelivered + self.counters.unroutable + self.counters.let_go
    }

    /// Bytes of messages that all queues hold in memory, as [`crate::interface::limits::Limits`] counts them.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.storage.resident
    }

    /// A user's password hash, as [`crate::Request::CreateUser`] gave it.
    #[must_use]
    pub fn password_hash(&self, user: &str) -> Option<&str> {
        self.access.user(user).map(|user| user.password_hash.as_str())
    }

    /// Whether a user may administer.
    #[must_use]
    pub fn is_administrator(&self, user: &str) -> bool {
        self.access.user(user).is_some_and(|user| user.administrator)
    }

    /// The virtual host of a user that names none: the only one where it has rights, or else the default.
    #[must_use]
    pub fn usual_vhost<'a>(&'a self, user: &str, default: &'a str) -> &'a str {
        self.access.only_vhost(user).unwrap_or(default)
    }

    /// What all in a virtual host may use together.
    #[must_use]
    pub fn vhost_quota(&self, vhost: &str) -> Quota {
        self.access.vhost_quota(vhost)
    }

    /// How often a quota was set: a change of it makes what was derived from quotas stale.
    #[must_use]
    pub fn quota_changes(&self) -> u64 {
        self.access.quota_changes()
    }

    /// What a user may use, where that is limited for it alone.
    #[must_use]
    pub fn quota(&self, user: &str) -> Quota {
        self.access.quota(user)
    }

    /// All virtual hosts, by name.
    pub fn list_vhosts(&self) -> impl Iterator<Item = VhostListing<'_>> {
        let vhosts = self.topology.vhost_slots.values();
        let vhosts = vhosts.map(|slot| (*slot, &self.topology.vhosts[*slot]));
        vhosts.map(|(slot, vhost)| VhostListing {
            name: &vhost.name,
            queues: vhost.queues,
            stored_bytes: self.stored_in(slot),
            connections: self.access.in_vhost(&vhost.name),
            quota: self.access.vhost_quota(&vhost.name),
        })
    }

    /// All users, by name.
    pub fn list_users(&self) -> impl Iterator<Item = UserListing<'_>> {
        self.access.users().map(|(name, user)| UserListing {
            name,
            administrator: user.administrator,
            quota: self.access.quota(name),
            queues: self.access.owned_queues(name),
            stored_bytes: self.definitions.find(name).map_or(0, |user| self.stored_by(user)),
        })
    }

    /// All permissions, by user and virtual host.
    pub fn list_permissions(&self) -> impl Iterator<Item = PermissionListing<'_>> {
        self.access.permissions()
    }

    /// What a user may do with subjects in a virtual host, where that is narrowed.
    #[must_use]
    pub fn permitted_subjects(&self, user: &str, vhost: &str) -> Option<&SubjectPermissions> {
        self.access.subjects_of(user, vhost)
    }

    /// What a user may do with the routing keys of exchanges other than that of subjects, by their names.
    pub fn exchange_rules(
        &self,
        user: &str,
        vhost: &str,
    ) -> impl Iterator<Item = (&str, &ExchangeRules)> {
        self.access.exchange_rules_of(user, vhost)
    }

    /// All exchanges, by virtual host.
    pub fn list_exchanges(&self) -> impl Iterator<Item = ExchangeListing<'_>> {
        self.list_exchanges_in(0..self.exchange_places())
    }

    /// Places that exchanges have or had; each keeps its own for as long as no virtual host comes or goes.
    #[must_use]
    pub fn exchange_places(&self) -> usize {
        self.topology.by_name().map(|vhost| vhost.router.exchange_places()).sum()
    }

    /// Those in some of the [`Engine::exchange_places`].
    pub fn list_exchanges_in(
        &self,
        places: Range<usize>,
    ) -> impl Iterator<Item = ExchangeListing<'_>> {
        self.in_vhosts(places, Router::exchange_places).flat_map(|(host, own)| {
            let vhost = host.name.as_str();
            let exchanges = host.router.exchanges_in(own);
            exchanges.map(move |(name, options)| ExchangeListing {
                vhost,
                name,
                options,
                followed: host.router.followed_by(name),
            })
        })
    }

    /// Virtual hosts with those of `places` that are their own, where each has some after the other.
    fn in_vhosts(
        &self,
        places: Range<usize>,
        count: impl Fn(&Router) -> usize,
    ) -> impl Iterator<Item = (&Vhost, Range<usize>)> {
        let mut before = 0;
        self.topology.by_name().map(move |host| {
            let count = count(&host.router);
            let own = |place: usize| place.saturating_sub(before).min(count);
            let own = own(places.start)..own(places.end);
            before += count;
            (host, own)
        })
    }

    /// How many subjects a connection subscribes to without a queue.
    pub fn subjects_subscribed_to(&self, id: ConnectionId) -> usize {
        self.channels_of(id).map(|channel| channel.subscribers.len()).sum()
    }

    /// Those subjects, as patterns, in no particular order; one as often as it subscribes to it.
    pub fn subscribed_subjects(&self, id: ConnectionId) -> impl Iterator<Item = &str> {
        self.channels_of(id).flat_map(|channel| self.subjects_of(&channel.subscribers))
    }

    /// The subscriptions of a connection, in no particular order.
    pub fn list_subscriptions(
        &self,
        id: ConnectionId,
    ) -> impl Iterator<Item = SubscriptionListing<'_>> {
        self.channels_of(id).flat_map(|channel| self.subscriptions_of(&channel.subscribers))
    }

    fn channels_of(&self, id: ConnectionId) -> impl Iterator<Item = &Channel> {
        let connection = self.clients.connection(id).into_iter();
        let channels = connection.flat_map(|connection| &connection.channels);
        channels.filter_map(|(_, slot)| self.clients.channels.get(*slot))
    }

    /// Places that queues have or had; each keeps its own.
    #[must_use]
    pub fn queue_places(&self) -> usize {
        self.queues.slots()
    }

    /// All queues, in no particular order.
    pub fn list_queues(&self) -> impl Iterator<Item = QueueListing<'_>> {
        self.list_queues_in(0..self.queue_places())
    }

    /// Those in some of the [`Engine::queue_places`].
    pub fn list_queues_in(&self, places: Range<usize>) -> impl Iterator<Item = QueueListing<'_>> {
        self.queues.iter_in(places).filter_map(|(_, queue)| {
            Some(QueueListing {
                vhost: &self.topology.vhosts.get(queue.vhost)?.name,
                name: &queue.name,
                options: queue.declared(),
                followed: queue.followed.as_ref().map(|it| it.names.shown()).unwrap_or_default(),
                ready: queue.ready,
                ready_bytes: queue.bytes.ready(),
                unsettled: queue.unsettled,
                resident_bytes: queue.resident,
                consumers: queue.consumers.len(),
                unreadable: queue.unreadable(),
                counters: queue.counters,
                discarded: queue.discarded.as_deref().copied().unwrap_or_default(),
            })
        })
    }

    /// Named subscriptions whose queues are in some of the [`Engine::queue_places`].
    pub fn list_named_subscriptions_in(
        &self,
        places: Range<usize>,
    ) -> impl Iterator<Item = NamedSubscriptionListing<'_>> {
        self.queues.iter_in(places).filter_map(|(_, queue)| {
            let subscription = queue.subscription.as_ref()?;
            Some(NamedSubscriptionListing {
                vhost: &self.topology.vhosts.get(queue.vhost)?.name,
                owner: subscription.owner.as_deref(),
                name: &subscription.name,
                queue: &queue.name,
                durable: subscription.durable,
                shared: subscription.shared,
                source: &subscription.source,
                keys: &subscription.keys,
                filter: subscription.filter.as_ref().map(Filter::text),
                not_from: subscription.not_from.as_deref(),
                ready: queue.ready,
                unsettled: queue.unsettled,
                consumers: queue.consumers.len(),
            })
        })
    }

    /// All sessions, in no particular order.
    pub fn list_sessions(&self) -> impl Iterator<Item = SessionListing<'_>> {
        self.list_sessions_in(0..self.session_places())
    }

    /// How many sessions there are.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// How many sessions no connection holds.
    #[must_use]
    pub fn detached_count(&self) -> usize {
        self.sessions.len() - self.sessions.held_count()
    }

    /// Subscriptions to direct messages here, and bindings.
    #[must_use]
    pub fn subscription_count(&self) -> usize {
        let bindings = self.topology.vhost_slots.values();
        let bindings = bindings.map(|slot| self.topology.vhosts[*slot].router.binding_count());
        self.pubsub.subscription_count() + bindings.sum::<usize>()
    }

    /// Places that sessions have or had; each keeps its own.
    #[must_use]
    pub fn session_places(&self) -> usize {
        self.sessions.slots()
    }

    /// Those in some of the [`Engine::session_places`].
    pub fn list_sessions_in(
        &self,
        places: Range<usize>,
    ) -> impl Iterator<Item = SessionListing<'_>> {
        self.sessions.iter_in(places).filter_map(|(_, session)| {
            Some(SessionListing {
                vhost: &self.topology.vhosts.get(session.vhost)?.name,
                name: &session.name,
                user: &session.user,
                expiry: session.expiry,
                recorded: session.recorded,
                detached_at: session.detached_at,
                expires_at: session.expires_at,
                queue: self.queues.slot_of(session.queue).map(|slot| &*self.queues[slot].name),
                attributes: session.attributes.len(),
                received: session.received.len(),
                released: session.released.len(),
                has_will: session.will.is_some(),
            })
        })
    }

    /// All bindings but those of default exchanges, by virtual host.
    pub fn list_bindings(&self) -> impl Iterator<Item = BindingListing<'_>> {
        self.list_bindings_in(0..self.binding_places())
    }

    /// Places that bindings have or had; each keeps its own for as long as no virtual host comes or goes.
    #[must_use]
    pub fn binding_places(&self) -> usize {
        self.topology.by_name().map(|vhost| vhost.router.binding_places()).sum()
    }

    /// Those in some of the [`Engine::binding_places`].
    pub fn list_bindings_in(
        &self,
        places: Range<usize>,
    ) -> impl Iterator<Item = BindingListing<'_>> {
        self.in_vhosts(places, Router::binding_places).flat_map(|(vhost, own)| {
            vhost.router.bindings_in(own).map(|binding| {
                let (target, to_queue) = match binding.target {
                    TargetView::Queue(name, _) => (name, true),
                    TargetView::Exchange(name) => (name, false),
                };
                BindingListing {
                    vhost: &vhost.name,
                    source: binding.source,
                    target,
                    to_queue,
                    key: binding.key,
                    arguments: binding.arguments,
                    filter: binding.condition.and_then(|it| Some(it.filter.as_ref()?.text())),
                    not_from: binding.condition.and_then(|it| it.not_from.as_deref()),
                }
            })
        })
    }
}
