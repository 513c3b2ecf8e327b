//! What the drivers cost the tool, whatever broker there is: the CPU of a producer's and of a consumer's
//! thread for each message, beside that of bare sockets with the same octets.
//!
//! The threads are those of any load, over loopback; what they speak with answers from a table and else
//! discards what is published, or plays deliveries that were encoded before.

mod bare_socket;
mod fake_server;
mod plan;
mod run;

pub use plan::{DriversPlan, Side};

use super::tally::Verdict;
use crate::client::Error;
use crate::interrupt;
use run::Round;
use serde::{Deserialize, Serialize};

/// What a driver may take for itself of a message of [`LIMIT_SIZE_BYTES`], on each side.
pub const LIMIT_NS: f64 = 100.0;
/// Octets of the bodies that the limit is about.
pub const LIMIT_SIZE_BYTES: usize = 100;

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
