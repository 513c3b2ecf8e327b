//! Runs RabbitMQ's PerfTest against each side in turn and reads its line of each second.

use super::comparison::Comparison;
use super::runs::{Runs, ToolRun};
use super::side::{Side, text};
use super::table::{Check, Section};
use crate::measure::process::Usage;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A load of PerfTest. Without confirms a backlog may build up, on both sides alike; `-c` is the confirm
/// window. Persistent messages go to quorum queues, because RabbitMQ 4 confirms what it has not flushed in
/// others; Angarium flushes either way.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scenario {
    /// Its name in the report.
    pub(super) name: &'static str,
    /// PerfTest's arguments.
    arguments: &'static str,
    /// Our messages per second must be at least this many times theirs.
    rate_min: Option<f64>,
    /// Their broker CPU per message must be at least this many times ours.
    cpu_min: Option<f64>,
}

const fn scenario(
    name: &'static str,
    arguments: &'static str,
    rate_min: Option<f64>,
    cpu_min: Option<f64>,
) -> Scenario {
    Scenario { name, arguments, rate_min, cpu_min }
}

/// All of them.
pub(super) const SCENARIOS: [Scenario; 7] = [
    scenario("100 B auto-ack 1 pair", "-s 100 -a -u perf -x 1 -y 1", Some(1.5), Some(12.0)),
    scenario(
        "100 B auto-ack 10 pairs",
        "-s 100 -a --queue-pattern perf-%d --queue-pattern-from 1 --queue-pattern-to 10 -x 10 -y 10",
        Some(1.5),
        Some(12.0),
    ),
    scenario(
        "1 KiB persistent window 200, 1 pair",
        "-s 1024 --quorum-queue -f persistent -c 200 -q 500 -u kept -x 1 -y 1",
        Some(3.0),
        None,
    ),
    scenario(
        "1 KiB persistent window 200, 10 pairs",
        "-s 1024 --quorum-queue -f persistent -c 200 -q 500 \
         --queue-pattern kept-%d --queue-pattern-from 1 --queue-pattern-to 10 -x 10 -y 10",
        Some(3.0),
        None,
    ),
    scenario(
        "1 KiB persistent window 1, 1 pair",
        "-s 1024 --quorum-queue -f persistent -c 1 -q 500 -u kept -x 1 -y 1",
        Some(1.5),
        None,
    ),
    scenario("100 B fan-out 10", "-s 100 -a -t fanout -e perf-10 -x 1 -y 10", None, Some(12.0)),
    scenario("100 B fan-out 50", "-s 100 -a -t fanout -e perf-50 -x 1 -y 50", None, Some(12.0)),
];

/// PerfTest, and how it runs.
pub(super) struct PerfTest<'a> {
    /// The folder of its jar files.
    pub(super) jars: &'a Path,
    pub(super) comparison: &'a Comparison<'a>,
}

/// A line of PerfTest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Second {
    /// Seconds since it began.
    pub(crate) time_s: f64,
    /// Deliveries per second since the line before.
    pub(crate) received_per_s: f64,
}

/// The section of a scenario.
pub(super) fn section(scenario: &Scenario, found: &Runs<ToolRun>) -> Section {
    let mut section = Section::new(&format!("PerfTest {}", scenario.name));
    found.describe(&mut section);
    let rate = found.medians(|run| run.delivered_per_s);
    if let Some((least, times)) = scenario.rate_min.zip(rate.ratio()) {
        section.check(Check::at_least("times the msgs/s", times, least));
    }
    let cpu = found.medians(|run| run.broker_ns);
    if let Some((least, part)) = scenario.cpu_min.zip(cpu.ratio()) {
        section.check(Check::at_least("times less broker CPU a message", 1.0 / part, least));
    }
    section
}

