//! A spill log's jobs for the disk: the host hands them to the store that all shards share.

use super::content::Content;
use angarium_engine::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A stored chunk as its log has it; its file counts until this is dropped.
#[derive(Debug)]
pub(super) struct Stored {
    /// Unique among all chunks that are or were stored.
    pub(super) number: u64,
    /// Bytes of its file.
    pub(super) file_bytes: u64,
    all: Arc<AtomicU64>,
}

impl Stored {
    /// Counts a chunk's file in `all`.
    pub(super) fn new(number: u64, file_bytes: u64, all: &Arc<AtomicU64>) -> Stored {
        all.fetch_add(file_bytes, Ordering::Relaxed);
        Stored { number, file_bytes, all: Arc::clone(all) }
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.all.fetch_sub(self.file_bytes, Ordering::Relaxed);
    }
}

/// Work of a spill log for the disk, to be carried out on a thread that may block, in order.
#[derive(Debug)]
pub struct SpillJob(pub(super) Work);

#[derive(Debug)]
pub(super) enum Work {
    /// Stores a chunk.
    Write { chunk: u64, content: Content },
    /// Reads the chunk that was stored under this number.
    Read { chunk: u64, number: u64 },
    /// Removes the chunks that were stored under these numbers.
    Remove(Vec<u64>),
}

/// A [`SpillJob`]'s result.
#[derive(Debug)]
pub struct SpillDone(pub(super) Outcome);

#[derive(Debug)]
pub(super) enum Outcome {
    Written { chunk: u64, result: Result<Stored, String> },
    Read { chunk: u64, result: Result<Bytes, String> },
    Removed,
}
