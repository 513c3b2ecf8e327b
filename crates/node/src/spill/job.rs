//! What a shard's spill log has its host do with the disk, by way of the store that all logs have in common.

use super::content::Content;
use super::store::Stored;
use angarium_engine::Bytes;

/// Work of the spill log for the disk, on a thread where that may take its time. All of it is done in
/// the order in which it was handed out.
#[derive(Debug)]
pub struct SpillJob(pub(super) Work);

#[derive(Debug)]
pub(super) enum Work {
    /// A chunk is to be stored.
    Write { chunk: u64, content: Content },
    /// A chunk of so many bytes is to be read that was stored under this number.
    Read { chunk: u64, number: u64, bytes: usize },
    /// What was stored under these numbers is no longer needed.
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
