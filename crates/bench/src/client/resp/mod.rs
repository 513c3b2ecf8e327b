//! RESP3 as a load client of Redis speaks it: channels for direct messages, streams with consumer groups
//! for those that are kept.

mod codec;
mod connection;
mod member;
mod stand_in;
mod uri;

pub use connection::Connection;
pub(super) use stand_in::stand_in;
pub use uri::{Login, Uri};

#[cfg(test)]
mod tests;
