//! A blocking NATS client as small as a load generator can bear. Knows nothing about workloads.

mod connection;
mod uri;
mod wire;

pub use connection::Connection;
pub use uri::Uri;
pub use wire::write_publish;

#[cfg(test)]
mod tests;
