//! What the protocol drivers cost the tool: the CPU time per message of a producer's and a consumer's
//! thread, beside that of bare sockets with the same bytes.
//!
//! The threads are those of any load, over loopback. Their peer answers from a table and discards what
//! is published, or sends pre-encoded deliveries.

mod bare_socket;
mod fake_server;
mod plan;
mod run;

pub use plan::{DriversPlan, Side};

use super::verdict::Verdict;
use crate::client::Error;
use crate::interrupt;
use run::Round;
use serde::{Deserialize, Serialize};

/// Limit on a driver's own CPU nanoseconds per message of [`LIMIT_SIZE_BYTES`], per side.
pub const LIMIT_NS: f64 = 100.0;
/// Body size that the limit applies to.
pub const LIMIT_SIZE_BYTES: usize = 100;

/// The cost of one side of a driver, from the run with the median own share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriverCost {
    /// The protocol, and which mode of it.
    pub driver: String,
    /// The side.
    pub side: Side,
    /// Bytes of a message on the wire.
    pub wire_bytes: u64,
    /// Messages of all runs.
    pub messages: u64,
    /// CPU nanoseconds per message of the side's thread.
    pub cpu_ns: f64,
    /// The bare socket's part of them.
    pub bare_ns: f64,
    /// The driver's own part of them.
    pub own_ns: f64,
    /// The least own share of any run.
    pub own_ns_min: f64,
    /// The most own share of any run.
    pub own_ns_max: f64,
    /// Whether the own share is within the limit; `None` for other body sizes.
    pub limit_kept: Option<bool>,
    /// What became of the messages of all runs.
    pub verdict: Verdict,
}

/// The costs of all drivers.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriverCosts {
    /// Bytes of a body.
    pub size_bytes: u64,
    /// Whether bodies carried checksums.
    pub checksum: bool,
    /// Whether latencies were taken.
    pub latency: bool,
    /// Seconds of each run.
    pub span_s: f64,
    /// Runs of each side.
    pub runs: u64,
    /// Limit on a driver's own CPU nanoseconds per message.
    pub limit_ns: f64,
    /// Body size that the limit applies to.
    pub limit_size_bytes: u64,
    /// Both sides of each driver.
    pub drivers: Vec<DriverCost>,
    /// Whether the measurement was interrupted.
    pub interrupted: bool,
}

impl DriverCosts {
    /// Whether no message was lost or damaged and no limit exceeded.
    pub fn is_good(&self) -> bool {
        let good = |it: &DriverCost| it.verdict.is_clean() && it.limit_kept != Some(false);
        !self.interrupted && self.drivers.iter().all(good)
    }
}

/// Progress of the measurement.
pub enum Step<'a> {
    /// One side of a driver begins.
    Begin(&'a str, Side),
    /// It ended.
    End(&'a DriverCost),
}

/// Measures all drivers, one side after the other, and reports progress.
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

/// The cost from the runs of one side, at least one.
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
