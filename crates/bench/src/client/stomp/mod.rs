//! STOMP 1.2 as a load client speaks it: queues, topics, receipts, cumulative acknowledgements.

mod connection;
mod frame;
mod stand_in;

pub use connection::Connection;
pub(super) use frame::RECEIPT_DIGITS;
pub(super) use stand_in::stand_in;

#[cfg(test)]
mod tests;
