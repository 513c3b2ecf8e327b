//! How much work one step of the host may be before others get their turn, in bytes: what direct subscribers
//! are handed counts for itself, everything else for as many bytes as take that long. Knows nothing about who
//! gets it.

use crate::engine::Engine;

/// As so many bytes counts a message, at least, for each further queue that it goes to, where a consumer has
/// it at once.
const PASSED_BYTES: u64 = 1 << 10;
/// Its own bytes count so many times there, if that is more: of what lies ready for fifty consumers, no more
/// is to come together than a processor's cache holds until it is sent.
const PASSED_TIMES: u64 = 4;
/// As so many bytes it counts where it is put into the queue.
const STORED_BYTES: u64 = 4 << 10;

/// As so many bytes counts a message's place in a page of the journal.
const PAGED_BYTES: u64 = 256;

/// What was done since the step began.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    done: u64,
    most: u64,
}

impl WorkBudget {
    /// Steps of so many bytes.
    pub(crate) fn new(most: u64) -> WorkBudget {
        WorkBudget { done: 0, most }
    }

    /// Messages were handed out, or subscribers looked at for them.
    #[inline]
    pub(crate) fn count_handed(&mut self, bytes: u64) {
        self.done += bytes;
    }

    /// A message with a body of so many bytes went to so many queues, of which so many stored it, once for
    /// all of them. Those of a fanout are what takes long: one to a single queue is bounded by what is read
    /// at once.
    #[inline]
    pub(crate) fn count_placed(&mut self, bytes: usize, queues: usize, stored: usize) {
        let further = queues.saturating_sub(1);
        let stored = stored.min(further);
        let passed_bytes = PASSED_BYTES.max(PASSED_TIMES * bytes as u64);
        self.done += (further - stored) as u64 * passed_bytes + stored as u64 * STORED_BYTES;
    }

    /// A page of so many messages was written.
    #[inline]
    pub(crate) fn count_paged(&mut self, entries: usize) {
        self.done += entries as u64 * PAGED_BYTES;
    }

    /// What may still be done.
    #[inline]
    pub(crate) fn left(&self) -> u64 {
        self.most.saturating_sub(self.done)
    }
}

impl Engine {
    /// The host begins with something else, in which nobody else is served.
    #[inline]
    pub fn begin_work_budget(&mut self) {
        self.work_budget.done = 0;
    }

    /// Whether so much was done since [`Engine::begin_work_budget`], as
    /// [`crate::interface::limits::Limits::handed_at_once`] counts it, that others are to get their turn.
    #[inline]
    #[must_use]
    pub fn is_step_over(&self) -> bool {
        self.work_budget.left() == 0
    }
}
