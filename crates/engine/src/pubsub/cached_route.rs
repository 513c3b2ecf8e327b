//! Successive direct messages of one publisher to one subject: their subscribers are looked up once, and
//! several messages without properties go out as one batch. Each subscriber is handed a whole batch before
//! the next one gets any, so that it is looked up, and its output reserved, once per batch.

use super::Direct;
use super::forward::{Forward, Subjects, emitted};
use crate::engine::Engine;
use crate::pubsub::fanout::{Emission, Fanout, Members};
use crate::pubsub::subscribe::Subscriber;
use crate::{
    ChannelId, ConnectionId, Content, Effects, Emit, MessageView, Reached, Refusal, SendOutcome,
    Shards, Time,
};

/// Deliveries of one batch at most: other work has to get its turn.
const DELIVERIES_MAX: usize = 2_048;
/// Bytes of payloads, or somewhat more: as much as is written to each of several subscribers before it is
/// another one's turn, so that what the next one is handed is still in the processor's nearest cache.
const BYTES_MAX: usize = 8 << 10;

/// What [`Engine::emit_next`] found about a subject: that the subscribers of one pattern, outside
/// of groups, are all that get its messages.
///
/// Valid until the engine is asked for anything else, and for messages that differ in properties
/// and payload only. Its holder forgets it before that.
#[derive(Clone, Copy, Debug)]
pub struct CachedRoute {
    vhost: u32,
    /// Whose subscribers they are.
    leaf: u32,
    /// The number of the emission that found it, which identifies it.
    number: u64,
}

/// What a batch has room for.
#[derive(Clone, Copy, Debug)]
pub struct BatchRoom {
    messages: usize,
    bytes: usize,
    /// What is left of the step, for each subscriber.
    work: u64,
    body_bytes_max: u64,
}

impl BatchRoom {
    /// Messages of one batch, at most.
    pub const MESSAGES_MAX: usize = 64;
    /// Fewer are as well taken one by one.
    pub const MESSAGES_MIN: usize = 2;

    /// Takes room for one more payload of `bytes`; `false`: there is none.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> bool {
        let is_full = self.messages == 0 || self.bytes == 0 || self.work == 0;
        let has_room = !is_full && bytes as u64 <= self.body_bytes_max;
        if has_room {
            self.messages -= 1;
            self.bytes = self.bytes.saturating_sub(bytes);
            self.work = self.work.saturating_sub(Fanout::look_bytes(1, bytes));
        }
        has_room
    }
}

