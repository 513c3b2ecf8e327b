//! One shard of a broker as a value: the engine, the journal, and the protocol handlers.
//!
//! A host feeds a [`Node`] with what happened (bytes arrived, output went out, a disk job ended, time
//! passed) and asks it what to do (bytes to send, jobs to run, credentials to verify, when to come
//! back). The process in `server` is one such host, the simulator the other.
//!
//! Independent of sockets, threads, files and clocks.

mod administration;
mod connection;
mod effects;
mod flow;
mod memory;
mod node;
mod options;
mod outbox;
mod shard;
mod spill;
mod storage;

#[cfg(test)]
mod tests;

pub use crate::connection::in_process_events::InProcessEvent;
pub use crate::connection::read_pause::WaitsFor;
pub use crate::effects::Verification;
pub use crate::memory::account::{MemoryLimits, Owner};
pub use crate::memory::shortage::MemoryNews;
pub use crate::shard::links::{SHARD_BATCH_BYTES, UNDERWAY_BYTES_MAX};
pub use crate::shard::message::ShardBatch;
pub use crate::storage::reads::{ReadDone, ReadJob};
pub use crate::storage::rebuild::rebuild;
pub use administration::{ConnectionInfo, NewUser, Ticket};
pub use angarium_protocol::SlowConsumerEvent;
pub use node::{Node, Stats};
pub use options::{Options, shard_of};
pub use outbox::SlowConsumerInfo;
pub use spill::{
    Spill, SpillDone, SpillJob, SpillLoss, SpillOptions, SpillStats, SpillStore, clear_spill,
};
