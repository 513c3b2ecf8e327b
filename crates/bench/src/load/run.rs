//! One run from the topology to the verdict: starts the threads, measures the span, drains, counts.

use super::consumer::{Consumed, Consumer};
use super::control::Control;
use super::outcome::{Outcome, Rates, ToolCost};
use super::plan::{End, Plan};
use super::producer::{Produced, Producer};
use super::stamp::IDENTITY_BYTES;
use super::tally::{Tally, Verdict};
use super::topology::Topology;
use crate::client::{Error, Link};
use crate::measure::instructions::Instructions;
use crate::measure::latency::{Latencies, Summary};
use crate::measure::process::{self, Cost, Usage};
use std::sync::atomic::Ordering;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// How often the span is looked at for its slowest and fastest second and the broker's memory.
const SAMPLE: Duration = Duration::from_secs(1);

/// Runs `plan`; `broker_pid` names the broker's process if its cost is to be measured.
pub fn run(plan: &Plan, broker_pid: Option<u32>) -> Result<Outcome, Error> {
    run_in(plan, &Topology::of(plan), broker_pid)
}

/// Runs `plan` by names that the caller knows, too.
pub(super) fn run_in(
    plan: &Plan,
    topology: &Topology,
    broker_pid: Option<u32>,
) -> Result<Outcome, Error> {
    let mut link = Link::open(&plan.target)?;
    topology.declare(&mut link, plan)?;
    link.subscribe_bystanders(topology.bystanders(plan))?;
    let control = Control::new(plan.producers, plan.consumers, plan.ahead, plan.copies());
    let outcome = thread::scope(|scope| {
        let outcome = drive(scope, plan, topology, &control, broker_pid);
        // After an error, too: the scope waits for every thread.
        control.stop_publishing.store(true, Ordering::Relaxed);
        control.stop_consuming.store(true, Ordering::Relaxed);
        outcome
    });
    let deleted = topology.delete(&mut link);
    let outcome = outcome?;
    deleted?;
    link.close()?;
    Ok(outcome)
}

fn drive<'scope>(
    scope: &'scope Scope<'scope, '_>,
    plan: &'scope Plan,
    topology: &'scope Topology,
    control: &'scope Control,
    broker_pid: Option<u32>,
) -> Result<Outcome, Error> {
    let mut consumers = Vec::new();
    for index in 0..plan.consumers {
        let source = topology.source(plan, index);
        let consumer = Consumer::connect(plan, control, index, &source)?;
        consumers.push(scope.spawn(move || consumer.run()));
    }
    let mut ready = Vec::new();
    for index in 0..plan.producers {
        ready.push(Producer::connect(plan, control, index, &topology.route(plan, index))?);
    }
    let started = Snapshot::take(control, broker_pid);
    let producers: Vec<_> =
        ready.into_iter().map(|producer| scope.spawn(move || producer.run())).collect();
    control.set_producer_threads(producers.iter().map(|it| it.thread().clone()).collect());
    let failed = || consumers.iter().any(|it| it.is_finished());
    let over = || failed() || producers.iter().all(|it| it.is_finished());
    let span = match plan.end {
        End::After { warm_up, measured } => {
            rest(warm_up, &over);
            let counted = broker_pid.filter(|_| plan.instructions).and_then(Instructions::start);
            let mut span = measure_for(measured, control, broker_pid, &over);
            span.instructions = counted.and_then(Instructions::finish);
            span
        }
        End::Count(_) => measure_count(plan, started, control, broker_pid, &failed),
    };
    control.stop_publishing.store(true, Ordering::Relaxed);
    let produced = join(producers);
    if plan.consumers > 0 && produced.is_ok() {
        drain(plan, control, &failed);
    }
    control.stop_consuming.store(true, Ordering::Relaxed);
    let consumed = join(consumers);
    Ok(conclude(plan, control, &span, &produced?, consumed?))
}

fn join<T>(handles: Vec<ScopedJoinHandle<'_, Result<T, Error>>>) -> Result<Vec<T>, Error> {
    // All are joined before the first error is returned, which is the one that ended the others.
    let results: Vec<_> = handles
        .into_iter()
        .map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        .collect();
    results.into_iter().collect()
}

/// Sleeps, but not on when the run is over before its time.
fn rest(span: Duration, over: &impl Fn() -> bool) {
    let end = Instant::now() + span;
    while !over() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(SAMPLE));
    }
}

/// All counters at one moment.
struct Snapshot {
    at: Instant,
    published: u64,
    confirmed: u64,
    delivered: u64,
    delivered_bytes: u64,
    broker: Option<Usage>,
    tool_cpu_ns: u64,
}

impl Snapshot {
    fn take(control: &Control, broker_pid: Option<u32>) -> Snapshot {
        Snapshot {
            at: Instant::now(),
            published: control.published(),
            confirmed: control.confirmed(),
            delivered: control.delivered(),
            delivered_bytes: control.delivered_bytes(),
            broker: broker_pid.and_then(Usage::of_tree),
            tool_cpu_ns: process::own_cpu_ns(),
        }
    }
}

/// What was measured: both ends, and the rates of the seconds between them.
struct Span {
    start: Snapshot,
    end: Snapshot,
    second_min: f64,
    second_max: f64,
    instructions: Option<u64>,
}

