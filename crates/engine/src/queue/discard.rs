//! Messages that are gone for good: counted by reason, for their queue and in all.

use crate::DiscardReason;
use crate::engine::Engine;

impl Engine {
    /// Counts messages of a queue that are let go of.
    #[cold]
    pub(crate) fn count_discarded(&mut self, slot: u32, reason: DiscardReason, messages: u64) {
        self.counters.discarded.add(reason, messages);
        if let Some(queue) = self.queues.get_mut(slot) {
            queue.discarded.get_or_insert_default().add(reason, messages);
        }
    }
}
