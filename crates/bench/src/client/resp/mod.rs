//! A minimal RESP3 client for Redis: channels for direct messages, streams with consumer groups for
//! stored ones.

mod codec;
mod connection;
mod fake_broker;
mod group_consumer;

pub use connection::Connection;
pub(super) use fake_broker::fake_broker;

#[cfg(test)]
mod tests;
