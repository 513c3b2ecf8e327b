//! What held a run back: the broker, the tool, the machine that both share, or the schedule.

use serde::{Deserialize, Serialize};

/// A thread that runs for this part of the time has no more to give.
pub(super) const BUSY: f64 = 0.9;
/// A machine that is busy for this part of the time has no more to give.
const MACHINE_BUSY: f64 = 0.93;

/// Where others take this part of the machine's time, broker and tool might have done more.
const OTHERS_BUSY: f64 = 0.15;

/// How busy everybody was.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Loads {
    /// The broker's busiest thread, as a part of one core.
    pub broker_thread: f64,
    /// The tool's busiest thread, as a part of one core.
    pub tool_thread: f64,
    /// All cores of the machine, as a part of them.
    pub machine: f64,
    /// The part of them that neither broker nor tool took.
    #[serde(default)]
    pub others: f64,
    /// The part of them that a virtual machine's host gave to others.
    #[serde(default)]
    pub stolen: f64,
    /// A rate was asked for and reached.
    pub schedule_kept: bool,
}

/// What held a run back.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bottleneck {
    /// The asked rate was reached: nothing did.
    Schedule,
    /// A thread of the broker had no more to give.
    Broker,
    /// A thread of the tool had no more to give: the broker may be faster than this.
    Tool,
    /// A thread of both had no more to give.
    Both,
    /// All cores were busy, which broker and tool share.
    Machine,
    /// All cores were busy, a good part of them with what is neither broker nor tool.
    Others,
    /// Nobody was busy: they waited for each other, for a disk or for a network.
    #[default]
    Waiting,
}

impl Bottleneck {
    /// In a word.
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

/// Judges the loads.
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
        // A thread that has all of a core is held back by nobody else.
        assert_eq!(beside(0.5, 0.95, 0.2, 1.0, false), Bottleneck::Broker);
        assert_eq!(beside(0.5, 0.5, 0.4, 1.0, false), Bottleneck::Others);
        assert_eq!(beside(0.5, 0.1, 0.1, 0.7, false), Bottleneck::Waiting);
    }
}
