//! Filling queues that nobody consumes, then draining them without anybody publishing.

use super::aggregate::verdict;
use super::control::Control;
use super::drain::drain_queues;
use super::plan::Plan;
use super::producer::Producer;
use super::tally::Verdict;
use super::threads::join;
use super::topology::Topology;
use crate::client::Error;
use crate::interrupt;
use crate::measure::process::{Cost, Usage};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// What it came to.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct BacklogOutcome {
    /// Messages per second into the queues, confirmed if the plan has confirms.
    pub spool_rate: f64,
    /// Messages per second out of them.
    pub unspool_rate: f64,
    /// Octets of bodies per second into the queues.
    pub spool_bytes: f64,
    /// Messages.
    pub messages: u64,
    /// What became of them.
    pub verdict: Verdict,
    /// What the broker took while it spooled.
    pub broker_in: Option<Cost>,
    /// And while it unspooled.
    pub broker_out: Option<Cost>,
}

/// Runs the producers of `plan` to their end, then its consumers.
pub fn measure(plan: &Plan, broker_pid: Option<u32>) -> Result<BacklogOutcome, Error> {
    let topology = Topology::of(plan);
    topology.declared_for(plan, |_| fill_and_drain(plan, &topology, broker_pid))
}

fn fill_and_drain(
    plan: &Plan,
    topology: &Topology,
    broker_pid: Option<u32>,
) -> Result<BacklogOutcome, Error> {
    let usage = || broker_pid.and_then(Usage::of_tree);
    let control = Control::new(plan.producers, plan.consumers, 0, plan.copies());
    if let Some(pid) = broker_pid {
        Usage::forget_peaks(pid);
    }
    let (before, start) = (usage(), Instant::now());
    let produced = thread::scope(|scope| {
        let mut producers = Vec::new();
        for index in 0..plan.producers {
            let route = topology.route(plan, index);
            let producer = Producer::connect(plan, &control, index, &route)?;
            producers.push(scope.spawn(move || producer.run()));
        }
        while !producers.iter().all(|it| it.is_finished()) {
            thread::sleep(Duration::from_millis(1));
            if interrupt::requested() {
                control.stop_publishing.store(true, Ordering::Relaxed);
            }
        }
        join(producers)
    })?;
    let (full, spool_s) = (usage(), start.elapsed().as_secs_f64());
    let messages: u64 = produced.iter().map(|it| it.published).sum();
    let draining = Instant::now();
    let expected = messages * plan.copies();
    let consumed = drain_queues(plan, topology, &control, expected, Duration::ZERO)?;
    let (empty, unspool_s) = (usage(), draining.elapsed().as_secs_f64());
    let spool_rate = messages as f64 / spool_s;
    let cost = |from: Option<Usage>, to: &Option<Usage>, span_s| {
        from.zip(to.clone()).map(|(from, to)| Cost::between(&from, &to, span_s, messages))
    };
    Ok(BacklogOutcome {
        spool_rate,
        unspool_rate: control.delivered() as f64 / unspool_s,
        spool_bytes: spool_rate * plan.size_bytes as f64,
        messages,
        verdict: verdict(plan, &produced, &consumed).unwrap_or_default(),
        broker_in: cost(before, &full, spool_s),
        broker_out: cost(full, &empty, unspool_s),
    })
}
