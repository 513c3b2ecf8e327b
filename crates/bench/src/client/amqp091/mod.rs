//! A blocking AMQP 0-9-1 client as small as a load generator can bear. Knows nothing about workloads.

pub mod connection;
mod incoming;
mod uri;
pub mod wire;

pub use connection::{Connection, Error};
pub use incoming::Incoming;
pub use uri::Uri;

#[cfg(test)]
mod tests;
