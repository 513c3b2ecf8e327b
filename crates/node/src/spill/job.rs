//! What a shard's spill log has its host do with the disk, by way of the store that all logs have in common.

use super::store::Stored;
use std::sync::Arc;

/// Work of the spill log for the disk, on a thread where that may take its time. All of it is done in
/// the order in which it was handed out.
#[derive(Debug)]
pub struct SpillJob(pub(super) Work);

#[derive(Debug)]
pub(super) enum Work {
    Write { chunk: u64, bytes: Arc<Vec<u8>> },
    Read { chunk: u64, stored: Stored },
    Remove(Vec<Stored>),
}

/// A [`SpillJob`]'s result.
#[derive(Debug)]
pub struct SpillDone(pub(super) Outcome);

#[derive(Debug)]
pub(super) enum Outcome {
    Written {
        chunk: u64,
        result: Result<Stored, String>,
    },
    Read {
        chunk: u64,
        stored: Stored,
        result: Result<Vec<u8>, String>,
    },
    /// Chunks of so many bytes were given back.
    Removed {
        bytes: usize,
    },
}
