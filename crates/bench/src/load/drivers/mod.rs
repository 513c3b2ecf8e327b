//! What the drivers cost the tool, whatever broker there is: the CPU of a producer's and of a consumer's
//! thread for each message, beside that of bare sockets with the same octets.
//!
//! The threads are those of any load, over loopback; what they speak with answers from a table and else
//! discards what is published, or plays deliveries that were encoded before.

mod bare_socket;
mod fake_server;
mod run;

use super::plan::Plan;
use super::stamp::TIMED_BYTES;
use super::tally::Verdict;
use crate::client::{Error, Target};
use crate::interrupt;
use crate::measure::bare_sockets::SIZE_BYTES_MAX;
use run::Round;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a driver may take for itself of a message of [`LIMIT_SIZE_BYTES`], on each side.
pub const LIMIT_NS: f64 = 100.0;
/// Octets of the bodies that the limit is about.
pub const LIMIT_SIZE_BYTES: usize = 100;

/// The drivers: the schemes of their addresses, and their names for people.
const DRIVERS: [(&str, &str); 6] = [
    ("amqp", "AMQP 0-9-1"),
    ("nats", "NATS"),
    ("mqtt", "MQTT 3.1.1"),
    ("mqtt5", "MQTT 5"),
    ("stomp", "STOMP"),
    ("redis", "RESP channel"),
];

/// How to measure them.
#[derive(Debug, Clone)]
pub struct DriversPlan {
    /// Octets of a body.
    pub size_bytes: usize,
    /// How long each run is.
    pub span: Duration,
    /// Runs of each side, of which the median counts.
    pub runs: usize,
    /// Whether bodies carry a checksum, as those of presets do.
    pub checksum: bool,
    /// Whether latencies are taken, as presets do.
    pub latency: bool,
    /// The schemes of the drivers to measure; none stands for all.
    pub schemes: Vec<String>,
}

impl DriversPlan {
    /// Says what is wrong with it, if anything.
    pub fn check(&self) -> Result<(), String> {
        if !(TIMED_BYTES..=SIZE_BYTES_MAX).contains(&self.size_bytes) {
            return Err(format!("messages must have {TIMED_BYTES} to {SIZE_BYTES_MAX} octets"));
        }
        if self.runs == 0 {
            return Err("without any run nothing is measured".to_owned());
        }
        let is_known = |scheme: &&String| DRIVERS.iter().any(|(known, _)| known == scheme);
        if let Some(unknown) = self.schemes.iter().find(|scheme| !is_known(scheme)) {
            let known: Vec<&str> = DRIVERS.iter().map(|(scheme, _)| *scheme).collect();
            return Err(format!("`{unknown}` is none of {}", known.join(", ")));
        }
        Ok(())
    }

    /// The drivers to measure.
    fn drivers(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let wanted = |scheme| self.schemes.is_empty() || self.schemes.iter().any(|it| it == scheme);
        DRIVERS.into_iter().filter(move |(scheme, _)| wanted(*scheme))
    }

    /// How many sides of drivers there are to measure.
    pub fn steps(&self) -> usize {
        2 * self.drivers().count()
    }

    /// The load of which one producer, or one consumer, is run.
    fn load(&self, target: Target) -> Plan {
        Plan {
            size_bytes: self.size_bytes,
            checksum: self.checksum,
            latency: self.latency,
            ..Plan::new(target)
        }
    }
}

/// Which end of a message's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Stamps batches and writes them.
    Producer,
    /// Reads, parses and counts.
    Consumer,
}

impl Side {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Side::Producer => "producer",
            Side::Consumer => "consumer",
        }
    }
}

