//! What became of a message that was routed to queues.

use crate::Position;

/// What became of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    /// The record to be flushed before it is safe.
    pub(crate) position: Option<Position>,
    /// A queue did not want it, or it cannot be stored.
    pub(crate) refused: bool,
    /// How many queues have it, or had a consumer for it.
    pub(crate) queues: u32,
}
