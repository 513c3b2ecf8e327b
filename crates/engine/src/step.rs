//! How much work one step of the host may be before others get their turn, in bytes: what is handed out
//! counts for itself, everything else for as many bytes as take that long. Knows nothing about who gets it.

use crate::engine::Engine;

/// As so many bytes counts each further queue that a message goes to: a microsecond or so.
const PLACED_BYTES: u64 = 4 << 10;

/// What was done since the step began.
#[derive(Debug)]
pub(crate) struct Step {
    done: u64,
    most: u64,
}

impl Step {
    /// Steps of so many bytes.
    pub(crate) fn new(most: u64) -> Step {
        Step { done: 0, most }
    }

    /// Messages were handed out, or listeners looked at for them.
    #[inline]
    pub(crate) fn count_handed(&mut self, bytes: u64) {
        self.done += bytes;
    }

    /// A message goes to so many queues. Those of a fanout are what takes long: one to a single queue is
    /// bounded by what is read at once.
    #[inline]
    pub(crate) fn count_placed(&mut self, queues: usize) {
        self.done += queues.saturating_sub(1) as u64 * PLACED_BYTES;
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
    pub fn begin_step(&mut self) {
        self.step.done = 0;
    }

    /// Whether so much was done since [`Engine::begin_step`], as
    /// [`crate::limits::Limits::handed_at_once`] counts it, that others are to get their turn.
    #[inline]
    #[must_use]
    pub fn is_step_over(&self) -> bool {
        self.step.left() == 0
    }
}
