//! A minimal blocking NATS client for load generation. Independent of workloads.

mod connection;
mod fake_broker;
pub mod jetstream;

pub use connection::Connection;
pub(super) use fake_broker::fake_broker;

#[cfg(test)]
mod tests;
