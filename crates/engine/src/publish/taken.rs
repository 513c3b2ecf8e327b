//! What a message that is routed to queues comes to, and what became of it.

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

/// What a message comes to once it is published in a group of records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeInGroup {
    /// Bytes of its records, at most.
    pub(crate) bytes: usize,
    /// Queues that were found for it.
    pub(crate) queues: usize,
    /// As [`crate::routing::Routed::is_whole`].
    pub(crate) is_whole: bool,
}

/// Where a message goes.
pub(crate) enum Route {
    /// To those in the list; with subjects, to those who subscribe as well.
    Queues {
        has_subjects: bool,
        /// As [`crate::routing::Routed::is_whole`].
        is_whole: bool,
    },
    Inbox(u32),
    Delayed(std::time::Duration),
    /// Nowhere: it cannot be stored.
    Refused,
}
