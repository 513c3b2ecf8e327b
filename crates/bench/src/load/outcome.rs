//! The outcome of a run, as a value for reports, and what limited it.

use super::verdict::Verdict;
use crate::measure::latency::Summary;
use crate::measure::process::Cost;
use crate::measure::stalls::Stalls;
use serde::{Deserialize, Serialize};

/// A thread is saturated from this busy part on.
pub(super) const BUSY: f64 = 0.9;
/// A machine is saturated from this busy part on.
const MACHINE_BUSY: f64 = 0.93;
/// If other processes take this part of the machine, broker and tool could have done more.
const OTHERS_BUSY: f64 = 0.15;

/// Messages per second over the measured span.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// By all producers.
    pub published: f64,
    /// To all producers.
    pub confirmed: f64,
    /// To all consumers.
    pub delivered: f64,
    /// Body bytes to all consumers.
    pub delivered_bytes: f64,
    /// The slowest second: deliveries, or publishes without consumers.
    pub second_min: f64,
    /// The fastest second.
    pub second_max: f64,
}

/// What the load generator itself used.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCost {
    /// CPU nanoseconds per message.
    pub cpu_ns_per_message: f64,
    /// Cores of CPU.
    pub cpu_share: f64,
    /// Cores of CPU of the publishing threads.
    pub producers_share: f64,
    /// Cores of CPU of the consuming threads.
    pub consumers_share: f64,
}

/// Durations in seconds.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// From the first write to the last.
    pub publish_s: f64,
    /// From the first delivery to the last.
    pub receive_s: f64,
    /// From the first write to the last delivery, or without consumers until the broker has taken all.
    pub total_s: f64,
}

/// How well a schedule was kept.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Requested messages per second.
    pub rate: f64,
    /// The published part of the messages due.
    pub achieved_part: f64,
    /// The tool's own lateness: the time after a message was due and could be written.
    pub lag: Summary,
    /// Whether the tool was on time. Otherwise percentiles would describe the tool and are left out.
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
    /// Cores of broker CPU.
    pub broker_cpu_share: f64,
    /// Resident memory of the broker.
    pub broker_rss_kib: u64,
}

/// The outcome of a run.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The workload in words.
    pub plan: String,
    /// The broker's address.
    pub broker_uri: String,
    /// Seconds measured.
    pub measured_s: f64,
    /// Whether the run was interrupted.
    #[serde(default)]
    pub interrupted: bool,
    /// Messages that costs are divided by: deliveries, or publishes without consumers.
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
    /// The verdict on the messages; without consumers they are read back after the span. `None` if the
    /// run was interrupted before the last of them, or if they cannot be judged.
    pub verdict: Option<Verdict>,
    /// Why the messages cannot be judged, if so.
    #[serde(default)]
    pub unjudged: Option<String>,
    /// The broker's message to each consumer that it disconnected.
    pub cut_off: Vec<String>,
    /// What the broker's processes used; `None` if they are not visible from here.
    pub broker: Option<Cost>,
    /// Instructions that the broker executed per message, if requested and countable.
    pub instructions_per_message: Option<f64>,
    /// What this tool used.
    pub tool: ToolCost,
    /// From sending to delivery, if requested.
    pub latency: Option<Summary>,
    /// From sending to the confirm, if requested.
    pub confirm_latency: Option<Summary>,
    /// How well the schedule was kept, if there was one.
    pub schedule: Option<Schedule>,
    /// For how long this machine stood still, if there was a schedule and it is known.
    #[serde(default)]
    pub stalls: Option<Stalls>,
    /// What limited the run.
    pub bottleneck: Bottleneck,
    /// How busy broker, tool and machine were.
    pub loads: Loads,
    /// Mean travel times of the first consumer's successive delivery groups, if requested.
    pub travels_us: Vec<f32>,
    /// Second by second.
    pub seconds: Vec<Second>,
    /// Machines that generated the load; 0 is this one alone.
    pub workers: u64,
    /// The most that the clocks of two of them differ, which bounds the precision of latencies.
    pub clock_error_us: Option<f64>,
}

/// How busy broker, tool and machine were.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Loads {
    /// The broker's busiest thread, as a part of one core.
    pub broker_thread: f64,
    /// The tool's busiest thread, as a part of one core.
    pub tool_thread: f64,
    /// The machine, as a part of all its cores.
    pub machine: f64,
    /// The part of all cores used by neither broker nor tool.
    #[serde(default)]
    pub others: f64,
    /// The part of all cores that the hypervisor gave to others.
    #[serde(default)]
    pub stolen: f64,
    /// A rate was asked for and reached.
    pub schedule_kept: bool,
}

/// What limited a run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bottleneck {
    /// The requested rate, which was reached.
    Schedule,
    /// A saturated thread of the broker.
    Broker,
    /// A saturated thread of the tool: the broker may be faster than this.
    Tool,
    /// Saturated threads of both.
    Both,
    /// All cores are busy with broker and tool.
    Machine,
    /// All cores are busy, many of them with other processes.
    Others,
    /// Nothing is saturated: broker and tool wait for each other, a disk or a network.
    #[default]
    Waiting,
}

impl Bottleneck {
    /// Derives the bottleneck from the loads.
    pub(super) fn of(loads: &Loads) -> Bottleneck {
        match (loads.broker_thread >= BUSY, loads.tool_thread >= BUSY) {
            _ if loads.schedule_kept => Bottleneck::Schedule,
            (true, true) => Bottleneck::Both,
            (true, false) => Bottleneck::Broker,
            (false, true) => Bottleneck::Tool,
            _ if loads.machine < MACHINE_BUSY => Bottleneck::Waiting,
            _ if loads.others >= OTHERS_BUSY => Bottleneck::Others,
            (false, false) => Bottleneck::Machine,
        }
    }

    /// The name to display.
    pub fn name(self) -> &'static str {
        match self {
            Bottleneck::Schedule => "schedule",
            Bottleneck::Broker => "broker",
            Bottleneck::Tool => "tool",
            Bottleneck::Both => "both",
            Bottleneck::Machine => "machine",
            Bottleneck::Others => "others on this machine",
            Bottleneck::Waiting => "waiting",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_busy_is_the_limit() {
        let beside = |others, broker_thread, tool_thread, machine, schedule_kept| {
            let loads = Loads { broker_thread, tool_thread, machine, others, ..Loads::default() };
            Bottleneck::of(&Loads { schedule_kept, ..loads })
        };
        let loads = |broker_thread, tool_thread, machine, schedule_kept| {
            beside(0.05, broker_thread, tool_thread, machine, schedule_kept)
        };
        assert_eq!(loads(0.99, 0.5, 1.0, false), Bottleneck::Broker);
        assert_eq!(loads(0.5, 0.99, 1.0, false), Bottleneck::Tool);
        assert_eq!(loads(0.95, 0.99, 1.0, false), Bottleneck::Both);
        assert_eq!(loads(0.5, 0.5, 1.0, false), Bottleneck::Machine);
        assert_eq!(loads(0.2, 0.2, 0.3, false), Bottleneck::Waiting);
        assert_eq!(loads(0.2, 0.2, 0.3, true), Bottleneck::Schedule);
        // A saturated thread is the bottleneck whatever else runs.
        assert_eq!(beside(0.5, 0.95, 0.2, 1.0, false), Bottleneck::Broker);
        assert_eq!(beside(0.5, 0.5, 0.4, 1.0, false), Bottleneck::Others);
        assert_eq!(beside(0.5, 0.1, 0.1, 0.7, false), Bottleneck::Waiting);
    }
}
