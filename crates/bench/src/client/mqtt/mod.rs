//! A minimal MQTT 3.1.1 and 5 client: QoS 0, 1 and 2, persistent sessions.

mod connection;
mod fake_broker;
mod packet;

pub use connection::Connection;
pub(super) use fake_broker::fake_broker;

#[cfg(test)]
mod tests;
