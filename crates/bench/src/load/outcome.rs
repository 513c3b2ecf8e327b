//! What a run came to, as a value that reports are made of.

use super::bottleneck::{Bottleneck, Loads};
use super::tally::Verdict;
use crate::measure::latency::Summary;
use crate::measure::process::Cost;
use crate::measure::stalls::Stalls;
use serde::{Deserialize, Serialize};

/// Messages per second over the measured span.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// By all producers.
    pub published: f64,
    /// To all producers.
    pub confirmed: f64,
    /// To all consumers.
    pub delivered: f64,
    /// Octets of bodies to all consumers.
    pub delivered_bytes: f64,
    /// The slowest second: deliveries, or publishes where nobody consumes.
    pub second_min: f64,
    /// The fastest second.
    pub second_max: f64,
}

/// What the load generator itself took.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCost {
    /// CPU nanoseconds per message.
    pub cpu_ns_per_message: f64,
    /// Cores' worth of CPU.
    pub cpu_share: f64,
    /// That of the threads that publish.
    pub producers_share: f64,
    /// That of the threads that consume.
    pub consumers_share: f64,
}

/// How long it took, in seconds.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// From the first write to the last.
    pub publish_s: f64,
    /// From the first delivery to the last.
    pub receive_s: f64,
    /// From the first write to the last delivery; where nobody consumes, until the broker had taken
    /// all, as far as its protocol tells.
    pub total_s: f64,
}

/// How a schedule was kept.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Messages per second that were asked for.
    pub rate: f64,
    /// The part of the messages due that was published.
    pub achieved_part: f64,
    /// How late the tool itself was: after a message was due and nothing kept it from being written.
    pub lag: Summary,
    /// Whether the tool was in time. If not, percentiles would describe the tool and are left out.
    pub tool_kept: bool,
}

/// One second of a run.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Its end, in seconds of the measured span.
    pub at_s: f64,
    /// Messages per second.
    pub published: f64,
    /// Messages per second.
    pub delivered: f64,
    /// Cores' worth of CPU.
    pub broker_cpu_share: f64,
    /// Resident memory.
    pub broker_rss_kib: u64,
}

/// What a run came to.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The workload in words.
    pub plan: String,
    /// The broker's address.
    pub broker_uri: String,
    /// Seconds measured.
    pub measured_s: f64,
    /// Whether somebody ended it before its time.
    #[serde(default)]
    pub interrupted: bool,
    /// Messages counted for the costs per message: deliveries, or publishes where nobody consumes.
    pub messages: u64,
    /// Messages per second.
    pub rates: Rates,
    /// How long the whole run took.
    pub times: Times,
    /// Messages published over the whole run.
    pub published: u64,
    /// Messages confirmed over the whole run.
    pub confirmed: u64,
    /// Messages refused by `basic.nack` over the whole run.
    pub refused: u64,
    /// What became of them; what nobody consumed is read back after the span. None where nobody waited for
    /// the last of them because the run was interrupted, and where nothing can be said.
    pub verdict: Option<Verdict>,
    /// Why nothing can be said of them, where nothing can.
    #[serde(default)]
    pub unjudged: Option<String>,
    /// For each consumer that the broker cut off before its end, what it said.
    pub cut_off: Vec<String>,
    /// What the broker's processes took; none if they cannot be seen from here.
    pub broker: Option<Cost>,
    /// Instructions that the broker executed for each message, if asked for and countable here.
    pub instructions_per_message: Option<f64>,
    /// What this tool took.
    pub tool: ToolCost,
    /// From sending to delivery, if asked for.
    pub latency: Option<Summary>,
    /// From sending to the confirm, if asked for.
    pub confirm_latency: Option<Summary>,
    /// How the schedule was kept, where there was one.
    pub schedule: Option<Schedule>,
    /// For how long this machine itself stood still, where there was a schedule and it can be told.
    #[serde(default)]
    pub stalls: Option<Stalls>,
    /// What held the run back.
    pub bottleneck: Bottleneck,
    /// How busy everybody was.
    pub loads: Loads,
    /// Mean travel times of the first consumer, group after group, if asked for.
    pub travels_us: Vec<f32>,
    /// Second by second.
    pub seconds: Vec<Second>,
    /// Machines that the load came from; 0 is this one alone.
    pub workers: u64,
    /// By how much the clocks of two of them may differ: latencies are no more exact than that.
    pub clock_error_us: Option<f64>,
}
