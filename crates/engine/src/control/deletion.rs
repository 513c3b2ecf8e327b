//! Queues are deleted, and what goes with them: at once, or over several turns where that is much.

use crate::engine::Engine;
use crate::foundation::deferred_drop::drop_elsewhere;
use crate::foundation::timers::Timer;
use crate::queue::Queue;
use crate::routing::{Change, QueueKey};
use crate::storage::record::Record;
use crate::{CancelReason, ConnectionId, DiscardReason, Effects, Refusal, RefusalKind};

/// Who has logs to itself, and the queues of a connection that has ended until they are deleted.
pub(crate) const NOBODY: ConnectionId = ConnectionId(u32::MAX);
/// Queues that a connection had to itself and that are deleted before others get their turn.
const QUEUES_AT_ONCE: usize = 256;
/// Steps that the deletion of a queue counts for, besides its bindings.
const QUEUE_STEPS: u64 = 8;

impl Engine {
    /// Deletes a queue and all in it; says how many messages were ready.
    pub(crate) fn delete_queue<F: Effects>(&mut self, slot: u32, fx: &mut F) -> u64 {
        if let Some(&Queue { number, durable: true, .. }) = self.queues.get(slot) {
            self.append_record(&Record::QueueDeleted { number }, fx);
        }
        self.take_queue_away(slot, fx)
    }

    /// As [`Engine::delete_queue`], where that is recorded already or not at all.
    pub(crate) fn take_queue_away<F: Effects>(&mut self, slot: u32, fx: &mut F) -> u64 {
        let Some(queue) = self.queues.get_mut(slot) else { return 0 };
        let ready = queue.ready;
        let consumers = std::mem::take(&mut queue.consumers);
        // What is known for its consumers goes with it, and need not hear of each that ends.
        let known = (queue.filtered.take(), queue.groups.take(), queue.notes.take());
        if known.0.is_some() || known.1.is_some() || known.2.is_some() {
            drop_elsewhere(known);
        }
        self.cancel_consumers(consumers, CancelReason::QueueDeleted);
        self.cancel_browsers(slot);
        while let Some(get) = self.take_get(slot) {
            let text = format!("queue '{}' was deleted", self.queues[slot].name);
            fx.reply(get.channel, Err(Refusal::new(RefusalKind::NotFound, text)));
        }
        self.drop_messages(slot, false);
        self.counters.discarded.add(DiscardReason::QueueDeleted, ready);
        let mut queue = self.queues.take(slot).expect("it was found just now");
        self.timers.reset(&mut queue.head_timer, None, Timer::Head(slot));
        self.timers.reset(&mut queue.expires_at, None, Timer::Queue(slot));
        self.forget_declarer(&queue);
        if let Some(owner) = queue.owner.and_then(|owner| self.clients.connection_mut(owner)) {
            owner.exclusive.remove(&queue.number);
        }
        let vhost = &mut self.topology.vhosts[queue.vhost];
        let change = vhost.router.queue_removed(QueueKey(slot));
        vhost.router.tally.went(queue.by, queue.definition_bytes());
        self.unasked_steps += QUEUE_STEPS;
        if !change.leaves_bindings {
            self.queues.free(slot);
        }
        self.end_change(queue.vhost, &change, fx);
        ready
    }

    /// What follows from a change that has been recorded: other changes, and what other shards have to know.
    pub(crate) fn end_change<F: Effects>(&mut self, vhost: u32, change: &Change, fx: &mut F) {
        let host = &mut self.topology.vhosts[vhost];
        self.definitions.take(&mut host.router.tally);
        self.unasked_steps += change.bindings_removed as u64;
        if host.router.has_leaving() && !self.agenda.unbinding.contains(&vhost) {
            self.agenda.unbinding.push_back(vhost);
        }
        for exchange in change.auto_deleted.iter().filter(|exchange| exchange.durable) {
            let vhost_name = self.topology.vhosts[vhost].name.clone();
            let record = Record::ExchangeDeleted { vhost: &vhost_name, name: &exchange.name };
            self.append_record(&record, fx);
        }
        self.tell_catching(vhost, fx);
    }

    /// Goes on with the bindings of queues and exchanges that were deleted.
    #[cold]
    pub(crate) fn unbind_some<F: Effects>(&mut self, fx: &mut F) {
        let Some(vhost) = self.agenda.unbinding.pop_front() else { return };
        let Some(host) = self.topology.vhosts.get_mut(vhost) else { return };
        let mut change = Change::default();
        if let Some(queue) = host.router.drop_some_bindings(&mut change) {
            self.queues.free(queue.0);
        }
        self.end_change(vhost, &change, fx);
    }

    /// A virtual host goes: nothing of what was deleted in it is left.
    pub(crate) fn end_unbinding(&mut self, vhost: u32) {
        let Some(host) = self.topology.vhosts.get(vhost) else { return };
        for queue in host.router.leaving_queues() {
            self.queues.free(queue.0);
        }
        self.agenda.unbinding.retain(|other| *other != vhost);
    }

    /// A connection ends: deletes the queues that it has to itself, in later turns those that are too many.
    pub(crate) fn delete_exclusive<F: Effects>(&mut self, id: ConnectionId, fx: &mut F) {
        let Some(connection) = self.clients.connection_mut(id) else { return };
        let numbers = std::mem::take(&mut connection.exclusive);
        let is_many = numbers.len() > QUEUES_AT_ONCE;
        for number in numbers {
            let Some(slot) = self.queues.slot_of(number) else { continue };
            if is_many {
                self.queues[slot].owner = Some(NOBODY);
                self.agenda.ownerless.push_back(number);
            } else {
                self.delete_queue(slot, fx);
            }
        }
    }

    /// Deletes queues that connections had to themselves which have ended, as many as there is time for.
    #[cold]
    pub(crate) fn delete_ownerless<F: Effects>(&mut self, fx: &mut F) {
        for _ in 0..QUEUES_AT_ONCE {
            if self.has_much_unasked() {
                return;
            }
            let Some(number) = self.agenda.ownerless.pop_front() else { return };
            if let Some(slot) = self.queues.slot_of(number) {
                self.delete_queue(slot, fx);
            }
        }
    }
}
