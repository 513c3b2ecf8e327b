//! Messages that wait for a session whose user has lost the right to them: they are let go of when their turn
//! comes.
//!
//! Nothing that a user may not hear is led to its session's queue: its bindings are judged when they are
//! made, and whenever rights change. So only what waited when rights last changed is looked at.

use crate::access::Right;
use crate::engine::Engine;
use crate::queue::lane::Front;
use crate::{DiscardReason, Effects};

impl Engine {
    /// Whether the first message of a session's queue, which is in memory, is one that its user may not hear
    /// now: then it is gone. One that the client may have is delivered: it knows that already.
    pub(crate) fn drops_forbidden<F: Effects>(&mut self, slot: u32, fx: &mut F) -> bool {
        let generation = self.access.generation();
        let queue = &mut self.queues[slot];
        let (place, is_new) = match queue.front() {
            Front::Entry(entry) => (entry.seq, !entry.redelivered),
            _ => return false,
        };
        let next = queue.next_seq;
        let Some(own) = &mut queue.own else { return false };
        if own.judged_by != generation {
            (own.judged_by, own.judged_before) = (generation, next);
        }
        if place >= own.judged_before || !is_new || self.may_hear_first(slot) {
            return false;
        }
        let Some(entry) = self.queues[slot].pop() else { return false };
        self.count_discarded(slot, DiscardReason::Forbidden, 1);
        self.forget(slot, entry, fx);
        true
    }

    #[cold]
    fn may_hear_first(&mut self, slot: u32) -> bool {
        let Some(session) = self.owner_of_queue(slot).and_then(|it| self.sessions.get(it)) else {
            return true;
        };
        let Some(holder) = session.holder else { return true };
        let Front::Entry(entry) = self.queues[slot].front() else { return true };
        let Some(blob) = entry.message.clone() else { return true };
        let stored = blob.stored();
        let subjects = self.names().subject_exchange;
        let Some(grant) = self.clients.grant(holder.connection) else { return true };
        stored.exchange != subjects
            || grant.may(&self.access, Right::Read, subjects)
                && grant.may_hear(subjects, stored.routing_key)
    }
}
