//! Which messages may have been handed out, for a start after the process was killed: those before a mark of
//! their queue, which the host keeps where a kill does not reach, before it sends anything.

use crate::HandedOut;
use crate::engine::Engine;
use crate::queue::entry::Entry;

/// A mark runs ahead of what is handed out by an eighth of what was delivered, and by this many at most.
const AHEAD_PART: u64 = 8;
const AHEAD_MAX: u64 = 1 << 16;

impl Engine {
    /// A message of a queue is handed out.
    #[inline]
    pub(crate) fn note_handed_out(&mut self, slot: u32, entry: &Entry) {
        let queue = &self.queues[slot];
        if entry.durable && entry.seq >= queue.handed_out {
            self.move_mark(slot, entry.seq);
        }
    }

    /// The mark runs ahead a little, so that it seldom moves.
    #[cold]
    fn move_mark(&mut self, slot: u32, seq: u64) {
        let queue = &mut self.queues[slot];
        queue.handed_out = seq + (queue.counters.delivered / AHEAD_PART).clamp(1, AHEAD_MAX);
        self.storage.handed_out.insert(queue.number, queue.handed_out);
    }

    /// Whether a mark moved since they were last taken.
    #[inline]
    pub fn has_handed_out(&self) -> bool {
        !self.storage.handed_out.is_empty()
    }

    /// The marks that moved since the last call. The host keeps them before it sends anything.
    pub fn take_handed_out(&mut self) -> HandedOut {
        std::mem::take(&mut self.storage.handed_out)
    }

    /// Before the end of recovery: all marks up to the last process's end, if they are known.
    pub fn recover_handed_out(&mut self, marks: &HandedOut) {
        self.storage.knows_handed_out = true;
        for (number, before) in marks {
            if let Some(queue) = self.queues.numbered(*number) {
                queue.handed_out = *before;
            }
        }
    }
}
