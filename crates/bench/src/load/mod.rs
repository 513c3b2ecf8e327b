//! Runs workloads against a broker and reports the outcomes. Uses protocols only through links.

mod aggregate;
pub mod backlog;
pub(crate) mod bare_fanout;
mod batch;
mod bit_runs;
mod bottleneck;
mod consumer;
mod control;
mod drain;
pub mod drivers;
pub mod durability;
mod fanout_latency;
pub mod first_message;
pub mod idle;
pub mod isolation;
mod judge;
pub(crate) mod live_rates;
pub mod memory_per_message;
mod message;
mod misbehaving_clients;
mod null_broker;
mod outcome;
mod pace;
mod plan;
mod producer;
mod progress_timeout;
pub mod round_trip;
mod run;
mod sampler;
mod stamp;
pub mod startup_time;
mod tally;
mod threads;
mod topology;
mod window;
pub mod worker;

pub(crate) use batch::delivered_bytes;
pub use bottleneck::{Bottleneck, Loads};
pub use misbehaving_clients::Misbehaving;
pub use outcome::{Outcome, Rates, Schedule, Second, Times, ToolCost};
pub(crate) use pace::Pace;
pub use plan::{DRAIN, End, Plan};
pub use run::run;
pub use tally::{Checked, Tally, Verdict};
pub(crate) use topology::Names;
pub use worker::run as run_by;

#[cfg(test)]
mod tests;
