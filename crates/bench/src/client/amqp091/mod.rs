//! A blocking AMQP 0-9-1 client as small as a load generator can bear. Knows nothing about
//! workloads.

pub mod connection;
mod delivery;
mod incoming;
mod message;
mod stand_in;

pub use connection::Connection;
pub use message::{Argument, Envelope, write_ack, write_arguments};
pub(super) use stand_in::stand_in;

#[cfg(test)]
mod tests;
