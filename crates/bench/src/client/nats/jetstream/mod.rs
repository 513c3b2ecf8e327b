//! JetStream as a load client speaks it: streams, publish acknowledgements, pull consumers; direct
//! messages are NATS's own.

mod api;
mod connection;
mod pull_consumer;

pub use connection::Connection;

#[cfg(test)]
mod tests;
