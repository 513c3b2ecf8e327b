//! Aggregates the results of a run's workers into its outcome. Independent of sockets.

use super::bottleneck::{self, Loads};
use super::consumer::Consumed;
use super::control::Control;
use super::outcome::{Outcome, Rates, Schedule, Times, ToolCost};
use super::plan::Plan;
use super::producer::Produced;
use super::sampler::Span;
use super::verdict::{Checked, Tally, Verdict};
use crate::interrupt;
use crate::measure::latency::{Latencies, Summary};
use crate::measure::process::Cost;
use std::num::NonZero;
use std::thread;

/// The outcome of a run.
pub(super) fn aggregate(
    plan: &Plan,
    control: &Control,
    span: &Span,
    produced: &[Produced],
    consumed: &[Consumed],
) -> Outcome {
    let (start, end) = (&span.start, &span.end);
    let measured_s = (end.at - start.at).as_secs_f64();
    let messages = match plan.consumers {
        0 => end.published - start.published,
        _ => end.delivered - start.delivered,
    };
    let tool_ns = (end.tool_cpu_ns - start.tool_cpu_ns) as f64;
    let broker = broker_cost(span, measured_s, messages);
    let schedule = schedule(plan, produced, consumed);
    let machine = Machine::over(span);
    let cores = machine.map_or(1.0, |machine| machine.cores);
    let broker_share = broker.as_ref().map_or(0.0, |cost| cost.cpu_share);
    let known = (broker_share + tool_ns / 1e9 / measured_s) / cores;
    let loads = Loads {
        broker_thread: broker.as_ref().map_or(0.0, |cost| cost.busiest_thread_share),
        tool_thread: busiest(produced, consumed),
        machine: machine.map_or(0.0, |machine| machine.busy_with(known)),
        others: machine
            .zip(broker.as_ref())
            .map_or(0.0, |(machine, _)| (machine.processes - known).max(0.0)),
        stolen: machine.map_or(0.0, |machine| machine.stolen),
        schedule_kept: schedule.as_ref().is_some_and(|it| it.achieved_part > 0.99),
    };
    let tool_kept = schedule.as_ref().is_none_or(|schedule| schedule.tool_kept);
    let confirms = produced.iter().filter_map(|it| it.confirm_latencies.as_ref());
    let deliveries = consumed.iter().filter_map(|it| it.latencies.as_ref());
    let interrupted = interrupt::requested();
    Outcome {
        plan: plan.describe(),
        broker_uri: plan.target.to_string(),
        measured_s,
        interrupted,
        messages,
        rates: rates(plan, span, measured_s),
        times: times(plan, produced, consumed),
        published: control.published(),
        confirmed: control.confirmed(),
        refused: control.refused(),
        verdict: verdict(plan, produced, consumed).filter(|it| !interrupted || it.lost == 0),
        unjudged: None,
        cut_off: consumed.iter().filter_map(|it| it.cut_off.clone()).collect(),
        broker,
        instructions_per_message: span
            .instructions
            .map(|count| count as f64 / messages.max(1) as f64),
        tool: ToolCost {
            cpu_ns_per_message: tool_ns / messages.max(1) as f64,
            cpu_share: tool_ns / 1e9 / measured_s,
            producers_share: produced.iter().map(Produced::cpu_share).sum(),
            consumers_share: consumed.iter().map(Consumed::cpu_share).sum(),
        },
        bottleneck: bottleneck::of(&loads),
        loads,
        latency: summarize(plan, deliveries).filter(|_| tool_kept),
        confirm_latency: summarize(plan, confirms).filter(|_| tool_kept),
        schedule,
        stalls: span.stalls,
        travels_us: consumed.first().map_or(Vec::new(), |it| it.travels.clone()),
        seconds: span.seconds.clone(),
        workers: 0,
        clock_error_us: None,
    }
}

fn broker_cost(span: &Span, measured_s: f64, messages: u64) -> Option<Cost> {
    let (start, end) = span.start.broker.as_ref().zip(span.end.broker.as_ref())?;
    let mut cost = Cost::between(start, end, measured_s, messages);
    let flushes = span.start.flushes.zip(span.end.flushes);
    cost.disk_flushes_per_s =
        flushes.map(|(start, end)| end.saturating_sub(start) as f64 / measured_s);
    Some(cost)
}

