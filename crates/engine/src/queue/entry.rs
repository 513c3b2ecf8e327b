//! One message's place in one queue.

use super::blob::Blob;
use super::stored::Stored;
use crate::{Position, Time};
use std::time::Duration;

/// The position of what is not in the journal.
pub(crate) const NOWHERE: Position = Position(u64::MAX);
/// The expiry of what never expires.
pub(crate) const NEVER: Time = Time(u64::MAX);

/// Whether what only the journal holds has been asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fetch {
    /// It has not, or it has come.
    #[default]
    Idle,
    /// It is on its way.
    Asked,
    /// It cannot be read. The queue goes no further until it is purged: what is damaged is never
    /// skipped.
    Failed,
}

/// One message in one queue. Its blob is shared with other queues, and absent where it has been left
/// to the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Counted up per queue: the original order.
    pub(crate) seq: u64,
    /// Where the record with its message is, if anywhere.
    pub(crate) position: Position,
    pub(crate) expires: Time,
    pub(crate) message: Option<Blob>,
    /// Bytes of its body.
    pub(crate) bytes: u32,
    pub(crate) requeues: u32,
    /// Survives a restart: a persistent message in a durable queue.
    pub(crate) durable: bool,
    /// It may have been delivered before.
    pub(crate) redelivered: bool,
    pub(crate) fetch: Fetch,
    pub(crate) lane: u8,
    /// That of the engine once the snapshot that is being taken has it, if there is one and it is durable.
    pub(crate) mark: bool,
}

const _: () = assert!(size_of::<Entry>() <= 64);

impl Entry {
    /// What a page or a snapshot has of it.
    pub(crate) fn without_message(&self) -> Entry {
        Entry { message: None, fetch: Fetch::Idle, ..*self }
    }

    /// What its presence in memory counts for.
    #[inline]
    pub(crate) fn resident_cost(&self) -> u64 {
        self.message.as_ref().map_or(0, Blob::cost)
    }

    /// Whether the record at its position is all that is known of its message.
    #[inline]
    pub(crate) fn is_cold(&self) -> bool {
        self.message.is_none()
    }

    /// It is known to have gone back that often.
    pub(crate) fn went_back(&mut self, requeues: u32) {
        self.requeues = self.requeues.max(requeues);
        self.redelivered = true;
    }

    /// What is left of the time to live that its publisher set.
    #[inline]
    pub(crate) fn ttl_left(&self, now: Time, stored: &Stored<'_>) -> Option<Duration> {
        stored.content.ttl.map(|_| self.expires.since(now))
    }

    #[inline]
    pub(crate) fn is_unreadable(&self) -> bool {
        self.fetch == Fetch::Failed
    }

    /// Whether the journal has its message.
    #[inline]
    pub(crate) fn is_stored(&self) -> bool {
        self.position != NOWHERE
    }
}
