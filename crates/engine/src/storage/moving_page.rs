//! A page that compaction moves to a new record.

use crate::Position;
use crate::queue::entry::Entry;

/// A page that is being moved, or whose messages are.
#[derive(Debug, Default)]
pub(crate) struct MovingPage {
    pub(crate) segment: u32,
    pub(crate) lane: usize,
    /// Where its record is.
    pub(crate) position: Position,
    /// What is live in it, once that was read.
    pub(crate) entries: Vec<Entry>,
    /// Messages in it that are gone.
    pub(crate) gone: Vec<Entry>,
    /// Messages that are being read, because they are in the segment.
    pub(crate) messages: Vec<Position>,
}
