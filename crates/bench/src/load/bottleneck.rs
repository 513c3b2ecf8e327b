//! What limited a run: the broker, the tool, the machine that both share, or the schedule.

use serde::{Deserialize, Serialize};

/// A thread is saturated from this busy part on.
pub(super) const BUSY: f64 = 0.9;
/// A machine is saturated from this busy part on.
const MACHINE_BUSY: f64 = 0.93;

/// If other processes take this part of the machine, broker and tool could have done more.
const OTHERS_BUSY: f64 = 0.15;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_busy_is_the_limit() {
        let beside = |others, broker_thread, tool_thread, machine, schedule_kept| {
            let loads = Loads { broker_thread, tool_thread, machine, others, ..Loads::default() };
            of(&Loads { schedule_kept, ..loads })
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
