//! JetStream as a load client speaks it: streams, publish acknowledgements, pull consumers; direct
//! messages are NATS's own.

mod api;
mod connection;
mod pull_consumer;

pub use connection::Connection;
pub(in crate::client) use connection::NUMBER_DIGITS;

#[cfg(test)]
mod tests;
