//! Healthy clients beside misbehaving ones, on each side in turn, against the targets.

use super::Effort;
use super::side::{OURS, Side, text};
use super::table::{Check, Section, median, spread};
use crate::load::isolation::{self, Isolation, IsolationPlan};
use crate::load::{End, Misbehaving, Plan};
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

/// Runs it on all sides, as many rounds as the effort has, but `ROUNDS_MIN` at least.
pub(crate) fn compare(
    sides: &[Side],
    effort: Effort,
    misbehaving: Misbehaving,
) -> Result<Section, String> {
    let mut found: Vec<Vec<Isolation>> = sides.iter().map(|_| Vec::new()).collect();
    for _ in 0..effort.rounds.max(ROUNDS_MIN) {
        for (side, found) in sides.iter().zip(&mut found) {
            let (warm_up, measured) = (Duration::from_secs(3), effort.native);
            let healthy = Plan {
                producers: PAIRS,
                consumers: PAIRS,
                queues: PAIRS,
                size_bytes: SIZE_BYTES,
                rate: RATE,
                end: End::After { warm_up, measured },
                latency: true,
                ..Plan::new(side.uri.clone())
            };
            let plan = IsolationPlan { healthy, misbehaving };
            plan.check()?;
            let once = isolation::measure(&plan, Some(side.pid()))
                .map_err(|error| format!("isolation on {}: {error}", side.name))?;
            eprintln!(
                "isolation: {}: {:.1}% of the rate, p99 {} times that alone, {} times that beside a null \
                 broker, {} cut off, {} runs repeated",
                side.name,
                once.rate_part * 100.0,
                shown(once.p99_times),
                shown(once.p99_times_control),
                once.cut_off,
                once.repeated
            );
            found.push(once);
        }
    }
    let mut section = Section::new(&name(&misbehaving));
    for (side, found) in sides.iter().zip(&found) {
        describe(&mut section, side, found);
    }
    Ok(section)
}

fn shown(times: Option<f64>) -> String {
    times.map_or("?".to_owned(), |times| format!("{times:.2}"))
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

fn describe(section: &mut Section, side: &Side, found: &[Isolation]) {
    let name = side.name.as_str();
    let p99 = |outcome: &crate::load::Outcome| {
        outcome.latency.as_ref().map_or(0.0, |latency| latency.p99_us)
    };
    let alone = spread(found.iter().flat_map(|it| &it.alone).map(p99), 0);
    let beside = spread(found.iter().map(|it| p99(&it.beside)), 0);
    section.value(name, "p99 alone", format!("{alone} us"));
    section.value(name, "beside", format!("{beside} us"));
    // What the machine does to the healthy clients without the broker.
    let control = spread(found.iter().map(|it| p99(&it.control)), 0);
    section.value(name, "beside a null broker", format!("{control} us"));
    let times: Vec<f64> = found.iter().filter_map(|it| it.p99_times_control).collect();
    if !times.is_empty() {
        section.value(name, "times that", spread(times.into_iter(), 2));
    }
    let part = spread(found.iter().map(|it| it.rate_part * 100.0), 1);
    section.value(name, "rate left", format!("{part}%"));
    let flood = spread(found.iter().map(|it| it.flooded_bytes_per_s / 1e6), 0);
    section.value(name, "flood taken", format!("{flood} MB/s"));
    let cut_off = spread(found.iter().map(|it| it.cut_off as f64), 0);
    section.value(name, "misbehaving cut off", cut_off);
    // Runs in which the machine stood still.
    section.value(
        name,
        "runs repeated",
        found.iter().map(|it| it.repeated).sum::<u64>().to_string(),
    );
    if side.name == OURS {
        let part = median(found.iter().map(|it| it.rate_part));
        section.check(Check::at_least("of the rate alone", part, RATE_PART_MIN));
        let times: Vec<f64> = found.iter().filter_map(|it| it.p99_times).collect();
        section.check(if times.len() * 2 <= found.len() {
            Check::holds("tool and machine kept the schedule in most rounds", false)
        } else {
            Check::at_most("times the p99 alone", median(times), P99_TIMES_MAX)
        });
        let clean = found.iter().flat_map(Isolation::verdicts).all(crate::load::Verdict::is_clean);
        section.check(Check::holds("nothing of the healthy lost", clean));
    }
}

/// Reads octets from a command line: a number, with `M` or `G` for millions or billions.
pub(crate) fn octets(said: &str) -> Result<u64, String> {
    let (digits, unit) = match said.as_bytes().last() {
        Some(b'M') => (&said[..said.len() - 1], 1_000_000),
        Some(b'G') => (&said[..said.len() - 1], 1_000_000_000),
        _ => (said, 1),
    };
    let number: u64 = digits.parse().map_err(text)?;
    number.checked_mul(unit).ok_or_else(|| format!("`{said}` is too much"))
}
