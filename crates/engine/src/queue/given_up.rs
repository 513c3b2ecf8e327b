//! Messages for which a repair of the journal left a gap: they are gone once somebody wants them, and
//! named. What is damaged and not repaired stops its queue instead.

use crate::engine::Engine;
use crate::{Effects, GivenUp, Position};

/// Most that is kept to be named.
const NAMED_MAX: usize = 1_000;

impl Engine {
    /// A message is gone.
    pub(crate) fn give_up<F: Effects>(&mut self, slot: u32, seq: u64, fx: &mut F) {
        if let Some(entry) = self.queues[slot].remove(seq) {
            self.snapshot_first_in_slot(slot, &entry);
            self.note_given_up(slot, entry.position, 1);
            self.drop_entry(entry, fx);
        }
    }

    /// Counts and names what is gone.
    pub(crate) fn note_given_up(&mut self, slot: u32, position: Position, messages: u64) {
        let queue = &self.queues[slot];
        self.counters.given_up += messages;
        if self.storage.given_up.len() < NAMED_MAX {
            let vhost = self.topology.vhosts[queue.vhost].name.clone();
            let queue = queue.name.clone();
            self.storage.given_up.push(GivenUp { vhost, queue, position, messages });
        }
    }

    /// What was found gone since the last call, to be named.
    pub fn take_given_up(&mut self) -> Vec<GivenUp> {
        std::mem::take(&mut self.storage.given_up)
    }
}
