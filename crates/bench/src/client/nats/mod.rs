//! A blocking NATS client as small as a load generator can bear. Knows nothing about workloads.

mod connection;
pub mod jetstream;
mod stand_in;
mod uri;

pub use connection::Connection;
pub(super) use stand_in::stand_in;
pub use uri::{Login, Uri};

#[cfg(test)]
mod tests;