fn measure_for(
    measured: Duration,
    control: &Control,
    broker_pid: Option<u32>,
    over: &impl Fn() -> bool,
) -> Span {
    let progress =
        || if control.consumers.is_empty() { control.published() } else { control.delivered() };
    let start = Snapshot::take(control, broker_pid);
    control.measuring.store(true, Ordering::Relaxed);
    let (mut second_min, mut second_max) = (f64::INFINITY, 0f64);
    let (mut at, mut before) = (start.at, progress());
    while start.at.elapsed() + SAMPLE / 2 < measured && !over() {
        rest(SAMPLE.min(measured.saturating_sub(start.at.elapsed())), over);
        let (now, count) = (Instant::now(), progress());
        let rate = (count - before) as f64 / (now - at).as_secs_f64().max(1e-9);
        (second_min, second_max) = (second_min.min(rate), second_max.max(rate));
        (at, before) = (now, count);
    }
    rest(measured.saturating_sub(start.at.elapsed()), over);
    control.measuring.store(false, Ordering::Relaxed);
    let end = Snapshot::take(control, broker_pid);
    Span {
        start,
        end,
        second_min: if second_min.is_finite() { second_min } else { 0.0 },
        second_max,
        instructions: None,
    }
}

fn measure_count(
    plan: &Plan,
    start: Snapshot,
    control: &Control,
    broker_pid: Option<u32>,
    failed: &impl Fn() -> bool,
) -> Span {
    let End::Count(total) = plan.end else { unreachable!("called for a count only") };
    control.measuring.store(true, Ordering::Relaxed);
    let done = || {
        let settled = plan.window == 0 || control.confirmed() + control.refused() >= total;
        control.published() >= total && settled && undelivered(plan, control) == 0
    };
    wait_with_progress(plan, control, &|| done() || failed());
    let end = Snapshot::take(control, broker_pid);
    Span { start, end, second_min: 0.0, second_max: 0.0, instructions: None }
}

fn undelivered(plan: &Plan, control: &Control) -> u64 {
    if plan.consumers == 0 {
        return 0;
    }
    let expected = (control.published() - control.refused()) * plan.copies();
    expected.saturating_sub(control.delivered())
}

/// Waits for the last deliveries.
fn drain(plan: &Plan, control: &Control, failed: &impl Fn() -> bool) {
    wait_with_progress(plan, control, &|| undelivered(plan, control) == 0 || failed());
}

/// Waits until `done`, or until nothing has moved for the plan's drain time.
fn wait_with_progress(plan: &Plan, control: &Control, done: &impl Fn() -> bool) {
    let (mut moved, mut before) = (Instant::now(), 0);
    while !done() && moved.elapsed() < plan.drain {
        thread::sleep(Duration::from_millis(1));
        let now = control.published() + control.confirmed() + control.delivered();
        if now != before {
            (moved, before) = (Instant::now(), now);
        }
    }
}

fn conclude(
    plan: &Plan,
    control: &Control,
    span: &Span,
    produced: &[Produced],
    consumed: Vec<Consumed>,
) -> Outcome {
    let (start, end) = (&span.start, &span.end);
    let measured_s = (end.at - start.at).as_secs_f64();
    let rate = |before: u64, after: u64| (after - before) as f64 / measured_s;
    let messages = match plan.consumers {
        0 => end.published - start.published,
        _ => end.delivered - start.delivered,
    };
    let tool_ns = (end.tool_cpu_ns - start.tool_cpu_ns) as f64;
    let broker = end.broker.as_ref().zip(start.broker.as_ref());
    let confirms = produced.iter().filter_map(|it| it.confirm_latencies.as_ref());
    let deliveries = consumed.iter().filter_map(|it| it.latencies.as_ref());
    Outcome {
        plan: plan.describe(),
        broker_uri: plan.target.to_string(),
        measured_s,
        messages,
        rates: Rates {
            published: rate(start.published, end.published),
            confirmed: rate(start.confirmed, end.confirmed),
            delivered: rate(start.delivered, end.delivered),
            delivered_bytes: rate(start.delivered_bytes, end.delivered_bytes),
            second_min: span.second_min,
            second_max: span.second_max,
        },
        published: control.published(),
        confirmed: control.confirmed(),
        refused: control.refused(),
        verdict: verdict(plan, produced, &consumed),
        cut_off: consumed.iter().filter_map(|it| it.cut_off.clone()).collect(),
        broker: broker.map(|(end, start)| Cost::between(start, end, measured_s, messages)),
        instructions_per_message: span
            .instructions
            .map(|count| count as f64 / messages.max(1) as f64),
        tool: ToolCost {
            cpu_ns_per_message: tool_ns / messages.max(1) as f64,
            cpu_share: tool_ns / 1e9 / measured_s,
        },
        latency: summarize(plan, deliveries),
        confirm_latency: summarize(plan, confirms),
    }
}

fn summarize<'a>(plan: &Plan, parts: impl Iterator<Item = &'a Latencies>) -> Option<Summary> {
    let mut all = Latencies::new();
    parts.for_each(|part| all.merge(part));
    plan.latency.then(|| all.summary()).flatten()
}

fn verdict(plan: &Plan, produced: &[Produced], consumed: &[Consumed]) -> Option<Verdict> {
    if plan.consumers == 0 || plan.size_bytes < IDENTITY_BYTES {
        return None;
    }
    let mut verdict = Verdict::default();
    for queue in 0..plan.queues {
        let mut tally = Tally::new(plan.producers);
        for consumed in consumed.iter().skip(queue).step_by(plan.queues) {
            tally.merge(&consumed.tally);
        }
        let share = |(index, it): (usize, &Produced)| {
            if plan.routes(index, queue) { it.published } else { 0 }
        };
        let published: Vec<u64> = produced.iter().enumerate().map(share).collect();
        verdict.add_queue(&tally, &published);
    }
    Some(verdict)
}