impl PerfTest<'_> {
    /// Runs a scenario on all sides in turn, as many rounds as the effort has. Figures are without the
    /// seconds in which Java warms up.
    pub(super) fn compare(&self, scenario: &Scenario) -> Result<Section, String> {
        let &Comparison { sides, effort, .. } = self.comparison;
        let found = Runs::measure(sides, effort.rounds, |side| {
            let run = self.run(scenario, side)?;
            eprintln!(
                "{}: {}: {:.0} msgs/s, broker {:.0} ns, tool {:.0} ns a message",
                scenario.name, side.name, run.delivered_per_s, run.broker_ns, run.tool_ns
            );
            Ok(run)
        })?;
        Ok(section(scenario, &found))
    }

    fn run(&self, scenario: &Scenario, side: &Side) -> Result<ToolRun, String> {
        let seconds = self.comparison.effort.perftest.as_secs().to_string();
        let mut java = Command::new("java");
        java.arg("-cp")
            .arg(self.jars.join("*"))
            .arg("com.rabbitmq.perf.PerfTest")
            .args(["-h", &format!("{}", side.uri)])
            .args(["-z", &seconds])
            .args(scenario.arguments.split_whitespace());
        self.comparison.watch("PerfTest", &mut java, side)
    }
}

impl Comparison<'_> {
    /// Runs a load tool that prints a line like PerfTest's each second.
    pub(super) fn watch(
        &self,
        tool: &str,
        java: &mut Command,
        side: &Side,
    ) -> Result<ToolRun, String> {
        let complaints = self.folder.join(format!("{}.log", tool.to_lowercase().replace(' ', "-")));
        let log = File::create(&complaints).map_err(text)?;
        let mut child = java
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("java could not be started: {error}"))?;
        let run = self.follow(&mut child, side);
        let status = child.wait().map_err(text)?;
        run.ok_or_else(|| {
            let said = std::fs::read_to_string(&complaints).unwrap_or_default();
            format!("{tool} measured nothing on {} ({status}): {said}", side.name)
        })
    }

    /// Follows the lines: reads the CPU usage of both processes after the warm-up, and again with each later
    /// line.
    fn follow(&self, child: &mut Child, side: &Side) -> Option<ToolRun> {
        let effort = &self.effort;
        let lines = BufReader::new(child.stdout.take()?).lines().map_while(Result::ok);
        let usage = |pid| Usage::of_tree(pid).unwrap_or_default();
        let take = || (usage(side.pid()), usage(child.id()));
        let (warm_s, end_s) = (effort.warm_up.as_secs_f64(), effort.perftest.as_secs_f64() + 0.5);
        // The last line may come while PerfTest is already stopping.
        let mut seconds = lines
            .filter_map(|line| parse_second(&line))
            .skip_while(|second| second.time_s < warm_s)
            .take_while(|second| second.time_s <= end_s);
        let (start, (broker_start, tool_start)) = (seconds.next()?, take());
        let (mut end, mut received) = (start, 0.0);
        let (mut broker_end, mut tool_end) = take();
        for second in seconds {
            received += second.received_per_s * (second.time_s - end.time_s);
            end = second;
            (broker_end, tool_end) = take();
        }
        let ns =
            |start: &Usage, end: &Usage| end.cpu_ns.saturating_sub(start.cpu_ns) as f64 / received;
        (received > 0.0).then(|| ToolRun {
            delivered_per_s: received / (end.time_s - start.time_s),
            broker_ns: ns(&broker_start, &broker_end),
            tool_ns: ns(&tool_start, &tool_end),
        })
    }
}

/// Reads a line such as `id: x, time 5.002 s, sent: 15020 msg/s, received: 12493 msg/s, min/...`.
pub(crate) fn parse_second(line: &str) -> Option<Second> {
    let number = |name: &str| -> Option<f64> {
        let (_, rest) = line.split_once(name)?;
        rest.split_whitespace().next()?.parse().ok()
    };
    Some(Second { time_s: number(", time ")?, received_per_s: number("received: ")? })
}
