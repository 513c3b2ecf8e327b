//! Runs a workload against a broker and says what happened. Knows protocols only through
//! their links.

mod conclude;
mod consumer;
mod control;
pub mod idle;
pub mod isolation;
mod limit;
mod outcome;
mod pace;
mod plan;
mod producer;
pub mod round_trip;
mod run;
mod span;
mod stamp;
pub mod start;
mod tally;
mod topology;
mod unruly;
mod wave;
mod window;

pub use limit::{Limit, Loads};
pub use outcome::{Outcome, Rates, Schedule, Second, Times, ToolCost};
pub use plan::{End, Plan};
pub use run::run;
pub use tally::{Checked, Tally, Verdict};
pub use unruly::Unruly;

#[cfg(test)]
mod tests;
