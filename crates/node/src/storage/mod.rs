//! The shard's journal: appends, flushes, reads, checkpoints, recovery.

pub(crate) mod disk;
pub(crate) mod reads;
pub(crate) mod rebuild;
pub(crate) mod recovery;
pub(crate) mod writes;

use angarium_engine::Time;
use angarium_journal::State;

/// What a shard knows of its broker's disk.
#[derive(Debug, Default)]
pub(crate) struct StorageStatus {
    pub(crate) state: State,
    /// No record can be written while it is full.
    pub(crate) is_exhausted: bool,
    /// The system refuses memory.
    pub(crate) has_no_memory: bool,
    /// Why messages cannot be taken, if so.
    pub(crate) blocked: Option<String>,
    /// At home: when the spill logs, which have made room, may write again.
    pub(crate) spill_resumes: Option<Time>,
    pub(crate) writes: writes::Writes,
    pub(crate) proof: writes::FlushProof,
    /// The journal has more than the disk takes, as all shards know.
    pub(crate) is_congested: bool,
    /// The last checkpoint is made: no other begins.
    pub(crate) is_closing: bool,
}
