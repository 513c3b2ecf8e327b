//! Emits direct messages: to subscribers, and to queues that are bound to the subject.

use super::forward::{Audience, Forward, Subjects, Unaddressed};
use super::group::Turn;
use super::{Direct, QUEUE_SUBJECT_PREFIX};
use crate::engine::Engine;
use crate::interface::limits::{NAME_BYTES_MAX, SUBJECT_BYTES_MAX};
use crate::interface::message::NO_ANNOTATIONS;
use crate::pubsub::cached_route::{CachedRoute, Way};
use crate::pubsub::fanout::{Emission, Fanout, Members, PartTurn};
use crate::pubsub::subscribe::Subscriber;
use crate::queue::stored::Incoming;
use crate::routing::vhost::Vhost;
use crate::{
    ChannelId, ConnectionId, Content, Effects, Emit, MessageView, Names, Publish, Reached, Refusal,
    RefusalKind, SendOutcome, ShardId, Shards, Time,
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
        let vhost = self.clients.channels.get(slot).expect("a channel's slot is in use").vhost;
        self.counters.emitted += 1;
        let incoming = Incoming {
            exchange: self.names().subject_exchange,
            routing_key: emit.subject,
            also_to: &[],
            content: emit.content,
            redelivered: false,
            annotations: &NO_ANNOTATIONS,
        };
        let publisher = Publisher { connection: id.connection, echo: emit.echo, asks: emit.asks };
        let addressed = self.addressed_elsewhere(emit.subject);
        let mut reached = self.announce(
            vhost,
            Subjects::one(emit.subject),
            Some(publisher),
            addressed,
            &incoming.view(),
            fx,
        );
        if self.is_caught(vhost, emit.subject) {
            reached.queues = self.put_into_queues(now, vhost, emit.subject, emit.content, fx);
        } else if addressed.is_empty() {
            *cached_route = self.find_streak(vhost, Way::Out);
        }
        if reached.is_nobody() {
            self.counters.unheard += 1;
        }
        Ok(reached)
    }

    /// Refuses a message that is too large or that the channel may not publish.
    #[inline]
    pub(super) fn check_emit(&mut self, id: ChannelId, emit: &Emit<'_>) -> Result<(), Refusal> {
        let bytes = emit.content.body.len() as u64;
        let most = self.options.limits.body_bytes_max;
        if bytes > most || emit.subject.len() > SUBJECT_BYTES_MAX {
            let text = format!(
                "a message of {bytes} bytes to a subject of {}: the limits are {most} and \
                 {SUBJECT_BYTES_MAX}",
                emit.subject.len()
            );
            return Err(Refusal::new(RefusalKind::LimitExceeded, text));
        }
        self.check_subject(id, emit.subject)
    }

    /// Whether the channel may publish to a subject. It may be asked of what is no subject too: nothing else
    /// tells who may not publish at all.
    #[inline]
    pub fn check_subject(&mut self, id: ChannelId, subject: &str) -> Result<(), Refusal> {
        let names = self.names();
        let connection = self.clients.connections[id.connection.0 as usize].as_mut();
        let grant = connection.and_then(|connection| connection.grant.as_mut());
        let Some(grant) = grant else { return Ok(()) };
        let exchange = if is_addressed(names, subject) { "" } else { names.subject_exchange };
        if !grant.may_publish(&self.access, exchange) {
            return Err(grant.publish_refused(exchange));
        }
        grant.check_subject(subject)
    }

    /// Whether a channel may subscribe to a pattern; what of it is forbidden nevertheless.
    pub(super) fn may_subscribe(
        &mut self,
        id: ChannelId,
        subject: &str,
    ) -> Result<Vec<String>, Refusal> {
        let connection = self.clients.connections[id.connection.0 as usize].as_mut();
        match connection.and_then(|connection| connection.grant.as_mut()) {
            Some(grant) => grant.check_subscribe(&self.access, subject),
            None => Ok(Vec::new()),
        }
    }

    /// Where a message goes by its subject alone: the queues and inboxes are at home.
    #[inline]
    fn addressed_elsewhere(&self, subject: &str) -> Shards {
        if self.is_away() && is_addressed(self.names(), subject) {
            return Shards::one(ShardId::HOME);
        }
        Shards::NONE
    }

    /// Whether queues may catch a direct message. Elsewhere there are none; home gets what is for them.
    #[inline]
    fn is_caught(&self, vhost: u32, subject: &str) -> bool {
        let host = self.topology.vhosts.get(vhost).expect("channels end first");
        !self.is_away()
            && (is_addressed(self.names(), subject) || host.router.has_subject_bindings())
    }

    /// The queues bound to the exchange of subjects, the one that the subject names, or the inbox it is
    /// addressed to. Returns how many took the message.
    #[cold]
    fn put_into_queues<F: Effects>(
        &mut self,
        now: Time,
        vhost: u32,
        subject: &str,
        content: Content<'_>,
        fx: &mut F,
    ) -> u32 {
        let (exchange, key) = match subject.strip_prefix(QUEUE_SUBJECT_PREFIX) {
            Some(queue) => ("", queue),
            None if subject.starts_with(self.names().inbox_prefix) => ("", subject),
            None => (self.names().subject_exchange, subject),
        };
        if key.len() > NAME_BYTES_MAX {
            return 0;
        }
        let publish = Publish {
            exchange,
            routing_key: key,
            also_to: &[],
            mandatory: false,
            delay: None,
            content,
        };
        self.place_caught(now, vhost, &publish, fx)
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
        let mut reached = self.announce_here(vhost, forward.subjects(), message, fx);
        if self.is_caught(vhost, subject) {
            let content = Content {
                format: message.format,
                properties: message.properties,
                body: message.body,
                shared: message.shared,
                persistent: message.persistent,
                priority: 0,
                ttl: None,
            };
            reached.queues = self.put_into_queues(now, vhost, subject, content, fx);
        } else {
            *cached_route = self.find_streak(vhost, Way::In);
        }
        reached
    }

    /// Hands a message that came through exchanges, and that they lead to subjects, to those who subscribe;
    /// says whether anybody does.
    #[inline]
    pub(crate) fn publish_to_subscribers<F: Effects>(
        &mut self,
        vhost: u32,
        incoming: &Incoming<'_>,
        fx: &mut F,
    ) -> bool {
        let host = self.topology.vhosts.get(vhost).expect("channels end first");
        if host.interest.is_empty() {
            return false;
        }
        let mut room = Vec::new();
        let subjects = Subjects::several(incoming.routing_key, incoming.also_to, &mut room);
        self.announce(vhost, subjects, None, Shards::NONE, &incoming.view(), fx).subscribers > 0
    }

    /// Hands a message to all who subscribe to its subjects, here and on other shards, and to one of each
    /// group. `also`: shards that get it whether or not anybody subscribes there.
    #[inline]
    fn announce<F: Effects>(
        &mut self,
        vhost: u32,
        subjects: Subjects<'_>,
        publisher: Option<Publisher>,
        also: Shards,
        message: &MessageView<'_>,
        fx: &mut F,
    ) -> Reached {
        let mut fanout = Fanout::default();
        let (origin, has_others) = (self.options.shard, self.has_others());
        let emission = Emission { number: self.pubsub.next_emission(), cached_route: 0, message };
        let Direct { subscribers, channels, leaves, parts, spent, .. } = &mut self.pubsub;
        leaves.clear();
        let Vhost { name: vhost, interest, .. } =
            self.topology.vhosts.get_mut(vhost).expect("channels end first");
        let visited = interest.find_any(subjects, leaves);
        let silent = publisher.filter(|publisher| !publisher.echo).map(|it| it.connection);
        let is_deaf = |subscriber: &Subscriber| subscriber.is_deaf(subjects, silent, channels);
        let mut elsewhere = also;
        let mut has_groups = false;
        for leaf in leaves.iter().filter_map(|leaf| interest.leaf(*leaf)) {
            elsewhere = elsewhere.and(leaf.shards());
            has_groups |= leaf.has_groups();
            fanout.count_all(&leaf.all, subscribers, spent, is_deaf, emission, fx);
        }
        parts.clear();
        if has_groups {
            interest.gather(leaves, parts);
        }
        fanout.looked_at += (visited + leaves.len() + parts.len()) as u64;
        let is_one_shard = || match has_groups {
            false => elsewhere.count() == 1,
            true => elsewhere.is_empty() && interest.is_one_group_elsewhere(leaves),
        };
        // Only where a single other shard decides can the publisher learn that nobody takes it.
        let asks = has_others
            && publisher.is_some_and(|publisher| publisher.asks)
            && fanout.reached().is_nobody()
            && is_one_shard();
        let (echo, is_emitted) = (silent.is_none(), publisher.is_some());
        let publisher = publisher.map(|publisher| publisher.connection);
        let route = 0;
        let unaddressed =
            Unaddressed { origin, publisher, asks, vhost, subjects, message, is_emitted, route };
        let mut rest = &parts[..];
        while let Some(group) = interest.next_group(&mut rest) {
            let (next, tried) = match interest.turn(group, origin) {
                Turn::Elsewhere(shard) => (Some(shard), Shards::NONE),
                Turn::Here(first) => {
                    let turn = PartTurn { parts: group, first };
                    let members = &mut Members { subscribers, spent };
                    let offered = fanout.offer(interest, turn, members, is_deaf, emission, fx);
                    let after = fanout.after(offered, interest, group, Shards::one(origin));
                    (after, Shards::one(origin))
                }
            };
            if let Some(shard) = next {
                let (name, tried) = (interest.name(group), tried.and(Shards::one(shard)));
                let audience = Audience::Group { name, tried, echo };
                fanout.count(unaddressed.send(Shards::one(shard), audience, fx));
            }
        }
        if !elsewhere.is_empty() {
            fanout.count(unaddressed.send(elsewhere, Audience::All, fx));
        }
        self.end_fanout(&fanout, message, fx)
    }

    /// Hands a message to all who subscribe here to its subjects, outside of groups.
    fn announce_here<F: Effects>(
        &mut self,
        vhost: u32,
        subjects: Subjects<'_>,
        message: &MessageView<'_>,
        fx: &mut F,
    ) -> Reached {
        let mut fanout = Fanout::default();
        let emission = Emission { number: self.pubsub.next_emission(), cached_route: 0, message };
        let Direct { subscribers, channels, leaves, spent, .. } = &mut self.pubsub;
        leaves.clear();
        let interest =
            &mut self.topology.vhosts.get_mut(vhost).expect("the caller has looked").interest;
        fanout.looked_at += interest.find_any(subjects, leaves) as u64;
        let is_deaf = |subscriber: &Subscriber| subscriber.is_deaf(subjects, None, channels);
        fanout.looked_at += leaves.len() as u64;
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
        let channel = self.channel_slot(id).and_then(|slot| self.clients.channels.get(slot));
        let Some(vhost) = channel.map(|channel| channel.vhost) else { return };
        let message = Incoming {
            exchange: self.names().subject_exchange,
            routing_key: subject,
            also_to: &[],
            content,
            redelivered: false,
            annotations: &NO_ANNOTATIONS,
        };
        let mut fanout = Fanout::default();
        let number = self.pubsub.next_emission();
        let emission = Emission { number, cached_route: 0, message: &message.view() };
        let Direct { subscribers, channels, leaves, spent, .. } = &mut self.pubsub;
        leaves.clear();
        let interest =
            &mut self.topology.vhosts.get_mut(vhost).expect("channels end first").interest;
        interest.find(subject, leaves);
        let subjects = Subjects::one(subject);
        let is_deaf = |subscriber: &Subscriber| {
            subscriber.id != id || subscriber.is_deaf(subjects, None, channels)
        };
        for leaf in leaves.iter().filter_map(|leaf| interest.leaf(*leaf)) {
            fanout.count_all(&leaf.all, subscribers, spent, is_deaf, emission, fx);
        }
        self.end_fanout(&fanout, &message.view(), fx);
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
        let interest =
            &mut self.topology.vhosts.get_mut(vhost).expect("the caller has looked").interest;
        fanout.looked_at += interest.find_any(forward.subjects(), leaves) as u64;
        let silent = forward.publisher.filter(|_| is_own && !echo);
        let subjects = forward.subjects();
        let is_deaf = |subscriber: &Subscriber| subscriber.is_deaf(subjects, silent, channels);
        interest.gather_named(leaves, name, parts);
        let first = interest.turn_here(parts, self.options.shard);
        let (turn, members) = (PartTurn { parts, first }, &mut Members { subscribers, spent });
        let offered = fanout.offer(interest, turn, members, is_deaf, emission, fx);
        let next = fanout.after(offered, interest, parts, tried);
        if let Some(shard) = next {
            let audience = Audience::Group { name, tried: tried.and(Shards::one(shard)), echo };
            fanout.count(fx.forward_to_shards(
                Shards::one(shard),
                &Forward { audience, ..*forward },
                &[message.body],
            ));
        }
        self.end_fanout(&fanout, message, fx)
    }

    #[inline]
    fn end_fanout<F: Effects>(
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
        self.counters.heard += fanout.heard;
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

impl Unaddressed<'_> {
    /// Sends it to an audience on other shards.
    #[inline]
    pub(super) fn send<F: Effects>(
        &self,
        to: Shards,
        audience: Audience<'_>,
        fx: &mut F,
    ) -> SendOutcome {
        fx.forward_to_shards(to, &self.to(audience), &[self.message.body])
    }
}

/// Who emitted a message.
#[derive(Clone, Copy, Debug)]
struct Publisher {
    connection: ConnectionId,
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
