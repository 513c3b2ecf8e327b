//! Batches of direct messages: each subscriber is handed a whole batch before the next one gets
//! any, so that it is looked up, and its output reserved, once per batch.

use super::Direct;
use super::forward::{Audience, DirectBatch, Subjects, Unaddressed};
use crate::engine::Engine;
use crate::pubsub::cached_route::CachedRoute;
use crate::pubsub::fanout::{Emission, Fanout, Members};
use crate::pubsub::subscribe::Subscriber;
use crate::{ChannelId, ConnectionId, Effects, Emit, Names, Reached, SendOutcome, Shards};

/// Deliveries of one batch at most: others have to get their turn.
const DELIVERIES_MAX: usize = 2_048;
/// Bytes of payloads, or somewhat more: as much as is written to each of several subscribers before it is
/// another one's turn, so that what the next one is handed is still in the processor's nearest cache.
const BYTES_MAX: usize = 8 << 10;

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
    /// What a batch has room for to those whom a cached route leads to.
    #[inline]
    #[must_use]
    pub fn batch_room(&self, cached_route: &CachedRoute) -> Option<BatchRoom> {
        let leaf =
            self.topology.vhosts.get(cached_route.vhost)?.interest.leaf(cached_route.leaf)?;
        // All that go to other shards are one more.
        let ways = leaf.all.len() + usize::from(!leaf.shards().is_empty());
        let messages = DELIVERIES_MAX.checked_div(ways)?.min(DirectBatch::MESSAGES_MAX);
        let work = self.work_budget.left() / ways as u64;
        let body_bytes_max = self.options.limits.body_bytes_max;
        // Nobody else's turn is put off where there is one way.
        let bytes = if ways == 1 { usize::MAX } else { BYTES_MAX };
        Some(BatchRoom { messages, bytes, work, body_bytes_max })
    }

    /// As [`Engine::emit_next`], for several messages at once, for which [`Engine::batch_room`] has had room.
    pub fn emit_batch<F: Effects>(
        &mut self,
        id: ChannelId,
        batch: &DirectBatch<'_>,
        cached_route: &mut Option<CachedRoute>,
        fx: &mut F,
    ) -> Reached {
        let Some(known) = *cached_route else { return Reached::default() };
        debug_assert!(
            self.may_batch(id, batch, known),
            "the caller forgets a cached_route in time"
        );
        let count = batch.bodies.len() as u64;
        self.counters.emitted += count;
        let silent = (!batch.echo).then_some(id.connection);
        let mut fanout = Fanout::default();
        let (offered, elsewhere) = self.hand_batch(batch, known, silent, &mut fanout, fx);
        if elsewhere.is_empty() {
            self.counters.unheard += count - offered;
        } else {
            let vhost = &self.topology.vhosts.get(known.vhost).expect("it was there just now").name;
            let message = &batch.message(self.names(), &[]);
            let (origin, publisher) = (self.options.shard, Some(id.connection));
            let (asks, cached_route) = (false, known.number);
            let subjects = Subjects::one(batch.subject);
            let is_emitted = true;
            let unaddressed = Unaddressed {
                is_emitted,
                origin,
                publisher,
                asks,
                vhost,
                subjects,
                message,
                route: cached_route,
            };
            let forward = unaddressed.to(Audience::All);
            fanout.count_each(fx.forward_to_shards(elsewhere, &forward, batch.bodies), count);
        }
        self.end_batch(&fanout, cached_route, fx)
    }

    /// As [`Engine::forwarded`], for several messages at once ([`Row::batch`](crate::Row::batch)), for which
    /// [`Engine::batch_room`] has had room.
    pub fn forwarded_batch<F: Effects>(
        &mut self,
        batch: &DirectBatch<'_>,
        cached_route: &mut Option<CachedRoute>,
        fx: &mut F,
    ) -> Reached {
        let Some(known) = *cached_route else { return Reached::default() };
        let mut fanout = Fanout::default();
        self.hand_batch(batch, known, None, &mut fanout, fx);
        self.end_batch(&fanout, cached_route, fx)
    }

    /// Hands its messages to the subscribers of a cached route here; returns how many anybody got, and
    /// where else they are wanted.
    fn hand_batch<F: Effects>(
        &mut self,
        batch: &DirectBatch<'_>,
        cached_route: CachedRoute,
        silent: Option<ConnectionId>,
        fanout: &mut Fanout,
        fx: &mut F,
    ) -> (u64, Shards) {
        let count = batch.bodies.len() as u64;
        let (names, first) = (self.names(), self.pubsub.emissions + 1);
        let handing = Handing { names, first, cached_route: cached_route.number };
        self.pubsub.emissions += count;
        let Direct { subscribers, channels, spent, rest, .. } = &mut self.pubsub;
        let interest =
            &self.topology.vhosts.get(cached_route.vhost).expect("it was there just now").interest;
        let leaf = interest.leaf(cached_route.leaf).expect("it was there just now");
        let subjects = Subjects::one(batch.subject);
        rest.clear();
        for &slot in &leaf.all {
            let Some(subscriber) = subscribers.get_mut(slot) else { continue };
            if subscriber.is_deaf(subjects, silent, channels) {
                continue;
            }
            match subscriber.hear_all(batch, handing, fx) {
                Some(heard) => fanout.count_each(heard, count),
                None => rest.push(slot),
            }
        }
        // The others are handed each message before the next one, as it is the same for all of them.
        let offered = if fanout.heard > 0 { count } else { 0 };
        let members = &mut Members { subscribers, spent };
        let offered = batch.hand_out(rest, handing, members, fanout, fx).max(offered);
        let bytes: usize = batch.bodies.iter().map(|body| body.len()).sum();
        self.work_budget.count_handed(leaf.all.len() as u64 * Fanout::look_bytes(count, bytes));
        (offered, leaf.shards())
    }

    fn end_batch<F: Effects>(
        &mut self,
        fanout: &Fanout,
        cached_route: &mut Option<CachedRoute>,
        fx: &mut F,
    ) -> Reached {
        self.end_streak_of_spent(cached_route, fx);
        self.counters.heard += fanout.heard;
        self.counters.missed += fanout.missed;
        fanout.reached()
    }

    /// Whether each of the messages might be emitted along that cached route.
    fn may_batch(
        &mut self,
        id: ChannelId,
        batch: &DirectBatch<'_>,
        cached_route: CachedRoute,
    ) -> bool {
        let DirectBatch { subject, echo, format, persistent, bodies } = *batch;
        let plain = crate::Content {
            format,
            properties: &[],
            body: &[],
            shared: None,
            persistent,
            priority: 0,
            ttl: None,
        };
        bodies.iter().all(|body| {
            let content = crate::Content { body, ..plain };
            self.is_known(id, &Emit { subject, echo, asks: false, content }, cached_route)
        })
    }
}

