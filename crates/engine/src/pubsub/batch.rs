//! Batches of direct messages: each subscriber is handed a whole batch before the next one gets
//! any, so that it is looked up, and its output reserved, once per batch.

use super::Direct;
use super::forward::{Audience, Burst, Parcel, Subjects};
use crate::engine::Engine;
use crate::pubsub::cached_route::Streak;
use crate::pubsub::fanout::{Emission, Hearing, Members};
use crate::pubsub::subscribe::Subscriber;
use crate::{ChannelId, ConnectionId, Effects, Emit, Names, Reached, SendOutcome, Shards};

/// Deliveries of one batch at most: others have to get their turn.
const DELIVERIES_MAX: usize = 2_048;
/// Bytes of payloads, or somewhat more: as much as is written to each of several subscribers before it is
/// another one's turn, so that what the next one is handed is still in the processor's nearest cache.
const BYTES_MAX: usize = 8 << 10;

/// What a burst has room for.
#[derive(Clone, Copy, Debug)]
pub struct BurstRoom {
    messages: usize,
    bytes: usize,
    /// What is left of the step, for each subscriber.
    work: u64,
    body_bytes_max: u64,
}

impl BurstRoom {
    /// Takes room for one more payload of `bytes`; `false`: there is none.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> bool {
        let is_full = self.messages == 0 || self.bytes == 0 || self.work == 0;
        let has_room = !is_full && bytes as u64 <= self.body_bytes_max;
        if has_room {
            self.messages -= 1;
            self.bytes = self.bytes.saturating_sub(bytes);
            self.work = self.work.saturating_sub(Hearing::look_bytes(1, bytes));
        }
        has_room
    }
}

impl Engine {
    /// What a burst has room for to those whom a streak leads to.
    #[inline]
    #[must_use]
    pub fn burst_room(&self, streak: &Streak) -> Option<BurstRoom> {
        let leaf = self.topology.vhosts.get(streak.vhost)?.interest.leaf(streak.leaf)?;
        // All that go to other shards are one more.
        let ways = leaf.all.len() + usize::from(!leaf.shards().is_empty());
        let messages = DELIVERIES_MAX.checked_div(ways)?.min(Burst::MESSAGES_MAX);
        let work = self.work_budget.left() / ways as u64;
        let body_bytes_max = self.options.limits.body_bytes_max;
        // Nobody else's turn is put off where there is one way.
        let bytes = if ways == 1 { usize::MAX } else { BYTES_MAX };
        Some(BurstRoom { messages, bytes, work, body_bytes_max })
    }

    /// As [`Engine::emit_next`], for several messages at once, for which [`Engine::burst_room`] has had room.
    pub fn emit_burst<F: Effects>(
        &mut self,
        id: ChannelId,
        burst: &Burst<'_>,
        streak: &mut Option<Streak>,
        fx: &mut F,
    ) -> Reached {
        let Some(known) = *streak else { return Reached::default() };
        debug_assert!(self.may_burst(id, burst, known), "the caller forgets a streak in time");
        let count = burst.bodies.len() as u64;
        self.counters.emitted += count;
        let silent = (!burst.echo).then_some(id.connection);
        let mut hearing = Hearing::default();
        let (offered, elsewhere) = self.hand_burst(burst, known, silent, &mut hearing, fx);
        if elsewhere.is_empty() {
            self.counters.unheard += count - offered;
        } else {
            let vhost = &self.topology.vhosts.get(known.vhost).expect("it was there just now").name;
            let message = &burst.message(self.names(), &[]);
            let (origin, publisher) = (self.options.shard, Some(id.connection));
            let (asks, streak) = (false, known.number);
            let subjects = Subjects::one(burst.subject);
            let is_emitted = true;
            let parcel =
                Parcel { is_emitted, origin, publisher, asks, vhost, subjects, message, streak };
            let forward = parcel.to(Audience::All);
            hearing.count_each(fx.forward_to_shards(elsewhere, &forward, burst.bodies), count);
        }
        self.end_burst(&hearing, streak, fx)
    }

    /// As [`Engine::forwarded`], for several messages at once ([`Row::burst`](crate::Row::burst)), for which
    /// [`Engine::burst_room`] has had room.
    pub fn forwarded_burst<F: Effects>(
        &mut self,
        burst: &Burst<'_>,
        streak: &mut Option<Streak>,
        fx: &mut F,
    ) -> Reached {
        let Some(known) = *streak else { return Reached::default() };
        let mut hearing = Hearing::default();
        self.hand_burst(burst, known, None, &mut hearing, fx);
        self.end_burst(&hearing, streak, fx)
    }

