//! What is compared and how much of it: the command line, and the brokers while they run.

use super::side::{Side, text};
use crate::client::Protocol;
use crate::load::Misbehaving;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to compare and with what.
#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The protocol, and with it the peer
    #[arg(value_enum, default_value = "amqp091")]
    pub(super) protocol: With,
    /// Our broker's program; without it the peer is measured alone
    #[arg(long)]
    pub(super) broker: Option<PathBuf>,
    /// The folder with PerfTest's jar files; without it that section is left out
    #[arg(long)]
    pub(super) perf_test: Option<PathBuf>,
    /// RabbitMQ's start script [default: that of Debian's package]
    #[arg(long)]
    pub(super) rabbitmq: Option<PathBuf>,
    /// nats-server's program
    #[arg(long, default_value = "nats-server")]
    pub(super) nats_server: PathBuf,
    /// nats-bench's program; without it those sections are left out
    #[arg(long)]
    pub(super) nats_bench: Option<PathBuf>,
    /// Artemis's program, `bin/artemis`
    #[arg(long, default_value = "artemis")]
    pub(super) artemis: PathBuf,
    /// The folder with Qpid JMS's jar files; without it those sections are left out
    #[arg(long)]
    pub(super) qpid_jms: Option<PathBuf>,
    /// Mosquitto's program
    #[arg(long, default_value = "mosquitto")]
    pub(super) mosquitto: PathBuf,
    /// rumqttd's program; without it its column is left out
    #[arg(long)]
    pub(super) rumqttd: Option<PathBuf>,
    /// Octets of the backlog that a client drains beside the healthy ones (AMQP), such as 10G [default: 1G,
    /// 100M when quick]
    #[arg(long, value_parser = octets)]
    pub(super) backlog_bytes: Option<u64>,
    /// Leave the peer out
    #[arg(long)]
    pub(super) alone: bool,
    /// One short round of everything, and three of isolation
    #[arg(long)]
    pub(super) quick: bool,
    /// Rounds of each load on each side, in turn [default: 3]
    #[arg(long)]
    pub(super) rounds: Option<usize>,
    /// Only the loads whose name contains this; may be given several times
    #[arg(long)]
    pub(super) only: Vec<String>,
    /// Where the brokers keep their data; its disk is measured
    #[arg(long, default_value = "target/compare")]
    pub(super) folder: PathBuf,
    /// Also write the report to this file
    #[arg(long)]
    pub(super) output: Option<PathBuf>,
}

/// What can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum With {
    /// AMQP 0-9-1, with RabbitMQ
    Amqp091,
    /// AMQP 1.0, with Artemis
    Amqp10,
    /// NATS, with nats-server
    Nats,
    /// MQTT, with Mosquitto and rumqttd
    Mqtt,
}

/// How long and how often each load runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(super) rounds: usize,
    pub(super) perftest: Duration,
    pub(super) native: Duration,
    pub(super) warm_up: Duration,
}

/// The brokers of a comparison while they run, and what to do with them.
pub(crate) struct Comparison<'a> {
    pub(super) arguments: &'a CompareArguments,
    pub(super) sides: &'a [Side],
    pub(super) effort: Effort,
    /// Where the brokers keep their data; its disk is measured.
    pub(super) folder: &'a Path,
}

impl CompareArguments {
    pub(super) fn effort(&self) -> Effort {
        let seconds = Duration::from_secs;
        let (rounds, perftest, native, warm_up) = if self.quick {
            (1, seconds(9), seconds(3), seconds(4))
        } else {
            (3, seconds(18), seconds(6), seconds(5))
        };
        Effort { rounds: self.rounds.unwrap_or(rounds).max(1), perftest, native, warm_up }
    }

    /// The misbehaving clients beside the healthy pairs where there are queues.
    pub(super) fn misbehaving_on_queues(&self) -> Misbehaving {
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
    pub(super) fn ours(&self, protocol: Protocol, folder: &Path) -> Result<Vec<Side>, String> {
        let ours = self.broker.as_deref().map(|program| Side::ours(program, protocol, folder));
        Ok(ours.transpose()?.into_iter().collect())
    }

    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

/// Reads octets from a command line: a number, with `M` or `G` for millions or billions.
pub(crate) fn octets(said: &str) -> Result<u64, String> {
    let (digits, unit) = match said.as_bytes().last() {
        Some(b'M') => (&said[..said.len() - 1], 1_000_000),
        Some(b'G') => (&said[..said.len() - 1], 1_000_000_000),
        _ => (said, 1),
    };
    let number: u64 = digits.parse().map_err(text)?;
    number.checked_mul(unit).ok_or_else(|| format!("`{said}` is too much"))
}
