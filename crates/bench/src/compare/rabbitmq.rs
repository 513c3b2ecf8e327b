//! The comparison with RabbitMQ: idle connections, PerfTest's loads and ours, and isolation.

use super::comparison::Comparison;
use super::loads::{self, Idle};
use super::perftest::PerfTest;
use super::side::text;
use super::table::{Report, Section};
use super::{isolation, perftest};
use crate::load::Misbehaving;
use crate::measure::bare_sockets;
use std::path::Path;
use std::time::Duration;

const IDLE: Idle = Idle {
    name: "1,000 idle connections, each with a queue and a consumer",
    connections: 1_000,
    kib_max: 8.0,
    waves: None,
};

/// Runs the selected loads on all sides; PerfTest's if its jar files are there.
pub(super) fn run(
    comparison: &Comparison<'_>,
    perf_test: Option<&Path>,
    misbehaving: Misbehaving,
    report: &mut Report,
) -> Result<(), String> {
    let wanted = |name: &str| comparison.arguments.wants(name);
    if wanted("idle") {
        report.add(comparison.idle(&IDLE)?);
    }
    if let Some(jars) = perf_test {
        let perf_test = PerfTest { jars, comparison };
        for scenario in perftest::SCENARIOS.iter().filter(|it| wanted(it.name)) {
            report.add(perf_test.compare(scenario)?);
        }
    }
    for load in loads::AMQP091.iter().filter(|load| wanted(load.name)) {
        report.add(comparison.load(load, None)?);
    }
    if wanted("raw") {
        let speed = bare_sockets::measure(100, Duration::from_secs(2)).map_err(text)?;
        let rate = format!("{:.1} M msgs/s", speed.messages_per_s / 1e6);
        let trip = speed.round_trip.map_or(0.0, |trip| trip.p50_us);
        let mut section = Section::new("bare TCP through a relay, 100 B");
        section.value("machine", "stream", rate);
        section.value("machine", "round trip p50", format!("{trip:.1} us"));
        report.add(section);
    }
    if wanted("isolation") {
        report.add(isolation::compare(comparison, misbehaving)?);
    }
    Ok(())
}
