//! A segmented log of opaque records: append, flush once for many, read, recover, give space back.
//!
//! The [`Journal`] is a value without I/O: `append` puts a record into the current batch and says
//! where it will lie; `next_job` returns work for a disk (a [`Job`] runs on any thread, against a
//! [`Storage`]); `finished` takes its result. What was appended while a flush ran is the next flush:
//! no timers.
//!
//! How a host drives it:
//!
//! ```text
//! Recovery::open -> restore(snapshot) -> replay -> Journal
//! each turn:   append ... ; while let Some(job) = next_job() { hand job to a thread }
//! job is done: finished(done) ; pass durable() and state() on to the engine when they changed
//! now and then: if checkpoint_due() { begin_checkpoint() ; ... ; finish_checkpoint(snapshot) }
//!               sparse_segment() -> append its live records again
//! once a second while state() is Full: retry()
//! at the end:  close(snapshot) ; run jobs until next_job() is None and none is running
//! ```
//!
//! Independent of messages, queues and protocols. Reads no clock, starts no thread.

mod batch;
mod check;
mod checkpoint;
mod checkpointing;
mod checksum;
mod disk;
mod faulty_storage;
mod files;
mod format;
mod job;
mod journal;
mod options;
mod position;
mod read;
mod rebuild;
mod records;
mod recovery;
mod repair;
mod salvage;
mod scan;
mod segments;
mod space;
mod state;
mod storage;
mod tail;
#[cfg(test)]
mod tests;

pub use batch::SharedRecord;
pub use check::{CheckpointReport, Problem, Report, SegmentReport, check};
pub use checksum::of as checksum;
pub use disk::Disk;
pub use faulty_storage::{Fault, FaultyStorage};
pub use job::{Done, Job, JobKind};
pub use journal::Journal;
pub use options::Options;
pub use position::Position;
pub use read::{Read, ReadBuffer};
pub use rebuild::Remains;
pub use records::SegmentScan;
pub use recovery::Recovery;
pub use repair::repair;
pub use state::{State, Stats};
pub use storage::Storage;
