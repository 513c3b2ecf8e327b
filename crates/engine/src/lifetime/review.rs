//! Holders come and go, and what has lived to its end goes with the last of them.

use super::{HeldNode, Hold};
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::interface::refusal::refuse;
use crate::{ConnectionId, Effects, Refusal, Time};
use std::time::Duration;

/// How often a queue is looked at that goes once it is empty.
const DRAINED_INTERVAL: Duration = Duration::from_secs(1);

impl Engine {
    pub(super) fn release<F: Effects>(&mut self, now: Time, vhost: u32, hold: Hold, fx: &mut F) {
        match hold.node {
            HeldNode::Queue(number) => {
                let Some(queue) = self.queues.slot_of(number) else { return };
                if let Some(held) = &mut self.queues[queue].lifetime {
                    held.released(hold.is_creator);
                }
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

    /// A channel has opened a subscription and is about to consume from it: until then it stays.
    pub(crate) fn hold_opening(&mut self, slot: u32, queue: u32) {
        let queue = &mut self.queues[queue];
        let Some(held) = &mut queue.lifetime else { return };
        let node = HeldNode::Queue(queue.number);
        let holds = &mut self.clients.channels[slot].holds;
        if !holds.iter().any(|hold| hold.holder.is_none() && hold.node == node) {
            held.holders += 1;
            holds.push(Hold { holder: None, node, is_creator: false });
        }
    }

    /// A channel has begun to consume from a queue.
    pub(crate) fn release_opening(&mut self, slot: u32, queue: u32) {
        let queue = &mut self.queues[queue];
        let Some(held) = &mut queue.lifetime else { return };
        let node = HeldNode::Queue(queue.number);
        let holds = &mut self.clients.channels[slot].holds;
        let found = holds.iter().position(|hold| hold.holder.is_none() && hold.node == node);
        if let Some(at) = found {
            holds.swap_remove(at);
            held.released(false);
        }
    }

    /// Whether a queue has consumers, or channels that are about to consume from it.
    pub(crate) fn is_node_used(&self, queue: u32) -> bool {
        let queue = &self.queues[queue];
        !queue.consumers.is_empty() || queue.lifetime.as_ref().is_some_and(|it| it.holders > 0)
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
