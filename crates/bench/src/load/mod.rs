//! Runs workloads against a broker and reports the outcomes. Uses protocols only through links.

mod aggregate;
pub mod backlog;
mod consumer;
mod control;
pub mod drivers;
pub mod durability;
mod fanout_latency;
pub mod first_message;
pub mod idle;
pub mod isolation;
mod message;
mod outcome;
mod pace;
mod plan;
mod producer;
mod progress_timeout;
pub mod round_trip;
mod run;
mod sampler;
mod stamp;
mod topology;
mod verdict;
mod window;
pub mod worker;

pub use isolation::Misbehaving;
pub(crate) use message::delivered_bytes;
pub use outcome::{Bottleneck, Loads, Outcome, Rates, Schedule, Second, Times, ToolCost};
pub(crate) use pace::Pace;
pub use plan::{DRAIN, End, Plan};
pub use run::run;
pub(crate) use sampler::live_rates;
pub(crate) use stamp::Stamp;
pub(crate) use topology::Names;
pub use verdict::{Checked, Tally, Verdict};
pub use worker::run as run_by;

#[cfg(test)]
mod tests;
