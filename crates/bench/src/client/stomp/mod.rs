//! STOMP 1.2 as a load client speaks it: queues, topics, receipts, cumulative acknowledgements.

mod connection;
mod frame;
mod uri;

pub use connection::Connection;
pub(super) use frame::RECEIPT_DIGITS;
pub use uri::Uri;

#[cfg(test)]
mod tests;
