//! Emits direct messages: to subscribers, and to queues that are bound to the subject.

use super::forward::{Audience, Forward, Subjects, emitted};
use super::{Direct, QUEUE_SUBJECT_PREFIX};
use crate::access::Grant;
use crate::engine::Engine;
use crate::interface::limits::{KEY_BYTES_MAX, SUBJECT_BYTES_MAX};
use crate::interface::refusal::refuse;
use crate::pubsub::cached_route::CachedRoute;
use crate::pubsub::fanout::{Emission, Fanout, Members, PartTurn, ToGroup};
use crate::pubsub::group::ToGroups;
use crate::pubsub::subscribe::Subscriber;
use crate::pubsub::to_subscribers::Wide;
use crate::pubsub::wide::{shards, width};
use crate::queue::stored::Incoming;
use crate::routing::vhost::Vhost;
use crate::{
    ChannelId, ConnectionId, Content, Effects, Emit, MessageView, Names, Publish, Reached, Refusal,
    Retain, ShardId, Shards, Time,
};

impl Engine {
    /// Hands a direct message to the subscribers of its subject, and to queues bound to it.
    /// Refused: no permission, too large.
    #[inline]
    pub fn emit<F: Effects>(
        &mut self,
        now: Time,
        channel: ChannelId,
        emit: &Emit<'_>,
        fx: &mut F,
    ) -> Result<Reached, Refusal> {
        self.emit_next(now, channel, emit, &mut None, fx)
    }

