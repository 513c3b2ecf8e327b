//! Runs RabbitMQ's PerfTest against each side in turn and reads its line of each second.

use super::Effort;
use super::scenario::Scenario;
use super::side::{Side, text};
use crate::measure::process::Usage;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// PerfTest, and how it runs.
#[derive(Debug)]
pub(crate) struct PerfTest<'a> {
    /// The folder of its jar files.
    pub(crate) jars: &'a Path,
    /// The folder for its stderr.
    pub(crate) folder: &'a Path,
    /// How long and how often.
    pub(crate) effort: Effort,
}

/// One run against one side, without the seconds in which Java warms up.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Run {
    /// Deliveries per second.
    pub(crate) received_per_s: f64,
    /// Broker CPU microseconds per delivery.
    pub(crate) broker_us: f64,
    /// PerfTest's CPU microseconds per delivery.
    pub(crate) tool_us: f64,
}

/// A side's runs of a scenario.
#[derive(Debug)]
pub(crate) struct SideRuns {
    /// The side's name.
    pub(crate) side: String,
    /// A run for each round.
    pub(crate) runs: Vec<Run>,
}

/// A scenario's runs on each side.
#[derive(Debug)]
pub(crate) struct Row {
    /// The scenario.
    pub(crate) scenario: Scenario,
    /// By side.
    pub(crate) sides: Vec<SideRuns>,
}

/// A line of PerfTest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Second {
    /// Seconds since it began.
    pub(crate) time_s: f64,
    /// Deliveries per second since the line before.
    pub(crate) received_per_s: f64,
}

impl PerfTest<'_> {
    /// Runs a scenario on all sides in turn, as many rounds as the effort has.
    pub(crate) fn compare(&self, scenario: &Scenario, sides: &[Side]) -> Result<Row, String> {
        let none = |side: &Side| SideRuns { side: side.name.clone(), runs: Vec::new() };
        let mut found: Vec<SideRuns> = sides.iter().map(none).collect();
        for round in 1..=self.effort.rounds {
            for (side, found) in sides.iter().zip(&mut found) {
                let run = self.run(scenario, side)?;
                eprintln!(
                    "{} round {round}: {}: {:.0} msgs/s, broker {:.2} us, tool {:.2} us a message",
                    scenario.name, side.name, run.received_per_s, run.broker_us, run.tool_us
                );
                found.runs.push(run);
            }
        }
        Ok(Row { scenario: scenario.clone(), sides: found })
    }

    fn run(&self, scenario: &Scenario, side: &Side) -> Result<Run, String> {
        let complaints = self.folder.join("perf-test.log");
        let log = File::create(&complaints).map_err(text)?;
        let mut child = Command::new("java")
            .arg("-cp")
            .arg(self.jars.join("*"))
            .arg("com.rabbitmq.perf.PerfTest")
            .args(["-h", &format!("{}", side.uri)])
            .args(["-z", &self.effort.perftest.as_secs().to_string()])
            .args(scenario.arguments.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("java could not be started: {error}"))?;
        let run = self.watch(&mut child, side);
        let status = child.wait().map_err(text)?;
        run.ok_or_else(|| {
            let said = std::fs::read_to_string(&complaints).unwrap_or_default();
            format!("PerfTest measured nothing on {} ({status}): {said}", side.name)
        })
    }

    /// Follows the lines: reads the CPU usage of both processes after the warm-up, and again with each later
    /// line.
    fn watch(&self, child: &mut Child, side: &Side) -> Option<Run> {
        let lines = BufReader::new(child.stdout.take()?).lines().map_while(Result::ok);
        let usage = |pid| Usage::of_tree(pid).unwrap_or_default();
        let take = || (usage(side.pid()), usage(child.id()));
        let (warm_s, end_s) =
            (self.effort.warm_up.as_secs_f64(), self.effort.perftest.as_secs_f64() + 0.5);
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
        let us = |start: &Usage, end: &Usage| {
            end.cpu_ns.saturating_sub(start.cpu_ns) as f64 / 1e3 / received
        };
        (received > 0.0).then(|| Run {
            received_per_s: received / (end.time_s - start.time_s),
            broker_us: us(&broker_start, &broker_end),
            tool_us: us(&tool_start, &tool_end),
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
