//! Queues: how messages wait, leave, expire and die. One file for each rule.

mod dead_letter;
pub(crate) mod entry;
mod expiry;
pub(crate) mod lane;
mod overflow;
pub(crate) mod page;
pub(crate) mod paging;
mod queue;
pub(crate) mod ranges;
pub(crate) mod stored;

pub use queue::QueueCounters;
pub(crate) use queue::{Get, Queue};
