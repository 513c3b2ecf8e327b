//! A spill log's jobs for the disk: the host hands them to the store that all shards share.

use super::content::Content;
use super::store::Stored;
use angarium_engine::Bytes;

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