/// What one side of a driver costs: of its runs, the one whose own share is the median.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriverCost {
    /// The protocol, and which way of it.
    pub driver: String,
    /// The side.
    pub side: Side,
    /// Octets of a message on the wire.
    pub wire_bytes: u64,
    /// Messages of all runs.
    pub messages: u64,
    /// CPU nanoseconds per message of the side's thread.
    pub cpu_ns: f64,
    /// Of these, what a bare socket takes.
    pub bare_ns: f64,
    /// The rest: the driver's own share.
    pub own_ns: f64,
    /// The least and the most own share of any run.
    pub own_ns_min: f64,
    /// See there.
    pub own_ns_max: f64,
    /// Whether the own share is within the limit; `None` for sizes that it is not about.
    pub limit_kept: Option<bool>,
    /// What became of the messages of all runs.
    pub verdict: Verdict,
}

/// What all drivers cost.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriverCosts {
    /// Octets of a body.
    pub size_bytes: u64,
    /// Bodies carried checksums.
    pub checksum: bool,
    /// Latencies were taken.
    pub latency: bool,
    /// Seconds of each run.
    pub span_s: f64,
    /// Runs of each side.
    pub runs: u64,
    /// What a driver may take for itself, and of bodies of how many octets.
    pub limit_ns: f64,
    /// See there.
    pub limit_size_bytes: u64,
    /// Both sides of each driver.
    pub drivers: Vec<DriverCost>,
    /// Not all of it was measured.
    pub interrupted: bool,
}

impl DriverCosts {
    /// Whether no message was lost or harmed and no limit exceeded.
    pub fn is_good(&self) -> bool {
        let good = |it: &DriverCost| it.verdict.is_clean() && it.limit_kept != Some(false);
        !self.interrupted && self.drivers.iter().all(good)
    }
}

/// How far the measurement is.
pub enum Step<'a> {
    /// One side of a driver begins.
    Begin(&'a str, Side),
    /// It has ended.
    End(&'a DriverCost),
}

/// Measures all drivers, one side after the other, and says how far it is.
pub fn measure(
    plan: &DriversPlan,
    mut progress: impl FnMut(Step<'_>),
) -> Result<DriverCosts, Error> {
    let mut costs = DriverCosts {
        size_bytes: plan.size_bytes as u64,
        checksum: plan.checksum,
        latency: plan.latency,
        span_s: plan.span.as_secs_f64(),
        runs: plan.runs as u64,
        limit_ns: LIMIT_NS,
        limit_size_bytes: LIMIT_SIZE_BYTES as u64,
        ..DriverCosts::default()
    };
    for (scheme, driver) in plan.drivers() {
        for side in [Side::Producer, Side::Consumer] {
            progress(Step::Begin(driver, side));
            let mut rounds = Vec::new();
            for _ in 0..plan.runs {
                rounds.push(run::round(scheme, side, plan)?);
                if interrupt::requested() {
                    costs.interrupted = true;
                    return Ok(costs);
                }
            }
            let cost = cost(driver, side, plan, rounds);
            progress(Step::End(&cost));
            costs.drivers.push(cost);
        }
    }
    Ok(costs)
}

/// What the runs of one side come to; there is one at least.
fn cost(driver: &str, side: Side, plan: &DriversPlan, mut rounds: Vec<Round>) -> DriverCost {
    let own = |round: &Round| round.driver_ns - round.bare_ns;
    rounds.sort_by(|one, other| own(one).total_cmp(&own(other)));
    let median = &rounds[rounds.len() / 2];
    let mut verdict = Verdict::new(median.verdict.checked);
    rounds.iter().for_each(|round| verdict.add(&round.verdict));
    DriverCost {
        driver: driver.to_owned(),
        side,
        wire_bytes: median.wire_bytes as u64,
        messages: rounds.iter().map(|round| round.messages).sum(),
        cpu_ns: median.driver_ns,
        bare_ns: median.bare_ns,
        own_ns: own(median),
        own_ns_min: own(&rounds[0]),
        own_ns_max: own(&rounds[rounds.len() - 1]),
        limit_kept: (plan.size_bytes == LIMIT_SIZE_BYTES).then(|| own(median) <= LIMIT_NS),
        verdict,
    }
}

#[cfg(test)]
mod tests;
