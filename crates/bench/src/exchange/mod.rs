//! A stock exchange of three programs over a broker, after OSU's on Qpid: a gateway that sends random
//! orders, an engine that matches them by exact price, and a statistics reporter.

mod order_book;
mod run;
mod wire;

pub use run::{ExchangeOutcome, ExchangePlan, measure};
pub(crate) use wire::MESSAGE_BYTES;

#[cfg(test)]
mod tests;