impl Engine {
    /// Emits one of several successive messages, as [`Engine::emit`]. `cached_route` keeps what this
    /// one looked up for the next one: the caller sets it to `None` before the channel emits to
    /// another subject or with other options, priority or time to live, and before it asks the engine for
    /// anything else.
    #[inline(always)]
    pub fn emit_next<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        emit: &Emit<'_>,
        cached_route: &mut Option<CachedRoute>,
        fx: &mut F,
    ) -> Result<Reached, Refusal> {
        // Where other shards are asked whether anybody hears it, there is more to be looked up.
        if let Some(known) = *cached_route
            && emit.content.body.len() as u64 <= self.options.limits.body_bytes_max
            && !(emit.asks && self.has_others())
        {
            debug_assert!(self.is_known(id, emit, known), "the caller forgets a route in time");
            let reached = self.emit_along(id.connection, emit, known, fx);
            self.forget_if_spent(cached_route, fx);
            return Ok(reached);
        }
        *cached_route = None;
        self.emit_first(now, id, emit, cached_route, fx)
    }

    /// Hands a direct message of another shard to those who subscribe here, and at home to
    /// queues. `cached_route` is for messages of one batch, as with [`Engine::emit_next`].
    #[inline]
    pub fn forwarded<F: Effects>(
        &mut self,
        now: Time,
        forward: &Forward<'_>,
        cached_route: &mut Option<CachedRoute>,
        fx: &mut F,
    ) -> Reached {
        let Some(known) = *cached_route else {
            return self.take_first_forward(now, forward, cached_route, fx);
        };
        let mut fanout = Fanout::default();
        self.hand_along(known, None, &forward.message, &mut fanout, fx);
        self.forget_if_spent(cached_route, fx);
        self.count_fanout(&fanout, &forward.message)
    }

    /// What a batch has room for to those whom a cached route leads to.
    #[inline]
    #[must_use]
    pub fn batch_room(&self, cached_route: &CachedRoute) -> Option<BatchRoom> {
        let host = self.topology.vhosts.get(cached_route.vhost)?;
        let leaf = host.interest.leaf(cached_route.leaf)?;
        // All that go to other shards are one more.
        let ways = leaf.all.len() + usize::from(!leaf.shards().is_empty());
        let messages = DELIVERIES_MAX.checked_div(ways)?.min(BatchRoom::MESSAGES_MAX);
        let work = self.work_budget.left() / ways as u64;
        let body_bytes_max = self.options.limits.body_bytes_max;
        // Where there is one way, no other subscriber waits for its turn.
        let bytes = if ways == 1 { usize::MAX } else { BYTES_MAX };
        Some(BatchRoom { messages, bytes, work, body_bytes_max })
    }

    /// As [`Engine::emit_next`], for several messages with these payloads and no properties, for which
    /// [`Engine::batch_room`] has had room.
    pub fn emit_batch<F: Effects>(
        &mut self,
        id: ChannelId,
        emit: &Emit<'_>,
        bodies: &[&[u8]],
        cached_route: &mut Option<CachedRoute>,
        fx: &mut F,
    ) -> Reached {
        let Some(known) = *cached_route else { return Reached::default() };
        debug_assert!(
            bodies.iter().all(|body| {
                let content = Content { body, ..emit.content };
                self.is_known(id, &Emit { content, ..*emit }, known)
            }),
            "the caller forgets a route in time"
        );
        let count = bodies.len() as u64;
        self.counters.emitted += count;
        let silent = (!emit.echo).then_some(id.connection);
        let message = &emitted(self.names(), emit.subject, &emit.content);
        let mut fanout = Fanout::default();
        let (offered, elsewhere) = self.hand_batch(known, silent, message, bodies, &mut fanout, fx);
        if elsewhere.is_empty() {
            self.counters.direct_undelivered += count - offered;
        } else {
            let sent = self.forward_along(known, id.connection, elsewhere, message, bodies, fx);
            fanout.count_each(sent, count);
        }
        self.end_batch(&fanout, cached_route, fx)
    }

    /// As [`Engine::forwarded`], for several messages with these payloads and no properties, for which
    /// [`Engine::batch_room`] has had room; `header`: what they have in common.
    pub fn forwarded_batch<F: Effects>(
        &mut self,
        header: &Forward<'_>,
        bodies: &[&[u8]],
        cached_route: &mut Option<CachedRoute>,
        fx: &mut F,
    ) -> Reached {
        let Some(known) = *cached_route else { return Reached::default() };
        let mut fanout = Fanout::default();
        self.hand_batch(known, None, &header.message, bodies, &mut fanout, fx);
        self.end_batch(&fanout, cached_route, fx)
    }

    fn end_batch<F: Effects>(
        &mut self,
        fanout: &Fanout,
        cached_route: &mut Option<CachedRoute>,
        fx: &mut F,
    ) -> Reached {
        self.forget_if_spent(cached_route, fx);
        self.counters.direct_delivered += fanout.heard;
        self.counters.missed += fanout.missed;
        fanout.reached()
    }

    #[inline]
    fn forget_if_spent<F: Effects>(&mut self, cached_route: &mut Option<CachedRoute>, fx: &mut F) {
        if self.pubsub.has_spent() {
            *cached_route = None;
            self.end_spent(fx);
        }
    }

    /// What was found out about the subject of the message that has just been handed out.
    #[inline]
    pub(super) fn find_cached_route(&self, vhost: u32) -> Option<CachedRoute> {
        let Direct { leaves, emissions: number, .. } = &self.pubsub;
        let &[leaf] = &leaves[..] else { return None };
        let found = self.topology.vhosts.get(vhost)?.interest.leaf(leaf)?;
        if found.all.len() > self.options.limits.subscribers_at_once {
            return None;
        }
        let has_subscribers = !found.all.is_empty() || !found.shards().is_empty();
        (has_subscribers && !found.has_groups()).then_some(CachedRoute {
            vhost,
            leaf,
            number: *number,
        })
    }

    /// Whether looking everything up would find the same.
    fn is_known(&mut self, id: ChannelId, emit: &Emit<'_>, known: CachedRoute) -> bool {
        let is_there = self.clients.channel(id).is_some_and(|it| it.vhost == known.vhost);
        let mut leaves = Vec::new();
        if let Some(host) = self.topology.vhosts.get_mut(known.vhost) {
            host.interest.find(emit.subject, &mut leaves);
        }
        is_there && leaves == [known.leaf] && self.check_emit(id, emit).is_ok()
    }

    /// Hands a message to those who got the last one.
    #[inline(always)]
    fn emit_along<F: Effects>(
        &mut self,
        connection: ConnectionId,
        emit: &Emit<'_>,
        known: CachedRoute,
        fx: &mut F,
    ) -> Reached {
        let message = &emitted(self.names(), emit.subject, &emit.content);
        self.counters.emitted += 1;
        let silent = (!emit.echo).then_some(connection);
        let mut fanout = Fanout::default();
        let elsewhere = self.hand_along(known, silent, message, &mut fanout, fx);
        if !elsewhere.is_empty() {
            let bodies = &[message.body];
            fanout.count(self.forward_along(known, connection, elsewhere, message, bodies, fx));
        }
        let reached = self.count_fanout(&fanout, message);
        if reached.is_nobody() {
            self.counters.direct_undelivered += 1;
        }
        reached
    }

    /// Sends other shards messages that have these payloads and everything else in common with `message`.
    #[inline]
    fn forward_along<F: Effects>(
        &self,
        known: CachedRoute,
        publisher: ConnectionId,
        to: Shards,
        message: &MessageView<'_>,
        bodies: &[&[u8]],
        fx: &mut F,
    ) -> SendOutcome {
        let (origin, vhost) = (self.options.shard, &self.topology.vhosts[known.vhost].name);
        let forward = Forward::new(origin, Some(publisher), vhost, message.routing_key, *message);
        let forward = Forward { cached_route: known.number, ..forward };
        fx.forward_to_shards(to, &forward, bodies)
    }

    /// Hands a message to those here who got the last one; says where else it is wanted.
    #[inline(always)]
    fn hand_along<F: Effects>(
        &mut self,
        known: CachedRoute,
        silent: Option<ConnectionId>,
        message: &MessageView<'_>,
        fanout: &mut Fanout,
        fx: &mut F,
    ) -> Shards {
        let number = self.pubsub.next_emission();
        let emission = Emission { number, cached_route: known.number, message };
        let Direct { subscribers, channels, spent, .. } = &mut self.pubsub;
        let interest = &self.topology.vhosts[known.vhost].interest;
        let leaf = interest.leaf(known.leaf).expect("it was there just now");
        let subjects = Subjects::one(message.routing_key);
        let is_deaf = |subscriber: &Subscriber| subscriber.is_deaf(subjects, silent, channels);
        fanout.count_all(&leaf.all, subscribers, spent, is_deaf, emission, fx);
        leaf.shards()
    }

    /// As [`Engine::hand_along`], for a batch; says too how many of the messages anybody got.
    fn hand_batch<F: Effects>(
        &mut self,
        known: CachedRoute,
        silent: Option<ConnectionId>,
        message: &MessageView<'_>,
        bodies: &[&[u8]],
        fanout: &mut Fanout,
        fx: &mut F,
    ) -> (u64, Shards) {
        let count = bodies.len() as u64;
        let number = self.pubsub.next_emission();
        let first = Emission { number, cached_route: known.number, message };
        self.pubsub.emissions += count - 1;
        let Direct { subscribers, channels, spent, rest, .. } = &mut self.pubsub;
        let interest = &self.topology.vhosts[known.vhost].interest;
        let leaf = interest.leaf(known.leaf).expect("it was there just now");
        let subjects = Subjects::one(message.routing_key);
        rest.clear();
        for &slot in &leaf.all {
            let Some(subscriber) = subscribers.get_mut(slot) else { continue };
            if subscriber.is_deaf(subjects, silent, channels) {
                continue;
            }
            match subscriber.hear_all(first, bodies, fx) {
                Some(heard) => fanout.count_each(heard, count),
                None => rest.push(slot),
            }
        }
        // All others are handed a message before any of them gets the next one.
        let offered = if fanout.heard > 0 { count } else { 0 };
        let members = &mut Members { subscribers, spent };
        let offered = fanout.hand_out(rest, first, bodies, members, fx).max(offered);
        let bytes: usize = bodies.iter().map(|body| body.len()).sum();
        self.work_budget.count_handed(leaf.all.len() as u64 * Fanout::look_bytes(count, bytes));
        (offered, leaf.shards())
    }
}