/// What the messages of a batch are handed out with.
#[derive(Clone, Copy)]
struct Handing {
    names: &'static Names,
    /// The number of the first message.
    first: u64,
    /// The number of their cached route.
    cached_route: u64,
}

impl DirectBatch<'_> {
    /// Hands its messages to subscribers one by one; says how many of them anybody was handed.
    fn hand_out<F: Effects>(
        &self,
        to: &[u32],
        handing: Handing,
        members: &mut Members<'_>,
        fanout: &mut Fanout,
        fx: &mut F,
    ) -> u64 {
        if to.is_empty() {
            return 0;
        }
        let (is_heard_well, mut offered) = (fanout.has_free, 0);
        let cached_route = handing.cached_route;
        for (number, body) in (handing.first..).zip(self.bodies) {
            // How far behind those are who hear it is said of the last one.
            fanout.begin_next(is_heard_well);
            let message = &self.message(handing.names, body);
            let mut is_offered = false;
            for &slot in to {
                let subscriber = members.subscribers.get_mut(slot);
                let Some(subscriber) = subscriber.filter(|it| it.heard < it.until) else {
                    continue;
                };
                fanout.count(subscriber.hear(Emission { number, cached_route, message }, fx));
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
    /// Hands it the messages of a batch, at once, if there is room for all of them and it wants them; says
    /// how it hears the last one.
    fn hear_all<F: Effects>(
        &mut self,
        batch: &DirectBatch<'_>,
        handing: Handing,
        fx: &mut F,
    ) -> Option<SendOutcome> {
        let count = batch.bodies.len() as u64;
        let wants_all = self.until - self.heard > count;
        if !wants_all || self.missed > 0 || !self.hears_plainly() {
            return None;
        }
        let message = &batch.message(handing.names, &[]);
        let emission =
            Emission { number: handing.first, cached_route: handing.cached_route, message };
        let heard = fx.send_direct_batch(&self.delivery(emission), batch.bodies)?;
        self.heard += count;
        Some(heard)
    }
}
