//! Fills queues without consumers, then drains them without producers.

use super::aggregate::verdict;
use super::control::Control;
use super::drain::{Drained, drain_queues};
use super::plan::Plan;
use super::producer::Producer;
use super::threads::join;
use super::topology::Topology;
use super::verdict::Verdict;
use crate::client::Error;
use crate::interrupt;
use crate::measure::process::{Cost, Usage};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// The result of filling and draining.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct BacklogOutcome {
    /// Messages per second into the queues; confirmed, if the plan has confirms.
    pub fill_rate: f64,
    /// Messages per second out of the queues.
    pub drain_rate: f64,
    /// Body bytes per second into the queues.
    pub fill_bytes: f64,
    /// Messages.
    pub messages: u64,
    /// What became of them.
    pub verdict: Verdict,
    /// What the broker used while the queues were filled.
    pub broker_filling: Option<Cost>,
    /// What the broker used while they were drained.
    pub broker_draining: Option<Cost>,
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
    let (full, fill_s) = (usage(), start.elapsed().as_secs_f64());
    let messages: u64 = produced.iter().map(|it| it.published).sum();
    let draining = Instant::now();
    let drained = Drained { expected: messages * plan.copies(), silence: Duration::ZERO };
    let consumed = drain_queues(plan, topology, &control, drained)?;
    let (empty, drain_s) = (usage(), draining.elapsed().as_secs_f64());
    let fill_rate = messages as f64 / fill_s;
    let cost = |from: Option<Usage>, to: &Option<Usage>, span_s| {
        from.zip(to.clone()).map(|(from, to)| Cost::between(&from, &to, span_s, messages))
    };
    Ok(BacklogOutcome {
        fill_rate,
        drain_rate: control.delivered() as f64 / drain_s,
        fill_bytes: fill_rate * plan.size_bytes as f64,
        messages,
        verdict: verdict(plan, &produced, &consumed).unwrap_or_default(),
        broker_filling: cost(before, &full, fill_s),
        broker_draining: cost(full, &empty, drain_s),
    })
}
