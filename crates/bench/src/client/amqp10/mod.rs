//! A minimal blocking AMQP 1.0 client for load generation. Independent of workloads.
//!
//! A connection has a session for each of its links, so that the delivery-id of a message is its tag: the
//! messages of a load are encoded once, and only that number changes from one to the next. The coordinator of
//! transactions has a session, too.

mod connection;
mod fake_broker;
mod input;
mod management;
mod message;
mod session;
mod terminus;
mod transaction;

pub use connection::Connection;
pub(super) use fake_broker::fake_broker;

#[cfg(test)]
mod tests;
