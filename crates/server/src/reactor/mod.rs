//! A shard's thread: a loop over epoll that owns a node, its clients' sockets and nothing else.
//!
//! A turn reads up to 64 KiB from each ready socket (32 to 248 KiB, by how many send and receive and how
//! much) for as long as there is time, lets the node work, and sends each connection's output once. It
//! blocks in epoll alone: disk and password hashing have threads of their own, whose results come by
//! mailbox.

mod arrivals;
mod certificates;
mod clients;
mod clock;
mod connection;
mod damage;
mod descriptors;
mod histogram;
mod laggards;
pub(crate) mod listeners;
mod logins;
mod mailbox;
mod moderation;
mod neighbours;
mod operators;
mod placement;
mod polling;
mod room;
mod shard;
mod share;
mod slow_steps;
mod socket;
mod start;
#[cfg(test)]
mod tests;
mod tls;
mod watchdog;
mod wave;

pub use histogram::Histogram;
pub(crate) use mailbox::Letter;
pub use mailbox::{Gone, Mailbox};
pub use shard::{Counters, Shard};
pub use start::{Join, Recover, Running, Start, start};
