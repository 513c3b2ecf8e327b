//! Holders come and go, and what has lived to its end goes with the last of them.

use super::{HeldNode, Hold};
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::interface::refusal::refuse;
use crate::queue::Queue;
use crate::{ConnectionId, Effects, Refusal, Time};
use std::time::Duration;

/// How often a queue is looked at that goes once it is empty.
const DRAINED_INTERVAL: Duration = Duration::from_secs(1);

impl Engine {
    pub(super) fn release<F: Effects>(&mut self, now: Time, vhost: u32, hold: Hold, fx: &mut F) {
        match hold.node {
            HeldNode::Queue(number) => {
                let Some(queue) = self.queues.slot_of(number) else { return };
                self.queues[queue].released(hold.is_creator);
                self.review_lifetime(now, queue, fx);
            }
            HeldNode::Topic(name) => {
                let Some(host) = self.topology.vhosts.get_mut(vhost) else { return };
                let change = host.router.release_topic(&name, hold.is_creator);
                self.end_change(vhost, &change, fx);
            }
        }
    }

    /// The holders of a channel that closes end.
    pub(crate) fn release_all<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let channel = &mut self.clients.channels[slot];
        let (vhost, holds) = (channel.vhost, std::mem::take(&mut channel.holds));
        for hold in holds {
            self.release(now, vhost, hold, fx);
        }
    }

    /// A channel has opened a subscription and is about to consume from it: until then that is in use, and
    /// stays. A durable one stays in any case: it is in use where it is said for whom it was opened.
    pub(crate) fn hold_opening(&mut self, slot: u32, queue: u32, holder: Option<String>) {
        let queue = &mut self.queues[queue];
        let node = HeldNode::Queue(queue.number);
        let holds = &mut self.clients.channels[slot].holds;
        if holds.iter().any(|hold| hold.opens && hold.holder == holder && hold.node == node) {
            return;
        }
        match (&mut queue.lifetime, &mut queue.subscription) {
            (Some(held), _) => held.holders += 1,
            (None, Some(subscription)) if holder.is_some() => subscription.openings += 1,
            _ => return,
        }
        holds.push(Hold { holder, node, is_creator: false, opens: true });
    }

    /// A consumer of that name is about to begin in a channel.
    pub(crate) fn release_opening(&mut self, slot: u32, queue: u32, consumer: &str) {
        let queue = &mut self.queues[queue];
        let node = HeldNode::Queue(queue.number);
        let holds = &mut self.clients.channels[slot].holds;
        let is_its = |holder: &Option<String>| holder.as_ref().is_none_or(|it| it == consumer);
        let found =
            holds.iter().position(|hold| hold.opens && is_its(&hold.holder) && hold.node == node);
        if let Some(at) = found {
            holds.swap_remove(at);
            queue.released(false);
        }
    }

    /// Whether a queue has consumers, or channels that are about to consume from it.
    pub(crate) fn is_node_used(&self, queue: u32) -> bool {
        let queue = &self.queues[queue];
        !queue.consumers.is_empty()
            || queue.lifetime.as_ref().is_some_and(|it| it.holders > 0)
            || queue.subscription.as_ref().is_some_and(|it| it.openings > 0)
    }

    /// Whether a topic may be bound from: a connection's own one by that alone.
    pub(crate) fn check_topic_owner(
        &self,
        connection: ConnectionId,
        vhost: u32,
        topic: &str,
    ) -> Result<(), Refusal> {
        let owner = self.topology.vhosts[vhost].router.topic_owner(topic);
        if owner.is_some_and(|owner| owner != connection) {
            refuse!(ResourceLocked, "exchange '{topic}' is exclusive to another connection");
        }
        Ok(())
    }

    /// Deletes a temporary queue that has lived to its end.
    pub(crate) fn review_lifetime<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let Some(queue) = self.queues.get_mut(slot) else { return };
        let is_used = !queue.consumers.is_empty();
        let is_empty = queue.ready == 0 && queue.unsettled == 0;
        let Some(held) = queue.lifetime.as_mut().filter(|held| held.is_over(is_used)) else {
            return;
        };
        if !held.lifetime.drains || is_empty {
            self.delete_queue(slot, fx);
        } else if held.checked_at.is_none_or(|at| at <= now) {
            let at = now.plus(DRAINED_INTERVAL);
            held.checked_at = Some(at);
            self.timers.set(at, Timer::Lifetime(slot));
        }
    }
}

impl Queue {
    /// One that held it has gone.
    fn released(&mut self, is_creator: bool) {
        match (&mut self.lifetime, &mut self.subscription) {
            (Some(held), _) => held.released(is_creator),
            (None, Some(subscription)) => {
                subscription.openings = subscription.openings.saturating_sub(1);
            }
            (None, None) => {}
        }
    }
}
