//! A minimal blocking NATS client for load generation. Independent of workloads.

mod connection;
mod fake_broker;
pub mod jetstream;
mod uri;

pub use connection::Connection;
pub(super) use fake_broker::fake_broker;
pub use uri::{Login, Uri};

#[cfg(test)]
mod tests;
