//! Aggregates the results of a run's workers into its outcome. Independent of sockets.

use super::consumer::Consumed;
use super::control::{Control, Counts};
use super::outcome::{BUSY, Bottleneck, Loads, Outcome, Rates, Schedule, Times, ToolCost};
use super::plan::Plan;
use super::producer::Produced;
use super::sampler::Span;
use super::verdict::{Checked, Tally, Verdict};
use crate::interrupt;
use crate::measure::latency::{Latencies, Summary};
use crate::measure::process::Cost;
use std::num::NonZero;
use std::thread;

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
        0 => end.counts.published - start.counts.published,
        _ => end.counts.delivered - start.counts.delivered,
    };
    let tool_ns = (end.tool_cpu_ns - start.tool_cpu_ns) as f64;
    let broker = broker_cost(span, measured_s, messages);
    let schedule = schedule(plan, produced, consumed);
    let broker_share = broker.as_ref().map_or(0.0, |cost| cost.cpu_share);
    let machine = Machine::over(span, broker_share + tool_ns / 1e9 / measured_s);
    let loads = Loads {
        broker_thread: broker.as_ref().map_or(0.0, |cost| cost.busiest_thread_share),
        tool_thread: busiest(produced, consumed),
        machine: machine.busy,
        others: if broker.is_some() { machine.others } else { 0.0 },
        stolen: machine.stolen,
        schedule_kept: schedule.as_ref().is_some_and(|it| it.achieved_part > 0.99),
    };
    let tool_kept = schedule.as_ref().is_none_or(|schedule| schedule.tool_kept);
    let confirms = produced.iter().filter_map(|it| it.confirm_latencies.as_ref());
    let deliveries = consumed.iter().filter_map(|it| it.latencies.as_ref());
    let (interrupted, counts) = (interrupt::requested(), control.counts());
    Outcome {
        plan: plan.describe(),
        broker_uri: plan.target.to_string(),
        measured_s,
        interrupted,
        messages,
        rates: rates(plan, span, measured_s),
        times: times(plan, produced, consumed),
        published: counts.published,
        confirmed: counts.confirmed,
        refused: counts.refused,
        verdict: verdict(plan, produced, consumed).filter(|it| !interrupted || it.lost == 0),
        cut_off: consumed.iter().filter_map(|it| it.cut_off.clone()).collect(),
        broker,
        instructions_per_message: span
            .instructions
            .map(|count| count as f64 / messages.max(1) as f64),
        tool: ToolCost {
            cpu_ns_per_message: tool_ns / messages.max(1) as f64,
            cpu_share: tool_ns / 1e9 / measured_s,
            producers_share: produced.iter().map(|it| it.cpu_share).sum(),
            consumers_share: consumed.iter().map(|it| it.cpu_share).sum(),
        },
        bottleneck: Bottleneck::of(&loads),
        loads,
        latency: summarize(plan, deliveries).filter(|_| tool_kept),
        confirm_latency: summarize(plan, confirms).filter(|_| tool_kept),
        schedule,
        stalls: span.stalls,
        travels_us: consumed.first().map_or(Vec::new(), |it| it.travels.clone()),
        seconds: span.seconds.clone(),
        ..Outcome::default()
    }
}

fn broker_cost(span: &Span, measured_s: f64, messages: u64) -> Option<Cost> {
    let (start, end) = (span.start.broker.as_ref(), span.end.broker.as_ref());
    let mut cost = Cost::between(start, end, measured_s, messages)?;
    let flushes = span.start.flushes.zip(span.end.flushes);
    cost.disk_flushes_per_s =
        flushes.map(|(start, end)| end.saturating_sub(start) as f64 / measured_s);
    Some(cost)
}

fn rates(plan: &Plan, span: &Span, measured_s: f64) -> Rates {
    let rate = |count: fn(&Counts) -> u64| {
        (count(&span.end.counts) - count(&span.start.counts)) as f64 / measured_s
    };
    let (second_min, second_max) = span.extremes(plan.consumers > 0);
    Rates {
        published: rate(|it| it.published),
        confirmed: rate(|it| it.confirmed),
        delivered: rate(|it| it.delivered),
        delivered_bytes: rate(|it| it.delivered_bytes),
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

/// How well the rate was kept. The lag excludes waits for a full socket or a full window.
fn schedule(plan: &Plan, produced: &[Produced], consumed: &[Consumed]) -> Option<Schedule> {
    if plan.rate == 0 {
        return None;
    }
    let mut lags = Latencies::default();
    produced.iter().for_each(|it| lags.merge(&it.lags));
    let lag = lags.summary()?;
    let due: u64 = produced.iter().map(|it| it.due).sum();
    let done: u64 = produced.iter().map(|it| it.published).sum();
    let busy = busiest(produced, consumed) >= BUSY;
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
    let producers = produced.iter().map(|it| it.cpu_share);
    producers.chain(consumed.iter().map(|it| it.cpu_share)).fold(0.0, f64::max)
}

/// CPU use of the machine over a span, as parts of all cores; zeros where it is unknown.
#[derive(Default)]
struct Machine {
    busy: f64,
    /// Other processes than broker and tool.
    others: f64,
    /// Time that the hypervisor gave to others.
    stolen: f64,
}

impl Machine {
    /// Over a span in which broker and tool are known to have used this many cores.
    fn over(span: &Span, known_cores: f64) -> Machine {
        let Some((start, end)) = span.start.machine.zip(span.end.machine) else {
            return Machine::default();
        };
        let all = end.all.saturating_sub(start.all).max(1) as f64;
        let part = |start: u64, end: u64| end.saturating_sub(start) as f64 / all;
        let busy = part(start.busy, end.busy);
        let processes = busy - part(start.interrupts, end.interrupts);
        let known = known_cores / thread::available_parallelism().map_or(1, NonZero::get) as f64;
        Machine {
            busy: at_least(busy, known),
            others: (processes - known).max(0.0),
            stolen: part(start.stolen, end.stolen),
        }
    }
}

/// The busy part, at least `known`: kernel ticks are samples and may miss a load in step with them.
fn at_least(busy: f64, known: f64) -> f64 {
    busy.max(known.min(1.0))
}

fn summarize<'a>(plan: &Plan, parts: impl Iterator<Item = &'a Latencies>) -> Option<Summary> {
    let mut all = Latencies::default();
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
        assert_eq!(at_least(0.7, 0.5), 0.7);
        assert_eq!(at_least(0.02, 0.23), 0.23);
        // Both are read one after the other.
        assert_eq!(at_least(0.99, 1.01), 1.0);
    }
}
