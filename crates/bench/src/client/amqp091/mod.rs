//! A minimal blocking AMQP 0-9-1 client for load generation. Independent of workloads.

pub mod connection;
mod delivery;
mod fake_broker;
mod message;
mod next_frame;

pub use connection::Connection;
pub(super) use fake_broker::fake_broker;
pub use message::{Argument, Envelope, write_ack, write_arguments};

#[cfg(test)]
mod tests;
