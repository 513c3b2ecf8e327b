//! One run from the topology to the verdict: starts the threads, measures the span, drains, aggregates.

use super::aggregate::aggregate;
use super::backlog::{forgotten, read_back};
use super::consumer::start_consumers;
use super::control::{Control, StopOnDrop, join, rest};
use super::outcome::Outcome;
use super::plan::{End, Plan};
use super::producer::{Produced, connect_producers, start_producers};
use super::progress_timeout;
use super::sampler::{SAMPLE, Sampler, Span};
use super::topology::Topology;
use crate::client::Error;
use crate::interrupt;
use crate::measure::instructions::Instructions;
use crate::measure::stalls::Watch;
use std::sync::atomic::Ordering;
use std::thread::{self, Scope};
use std::time::Duration;

/// Runs `plan`; `broker_pid` is the broker's process, if its cost is to be measured.
pub fn run(plan: &Plan, broker_pid: Option<u32>) -> Result<Outcome, Error> {
    run_in(plan, &Topology::of(plan), broker_pid)
}

/// Runs `plan` over a topology that the caller knows.
pub(super) fn run_in(
    plan: &Plan,
    topology: &Topology,
    broker_pid: Option<u32>,
) -> Result<Outcome, Error> {
    topology.declared_for(plan, |link| {
        link.subscribe_bystanders(topology.bystanders(plan))?;
        let control = Control::new(plan.producers, plan.consumers, plan.ahead, plan.copies());
        thread::scope(|scope| {
            let _stop = StopOnDrop(&control);
            drive(scope, plan, topology, &control, broker_pid)
        })
    })
}

fn drive<'scope>(
    scope: &'scope Scope<'scope, '_>,
    plan: &'scope Plan,
    topology: &'scope Topology,
    control: &'scope Control,
    broker_pid: Option<u32>,
) -> Result<Outcome, Error> {
    let consumers = start_consumers(scope, plan, topology, control, 0..plan.consumers)?;
    let ready = connect_producers(plan, topology, control, 0..plan.producers)?;
    let counting = matches!(plan.end, End::Count(_));
    let sampler = counting.then(|| Sampler::start(control, broker_pid));
    let producers = start_producers(scope, control, ready);
    let failed = || interrupt::requested() || consumers.iter().any(|it| it.is_finished());
    let over = || failed() || producers.iter().all(|it| it.is_finished());
    let span = match plan.end {
        End::After { warm_up, measured } => {
            rest(warm_up, &over);
            let watch = (plan.rate > 0).then(Watch::start).flatten();
            let counted = broker_pid.filter(|_| plan.instructions).and_then(Instructions::start);
            let mut span = measure_for(measured, control, broker_pid, &over);
            span.instructions = counted.and_then(Instructions::finish);
            span.stalls = watch.and_then(Watch::finish);
            span
        }
        End::Count(total) => {
            let ended = || producers.iter().all(|it| it.is_finished());
            measure_count(plan, total, control, sampler, &failed, &ended)
        }
    };
    control.stop_publishing.store(true, Ordering::Relaxed);
    let produced = join(producers);
    if produced.is_ok() {
        drain(plan, control, &failed);
    }
    control.stop_consuming.store(true, Ordering::Relaxed);
    let consumed = join(consumers);
    let (produced, consumed) = (produced?, consumed?);
    let mut outcome = aggregate(plan, control, &span, &produced, &consumed);
    judge_left(plan, topology, &produced, &mut outcome)?;
    Ok(outcome)
}

/// Judges what is left in queues without consumers, or says why that is impossible.
pub(super) fn judge_left(
    plan: &Plan,
    topology: &Topology,
    produced: &[Produced],
    outcome: &mut Outcome,
) -> Result<(), Error> {
    if plan.consumers > 0 {
        return Ok(());
    }
    outcome.unjudged = forgotten(plan).map(str::to_owned);
    if outcome.unjudged.is_none() && !interrupt::requested() {
        outcome.verdict = read_back(plan, topology, produced)?;
    }
    Ok(())
}

/// Samples for `measured`, or until the run is over.
pub(super) fn measure_for(
    measured: Duration,
    control: &Control,
    broker_pid: Option<u32>,
    over: &impl Fn() -> bool,
) -> Span {
    let mut sampler = Sampler::start(control, broker_pid);
    while sampler.elapsed() < measured && !over() {
        rest(SAMPLE.min(measured.saturating_sub(sampler.elapsed())), over);
        sampler.look();
    }
    sampler.finish()
}

pub(super) fn measure_count(
    plan: &Plan,
    total: u64,
    control: &Control,
    sampler: Option<Sampler<'_>>,
    failed: &impl Fn() -> bool,
    ended: &impl Fn() -> bool,
) -> Span {
    let mut sampler = sampler.expect("a count is sampled from before the first message");
    let done = || {
        // Producers that have ended have received all confirms, or failed.
        let settled = plan.window == 0 && plan.commit_publishes == 0 || ended();
        control.published() >= total && settled && undelivered(plan, control) == 0
    };
    progress_timeout::wait(plan, control, &|| done() || failed(), &mut || sampler.look());
    sampler.finish()
}

fn undelivered(plan: &Plan, control: &Control) -> u64 {
    if plan.consumers == 0 {
        return 0;
    }
    let counts = control.counts();
    let expected = counts.published.saturating_sub(counts.refused) * plan.copies();
    expected.saturating_sub(counts.delivered)
}

pub(super) fn drain(plan: &Plan, control: &Control, failed: &impl Fn() -> bool) {
    let done = || undelivered(plan, control) == 0 || failed();
    progress_timeout::wait(plan, control, &done, &mut || {});
}
