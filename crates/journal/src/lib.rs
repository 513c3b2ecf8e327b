//! A segmented log of opaque records: append, flush once for many, read, recover, give space back.
//!
//! The [`Journal`] is a value without I/O: `append` puts a record into the current batch and says
//! where it will lie; `next_job` hands out work for a disk (a [`Job`] runs anywhere, against a
//! [`Storage`]); `finished` takes the result. What was appended while a flush ran is the next flush:
//! no timers.
//!
//! Knows nothing about messages, queues or protocols; reads no clock; starts no thread.

mod journal;
mod storage;

pub use journal::{Done, Job, Journal, Options, Position, Read, Recovery, State, Stats};
pub use storage::{Disk, Storage};
