//! Which places of a session's queue may be handed out.
//!
//! Protocols make numbers of places, and use these again after as many others as
//! [`crate::interface::limits::SESSION_PLACES_MAX`] says. So nothing is handed out whose place is that far
//! ahead of a place in use: that of a message that is out, or that was released and not forgotten. Messages
//! that come back are handed out again in their order, with their places, also after a restart.
//!
//! A queue that waits for flushes hands out only what no crash takes back: otherwise a place might be used
//! again for another message.

use crate::Position;
use std::collections::VecDeque;

/// What makes a queue a session's own.
#[derive(Debug, Default)]
pub(crate) struct OwnQueue {
    /// The number of the session.
    pub(crate) session: u64,
    /// No place before it is in use.
    pub(super) floor: u64,
    /// A place in use that lies too far back: nothing is handed out before it is free.
    pub(super) waits_for: Option<u64>,
    /// The state of all rights, and the place before which messages were led here by others: these are judged
    /// again.
    pub(super) judged_by: u64,
    pub(super) judged_before: u64,
    /// A shared queue has handed messages over.
    pub(crate) has_shared: bool,
    /// Only what is flushed is handed out.
    pub(crate) waits_for_flush: bool,
    /// Messages that are not flushed, from a place on, and the records whose flush they wait for.
    pub(super) unflushed: VecDeque<(Position, u64)>,
}

impl OwnQueue {
    /// That of the session with a number.
    pub(super) fn of(session: u64) -> OwnQueue {
        OwnQueue { session, floor: 1, ..OwnQueue::default() }
    }

    /// What has a place before that is judged before it is handed out.
    pub(crate) fn judge_before(&mut self, place: u64) {
        self.judged_before = self.judged_before.max(place);
    }

    /// Whether the message at a place is flushed, where that matters.
    pub(super) fn is_flushed(&self, place: u64) -> bool {
        self.unflushed.front().is_none_or(|(_, first)| place < *first)
    }
}
