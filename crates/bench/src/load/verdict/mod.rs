//! The verdict on every message: each delivery is checked, tallied per consumer, and judged over all queues.

mod bit_runs;
mod judge;
mod tally;

pub(in crate::load) use judge::Judge;
pub use tally::{Checked, Tally, Verdict};
