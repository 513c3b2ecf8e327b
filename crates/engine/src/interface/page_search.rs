//! What the host looks for where a page of a queue is lost.

use crate::{Position, Time};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// A search for the messages of one page. The host passes it every record that is whole in the page's
/// segments, in any order.
#[derive(Clone, Debug)]
pub struct PageSearch {
    pub(crate) queue: u64,
    pub(crate) lane: u8,
    /// The queue's highest priority.
    pub(crate) priority_max: u8,
    pub(crate) seqs: RangeInclusive<u64>,
    pub(crate) segments: Vec<u32>,
    /// By sequence number.
    pub(crate) found: BTreeMap<u64, FoundMessage>,
}

/// What a record says of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundMessage {
    pub(crate) position: Position,
    pub(crate) expires: Time,
    /// Bytes of its body.
    pub(crate) bytes: u32,
    pub(crate) priority: u8,
}

impl PageSearch {
    /// The segments that have messages of the page.
    #[must_use]
    pub fn segments(&self) -> &[u32] {
        &self.segments
    }
}
