//! The comparison with RabbitMQ: idle connections, PerfTest's loads and ours, isolation, and starts.

use super::loads::{self, Idle};
use super::perftest::PerfTest;
use super::side::{OURS, RABBITMQ, our_command, text};
use super::table::{Check, Report, Section, median, spread};
use super::{Comparison, isolation, perftest};
use crate::client::Protocol;
use crate::load::{Misbehaving, first_message};
use crate::measure::bare_sockets;
use crate::peer::RabbitMq;
use std::path::Path;
use std::time::{Duration, Instant};

const IDLE: Idle = Idle {
    name: "1,000 idle connections, each with a queue and a consumer",
    connections: 1_000,
    kib_max: 8.0,
    waves: None,
};
/// The longest start until the first message.
const START_MS_MAX: f64 = 25.0;

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

/// Measures the start of each side on an empty store, ours several times.
pub(super) fn starts(
    program: Option<&Path>,
    rabbitmq: bool,
    folder: &Path,
    rounds: usize,
) -> Result<Section, String> {
    let mut section = Section::new("start to first message, empty store");
    if let Some(program) = program {
        let mut times = Vec::new();
        for attempt in 0..rounds.max(2) * 2 + 1 {
            let data = folder.join(format!("start-{attempt}"));
            let launch = our_command(program, Protocol::Amqp091, &data)?;
            let patience = Duration::from_secs(20);
            let time = first_message::measure_start(&launch.command, &launch.uri, patience);
            times.push(time.map_err(text)?.first_message_ms);
        }
        section.value(OURS, "first message", format!("{} ms", spread(times.clone(), 1)));
        section.check(Check::at_most("ms", median(times), START_MS_MAX));
    }
    if rabbitmq {
        let folder = folder.join("start-rabbitmq");
        std::fs::create_dir_all(&folder).map_err(text)?;
        let began = Instant::now();
        let broker = RabbitMq::start(&folder, false).map_err(text)?;
        first_message::deliver_first(broker.uri()).map_err(text)?;
        let elapsed_ms = began.elapsed().as_secs_f64() * 1e3;
        section.value(RABBITMQ, "first message", format!("{elapsed_ms:.0} ms"));
    }
    Ok(section)
}
