//! Isolation: what is left of the rate and latency of healthy clients beside misbehaving ones, against
//! runs alone before and after, and against a control run where the misbehaving ones load a null broker.

mod misbehaving_clients;
mod null_broker;

pub use misbehaving_clients::Misbehaving;

use crate::client::{Error, Link, Protocol};
use crate::interrupt;
use crate::load::Verdict;
use crate::load::outcome::Outcome;
use crate::load::plan::Plan;
use crate::load::run::{run, run_in};
use crate::load::topology::Topology;
use misbehaving_clients::{Activity, Fixture};
use null_broker::Paces;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Scope};
use std::time::Instant;

/// Attempts to get a run in which the machine did not stall.
const TRIES: usize = 3;
/// A run counts as stalled if the machine stood still for more than this part of it: a quarter of the
/// hundredth that a p99 leaves out.
const STALLS_PART_MAX: f64 = 0.002_5;

/// The healthy clients, and the misbehaving ones beside them.
#[derive(Debug, Clone)]
pub struct IsolationPlan {
    /// Healthy clients: as many queues as producers and consumers, paced, with latencies.
    pub healthy: Plan,
    /// Misbehaving clients.
    pub misbehaving: Misbehaving,
}

/// The result.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Isolation {
    /// Healthy clients alone, before and after, as machines change within seconds.
    pub alone: [Outcome; 2],
    /// Healthy clients beside misbehaving ones.
    pub beside: Outcome,
    /// Healthy clients beside a null broker under the same load: what the machine costs, whatever broker.
    pub control: Outcome,
    /// Deliveries per second beside misbehaving clients, as a part of the mean of both runs alone.
    pub rate_part: f64,
    /// The p99 latency beside misbehaving clients, as a multiple of the mean of both runs alone. `None`
    /// if the tool did not keep its own schedule, or if the machine stalled in all attempts of a run.
    pub p99_times: Option<f64>,
    /// The same p99 as a multiple of that beside the null broker.
    pub p99_times_control: Option<f64>,
    /// Bytes per second of the flood.
    pub flooded_bytes_per_s: f64,
    /// Bytes per second of the flood to the null broker.
    pub control_flooded_bytes_per_s: f64,
    /// Misbehaving connections that the broker closed.
    pub cut_off: u64,
    /// Runs that were repeated because the machine stalled.
    #[serde(default)]
    pub repeated: u64,
    /// Messages of the backlog.
    pub backlog: u64,
    /// Backlog messages that were drained.
    pub drained: u64,
}

impl IsolationPlan {
    /// Says what is wrong with the plan, if anything.
    pub fn check(&self) -> Result<(), String> {
        self.healthy.check()?;
        if !self.healthy.latency || self.healthy.rate == 0 {
            return Err("isolation needs latencies and a rate".to_owned());
        }
        let queues_only = self.misbehaving.unacking > 0 || self.misbehaving.backlog_bytes > 0;
        if self.healthy.target.protocol() != Protocol::Amqp091 && queues_only {
            return Err("only AMQP has acknowledgements and a backlog here".to_owned());
        }
        Ok(())
    }
}

/// Runs the healthy clients alone, beside misbehaving ones, alone again, and beside the null broker.
pub fn measure(plan: &IsolationPlan, broker_pid: Option<u32>) -> Result<Isolation, Error> {
    let healthy = &plan.healthy;
    let mut repeated = 0;
    let alone = || Ok((run(healthy, broker_pid)?, ()));
    let (before, ()) = retry_stalled(&mut repeated, alone)?;
    let topology = Topology::of(healthy);
    let fixture = Fixture::new(healthy, &topology.queues);
    let mut link = Link::open(&healthy.target)?;
    let (beside, (activity, span_s)) = retry_stalled(&mut repeated, || {
        fixture.declare(&mut link, healthy, &plan.misbehaving)?;
        let activity = Activity::default();
        let (beside, span_s) = beside(healthy, &topology, broker_pid, &activity, |scope| {
            fixture.release(scope, &plan.misbehaving, &activity)
        })?;
        fixture.delete(&mut link)?;
        Ok((beside, (activity, span_s)))
    })?;
    link.close()?;
    let (after, ()) = retry_stalled(&mut repeated, alone)?;
    let alone = [before, after];
    let per_s = |octets: &AtomicU64, span_s: f64| octets.load(Ordering::Relaxed) as f64 / span_s;
    let paces = Paces {
        flooding: per_s(&activity.flooded_bytes, span_s),
        unacking: per_s(&activity.unacked_bytes, span_s),
        draining: per_s(&activity.drained_bytes, span_s),
        slow_bytes_per_s: fixture.slow_bytes_per_s,
    };
    let topology = Topology::of(healthy);
    let (control, (on_null_broker, control_s)) = retry_stalled(&mut repeated, || {
        let on_null_broker = Activity::default();
        let (control, span_s) =
            self::beside(healthy, &topology, broker_pid, &on_null_broker, |scope| {
                Ok(null_broker::release(scope, &plan.misbehaving, paces, &on_null_broker)?)
            })?;
        Ok((control, (on_null_broker, span_s)))
    })?;
    Ok(Isolation {
        rate_part: beside.rates.delivered / rate(&alone).max(1e-9),
        p99_times: p99_times(&beside, &alone),
        p99_times_control: p99_times(&beside, std::slice::from_ref(&control)),
        flooded_bytes_per_s: paces.flooding,
        control_flooded_bytes_per_s: per_s(&on_null_broker.flooded_bytes, control_s),
        cut_off: activity.cut_off.load(Ordering::Relaxed),
        repeated,
        backlog: plan.misbehaving.backlog_bytes / healthy.size_bytes.max(1) as u64,
        drained: activity.drained.load(Ordering::Relaxed),
        alone,
        beside,
        control,
    })
}

