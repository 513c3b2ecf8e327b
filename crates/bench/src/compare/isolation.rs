//! Healthy clients beside misbehaving ones, on each side in turn, against the targets.

use super::comparison::Comparison;
use super::runs::{Runs, unit};
use super::table::{Check, Section, median};
use crate::load::isolation::{self, Isolation, IsolationPlan};
use crate::load::{End, Misbehaving, Outcome, Plan, Verdict};
use std::time::Duration;

/// Healthy pairs, their messages per second in all, and the octets of a body.
const PAIRS: usize = 20;
const RATE: u64 = 20_000;
const SIZE_BYTES: usize = 1_024;

/// Least number of rounds: the p99 of a few seconds varies by half.
const ROUNDS_MIN: usize = 3;

/// The part of their rate that healthy clients must keep, and how many times their p99 may be.
const RATE_PART_MIN: f64 = 0.95;
const P99_TIMES_MAX: f64 = 1.5;

/// Stands for a latency of runs in which the tool got too little of the processors to keep its schedule.
const UNMEASURED: &str = "not measured (tool behind schedule)";

/// Runs it on all sides, as many rounds as the effort has, but `ROUNDS_MIN` at least.
pub(super) fn compare(
    comparison: &Comparison<'_>,
    misbehaving: Misbehaving,
) -> Result<Section, String> {
    let &Comparison { sides, effort, .. } = comparison;
    let found = Runs::measure(sides, effort.rounds.max(ROUNDS_MIN), |side| {
        let end = End::After { warm_up: Duration::from_secs(3), measured: effort.native };
        let (size_bytes, rate, latency) = (SIZE_BYTES, RATE, true);
        let healthy = Plan { size_bytes, rate, end, latency, ..Plan::new(side.uri.clone()) };
        let plan = IsolationPlan { healthy: healthy.in_pairs(PAIRS), misbehaving };
        plan.check()?;
        let once = isolation::measure(&plan, Some(side.pid()))
            .map_err(|error| format!("isolation on {}: {error}", side.name))?;
        eprintln!(
            "isolation: {}: {:.1}% of the rate, p99 {} that alone, {} that beside a null broker, \
              {} cut off, {} runs repeated",
            side.name,
            once.rate_part * 100.0,
            shown(once.p99_times),
            shown(once.p99_times_control),
            once.cut_off,
            once.repeated
        );
        Ok(once)
    })?;
    let mut section = Section::new(&name(&misbehaving));
    describe(&mut section, &found);
    if let Some(ours) = found.ours() {
        judge(&mut section, ours);
    }
    Ok(section)
}

fn shown(times: Option<f64>) -> String {
    times.map_or("not measured against".to_owned(), |times| format!("{times:.2} times"))
}

fn name(misbehaving: &Misbehaving) -> String {
    let mut beside = format!(
        "{} stalled, {} slow, {} flooding",
        misbehaving.stalled, misbehaving.slow, misbehaving.flooding
    );
    if misbehaving.unacking > 0 {
        beside += &format!(", {} that never acks", misbehaving.unacking);
    }
    if misbehaving.backlog_bytes > 0 {
        let megabytes = misbehaving.backlog_bytes as f64 / 1e6;
        beside += &format!(", 1 that drains {megabytes:.0} MB");
    }
    format!("isolation: {PAIRS} healthy pairs at {RATE} msgs/s of 1 KiB beside {beside}")
}

fn describe(section: &mut Section, found: &Runs<Isolation>) {
    let p99 = |outcome: &Outcome| outcome.latency.as_ref().map(|latency| latency.p99_us);
    let mut show = |what, unit, values: &dyn Fn(&Isolation) -> Vec<f64>| {
        found.show_all(section, what, unit, values);
        for it in found.0.iter().filter(|it| it.runs.iter().flat_map(values).next().is_none()) {
            section.value(&it.side, what, UNMEASURED.to_owned());
        }
    };
    let us = unit(" us", 0);
    show("p99 alone", us, &|it| it.alone.iter().filter_map(p99).collect());
    show("beside", us, &|it| Vec::from_iter(p99(&it.beside)));
    // What the machine does to the healthy clients without the broker.
    show("beside a null broker", us, &|it| Vec::from_iter(p99(&it.control)));
    show("times that", unit("", 2), &|it| Vec::from_iter(it.p99_times_control));
    found.show(section, "rate left", unit("%", 1), |it| it.rate_part * 100.0);
    found.show(section, "flood taken", unit(" MB/s", 0), |it| it.flooded_bytes_per_s / 1e6);
    found.show(section, "misbehaving cut off", unit("", 0), |it| it.cut_off as f64);
    // Runs in which the machine stood still.
    for it in &found.0 {
        let repeated: u64 = it.runs.iter().map(|run| run.repeated).sum();
        section.value(&it.side, "runs repeated", repeated.to_string());
    }
}

fn judge(section: &mut Section, ours: &[Isolation]) {
    let part = median(ours.iter().map(|it| it.rate_part));
    section.check(Check::at_least("of the rate alone", part, RATE_PART_MIN));
    let times: Vec<f64> = ours.iter().filter_map(|it| it.p99_times).collect();
    section.check(if times.len() * 2 <= ours.len() {
        Check::holds("tool and machine kept the schedule in most rounds", false)
    } else {
        Check::at_most("times the p99 alone", median(times), P99_TIMES_MAX)
    });
    let clean = ours.iter().flat_map(Isolation::verdicts).all(Verdict::is_clean);
    section.check(Check::holds("nothing of the healthy lost", clean));
}