    /// Hands its messages to those here whom a streak leads to; says how many of them anybody was handed, and
    /// where else they are wanted.
    fn hand_burst<F: Effects>(
        &mut self,
        burst: &Burst<'_>,
        streak: Streak,
        silent: Option<ConnectionId>,
        hearing: &mut Hearing,
        fx: &mut F,
    ) -> (u64, Shards) {
        let count = burst.bodies.len() as u64;
        let (names, first) = (self.names(), self.pubsub.emissions + 1);
        let handing = Handing { names, first, streak: streak.number };
        self.pubsub.emissions += count;
        let Direct { subscribers, channels, spent, rest, .. } = &mut self.pubsub;
        let interest =
            &self.topology.vhosts.get(streak.vhost).expect("it was there just now").interest;
        let leaf = interest.leaf(streak.leaf).expect("it was there just now");
        let subjects = Subjects::one(burst.subject);
        rest.clear();
        for &slot in &leaf.all {
            let Some(subscriber) = subscribers.get_mut(slot) else { continue };
            if subscriber.is_deaf(subjects, silent, channels) {
                continue;
            }
            match subscriber.hear_all(burst, handing, fx) {
                Some(heard) => hearing.count_each(heard, count),
                None => rest.push(slot),
            }
        }
        // The others are handed each message before the next one, as it is the same for all of them.
        let offered = if hearing.heard > 0 { count } else { 0 };
        let members = &mut Members { subscribers, spent };
        let offered = burst.hand_out(rest, handing, members, hearing, fx).max(offered);
        let bytes: usize = burst.bodies.iter().map(|body| body.len()).sum();
        self.work_budget.count_handed(leaf.all.len() as u64 * Hearing::look_bytes(count, bytes));
        (offered, leaf.shards())
    }

    fn end_burst<F: Effects>(
        &mut self,
        hearing: &Hearing,
        streak: &mut Option<Streak>,
        fx: &mut F,
    ) -> Reached {
        self.end_streak_of_spent(streak, fx);
        self.counters.heard += hearing.heard;
        self.counters.missed += hearing.missed;
        hearing.reached()
    }

    /// Whether each of the messages might be emitted along that streak.
    fn may_burst(&mut self, id: ChannelId, burst: &Burst<'_>, streak: Streak) -> bool {
        let Burst { subject, echo, format, persistent, bodies } = *burst;
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
            self.is_known(id, &Emit { subject, echo, asks: false, content }, streak)
        })
    }
}

/// What the messages of a burst are handed out with.
#[derive(Clone, Copy)]
struct Handing {
    names: &'static Names,
    /// The number of the first message.
    first: u64,
    /// The number of their streak.
    streak: u64,
}

impl Burst<'_> {
    /// Hands its messages to subscribers one by one; says how many of them anybody was handed.
    fn hand_out<F: Effects>(
        &self,
        to: &[u32],
        handing: Handing,
        members: &mut Members<'_>,
        hearing: &mut Hearing,
        fx: &mut F,
    ) -> u64 {
        if to.is_empty() {
            return 0;
        }
        let (is_heard_well, mut offered) = (hearing.has_free, 0);
        let streak = handing.streak;
        for (number, body) in (handing.first..).zip(self.bodies) {
            // How far behind those are who hear it is said of the last one.
            hearing.begin_next(is_heard_well);
            let message = &self.message(handing.names, body);
            let mut is_offered = false;
            for &slot in to {
                let subscriber = members.subscribers.get_mut(slot);
                let Some(subscriber) = subscriber.filter(|it| it.heard < it.until) else {
                    continue;
                };
                hearing.count(subscriber.hear(Emission { number, streak, message }, fx));
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
    /// Hands it the messages of a burst, at once, if there is room for all of them and it wants them; says
    /// how it hears the last one.
    fn hear_all<F: Effects>(
        &mut self,
        burst: &Burst<'_>,
        handing: Handing,
        fx: &mut F,
    ) -> Option<SendOutcome> {
        let count = burst.bodies.len() as u64;
        let wants_all = self.until - self.heard > count;
        if !wants_all || self.missed > 0 || !self.hears_plainly() {
            return None;
        }
        let message = &burst.message(handing.names, &[]);
        let emission = Emission { number: handing.first, streak: handing.streak, message };
        let heard = fx.send_direct_batch(&self.delivery(emission), burst.bodies)?;
        self.heard += count;
        Some(heard)
    }
}
