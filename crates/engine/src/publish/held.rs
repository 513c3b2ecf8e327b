//! A message that is held back, and when it leaves.

use crate::queue::entry::NOWHERE;
use crate::{Position, Time};

/// A message that is held back. With its key it is 40 bytes in the nodes of a tree, which are two
/// thirds full: some 70 bytes of memory, whatever its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Where its record is; only what is persistent has one, or what memory has no room for.
    pub(crate) position: Position,
    pub(crate) vhost: u32,
    /// Bytes that it takes up once it is read.
    pub(crate) bytes: u32,
    pub(crate) persistent: bool,
    /// As in [`Entry`](crate::queue::entry::Entry).
    pub(crate) mark: bool,
}

const _: () = assert!(size_of::<(DelayKey, Held)>() <= 40);

impl Held {
    pub(crate) fn is_stored(&self) -> bool {
        self.position != NOWHERE
    }
}

/// The order in which messages leave: by due time, then by the number they got when they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DelayKey {
    pub(crate) due: Time,
    pub(crate) number: u64,
}
