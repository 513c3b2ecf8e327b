//! A minimal JetStream client: streams, publish acknowledgements, pull consumers. Direct messages use
//! core NATS.

mod api;
mod connection;
mod pull_consumer;

pub use connection::Connection;

#[cfg(test)]
mod tests;
