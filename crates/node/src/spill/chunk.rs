//! A chunk of the spill log: what it holds for which subscription, and where it is.

use super::content::Content;
use super::job::Stored;
use angarium_engine::Lost;

/// One piece of the log: what is written, read and given back as a whole. One that is neither in memory nor
/// on the disk is lost: it could not be written, or not be read.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) bytes: usize,
    /// How many messages it keeps from being missed, by slow consumer and subscription, in this order.
    pub(super) owed: Vec<Owed>,
    /// Its bytes, where they are in memory.
    pub(super) content: Option<Content>,
    /// Its file, where it is on the disk.
    pub(super) stored: Option<Stored>,
    pub(super) work: ChunkWork,
}

/// What a chunk holds for one subscription.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owed {
    pub(super) slow_consumer: u32,
    pub(super) subscription: u32,
    pub(super) count: Lost,
}

/// What the disk has to do with a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ChunkWork {
    #[default]
    None,
    /// It is to be read.
    Wanted,
    /// It is being written, or read.
    UnderWay,
}

impl Chunk {
    /// What it holds for a slow consumer.
    pub(super) fn owed_to(&self, slow_consumer: u32) -> &[Owed] {
        let from = self.owed.partition_point(|owed| owed.slow_consumer < slow_consumer);
        let rest = &self.owed[from..];
        &rest[..rest.partition_point(|owed| owed.slow_consumer == slow_consumer)]
    }

    /// Frees its memory, where it is on the disk.
    pub(super) fn unload(&mut self) {
        if self.stored.is_some() {
            self.content = None;
        }
    }

    /// Whether it is in memory only, and not being written.
    pub(super) fn is_to_be_written(&self) -> bool {
        self.content.is_some() && self.stored.is_none() && self.work == ChunkWork::None
    }
}
