//! Several direct messages in a row from one publisher to one subject: who hears them is looked up once.

use super::Direct;
use super::forward::{Audience, Forward, Parcel, Subjects};
use crate::engine::Engine;
use crate::interface::message::NO_ANNOTATIONS;
use crate::pubsub::fanout::{Emission, Hearing};
use crate::pubsub::subscribe::Subscriber;
use crate::{ChannelId, ConnectionId, Effects, Emit, MessageView, Reached, Refusal, Shards, Time};

/// What [`Engine::emit_next`] found about a subject: that the subscribers of one pattern, outside
/// of groups, are all that get its messages.
///
/// Valid until the engine is asked for anything else, and for messages that differ in properties
/// and payload only. Its holder forgets it before that.
#[derive(Clone, Copy, Debug)]
pub struct Streak {
    pub(super) vhost: u32,
    /// Whose subscribers they are.
    pub(super) leaf: u32,
    /// The number of the emission that found it, which identifies it.
    pub(super) number: u64,
}

/// Where the messages of a streak come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From a publisher here.
    Out,
    /// From another shard, which sees to groups and to further shards.
    In,
}

impl Engine {
    /// Emits one of several messages in a row, as [`Engine::emit`]. `streak` keeps what this
    /// one looked up for the next one: the caller sets it to `None` before the channel emits to
    /// another subject or with other options, and before it asks the engine for anything else.
    #[inline(always)]
    pub fn emit_next<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        emit: &Emit<'_>,
        streak: &mut Option<Streak>,
        fx: &mut F,
    ) -> Result<Reached, Refusal> {
        // Where other shards are asked whether anybody hears it, there is more to be looked up.
        if let Some(known) = *streak
            && emit.content.body.len() as u64 <= self.options.limits.body_bytes_max
            && !(emit.asks && self.has_others())
        {
            debug_assert!(self.is_known(id, emit, known), "the caller forgets a streak in time");
            let reached = self.emit_along(id.connection, emit, known, fx);
            self.end_streak_of_spent(streak, fx);
            return Ok(reached);
        }
        *streak = None;
        self.emit_first(now, id, emit, streak, fx)
    }

    /// Hands a direct message of another shard to those who subscribe here, and at home to
    /// queues. `streak` is for messages of one [`Row`](crate::Row), as with
    /// [`Engine::emit_next`].
    #[inline]
    pub fn forwarded<F: Effects>(
        &mut self,
        now: Time,
        forward: &Forward<'_>,
        streak: &mut Option<Streak>,
        fx: &mut F,
    ) -> Reached {
        let Some(known) = *streak else {
            return self.take_first_forward(now, forward, streak, fx);
        };
        let mut hearing = Hearing::default();
        self.hand_along(known, forward.subject, None, &forward.message, &mut hearing, fx);
        self.end_streak_of_spent(streak, fx);
        self.count_hearing(&hearing, &forward.message)
    }

    #[inline]
    pub(super) fn end_streak_of_spent<F: Effects>(
        &mut self,
        streak: &mut Option<Streak>,
        fx: &mut F,
    ) {
        if self.pubsub.has_spent() {
            *streak = None;
            self.end_spent(fx);
        }
    }

    /// What was found out about the subject of the message that has just been handed out.
    #[inline]
    pub(super) fn find_streak(&self, vhost: u32, way: Way) -> Option<Streak> {
        let Direct { leaves, emissions: number, .. } = &self.pubsub;
        let &[leaf] = &leaves[..] else { return None };
        let found = self.topology.vhosts.get(vhost)?.interest.leaf(leaf)?;
        let is_heard_here = !found.all.is_empty();
        let are_all = match way {
            Way::Out => (is_heard_here || !found.shards().is_empty()) && !found.has_groups(),
            Way::In => is_heard_here,
        };
        are_all.then_some(Streak { vhost, leaf, number: *number })
    }

    /// Whether looking everything up would find the same.
    pub(super) fn is_known(&mut self, id: ChannelId, emit: &Emit<'_>, streak: Streak) -> bool {
        let vhost = self
            .channel_slot(id)
            .and_then(|slot| self.clients.channels.get(slot))
            .map(|it| it.vhost);
        let mut leaves = Vec::new();
        if let Some(host) = self.topology.vhosts.get_mut(streak.vhost) {
            host.interest.find(emit.subject, &mut leaves);
        }
        vhost == Some(streak.vhost) && leaves == [streak.leaf] && self.check_emit(id, emit).is_ok()
    }

    /// Hands a message to those who got the last one.
    #[inline(always)]
    fn emit_along<F: Effects>(
        &mut self,
        connection: ConnectionId,
        emit: &Emit<'_>,
        streak: Streak,
        fx: &mut F,
    ) -> Reached {
        let Emit { subject, content, .. } = *emit;
        let message = MessageView {
            exchange: self.names().subject_exchange,
            routing_key: subject,
            format: content.format,
            properties: content.properties,
            body: content.body,
            shared: content.shared,
            persistent: content.persistent,
            annotations: &NO_ANNOTATIONS,
        };
        self.counters.emitted += 1;
        let silent = (!emit.echo).then_some(connection);
        let mut hearing = Hearing::default();
        let elsewhere = self.hand_along(streak, subject, silent, &message, &mut hearing, fx);
        if !elsewhere.is_empty() {
            let origin = self.options.shard;
            let vhost =
                &self.topology.vhosts.get(streak.vhost).expect("it was there just now").name;
            let (publisher, asks, message, streak) =
                (Some(connection), false, &message, streak.number);
            let subjects = Subjects::one(subject);
            let is_emitted = true;
            let parcel =
                Parcel { is_emitted, origin, publisher, asks, vhost, subjects, message, streak };
            hearing.count(parcel.send(elsewhere, Audience::All, fx));
        }
        let reached = self.count_hearing(&hearing, &message);
        if reached.is_nobody() {
            self.counters.unheard += 1;
        }
        reached
    }

    /// Hands a message to those here who got the last one; says where else it is wanted.
    #[inline(always)]
    fn hand_along<F: Effects>(
        &mut self,
        streak: Streak,
        subject: &str,
        silent: Option<ConnectionId>,
        message: &MessageView<'_>,
        hearing: &mut Hearing,
        fx: &mut F,
    ) -> Shards {
        let number = self.pubsub.next_emission();
        let emission = Emission { number, streak: streak.number, message };
        let Direct { subscribers, channels, spent, .. } = &mut self.pubsub;
        let interest =
            &self.topology.vhosts.get(streak.vhost).expect("it was there just now").interest;
        let leaf = interest.leaf(streak.leaf).expect("it was there just now");
        let subjects = Subjects::one(subject);
        let is_deaf = |subscriber: &Subscriber| subscriber.is_deaf(subjects, silent, channels);
        hearing.count_all(&leaf.all, subscribers, spent, is_deaf, emission, fx);
        leaf.shards()
    }
}
