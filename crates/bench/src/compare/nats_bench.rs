//! Runs the public nats-bench against each side in turn and reads its final report.

use super::side::{Side, text};
use crate::measure::process::Usage;
use std::path::Path;
use std::process::{Command, Stdio};

/// A load of nats-bench.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scenario {
    /// Its name in the report.
    pub(crate) name: &'static str,
    /// Subscribers; there is one publisher.
    pub(crate) subscribers: u64,
    /// Octets of a message.
    pub(crate) size_bytes: u64,
    /// Our broker CPU per delivery may be at most this part of theirs.
    pub(crate) cpu_part_max: f64,
}

/// All of them.
pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "nats-bench 100 B 1->1",
        subscribers: 1,
        size_bytes: 100,
        cpu_part_max: THIRD,
    },
    Scenario {
        name: "nats-bench 1 KiB 1->1",
        subscribers: 1,
        size_bytes: 1_024,
        cpu_part_max: THIRD,
    },
    Scenario {
        name: "nats-bench 100 B fan-out 10",
        subscribers: 10,
        size_bytes: 100,
        cpu_part_max: 0.2,
    },
];

const THIRD: f64 = 1.0 / 3.0;

/// One run of nats-bench.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Run {
    /// Deliveries per second to all subscribers.
    pub(crate) delivered_per_s: f64,
    /// Broker CPU nanoseconds per delivery.
    pub(crate) broker_ns: f64,
    /// CPU nanoseconds of nats-bench per delivery.
    pub(crate) tool_ns: f64,
}

/// Runs `scenario` once with `deliveries` messages to all subscribers together.
pub(crate) fn run(
    program: &Path,
    scenario: &Scenario,
    side: &Side,
    deliveries: u64,
) -> Result<Run, String> {
    let messages = deliveries / scenario.subscribers;
    let usage = || Usage::of_tree(side.pid()).unwrap_or_default();
    let (broker, children) = (usage(), children_cpu_ns());
    let output = Command::new(program)
        .args(["-s", &side.uri.to_string(), "-np", "1"])
        .args(["-ns", &scenario.subscribers.to_string()])
        .args(["-n", &messages.to_string()])
        .args(["-ms", &scenario.size_bytes.to_string()])
        .arg("bench.public")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let (broker_end, children_end) = (usage(), children_cpu_ns());
    let said = String::from_utf8_lossy(&output.stdout);
    let delivered_per_s = parse_deliveries(&said).ok_or_else(|| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        format!("nats-bench measured nothing on {} ({}): {complaint}", side.name, output.status)
    })?;
    let per_delivery = |before: u64, after: u64| {
        after.saturating_sub(before) as f64 / (messages * scenario.subscribers) as f64
    };
    Ok(Run {
        delivered_per_s,
        broker_ns: per_delivery(broker.cpu_ns, broker_end.cpu_ns),
        tool_ns: per_delivery(children, children_end),
    })
}

/// CPU time of all child processes that have ended, in nanoseconds.
fn children_cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").map_err(text).unwrap_or_default();
    crate::measure::process::parse_stat(&stat).map_or(0, |stat| stat.children_ns)
}

/// Reads the line of all subscribers together, such as ` Sub stats: 441,605 msgs/sec ~ 42.11 MB/sec`.
/// The line before it, of both directions, is called `Pub/Sub stats`.
pub(crate) fn parse_deliveries(said: &str) -> Option<f64> {
    let (_, rest) = said.split_once(" Sub stats:")?;
    rest.split_whitespace().next()?.replace(',', "").parse().ok()
}
