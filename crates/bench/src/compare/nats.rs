//! The comparison with nats-server: loads, round trips, idle subscribers and the cost of matching, with their
//! targets.

use super::comparison::Comparison;
use super::loads::{self, Idle, Waves};
use super::relay::Relay;
use super::runs::{Runs, broker_ns, unit};
use super::side::{OURS, text};
use super::table::{Check, Report, Section, median, spread};
use super::{isolation, nats_bench};
use crate::load::{DRAIN, Misbehaving, Outcome, round_trip};
use crate::measure::bare_sockets;
use crate::report::grouped;
use std::path::Path;

/// Descriptors that a broker and the tool each need for the idle connections.
pub(crate) const DESCRIPTORS: u64 = IDLE.connections as u64 + 200;

const IDLE: Idle = Idle {
    name: "10,000 idle subscribers of one subject, then one message to all",
    connections: 10_000,
    kib_max: 4.0,
    waves: Some(Waves { count: 10, ms_max: 50.0, bare_times_max: 1.2 }),
};

/// Subscriptions that match nothing, and how much more a message may cost for them.
const BYSTANDERS: [usize; 3] = [1, 1_000, 1_000_000];
const BYSTANDERS_COST_MAX: f64 = 1.1;
/// The text where the system does not allow instructions to be counted.
const NOT_COUNTABLE: &str = "not countable here: see cargo xtask test --only instructions";

/// Subjects of the messages where a cache of matches must not help.
const SPREAD: u64 = 100_000;

/// The misbehaving clients beside the healthy pairs.
const MISBEHAVING: Misbehaving =
    Misbehaving { stalled: 1, slow: 10, flooding: 1, unacking: 0, backlog_bytes: 0 };

/// The longest round trip, in times of the peer's and of the bare relay's.
const PEER_TRIP_MAX: f64 = 0.85;
const RELAY_TRIP_MAX: f64 = 1.2;

/// Runs the selected loads on all sides; those of nats-bench if its program is there. Idle subscribers come
/// first: a broker that has served clients keeps memory from before.
pub(super) fn run(
    comparison: &Comparison<'_>,
    bench: Option<&Path>,
    report: &mut Report,
) -> Result<(), String> {
    let wanted = |name: &str| comparison.arguments.wants(name);
    if wanted("idle") {
        report.add(comparison.idle(&IDLE)?);
    }
    for load in loads::NATS.iter().filter(|load| wanted(load.name)) {
        report.add(comparison.load(load, Some(Relay::default()))?);
    }
    for scenario in nats_bench::SCENARIOS.iter().filter(|it| wanted(it.name)) {
        if let Some(program) = bench {
            report.add(nats_bench::compare(comparison, program, scenario)?);
        }
    }
    if wanted("round trip") {
        report.add(round_trips(comparison)?);
    }
    if wanted("isolation") {
        report.add(isolation::compare(comparison, MISBEHAVING)?);
    }
    if wanted("match") {
        report.add(matching(comparison, 0)?);
        report.add(matching(comparison, SPREAD)?);
    }
    Ok(())
}

fn round_trips(comparison: &Comparison<'_>) -> Result<Section, String> {
    let mut section = Section::new("100 B round trip, idle otherwise");
    let span = comparison.effort.native / 2;
    let (mut relay, mut clean) = (Vec::new(), true);
    let found = Runs::measure(comparison.sides, comparison.effort.rounds, |side| {
        let bare = bare_sockets::round_trip(100, span / 2).map_err(text)?.unwrap_or_default();
        relay.push(bare.p50_us);
        let trips = round_trip::measure(&side.uri, Some(side.pid()), 100, span, DRAIN);
        let trips = trips.map_err(|error| format!("round trips on {}: {error}", side.name))?;
        clean &= trips.verdict.is_clean() || side.name != OURS;
        let latency = trips.latency.unwrap_or_default();
        eprintln!(
            "round trip: {}: p50 {:.1} us, p99 {:.1} us; bare relay p50 {:.1} us",
            side.name, latency.p50_us, latency.p99_us, bare.p50_us
        );
        Ok(latency)
    })?;
    found.show(&mut section, "p50", unit(" us", 1), |latency| latency.p50_us);
    found.show(&mut section, "p99", unit(" us", 1), |latency| latency.p99_us);
    section.value("machine", "bare relay p50", format!("{} us", spread(relay.clone(), 1)));
    let p50 = found.medians(|latency| latency.p50_us);
    if let Some(part) = p50.ratio() {
        section.check(Check::at_most("of its p50", part, PEER_TRIP_MAX));
    }
    if let Some(ours) = p50.ours {
        let part = ours / median(relay);
        section.check(Check::at_most("times the bare relay's p50", part, RELAY_TRIP_MAX));
        section.check(Check::clean(clean));
    }
    Ok(section)
}

/// The cost of a message beside more and more subscriptions that do not match it. All counts take turns in
/// every round, so that drift affects all alike. With a `spread` over many subjects, a cache of matches does
/// not help.
fn matching(comparison: &Comparison<'_>, spread: u64) -> Result<Section, String> {
    let over = match spread {
        0 => String::new(),
        spread => format!(", {} subjects", grouped(spread as f64)),
    };
    let mut section =
        Section::new(&format!("100 B 1->1{over}, match beside 1 / 1,000 / 1,000,000 others"));
    let found = Runs::measure(comparison.sides, comparison.effort.rounds, |side| {
        let with = |bystanders: usize| {
            let plan = comparison.plan(side, |plan| {
                (plan.ahead, plan.bystanders) = (50_000, bystanders);
                (plan.spread, plan.instructions) = (spread, true);
            })?;
            comparison.once(side, &format!("match{over} beside {bystanders}"), &plan)
        };
        BYSTANDERS.iter().map(|count| with(*count)).collect::<Result<Vec<_>, _>>()
    })?;
    for it in &found.0 {
        let show =
            |costs: &[f64]| costs.iter().map(|cost| grouped(*cost)).collect::<Vec<_>>().join(" / ");
        let costs_ns = costs(&it.runs, |outcome| Some(broker_ns(outcome))).unwrap_or_default();
        section.value(&it.side, "broker CPU", format!("{} ns", show(&costs_ns)));
        let counted = costs(&it.runs, |outcome| outcome.instructions_per_message);
        let counts = counted.as_deref().map_or(NOT_COUNTABLE.to_owned(), show);
        section.value(&it.side, "instructions", counts);
        // Time is noisy, the more so with a thousand times the memory: it is shown and has no target.
        if let Some(judged) = counted.filter(|_| it.side == OURS) {
            let least = judged.iter().copied().fold(f64::INFINITY, f64::min);
            let most = judged.iter().copied().fold(0.0, f64::max);
            let times = most / least.max(1e-9);
            section.check(Check::at_most("times the cheapest", times, BYSTANDERS_COST_MAX));
        }
    }
    Ok(section)
}

/// For each count of bystanders the median over the rounds; `None` if a round lacks the value.
fn costs(rounds: &[Vec<Outcome>], value: impl Fn(&Outcome) -> Option<f64>) -> Option<Vec<f64>> {
    let of = |index: usize| {
        let values = rounds.iter().map(|round| value(&round[index]));
        values.collect::<Option<Vec<f64>>>().map(median)
    };
    (0..BYSTANDERS.len()).map(of).collect()
}
