//! A minimal STOMP 1.2 client: queues, topics, receipts, cumulative acknowledgements.

mod connection;
mod fake_broker;
mod frame;

pub use connection::Connection;
pub(super) use fake_broker::fake_broker;

#[cfg(test)]
mod tests;
