//! Several direct messages in a row from one publisher to one subject: who hears them is looked up once.

use super::Direct;
use super::forward::{Audience, Forward, Subjects, Unaddressed};
use crate::engine::Engine;
use crate::interface::message::NO_ANNOTATIONS;
use crate::pubsub::fanout::{Emission, Fanout};
use crate::pubsub::subscribe::Subscriber;
use crate::{ChannelId, ConnectionId, Effects, Emit, MessageView, Reached, Refusal, Shards, Time};

/// What [`Engine::emit_next`] found about a subject: that the subscribers of one pattern, outside
/// of groups, are all that get its messages.
///
/// Valid until the engine is asked for anything else, and for messages that differ in properties
/// and payload only. Its holder forgets it before that.
#[derive(Clone, Copy, Debug)]
pub struct CachedRoute {
    pub(super) vhost: u32,
    /// Whose subscribers they are.
    pub(super) leaf: u32,
    /// The number of the emission that found it, which identifies it.
    pub(super) number: u64,
}

/// Where the messages of a cached route come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From a publisher here.
    Out,
    /// From another shard, which sees to groups and to further shards.
    In,
}

impl Engine {
    /// Emits one of several messages in a row, as [`Engine::emit`]. `cached_route` keeps what this
    /// one looked up for the next one: the caller sets it to `None` before the channel emits to
    /// another subject or with other options, and before it asks the engine for anything else.
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
            debug_assert!(
                self.is_known(id, emit, known),
                "the caller forgets a cached_route in time"
            );
            let reached = self.emit_along(id.connection, emit, known, fx);
            self.end_streak_of_spent(cached_route, fx);
            return Ok(reached);
        }
        *cached_route = None;
        self.emit_first(now, id, emit, cached_route, fx)
    }

    /// Hands a direct message of another shard to those who subscribe here, and at home to
    /// queues. `cached_route` is for messages of one [`Row`](crate::Row), as with
    /// [`Engine::emit_next`].
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
        self.hand_along(known, forward.subject, None, &forward.message, &mut fanout, fx);
        self.end_streak_of_spent(cached_route, fx);
        self.count_fanout(&fanout, &forward.message)
    }

    #[inline]
    pub(super) fn end_streak_of_spent<F: Effects>(
        &mut self,
        cached_route: &mut Option<CachedRoute>,
        fx: &mut F,
    ) {
        if self.pubsub.has_spent() {
            *cached_route = None;
            self.end_spent(fx);
        }
    }

    /// What was found out about the subject of the message that has just been handed out.
    #[inline]
    pub(super) fn find_streak(&self, vhost: u32, way: Way) -> Option<CachedRoute> {
        let Direct { leaves, emissions: number, .. } = &self.pubsub;
        let &[leaf] = &leaves[..] else { return None };
        let found = self.topology.vhosts.get(vhost)?.interest.leaf(leaf)?;
        let is_heard_here = !found.all.is_empty();
        let are_all = match way {
            Way::Out => (is_heard_here || !found.shards().is_empty()) && !found.has_groups(),
            Way::In => is_heard_here,
        };
        are_all.then_some(CachedRoute { vhost, leaf, number: *number })
    }

    /// Whether looking everything up would find the same.
    pub(super) fn is_known(
        &mut self,
        id: ChannelId,
        emit: &Emit<'_>,
        cached_route: CachedRoute,
    ) -> bool {
        let vhost = self
            .channel_slot(id)
            .and_then(|slot| self.clients.channels.get(slot))
            .map(|it| it.vhost);
        let mut leaves = Vec::new();
        if let Some(host) = self.topology.vhosts.get_mut(cached_route.vhost) {
            host.interest.find(emit.subject, &mut leaves);
        }
        vhost == Some(cached_route.vhost)
            && leaves == [cached_route.leaf]
            && self.check_emit(id, emit).is_ok()
    }

    /// Hands a message to those who got the last one.
    #[inline(always)]
    fn emit_along<F: Effects>(
        &mut self,
        connection: ConnectionId,
        emit: &Emit<'_>,
        cached_route: CachedRoute,
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
        let mut fanout = Fanout::default();
        let elsewhere = self.hand_along(cached_route, subject, silent, &message, &mut fanout, fx);
        if !elsewhere.is_empty() {
            let origin = self.options.shard;
            let vhost =
                &self.topology.vhosts.get(cached_route.vhost).expect("it was there just now").name;
            let (publisher, asks, message, cached_route) =
                (Some(connection), false, &message, cached_route.number);
            let subjects = Subjects::one(subject);
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
            fanout.count(unaddressed.send(elsewhere, Audience::All, fx));
        }
        let reached = self.count_fanout(&fanout, &message);
        if reached.is_nobody() {
            self.counters.unheard += 1;
        }
        reached
    }

    /// Hands a message to those here who got the last one; says where else it is wanted.
    #[inline(always)]
    fn hand_along<F: Effects>(
        &mut self,
        cached_route: CachedRoute,
        subject: &str,
        silent: Option<ConnectionId>,
        message: &MessageView<'_>,
        fanout: &mut Fanout,
        fx: &mut F,
    ) -> Shards {
        let number = self.pubsub.next_emission();
        let emission = Emission { number, cached_route: cached_route.number, message };
        let Direct { subscribers, channels, spent, .. } = &mut self.pubsub;
        let interest =
            &self.topology.vhosts.get(cached_route.vhost).expect("it was there just now").interest;
        let leaf = interest.leaf(cached_route.leaf).expect("it was there just now");
        let subjects = Subjects::one(subject);
        let is_deaf = |subscriber: &Subscriber| subscriber.is_deaf(subjects, silent, channels);
        fanout.count_all(&leaf.all, subscribers, spent, is_deaf, emission, fx);
        leaf.shards()
    }
}
