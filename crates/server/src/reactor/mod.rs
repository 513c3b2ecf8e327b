//! A shard's thread: a loop over epoll that owns a node, its clients' sockets and nothing else.
//!
//! A turn reads up to 64 KiB from each ready socket (32 to 248 KiB, see `read_budget.rs`) while there is
//! time, lets the node work, and sends each client's output once. A shard waits in epoll, and for letters
//! while input gathers; disk work and password hashing have their own threads, whose results come by
//! mailbox.

mod accept;
mod admin_replies;
mod broker_topics;
mod busy_poll;
mod certificate_review;
mod certificate_user;
mod certificates;
mod client;
mod clients;
mod clock;
mod connection_rate;
mod descriptors;
mod doubts;
mod due;
mod handed_out_file;
mod histogram;
mod input_coalescing;
pub(crate) mod listeners;
mod logins;
mod mailbox;
mod memory_watch;
mod parallel_send;
mod placement;
mod proxy_protocol;
mod read_budget;
mod shard;
mod shard_directory;
mod slow_consumer_log;
mod slow_step_log;
mod socket;
mod start;
mod storage_alerts;
#[cfg(test)]
mod tests;
mod tls;
mod told_topics;
mod watchdog;

pub use clock::Clock;
pub use handed_out_file::HandedOutFile;
pub use histogram::Histogram;
pub(crate) use mailbox::Letter;
pub use mailbox::{Gone, Mailbox};
pub use shard::{Counters, Shard};
pub use start::{Join, Recover, Running, Start, start};
