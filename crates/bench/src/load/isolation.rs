//! Healthy clients alone, then beside unruly ones: what of their rate and their latency is left.

use super::outcome::Outcome;
use super::plan::Plan;
use super::run::{run, run_in};
use super::topology::Topology;
use super::unruly::{Deeds, Scene, Unruly};
use crate::client::{Error, Link, Protocol};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

/// What the healthy ones do, and who is beside them.
#[derive(Debug, Clone)]
pub struct IsolationPlan {
    /// The healthy ones: as many queues as producers and consumers, paced, with latencies.
    pub healthy: Plan,
    /// The others.
    pub unruly: Unruly,
}

/// What it came to.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Isolation {
    /// The healthy ones without the others.
    pub alone: Outcome,
    /// And with them.
    pub beside: Outcome,
    /// Deliveries per second beside them, as a part of those alone.
    pub rate_part: f64,
    /// The p99 of latencies beside them, as a multiple of that alone.
    /// `None` if the tool did not keep its own schedule, so that there are no percentiles.
    pub p99_times: Option<f64>,
    /// Octets per second that flooded.
    pub flooded_bytes_per_s: f64,
    /// Connections of unruly clients that the broker ended.
    pub cut_off: u64,
    /// Messages of the backlog.
    pub backlog: u64,
    /// Those that were drained.
    pub drained: u64,
}

impl IsolationPlan {
    /// Says what is wrong with it, if anything.
    pub fn check(&self) -> Result<(), String> {
        self.healthy.check()?;
        if !self.healthy.latency || self.healthy.rate == 0 {
            return Err("isolation is seen by latencies at a rate".to_owned());
        }
        let queues_only = self.unruly.unacking > 0 || self.unruly.backlog_bytes > 0;
        if self.healthy.target.protocol() != Protocol::Amqp091 && queues_only {
            return Err("only AMQP has acknowledgements and a backlog here".to_owned());
        }
        Ok(())
    }
}

/// Runs the healthy ones alone, then beside the others, who are there before they begin.
pub fn measure(plan: &IsolationPlan, broker_pid: Option<u32>) -> Result<Isolation, Error> {
    let healthy = &plan.healthy;
    let alone = run(healthy, broker_pid)?;
    let topology = Topology::of(healthy);
    let scene = Scene::new(healthy, topology.names());
    let mut link = Link::open(&healthy.target)?;
    scene.set(&mut link, healthy, &plan.unruly)?;
    let deeds = Deeds::default();
    let start = Instant::now();
    let beside = thread::scope(|scope| {
        let released = scene.release(scope, &plan.unruly, &deeds);
        let outcome = released.and_then(|()| run_in(healthy, &topology, broker_pid));
        // After an error, too: the scope waits for every thread.
        deeds.stop.store(true, Ordering::Relaxed);
        outcome
    });
    let span_s = start.elapsed().as_secs_f64();
    let beside = beside?;
    scene.strike(&mut link)?;
    link.close()?;
    let rate = |outcome: &Outcome| outcome.rates.delivered.max(1e-9);
    let p99 = |outcome: &Outcome| outcome.latency.as_ref().map(|latency| latency.p99_us);
    Ok(Isolation {
        rate_part: rate(&beside) / rate(&alone),
        p99_times: p99(&beside).zip(p99(&alone)).map(|(beside, alone)| beside / alone.max(1e-9)),
        flooded_bytes_per_s: deeds.flooded_bytes.load(Ordering::Relaxed) as f64 / span_s,
        cut_off: deeds.cut_off.load(Ordering::Relaxed),
        backlog: plan.unruly.backlog_bytes / healthy.size_bytes.max(1) as u64,
        drained: deeds.drained.load(Ordering::Relaxed),
        alone,
        beside,
    })
}
