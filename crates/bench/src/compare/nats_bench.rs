//! Runs the public nats-bench against each side in turn and reads its final report.

use super::comparison::Comparison;
use super::runs::{Runs, ToolRun};
use super::side::{Side, text};
use super::table::{Check, Section};
use crate::measure::process::Usage;
use std::path::Path;
use std::process::{Command, Stdio};

/// A load of nats-bench.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scenario {
    /// Its name in the report.
    pub(super) name: &'static str,
    /// Subscribers; there is one publisher.
    subscribers: u64,
    /// Octets of a message.
    size_bytes: u64,
    /// Our broker CPU per delivery may be at most this part of theirs.
    cpu_part_max: f64,
}

/// All of them.
pub(super) const SCENARIOS: [Scenario; 3] = [
    scenario("nats-bench 100 B 1->1", 1, 100, 1.0 / 3.0),
    scenario("nats-bench 1 KiB 1->1", 1, 1_024, 1.0 / 3.0),
    scenario("nats-bench 100 B fan-out 10", 10, 100, 0.2),
];

const fn scenario(
    name: &'static str,
    subscribers: u64,
    size_bytes: u64,
    cpu_part_max: f64,
) -> Scenario {
    Scenario { name, subscribers, size_bytes, cpu_part_max }
}

/// Runs `scenario` on all sides.
pub(super) fn compare(
    comparison: &Comparison<'_>,
    program: &Path,
    scenario: &Scenario,
) -> Result<Section, String> {
    let mut section = Section::new(scenario.name);
    // About as long as the other loads take.
    let seconds = comparison.effort.native.as_secs();
    let deliveries = seconds * if scenario.size_bytes > 500 { 400_000 } else { 1_000_000 };
    let found = Runs::measure(comparison.sides, comparison.effort.rounds, |side| {
        let run = run(program, scenario, side, deliveries)?;
        eprintln!(
            "{}: {}: {:.0} msgs/s, broker {:.0} ns, tool {:.0} ns a message",
            scenario.name, side.name, run.delivered_per_s, run.broker_ns, run.tool_ns
        );
        Ok(run)
    })?;
    found.describe(&mut section);
    if let Some(part) = found.medians(|run| run.broker_ns).ratio() {
        section.check(Check::at_most("of its broker CPU", part, scenario.cpu_part_max));
    }
    Ok(section)
}

/// Runs `scenario` once with `deliveries` messages to all subscribers together.
fn run(
    program: &Path,
    scenario: &Scenario,
    side: &Side,
    deliveries: u64,
) -> Result<ToolRun, String> {
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
    Ok(ToolRun {
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
