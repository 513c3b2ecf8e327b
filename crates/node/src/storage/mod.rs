//! The shard's journal: appends, flushes, reads, checkpoints, recovery.

pub(crate) mod disk;
pub(crate) mod reads;
pub(crate) mod recovery;
pub(crate) mod writes;
