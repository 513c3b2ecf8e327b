//! One broker member assembled as a value: the engine, the journal, and the protocol sessions.
//!
//! A host feeds a [`Node`] with what happened (bytes arrived, output went out, a disk job ended, time
//! passed) and asks it what to do (bytes to send, jobs to run, credentials to verify, when to come
//! back). The process in `server` is one such host, the simulator the other.
//!
//! Knows nothing about sockets, threads, files or clocks.

mod administration;
mod answers;
mod arriving;
mod audience;
mod burst;
mod connection;
mod credentials;
mod crowded;
mod deletions;
mod disk;
mod egress;
mod episodes;
mod guest;
mod input;
mod laggards;
mod mesh;
mod node;
mod options;
mod outrun;
mod parcel;
mod places;
mod quota;
mod rate;
mod recovery;
mod session;
mod shards;
mod spill;
mod storage;
mod surveys;
mod varint;
mod visiting;
mod waiting;
mod world;
mod writes;

#[cfg(test)]
mod tests;

pub use administration::{ConnectionInfo, LagInfo, Ticket};
pub use episodes::LagEvent;
pub use mesh::{PARCEL_BYTES, UNDERWAY_BYTES_MAX};
pub use node::{Node, Stats};
pub use options::{Options, shard_of};
pub use parcel::Parcel;
pub use spill::{
    SpillDone, SpillJob, SpillLoss, SpillOptions, SpillStats, SpillStore, clear_spill,
};
pub use storage::{ReadDone, ReadJob};
pub use waiting::WaitsFor;
pub use world::Verification;
