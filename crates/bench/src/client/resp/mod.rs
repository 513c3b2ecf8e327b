//! RESP3 as a load client of Redis speaks it: channels for direct messages, streams with consumer groups
//! for those that are kept.

mod codec;
mod connection;
mod fake_broker;
mod group_consumer;
mod uri;

pub use connection::Connection;
pub(super) use fake_broker::fake_broker;
pub use uri::{Login, Uri};

#[cfg(test)]
mod tests;