    /// Emits a message for which everything is looked up; says in `cached_route` what the next one need not.
    /// Not inlined: those that follow are the many.
    #[inline(never)]
    pub(super) fn emit_first<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        emit: &Emit<'_>,
        cached_route: &mut Option<CachedRoute>,
        fx: &mut F,
    ) -> Result<Reached, Refusal> {
        let slot = self.channel_slot(id).ok_or_else(|| Engine::no_channel(id))?;
        self.check_emit(id, emit)?;
        let vhost = self.clients.channels[slot].vhost;
        self.counters.emitted += 1;
        let message = &emitted(self.names(), emit.subject, &emit.content);
        let (connection, is_emitted) = (id.connection, true);
        let publisher = Publisher { connection, is_emitted, echo: emit.echo, asks: emit.asks };
        // The queues and inboxes are at home.
        let is_addressed_home = self.is_away() && is_addressed(self.names(), emit.subject);
        let addressed = if is_addressed_home { Shards::one(ShardId::HOME) } else { Shards::NONE };
        let subjects = Subjects::one(emit.subject);
        let mut reached = self.announce(vhost, subjects, Some(publisher), addressed, message, fx);
        if self.is_caught(vhost, emit.subject) {
            let by = Some(id.connection);
            reached.queues = self.put_into_queues(now, vhost, emit.subject, by, emit.content, fx);
        } else if addressed.is_empty() {
            *cached_route = self.find_cached_route(vhost);
        }
        if reached.is_nobody() {
            self.counters.direct_undelivered += 1;
        }
        Ok(reached)
    }

    /// Refuses a message that is too large or that the channel may not publish.
    #[inline]
    pub(super) fn check_emit(&mut self, id: ChannelId, emit: &Emit<'_>) -> Result<(), Refusal> {
        let bytes = emit.content.body.len() as u64;
        let most = self.options.limits.body_bytes_max;
        if bytes > most || emit.subject.len() > SUBJECT_BYTES_MAX {
            refuse!(
                LimitExceeded,
                "a message of {bytes} bytes to a subject of {}: the limits are {most} and \
                 {SUBJECT_BYTES_MAX}",
                emit.subject.len()
            );
        }
        if emit.is_response {
            return self.check_exchange(id, emit.subject).map(drop);
        }
        self.check_subject(id, emit.subject)
    }

    /// Whether the channel may publish to a subject. It may be asked of what is no subject too: nothing else
    /// tells who may not publish at all.
    #[inline]
    pub fn check_subject(&mut self, id: ChannelId, subject: &str) -> Result<(), Refusal> {
        self.check_exchange(id, subject)?.map_or(Ok(()), |grant| grant.check_subject(subject))
    }

    /// Whether the user of a channel may hear what is published to a subject.
    #[must_use]
    pub fn may_hear(&self, id: ChannelId, subject: &str) -> bool {
        let Some(channel) = self.clients.channel(id) else { return false };
        let Some(user) = self.clients.user(id.connection) else { return true };
        let vhost = &self.topology.vhosts[channel.vhost].name;
        let client = self.clients.client_name(id.connection);
        self.access.audible(user, vhost, client).includes(std::iter::once(subject))
    }

    /// Whether the channel may publish to the exchange of a subject; what its connection may do, if that is
    /// limited.
    #[inline]
    fn check_exchange(
        &mut self,
        id: ChannelId,
        subject: &str,
    ) -> Result<Option<&mut Grant>, Refusal> {
        let names = self.names();
        let Some(grant) = self.clients.grant(id.connection) else { return Ok(None) };
        let exchange = if is_addressed(names, subject) { "" } else { names.subject_exchange };
        grant.check_exchange(&self.access, exchange)?;
        Ok(Some(grant))
    }

    /// Whether queues may catch a direct message. Elsewhere there are none; home gets what is for them.
    #[inline]
    fn is_caught(&self, vhost: u32, subject: &str) -> bool {
        !self.is_away()
            && (is_addressed(self.names(), subject)
                || self.topology.vhosts[vhost].router.has_subject_bindings())
    }

    /// The queues bound to the exchange of subjects, the one that the subject names, or the inbox it is
    /// addressed to. Returns how many took the message.
    #[cold]
    fn put_into_queues<F: Effects>(
        &mut self,
        now: Time,
        vhost: u32,
        subject: &str,
        by: Option<ConnectionId>,
        content: Content<'_>,
        fx: &mut F,
    ) -> u32 {
        let (exchange, key) = match subject.strip_prefix(QUEUE_SUBJECT_PREFIX) {
            Some(queue) => ("", queue),
            None if subject.starts_with(self.names().inbox_prefix) => ("", subject),
            None => (self.names().subject_exchange, subject),
        };
        if key.len() > KEY_BYTES_MAX {
            return 0;
        }
        let publish = Publish {
            exchange,
            routing_key: key,
            also_to: &[],
            mandatory: false,
            retain: Retain::No,
            not_before: None,
            transaction: None,
            content,
        };
        self.place_caught(now, vhost, by, &publish, fx)
    }

    /// Hands a direct message of another shard, for which everything is looked up, to those it is for;
    /// says in `cached_route` what the next one need not look up.
    #[inline(never)]
    pub(super) fn take_first_forward<F: Effects>(
        &mut self,
        now: Time,
        forward: &Forward<'_>,
        cached_route: &mut Option<CachedRoute>,
        fx: &mut F,
    ) -> Reached {
        let Forward { subject, message, audience, vhost, .. } = forward;
        // A virtual host may have gone while the message was on its way.
        let Ok(vhost) = self.vhost_slot(vhost) else { return Reached::default() };
        if let Audience::Group { .. } = audience {
            return self.announce_to_group(vhost, forward, fx);
        }
        let mut reached = self.announce_here(vhost, forward.subjects(), None, message, fx);
        if self.is_caught(vhost, subject) {
            let content = Content {
                format: message.format,
                properties: message.properties,
                body: message.body,
                shared: message.shared,
                persistent: message.persistent,
                priority: message.priority,
                ttl: message.ttl,
            };
            reached.queues = self.put_into_queues(now, vhost, subject, None, content, fx);
        } else {
            *cached_route = self.find_cached_route(vhost);
        }
        reached
    }

    /// Hands a message that came through exchanges, and that they lead to subjects, to those who subscribe;
    /// says whether anybody does. `by`: the connection that waits if they are very many.
    #[inline]
    pub(crate) fn publish_to_subscribers<F: Effects>(
        &mut self,
        vhost: u32,
        incoming: &Incoming<'_>,
        by: Option<ConnectionId>,
        fx: &mut F,
    ) -> bool {
        if self.topology.vhosts[vhost].interest.is_empty() {
            return false;
        }
        let mut room = Vec::new();
        let subjects = Subjects::several(incoming.routing_key, incoming.also_to, &mut room);
        let (is_emitted, echo, asks) = (false, true, false);
        let by = by.map(|connection| Publisher { connection, is_emitted, echo, asks });
        let reached = self.announce(vhost, subjects, by, Shards::NONE, &incoming.view(), fx);
        reached.subscribers > 0
    }

    /// Whether subscribers may receive a message that came through another exchange than that
    /// of subjects: not where it leads to subjects that its publisher may not publish to.
    pub(crate) fn may_be_delivered(&mut self, slot: u32, publish: &Publish<'_>) -> bool {
        // What is published to subjects themselves was refused before.
        let names = self.names();
        if publish.exchange == names.subject_exchange {
            return true;
        }
        let id = self.clients.channels[slot].id;
        let Some(grant) = self.clients.grant(id.connection) else { return true };
        publish.keys().all(|key| grant.may_be_heard(&self.access, publish.exchange, key))
    }

    /// Hands a message to all who subscribe to its subjects, here and on other shards, and to one of each
    /// group. `also`: shards that get it whether or not anybody subscribes there.
    #[inline]
    fn announce<F: Effects>(
        &mut self,
        slot: u32,
        subjects: Subjects<'_>,
        publisher: Option<Publisher>,
        also: Shards,
        message: &MessageView<'_>,
        fx: &mut F,
    ) -> Reached {
        let mut fanout = Fanout::default();
        let is_emitted = publisher.is_some_and(|publisher| publisher.is_emitted);
        let groups = if is_emitted { ToGroups::All } else { ToGroups::Unshared };
        let (origin, has_others) = (self.options.shard, self.has_others());
        let emission = Emission { number: self.pubsub.next_emission(), cached_route: 0, message };
        let Direct { subscribers, channels, leaves, parts, spent, .. } = &mut self.pubsub;
        leaves.clear();
        let Vhost { name: vhost, interest, .. } = &mut self.topology.vhosts[slot];
        let visited = interest.find_any(subjects, leaves);
        let silent = publisher.filter(|publisher| !publisher.echo).map(|it| it.connection);
        let width = width(interest, leaves);
        if width > self.options.limits.subscribers_at_once {
            let elsewhere = also.and(shards(interest, leaves));
            let (vhost, number) = (slot, emission.number);
            let sender = publisher.map(|publisher| publisher.connection);
            let publisher = emitter(publisher);
            let to = Wide { vhost, subjects, number, publisher, sender, silent, groups, width };
            return self.begin_wide(to, message, elsewhere, fx);
        }
        let is_deaf = |subscriber: &Subscriber| subscriber.is_deaf(subjects, silent, channels);
        let (mut elsewhere, mut has_groups) = (also, false);
        for leaf in leaves.iter().filter_map(|leaf| interest.leaf(*leaf)) {
            elsewhere = elsewhere.and(leaf.shards());
            has_groups |= leaf.has_groups();
            fanout.count_all(&leaf.all, subscribers, spent, is_deaf, emission, fx);
        }
        parts.clear();
        if has_groups {
            interest.gather(leaves, groups, parts);
        }
        fanout.looked_at += (visited + leaves.len() + parts.len()) as u64;
        if parts.is_empty() && elsewhere.is_empty() {
            return self.end_fanout(&fanout, message, fx);
        }
        let is_one_shard = || match has_groups {
            false => elsewhere.count() == 1,
            true => elsewhere.is_empty() && interest.is_one_group_elsewhere(leaves),
        };
        let (echo, body) = (silent.is_none(), &[message.body]);
        // Only where a single other shard decides can the publisher learn that nobody takes it.
        let asks = has_others
            && publisher.is_some_and(|publisher| publisher.asks)
            && fanout.reached().is_nobody()
            && is_one_shard();
        let sender = publisher.filter(|it| !it.is_emitted).map(|it| it.connection);
        let Subjects { first: subject, further } = subjects;
        let forward = Forward::new(origin, emitter(publisher), vhost, subject, *message);
        let forward = Forward { asks, sender, further, ..forward };
        let members = &mut Members { subscribers, spent };
        let to = ToGroup { emission, forward, echo };
        let mut rest = &parts[..];
        while let Some(group) = interest.next_group(&mut rest) {
            fanout.hand_to_group(interest, group, members, is_deaf, to, fx);
        }
        if !elsewhere.is_empty() {
            fanout.count(fx.forward_to_shards(elsewhere, &forward, body));
        }
        self.end_fanout(&fanout, message, fx)
    }

    /// Hands a message to all who subscribe here to its subjects, outside of groups; with `only`, to those
    /// of that channel alone.
    fn announce_here<F: Effects>(
        &mut self,
        vhost: u32,
        subjects: Subjects<'_>,
        only: Option<ChannelId>,
        message: &MessageView<'_>,
        fx: &mut F,
    ) -> Reached {
        let mut fanout = Fanout::default();
        let emission = Emission { number: self.pubsub.next_emission(), cached_route: 0, message };
        let Direct { subscribers, channels, leaves, spent, .. } = &mut self.pubsub;
        leaves.clear();
        let interest = &mut self.topology.vhosts[vhost].interest;
        fanout.looked_at += (interest.find_any(subjects, leaves) + leaves.len()) as u64;
        let here = leaves.iter().filter_map(|leaf| interest.leaf(*leaf));
        let width = here.map(|leaf| leaf.all.len()).sum();
        if width > self.options.limits.subscribers_at_once && only.is_none() {
            let number = emission.number;
            let (publisher, sender, silent, groups) = (None, None, None, ToGroups::None);
            let to = Wide { vhost, subjects, number, publisher, sender, silent, groups, width };
            return self.begin_wide(to, message, Shards::NONE, fx);
        }
        let is_deaf = |subscriber: &Subscriber| {
            only.is_some_and(|only| only != subscriber.id)
                || subscriber.is_deaf(subjects, None, channels)
        };
        for leaf in leaves.iter().filter_map(|leaf| interest.leaf(*leaf)) {
            fanout.count_all(&leaf.all, subscribers, spent, is_deaf, emission, fx);
        }
        self.end_fanout(&fanout, message, fx)
    }

    /// Hands an answer of the host to the channel's own subscribers of `subject`, and to no
    /// others, whatever that channel may publish.
    pub fn emit_to_self<F: Effects>(
        &mut self,
        id: ChannelId,
        subject: &str,
        content: Content<'_>,
        fx: &mut F,
    ) {
        let Some(vhost) = self.clients.channel(id).map(|channel| channel.vhost) else { return };
        let message = &emitted(self.names(), subject, &content);
        self.announce_here(vhost, Subjects::one(subject), Some(id), message, fx);
    }

    /// Hands a message of another shard to one of a group. Where the group has no member here any
    /// more, it goes on to another shard that has some.
    fn announce_to_group<F: Effects>(
        &mut self,
        vhost: u32,
        forward: &Forward<'_>,
        fx: &mut F,
    ) -> Reached {
        let mut fanout = Fanout::default();
        let Audience::Group { name, tried, echo } = forward.audience else {
            return Reached::default();
        };
        let message = &forward.message;
        let is_own = forward.origin == self.options.shard;
        let emission = Emission { number: self.pubsub.next_emission(), cached_route: 0, message };
        let Direct { subscribers, channels, leaves, parts, spent, .. } = &mut self.pubsub;
        leaves.clear();
        let interest = &mut self.topology.vhosts[vhost].interest;
        let subjects = forward.subjects();
        fanout.looked_at += interest.find_any(subjects, leaves) as u64;
        let silent = forward.publisher.filter(|_| is_own && !echo);
        let is_deaf = |subscriber: &Subscriber| subscriber.is_deaf(subjects, silent, channels);
        interest.gather_named(leaves, name, parts);
        let first = interest.turn_here(parts, self.options.shard);
        let (turn, members) = (PartTurn { parts, first }, &mut Members { subscribers, spent });
        let offered = fanout.offer(interest, turn, members, is_deaf, emission, fx);
        let next = fanout.after(offered, interest, parts, tried);
        if let Some(shard) = next {
            let to = Shards::one(shard);
            let audience = Audience::Group { name, tried: tried.and(to), echo };
            let forward = Forward { audience, ..*forward };
            fanout.count(fx.forward_to_shards(to, &forward, &[message.body]));
        }
        self.end_fanout(&fanout, message, fx)
    }

    #[inline]
    pub(super) fn end_fanout<F: Effects>(
        &mut self,
        fanout: &Fanout,
        message: &MessageView<'_>,
        fx: &mut F,
    ) -> Reached {
        if self.pubsub.has_spent() {
            self.end_spent(fx);
        }
        self.count_fanout(fanout, message)
    }

    #[inline]
    pub(super) fn count_fanout(&mut self, fanout: &Fanout, message: &MessageView<'_>) -> Reached {
        self.work_budget.count_handed(fanout.bytes(message));
        self.counters.direct_delivered += fanout.heard;
        self.counters.missed += fanout.missed;
        fanout.reached()
    }

    /// Ends those who have heard as many messages as they wanted.
    #[cold]
    pub(super) fn end_spent<F: Effects>(&mut self, fx: &mut F) {
        let mut spent = std::mem::take(&mut self.pubsub.spent);
        for slot in spent.drain(..) {
            self.end_subscriber(slot, fx);
        }
        self.pubsub.spent = spent;
    }
}

/// The connection to wait for those who hear a message.
fn emitter(publisher: Option<Publisher>) -> Option<ConnectionId> {
    publisher.filter(|publisher| publisher.is_emitted).map(|publisher| publisher.connection)
}

/// Who published a message.
#[derive(Clone, Copy, Debug)]
struct Publisher {
    connection: ConnectionId,
    /// To the subject itself; through exchanges otherwise.
    is_emitted: bool,
    /// Its own subscribers hear it too.
    echo: bool,
    /// It wants to know if nobody takes it.
    asks: bool,
}

/// Whether a subject names one queue or inbox, which the default exchange leads to.
#[inline]
fn is_addressed(names: &Names, subject: &str) -> bool {
    subject.starts_with(QUEUE_SUBJECT_PREFIX) || subject.starts_with(names.inbox_prefix)
}
