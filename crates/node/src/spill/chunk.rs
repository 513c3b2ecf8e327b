//! A chunk of the spill log: what it holds for which subscription, and where it is.

use super::content::Content;
use super::store::Stored;
use angarium_engine::Lost;

/// One piece of the log: what is written, read and given back as a whole.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) bytes: usize,
    /// How many messages it keeps from being missed, by slow consumer and subscription, in this order.
    pub(super) owed: Vec<Owed>,
    pub(super) place: Place,
}

/// What a chunk holds for one subscription.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owed {
    pub(super) slow_consumer: u32,
    pub(super) subscription: u32,
    pub(super) count: Lost,
}

/// Where a chunk is.
#[derive(Debug)]
pub(super) enum Place {
    /// In memory, to be written.
    Filled(Content),
    /// In memory, being written.
    Writing(Content),
    /// On the disk.
    Stored(Stored),
    /// There, and asked for.
    Wanted(Stored),
    /// There, and being read.
    Loading(Stored),
    /// There and in memory.
    Loaded(Stored, Content),
    /// Nowhere: it could not be written, or not be read.
    Lost,
}

impl Chunk {
    /// What it holds for a slow consumer.
    pub(super) fn owed_to(&self, slow_consumer: u32) -> &[Owed] {
        let from = self.owed.partition_point(|owed| owed.slow_consumer < slow_consumer);
        let rest = &self.owed[from..];
        &rest[..rest.partition_point(|owed| owed.slow_consumer == slow_consumer)]
    }

    /// Its bytes, where they are in memory.
    pub(super) fn in_memory(&self) -> Option<&Content> {
        match &self.place {
            Place::Filled(bytes) | Place::Writing(bytes) | Place::Loaded(_, bytes) => Some(bytes),
            Place::Stored(_) | Place::Wanted(_) | Place::Loading(_) | Place::Lost => None,
        }
    }

    /// Whether a job is out that is about it.
    pub(super) fn is_worked_on(&self) -> bool {
        matches!(self.place, Place::Writing(_) | Place::Loading(_))
    }

    /// Frees its memory, where it is on the disk.
    pub(super) fn unload(&mut self) {
        if let Place::Loaded(..) = self.place {
            self.take_stored(Place::Stored);
        }
    }

    /// What of it is on the disk goes on to another place there.
    pub(super) fn take_stored(&mut self, to: impl FnOnce(Stored) -> Place) {
        if let Some(stored) = std::mem::replace(&mut self.place, Place::Lost).stored() {
            self.place = to(stored);
        }
    }
}

impl Place {
    /// Whether the bytes are nowhere but in memory.
    pub(super) fn is_unwritten(&self) -> bool {
        matches!(self, Place::Filled(_) | Place::Writing(_))
    }

    /// What of it is on the disk.
    pub(super) fn stored(self) -> Option<Stored> {
        match self {
            Place::Stored(stored)
            | Place::Wanted(stored)
            | Place::Loading(stored)
            | Place::Loaded(stored, _) => Some(stored),
            Place::Filled(_) | Place::Writing(_) | Place::Lost => None,
        }
    }
}
