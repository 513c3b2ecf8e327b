//! What a message that is routed to queues comes to, and what became of it.

use crate::{Position, Time};

/// What became of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    /// The record to be flushed before it is safe.
    pub(crate) position: Option<Position>,
    /// Why a queue did not take it, or it cannot be stored.
    pub(crate) refused: Option<Unwanted>,
    /// The slot of a queue that it went into and that has more than its consumers keep up with.
    pub(crate) outran: Option<u32>,
    /// It reaches its queues over several turns, and its publisher gets its confirm then.
    pub(crate) is_underway: bool,
    /// The record of the message has the number of its publish.
    pub(crate) is_numbered: bool,
    /// How many queues have it, or had a consumer for it.
    pub(crate) queues: u32,
}

/// The number of a publish that a session takes once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublishNumber {
    /// The number of the session.
    pub(crate) session: u64,
    pub(crate) number: u64,
    /// The journal has the session.
    pub(crate) is_stored: bool,
    /// The publish is still under way, and this is a repetition that waits for it.
    pub(crate) is_repetition: bool,
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
    /// Nowhere before that time.
    Delayed(Time),
    /// Nowhere: it cannot be stored.
    Refused,
}

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwanted {
    /// The queue in that slot is full.
    QueueFull(u32),
    /// The journal cannot store it, and memory has no room for it.
    NotStored,
    /// As many messages are delayed as may be.
    TooManyDelayed,
    /// No queue takes it.
    Unroutable,
}