/// Runs the healthy clients beside those that `release` starts; returns also how many seconds these ran.
fn beside<'a>(
    healthy: &Plan,
    topology: &Topology,
    broker_pid: Option<u32>,
    activity: &'a Activity,
    release: impl for<'scope> FnOnce(&'scope Scope<'scope, 'a>) -> Result<(), Error>,
) -> Result<(Outcome, f64), Error> {
    let start = Instant::now();
    let outcome = thread::scope(|scope| {
        let outcome = release(scope).and_then(|()| run_in(healthy, topology, broker_pid));
        // After an error, too: the scope waits for every thread.
        activity.stop.store(true, Ordering::Relaxed);
        outcome
    });
    Ok((outcome?, start.elapsed().as_secs_f64()))
}

fn rate(runs: &[Outcome]) -> f64 {
    runs.iter().map(|run| run.rates.delivered).sum::<f64>() / runs.len() as f64
}

/// Repeats a run while the machine stalls in it, up to [`TRIES`] times. Counts discarded runs.
fn retry_stalled<T>(
    repeated: &mut u64,
    mut run: impl FnMut() -> Result<(Outcome, T), Error>,
) -> Result<(Outcome, T), Error> {
    for _ in 1..TRIES {
        let (outcome, rest) = run()?;
        // A run with faults is not discarded.
        let is_clean = outcome.verdict.as_ref().is_none_or(Verdict::is_clean);
        if is_undisturbed(&outcome) || !is_clean || interrupt::requested() {
            return Ok((outcome, rest));
        }
        *repeated += 1;
    }
    run()
}

/// Whether stalls of all cores were too short to affect the p99.
fn is_undisturbed(outcome: &Outcome) -> bool {
    let span_us = outcome.measured_s * 1e6;
    outcome.stalls.is_none_or(|stalls| stalls.total_us <= span_us * STALLS_PART_MAX)
}

/// The p99 of one run as a multiple of the mean of others; `None` if one has none or stalled.
fn p99_times(run: &Outcome, others: &[Outcome]) -> Option<f64> {
    let p99 = |outcome: &Outcome| {
        outcome.latency.as_ref().filter(|_| is_undisturbed(outcome)).map(|latency| latency.p99_us)
    };
    let sum = others.iter().map(p99).sum::<Option<f64>>()?;
    Some(p99(run)? * others.len() as f64 / sum.max(1e-9))
}

impl Isolation {
    /// The verdicts on the healthy clients' messages in all runs.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        let runs = self.alone.iter().chain([&self.beside, &self.control]);
        runs.filter_map(|run| run.verdict.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::latency::Summary;
    use crate::measure::stalls::Stalls;

    fn run(p99_us: Option<f64>) -> Outcome {
        let latency = p99_us.map(|p99_us| Summary { p99_us, ..Summary::default() });
        Outcome { latency, ..Outcome::default() }
    }

    /// A one-second run with a p99 in which the machine stood still for this many milliseconds.
    fn stalled(ms: f64) -> Outcome {
        let stalls = Stalls { total_us: ms * 1e3, longest_us: ms * 1e3 };
        Outcome { measured_s: 1.0, stalls: Some(stalls), ..run(Some(100.0)) }
    }

    #[track_caller]
    fn check(beside: Option<f64>, alone: [Option<f64>; 2], times: Option<f64>) {
        assert_eq!(p99_times(&run(beside), &alone.map(run)), times, "{beside:?} beside {alone:?}");
    }

    #[test]
    fn the_p99_is_held_against_both_runs_alone() {
        check(Some(300.0), [Some(100.0), Some(200.0)], Some(2.0));
        check(Some(300.0), [Some(300.0), Some(300.0)], Some(1.0));
        check(Some(300.0), [Some(100.0), None], None);
        check(None, [Some(100.0), Some(200.0)], None);
    }

    #[test]
    fn a_p99_that_the_machine_made_is_none() {
        assert_eq!(p99_times(&stalled(2.5), &[stalled(0.0), stalled(1.0)]), Some(1.0));
        assert_eq!(p99_times(&stalled(2.6), &[stalled(0.0), stalled(1.0)]), None);
        assert_eq!(p99_times(&stalled(1.0), &[stalled(0.0), stalled(90.0)]), None);
    }

    /// Checks how many of successive runs are discarded, and which one counts.
    #[track_caller]
    fn check_retried(runs: &[Outcome], thrown_away: u64) {
        let (mut repeated, mut runs_left) = (0, runs.iter().cloned());
        let next = || Ok((runs_left.next().expect("no more than these are run"), ()));
        let (outcome, ()) = retry_stalled(&mut repeated, next).expect("none fails");
        assert_eq!((repeated, &outcome), (thrown_away, &runs[thrown_away as usize]), "{runs:?}");
    }

    #[test]
    fn a_run_in_which_the_machine_stood_still_is_done_again() {
        check_retried(&[stalled(0.0)], 0);
        check_retried(&[run(None)], 0);
        check_retried(&[stalled(50.0), stalled(1.0)], 1);
        check_retried(&[stalled(50.0), stalled(9.0), stalled(70.0)], 2);
        // A run with losses counts in any case.
        let verdict = Some(Verdict { lost: 1, ..Verdict::default() });
        check_retried(&[Outcome { verdict, ..stalled(50.0) }], 0);
    }
}
