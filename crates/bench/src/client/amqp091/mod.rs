//! A minimal blocking AMQP 0-9-1 client for load generation. Independent of workloads.

mod connection;
mod delivery;
mod fake_broker;
mod message;

pub use connection::Connection;
pub(crate) use connection::server_version;
pub(super) use fake_broker::fake_broker;
pub use message::Argument;

#[cfg(test)]
mod tests;