impl Fanout {
    /// Hands the messages of a batch to subscribers one by one; says how many of them anybody was handed.
    fn hand_out<F: Effects>(
        &mut self,
        to: &[u32],
        first: Emission<'_>,
        bodies: &[&[u8]],
        members: &mut Members<'_>,
        fx: &mut F,
    ) -> u64 {
        if to.is_empty() {
            return 0;
        }
        let (is_heard_well, mut offered) = (self.has_free, 0);
        for (number, body) in (first.number..).zip(bodies) {
            // Only the last message tells whether its subscribers keep up.
            self.has_free = is_heard_well;
            let message = &MessageView { body, ..*first.message };
            let mut is_offered = false;
            for &slot in to {
                let subscriber = members.subscribers.get_mut(slot);
                let Some(subscriber) = subscriber.filter(|it| it.heard < it.until) else {
                    continue;
                };
                self.count(subscriber.hear(Emission { number, message, ..first }, fx));
                is_offered = true;
                if subscriber.heard >= subscriber.until {
                    members.spent.push(slot);
                }
            }
            offered += u64::from(is_offered);
        }
        offered
    }
}

impl Subscriber {
    /// Hands it the messages of a batch, if there is room for all of them and it wants them; says how it
    /// hears the last one.
    fn hear_all<F: Effects>(
        &mut self,
        first: Emission<'_>,
        bodies: &[&[u8]],
        fx: &mut F,
    ) -> Option<SendOutcome> {
        let count = bodies.len() as u64;
        let wants_all = self.until - self.heard > count;
        if !wants_all || self.missed > 0 || self.slow_consumer_policy.is_some() {
            return None;
        }
        let heard = fx.send_direct_batch(&self.delivery(first), bodies)?;
        self.heard += count;
        Some(heard)
    }
}