fn rates(plan: &Plan, span: &Span, measured_s: f64) -> Rates {
    let (start, end) = (&span.start, &span.end);
    let rate = |before: u64, after: u64| (after - before) as f64 / measured_s;
    let (second_min, second_max) = span.extremes(plan.consumers > 0);
    Rates {
        published: rate(start.published, end.published),
        confirmed: rate(start.confirmed, end.confirmed),
        delivered: rate(start.delivered, end.delivered),
        delivered_bytes: rate(start.delivered_bytes, end.delivered_bytes),
        second_min,
        second_max,
    }
}

fn times(plan: &Plan, produced: &[Produced], consumed: &[Consumed]) -> Times {
    let first = produced.iter().map(|it| it.first_ns).min().unwrap_or(0);
    let last = produced.iter().map(|it| it.last_ns).max().unwrap_or(0);
    let first_delivery = consumed.iter().map(|it| it.first_ns).filter(|ns| *ns > 0).min();
    let settled = produced.iter().map(|it| it.settled_ns).max().unwrap_or(last);
    let done = consumed.iter().map(|it| it.last_ns).max().unwrap_or(settled);
    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
    Times {
        publish_s: seconds(first, last),
        receive_s: first_delivery.map_or(0.0, |first_delivery| seconds(first_delivery, done)),
        total_s: seconds(first, if plan.consumers > 0 { done } else { settled }),
    }
}

/// How well the producers kept the plan's rate. The lag counts only the tool's own delay, not waits for
/// a full socket or a full window.
fn schedule(plan: &Plan, produced: &[Produced], consumed: &[Consumed]) -> Option<Schedule> {
    if plan.rate == 0 {
        return None;
    }
    let mut lags = Latencies::new();
    produced.iter().for_each(|it| lags.merge(&it.lags));
    let lag = lags.summary()?;
    let (due, done): (u64, u64) =
        produced.iter().fold((0, 0), |(due, done), it| (due + it.due, done + it.published));
    let busy = busiest(produced, consumed) >= bottleneck::BUSY;
    Some(Schedule {
        rate: plan.rate as f64,
        achieved_part: done as f64 / due.max(1) as f64,
        tool_kept: lag.p99_us <= LAG_US_MAX && !busy,
        lag,
    })
}

/// Percentiles are dropped if the p99 of the tool's own lag exceeds this.
const LAG_US_MAX: f64 = 1_000.0;

/// The CPU share of the tool's busiest thread.
fn busiest(produced: &[Produced], consumed: &[Consumed]) -> f64 {
    let producers = produced.iter().map(Produced::cpu_share);
    producers.chain(consumed.iter().map(Consumed::cpu_share)).fold(0.0, f64::max)
}

/// CPU use of the machine over a span, as parts of all cores.
#[derive(Clone, Copy)]
struct Machine {
    busy: f64,
    /// Processes only, without interrupts.
    processes: f64,
    /// Time that the hypervisor gave to others.
    stolen: f64,
    cores: f64,
}

impl Machine {
    fn over(span: &Span) -> Option<Machine> {
        let (start, end) = span.start.machine.zip(span.end.machine)?;
        let all = end.all.saturating_sub(start.all).max(1) as f64;
        let part = |start: u64, end: u64| end.saturating_sub(start) as f64 / all;
        let busy = part(start.busy, end.busy);
        let processes = busy - part(start.interrupts, end.interrupts);
        let stolen = part(start.stolen, end.stolen);
        let cores = thread::available_parallelism().map_or(1, NonZero::get) as f64;
        Some(Machine { busy, processes, stolen, cores })
    }

    /// The busy part, at least `known`: kernel ticks are samples, and may miss a load that runs in step
    /// with them.
    fn busy_with(&self, known: f64) -> f64 {
        self.busy.max(known.min(1.0))
    }
}

fn summarize<'a>(plan: &Plan, parts: impl Iterator<Item = &'a Latencies>) -> Option<Summary> {
    let mut all = Latencies::new();
    parts.for_each(|part| all.merge(part));
    plan.latency.then(|| all.summary()).flatten()
}

/// The verdict over all queues; `None` without consumers.
pub(super) fn verdict(
    plan: &Plan,
    produced: &[Produced],
    consumed: &[Consumed],
) -> Option<Verdict> {
    if plan.consumers == 0 {
        return None;
    }
    let mut verdict = Verdict::new(Checked::of(plan.size_bytes, plan.checksum));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ticks_did_not_see_was_done_all_the_same() {
        let machine = |busy| Machine { busy, processes: busy, stolen: 0.0, cores: 2.0 };
        assert_eq!(machine(0.7).busy_with(0.5), 0.7);
        assert_eq!(machine(0.02).busy_with(0.23), 0.23);
        // Both are read one after the other.
        assert_eq!(machine(0.99).busy_with(1.01), 1.0);
    }
}
