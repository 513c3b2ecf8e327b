//! Our broker beside a peer: the same loads, in turn, on the same machine, against the targets.
//!
//! Some sections use the peer's own load tool for both; on the faster side it is the bottleneck. The others
//! use the generator of this crate, which is not.

mod disk_share;
mod isolation;
mod loads;
mod nats;
mod nats_bench;
mod perftest;
mod rabbitmq;
mod relay;
mod runs;
mod side;
mod starts;
mod table;

use crate::campaign::Folder;
use crate::client::Protocol;
use crate::load::{Misbehaving, idle};
use crate::output;
use clap::{Args, ValueEnum};
pub(crate) use isolation::octets;
pub(crate) use side::Side;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use table::Report;

/// What to compare and with what.
#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The protocol, and with it the peer
    #[arg(value_enum, default_value = "amqp091")]
    protocol: With,
    /// Our broker's program; without it the peer is measured alone
    #[arg(long)]
    broker: Option<PathBuf>,
    /// The folder with PerfTest's jar files; without it that section is left out
    #[arg(long)]
    perf_test: Option<PathBuf>,
    /// RabbitMQ's start script [default: that of Debian's package]
    #[arg(long)]
    rabbitmq: Option<PathBuf>,
    /// nats-server's program
    #[arg(long, default_value = "nats-server")]
    nats_server: PathBuf,
    /// nats-bench's program; without it those sections are left out
    #[arg(long)]
    nats_bench: Option<PathBuf>,
    /// Octets of the backlog that a client drains beside the healthy ones (AMQP), such as 10G [default: 1G,
    /// 100M when quick]
    #[arg(long, value_parser = octets)]
    backlog_bytes: Option<u64>,
    /// Leave the peer out
    #[arg(long)]
    alone: bool,
    /// One short round of everything, and three of isolation
    #[arg(long)]
    quick: bool,
    /// Rounds of each load on each side, in turn [default: 3]
    #[arg(long)]
    rounds: Option<usize>,
    /// Only the loads whose name contains this; may be given several times
    #[arg(long)]
    only: Vec<String>,
    /// Where the brokers keep their data; its disk is measured
    #[arg(long, default_value = "target/compare")]
    folder: PathBuf,
    /// Also write the report to this file
    #[arg(long)]
    output: Option<PathBuf>,
}

/// What can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum With {
    /// AMQP 0-9-1, with RabbitMQ
    Amqp091,
    /// NATS, with nats-server
    Nats,
}

/// How long and how often each load runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    rounds: usize,
    perftest: Duration,
    native: Duration,
    warm_up: Duration,
}

/// The brokers of a comparison while they run, and what to do with them.
pub(crate) struct Comparison<'a> {
    arguments: &'a CompareArguments,
    sides: &'a [Side],
    effort: Effort,
    /// Where the brokers keep their data; its disk is measured.
    folder: &'a Path,
}

impl CompareArguments {
    fn effort(&self) -> Effort {
        let seconds = Duration::from_secs;
        let (rounds, perftest, native, warm_up) = if self.quick {
            (1, seconds(9), seconds(3), seconds(4))
        } else {
            (3, seconds(18), seconds(6), seconds(5))
        };
        Effort { rounds: self.rounds.unwrap_or(rounds).max(1), perftest, native, warm_up }
    }

    /// The misbehaving clients beside the healthy pairs where there are queues.
    fn misbehaving_on_queues(&self) -> Misbehaving {
        let backlog_default = if self.quick { 100_000_000 } else { 1_000_000_000 };
        Misbehaving {
            stalled: 1,
            slow: 10,
            flooding: 1,
            unacking: 1,
            backlog_bytes: self.backlog_bytes.unwrap_or(backlog_default),
        }
    }

    /// Our side, if there is a program of ours.
    fn ours(&self, protocol: Protocol, folder: &Path) -> Result<Vec<Side>, String> {
        let ours = self.broker.as_deref().map(|program| Side::ours(program, protocol, folder));
        Ok(ours.transpose()?.into_iter().collect())
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

/// Starts both brokers, runs all loads and prints the report. `true` if every target is met.
pub(crate) fn run(arguments: &CompareArguments) -> Result<bool, String> {
    let folder = Folder::create(&arguments.folder)?;
    let report = match arguments.protocol {
        With::Amqp091 => with_rabbitmq(arguments, folder.path())?,
        With::Nats => with_nats_server(arguments, folder.path())?,
    };
    if report.is_empty() {
        return Err(format!(
            "no load has '{}' in its name (`--only`)",
            arguments.only.join("' or '")
        ));
    }
    let text = report.render();
    output::put(&text);
    if let Some(output) = &arguments.output {
        fs::write(output, &text).map_err(|error| format!("{}: {error}", output.display()))?;
    }
    Ok(report.all_met())
}

fn with_rabbitmq(arguments: &CompareArguments, folder: &Path) -> Result<Report, String> {
    let mut sides = arguments.ours(Protocol::Amqp091, folder)?;
    if !arguments.alone {
        sides.push(Side::rabbitmq(arguments.rabbitmq.as_deref(), folder)?);
    }
    let mut report = Report::new(theirs(&sides, side::RABBITMQ));
    let comparison = Comparison { arguments, sides: &sides, effort: arguments.effort(), folder };
    let misbehaving = arguments.misbehaving_on_queues();
    rabbitmq::run(&comparison, arguments.perf_test.as_deref(), misbehaving, &mut report)?;
    add_starts(arguments, sides, &mut report, folder)?;
    Ok(report)
}

fn with_nats_server(arguments: &CompareArguments, folder: &Path) -> Result<Report, String> {
    // Brokers inherit the limit.
    idle::raise_descriptor_limit(nats::DESCRIPTORS);
    let mut sides = arguments.ours(Protocol::Nats, folder)?;
    if !arguments.alone {
        sides.push(Side::nats(&arguments.nats_server, folder)?);
    }
    let mut report = Report::new(theirs(&sides, "nats-server"));
    let comparison = Comparison { arguments, sides: &sides, effort: arguments.effort(), folder };
    nats::run(&comparison, arguments.nats_bench.as_deref(), &mut report)?;
    add_starts(arguments, sides, &mut report, folder)?;
    Ok(report)
}

/// The peer's name in the report; `otherwise` if it is left out.
fn theirs<'a>(sides: &'a [Side], otherwise: &'a str) -> &'a str {
    let mut names = sides.iter().map(|side| side.name.as_str());
    names.find(|name| *name != side::OURS).unwrap_or(otherwise)
}

/// Measures starts, once the brokers of the other loads have ended.
fn add_starts(
    arguments: &CompareArguments,
    sides: Vec<Side>,
    report: &mut Report,
    folder: &Path,
) -> Result<(), String> {
    if arguments.wants("start") {
        let theirs = report.theirs().to_owned();
        drop(sides);
        let (protocol, peer) = match arguments.protocol {
            With::Amqp091 => (Protocol::Amqp091, arguments.rabbitmq.as_deref()),
            With::Nats => (Protocol::Nats, Some(arguments.nats_server.as_path())),
        };
        let starts = starts::Starts {
            ours: arguments.broker.as_deref(),
            protocol,
            peer,
            theirs: (!arguments.alone).then_some(theirs.as_str()),
        };
        report.add(starts::measure(&starts, folder, arguments.effort().rounds)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
