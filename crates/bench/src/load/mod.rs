//! Runs a workload against a broker and says what happened. Knows protocols only through
//! their links.

pub(crate) mod bare_wave;
mod batch;
mod conclude;
mod consumer;
mod control;
pub mod drivers;
pub mod durability;
pub mod first;
pub mod idle;
pub mod isolation;
mod judge;
mod limit;
pub(crate) mod live;
mod message;
mod outcome;
mod pace;
mod plan;
mod producer;
pub mod round_trip;
mod run;
mod runs;
mod silence;
mod sink;
mod span;
pub mod spool;
mod stamp;
pub mod start;
pub mod stored;
mod take_out;
mod tally;
mod topology;
mod unruly;
mod wave;
mod window;
pub mod worker;

pub(crate) use batch::delivered_bytes;
pub use limit::{Limit, Loads};
pub use outcome::{Outcome, Rates, Schedule, Second, Times, ToolCost};
pub(crate) use pace::Pace;
pub use plan::{DRAIN, End, Plan};
pub use run::{run, run_by};
pub use tally::{Checked, Tally, Verdict};
pub(crate) use topology::Names;
pub use unruly::Unruly;

#[cfg(test)]
mod tests;
