//! Runs RabbitMQ's PerfTest against one side after the other and reads what it prints each second.

use super::Effort;
use super::scenario::Scenario;
use super::side::{Side, text};
use crate::measure::process::Usage;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// PerfTest as it was fetched.
#[derive(Debug)]
pub(crate) struct PerfTest<'a> {
    /// The folder of its jar files.
    pub(crate) jars: &'a Path,
    /// Where its complaints go.
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

/// A scenario's runs: for each side its name and its rounds.
#[derive(Debug)]
pub(crate) struct Row {
    /// What ran.
    pub(crate) scenario: Scenario,
    /// By side.
    pub(crate) runs: Vec<(String, Vec<Run>)>,
}

/// What PerfTest prints each second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Second {
    /// Seconds since it began.
    pub(crate) time_s: f64,
    /// Deliveries per second since the line before.
    pub(crate) received_per_s: f64,
}

impl PerfTest<'_> {
    /// Runs a scenario on all sides in turn, as often as the effort says.
    pub(crate) fn compare(&self, scenario: &Scenario, sides: &[Side]) -> Result<Row, String> {
        let mut runs: Vec<_> = sides.iter().map(|side| (side.name.clone(), Vec::new())).collect();
        for round in 1..=self.effort.rounds {
            for (side, (name, runs)) in sides.iter().zip(&mut runs) {
                let run = self.run(scenario, side)?;
                eprintln!(
                    "{} round {round}: {name}: {:.0} msgs/s, broker {:.2} us, tool {:.2} us a message",
                    scenario.name, run.received_per_s, run.broker_us, run.tool_us
                );
                runs.push(run);
            }
        }
        Ok(Row { scenario: scenario.clone(), runs })
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

    /// Follows the lines: takes the usage of both processes when warm, and again with each line
    /// after.
    fn watch(&self, child: &mut Child, side: &Side) -> Option<Run> {
        let lines = BufReader::new(child.stdout.take()?).lines().map_while(Result::ok);
        let usage = |pid| Usage::of_tree(pid).unwrap_or_default();
        let take = || (usage(side.pid()), usage(child.id()));
        let (warm_s, end_s) =
            (self.effort.warm_up.as_secs_f64(), self.effort.perftest.as_secs_f64() + 0.5);
        // A last line may follow when PerfTest has already begun to stop.
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
