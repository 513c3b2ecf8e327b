//! The comparison with Artemis by AMQP 1.0: our own loads, Qpid JMS one message at a time, and selective
//! consumers, with their targets.

use super::comparison::Comparison;
use super::loads;
use super::runs::{Runs, ToolRun, broker_ns, rate_of, unit};
use super::side::{OURS, Side, text};
use super::table::{Check, Report, Section};
use crate::load::{End, Outcome, Plan, Verdict};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long a broker in Java is loaded before it is measured: its compiler is done then.
const WARM_UP: Duration = Duration::from_secs(60);
const WARM_UP_QUICK: Duration = Duration::from_secs(20);

/// A program that Java compiles as it starts it.
const ONE_BY_ONE: &str = include_str!("OneByOne.java");
/// Messages per second with it, in times of the peer's.
const ONE_BY_ONE_TIMES_MIN: f64 = 2.0;

/// Consumers of a queue that each choose messages by another value of one property, and how many times the
/// cost of one they may have.
const SELECTIVE: [u64; 2] = [1, 1_000];
const SELECTIVE_COST_MAX: f64 = 2.0;
/// Connections that many selective consumers are on.
const SELECTIVE_CONNECTIONS: usize = 10;

/// Runs the selected loads on all sides; those of Qpid JMS if its jar files are there.
pub(super) fn run(
    comparison: &Comparison<'_>,
    jars: Option<&Path>,
    report: &mut Report,
) -> Result<(), String> {
    let wanted = |name: &str| comparison.arguments.wants(name);
    let span = if comparison.arguments.quick { WARM_UP_QUICK } else { WARM_UP };
    for side in comparison.sides.iter().filter(|side| side.name != OURS) {
        warm_up(comparison, side, span)?;
    }
    for load in loads::AMQP10.iter().filter(|load| wanted(load.name)) {
        report.add(comparison.load(load, None)?);
    }
    for persistent in [false, true] {
        let name = one_by_one_name(persistent);
        if let Some(jars) = jars.filter(|_| wanted(&name)) {
            report.add(one_by_one(comparison, jars, &name, persistent)?);
        }
    }
    if wanted("selective") {
        report.add(selective(comparison)?);
    }
    Ok(())
}

/// Runs each load on a broker in turn, until it has run for this long in all.
fn warm_up(comparison: &Comparison<'_>, side: &Side, span: Duration) -> Result<(), String> {
    let measured = span / loads::AMQP10.len() as u32;
    for load in loads::AMQP10 {
        let plan = comparison.plan(side, load.shape)?;
        let end = End::After { warm_up: Duration::ZERO, measured };
        comparison.once(side, "warm-up", &Plan { end, ..plan })?;
    }
    Ok(())
}

fn one_by_one_name(persistent: bool) -> String {
    let kind = if persistent { "persistent" } else { "transient" };
    format!("Qpid JMS 1 KiB {kind}, one message, one acknowledgement")
}

/// Qpid JMS on all sides: one producer, and one consumer that acknowledges each message.
fn one_by_one(
    comparison: &Comparison<'_>,
    jars: &Path,
    name: &str,
    persistent: bool,
) -> Result<Section, String> {
    let program = comparison.folder.join("OneByOne.java");
    fs::write(&program, ONE_BY_ONE).map_err(text)?;
    let seconds = comparison.effort.perftest.as_secs().to_string();
    let mut section = Section::new(name);
    let found = Runs::measure(comparison.sides, comparison.effort.rounds, |side| {
        let address = format!("amqp://{}:{}", side.uri.host(), side.uri.port());
        let mut java = Command::new("java");
        java.arg("-cp").arg(jars.join("*")).arg(&program).args([&address, &seconds, "1024"]);
        java.arg(if persistent { "persistent" } else { "transient" });
        let run = comparison.watch("Qpid JMS", &mut java, side)?;
        let ToolRun { delivered_per_s, broker_ns, tool_ns } = run;
        eprintln!(
            "{name}: {}: {delivered_per_s:.0} msgs/s, broker {broker_ns:.0} ns, tool {tool_ns:.0} ns a \
             message",
            side.name
        );
        Ok(run)
    })?;
    found.describe(&mut section);
    if let Some(times) = found.medians(|run| run.delivered_per_s).ratio() {
        section.check(Check::at_least("times its msgs/s", times, ONE_BY_ONE_TIMES_MIN));
    }
    Ok(section)
}

/// What a message of a queue costs with one selective consumer, and with many: the counts take turns in every
/// round, so that drift affects both alike.
fn selective(comparison: &Comparison<'_>) -> Result<Section, String> {
    let mut section =
        Section::new("1 KiB transient, 1 and 1,000 selective consumers of one property");
    let found = Runs::measure(comparison.sides, comparison.effort.rounds, |side| {
        let with = |consumers: u64| {
            let plan = comparison.plan(side, |plan| {
                (loads::AMQP10[0].shape)(plan);
                (plan.ack_every, plan.prefetch, plan.spread) = (0, 0, consumers);
                plan.consumers = SELECTIVE_CONNECTIONS.min(consumers as usize);
            })?;
            comparison.once(side, &format!("{consumers} selective consumers"), &plan)
        };
        SELECTIVE.iter().map(|count| with(*count)).collect::<Result<Vec<Outcome>, _>>()
    })?;
    for (index, count) in SELECTIVE.iter().enumerate() {
        let of = if *count == 1 { "one" } else { "1,000" };
        found.show(&mut section, &format!("{of}: msgs/s"), unit("", 0), |it| rate_of(&it[index]));
        found.show(&mut section, &format!("{of}: CPU"), unit(" ns", 0), |it| broker_ns(&it[index]));
    }
    let cost = |index: usize| found.medians(|runs: &Vec<Outcome>| broker_ns(&runs[index])).ours;
    if let Some((one, many)) = cost(0).zip(cost(1)) {
        section.check(Check::at_most("times the cost of one", many / one, SELECTIVE_COST_MAX));
    }
    if let Some(ours) = found.ours() {
        let clean = ours.iter().flatten().flat_map(|it| &it.verdict).all(Verdict::is_clean);
        section.check(Check::clean(clean));
    }
    Ok(section)
}
