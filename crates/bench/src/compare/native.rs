//! The loads of this crate's own generator, idle connections and starts, with their targets.

use super::Effort;
use super::disk_share::{self, Flushed, Share};
use super::side::{OURS, Side, our_command, text};
use super::table::{Check, Report, Section, median, spread};
use crate::client::Protocol;
use crate::load::idle::IdlePlan;
use crate::load::{self, End, Outcome, Plan, idle, startup_time};
use crate::measure::bare_sockets;
use crate::peer::RabbitMq;
use std::path::Path;
use std::time::{Duration, Instant};

/// The native loads on all sides.
pub(crate) struct Native<'a> {
    /// The brokers.
    pub(crate) sides: &'a [Side],
    /// How long and how often.
    pub(crate) effort: Effort,
    /// Where the disk is measured.
    pub(crate) folder: &'a Path,
}

/// A native load and its targets on our side.
#[derive(Debug, Clone, Copy, Default)]
struct Target {
    rate_min: Option<f64>,
    cpu_ns_max: Option<f64>,
    disk_share_min: Option<f64>,
}

struct Load {
    name: &'static str,
    target: Target,
    shape: fn(&mut Plan),
}

/// The loads; [`Native::plan`] completes their plans.
const LOADS: &[Load] = &[
    Load {
        name: "native 100 B auto-ack 1 pair",
        target: Target { rate_min: Some(1.5e6), cpu_ns_max: Some(350.0), disk_share_min: None },
        shape: |plan| plan.ahead = 50_000,
    },
    Load {
        name: "native 100 B auto-ack 10 pairs",
        target: Target { rate_min: None, cpu_ns_max: None, disk_share_min: None },
        shape: |plan| {
            (plan.producers, plan.queues, plan.consumers) = (10, 10, 10);
            plan.ahead = 50_000;
        },
    },
    Load {
        name: "native 100 B fan-out 10",
        target: Target { rate_min: None, cpu_ns_max: None, disk_share_min: None },
        shape: |plan| {
            (plan.fan_out, plan.queues, plan.consumers) = (true, 10, 10);
            plan.ahead = 5_000;
        },
    },
    Load {
        // Consumers use as much of the processors as producers: the disk's share has its target in the next
        // load, without consumers.
        name: "native 1 KiB persistent, 10 pairs, window 1,000",
        target: Target { rate_min: Some(1e5), cpu_ns_max: None, disk_share_min: None },
        shape: |plan| {
            (plan.producers, plan.queues, plan.consumers) = (10, 10, 10);
            (plan.size_bytes, plan.persistent, plan.window) = (PERSISTENT_BYTES, true, 1_000);
            (plan.ack_every, plan.prefetch) = (100, 2_000);
        },
    },
    Load {
        name: "native 1 KiB persistent, 10 producers, window 1,000, none consumes",
        target: Target { rate_min: Some(1e5), cpu_ns_max: None, disk_share_min: Some(0.6) },
        shape: |plan| {
            (plan.producers, plan.queues, plan.consumers) = (10, 10, 0);
            (plan.size_bytes, plan.persistent, plan.window) = (PERSISTENT_BYTES, true, 1_000);
        },
    },
];

/// Octets of a body in the persistent loads.
const PERSISTENT_BYTES: usize = 1_024;

/// The idle connections of one run, and the most memory each may take.
const IDLE_CONNECTIONS: usize = 1_000;
const IDLE_KIB_MAX: f64 = 8.0;
/// The longest start until the first message.
const START_MS_MAX: f64 = 25.0;

impl Native<'_> {
    fn plan(&self, side: &Side) -> Plan {
        let end = End::After { warm_up: Duration::from_secs(1), measured: self.effort.native };
        Plan { end, ..Plan::new(side.uri.clone()) }
    }

    /// Runs the selected loads, then the bare limits.
    pub(crate) fn loads(
        &self,
        report: &mut Report,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(), String> {
        for load in LOADS.iter().filter(|load| wanted(load.name)) {
            report.add(self.load(load)?);
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
        Ok(())
    }

    fn load(&self, load: &Load) -> Result<Section, String> {
        let mut section = Section::new(load.name);
        let mut outcomes: Vec<Vec<Outcome>> = self.sides.iter().map(|_| Vec::new()).collect();
        let mut shares = Vec::new();
        for round in 1..=self.effort.rounds {
            for (side, outcomes) in self.sides.iter().zip(&mut outcomes) {
                let mut plan = self.plan(side);
                (load.shape)(&mut plan);
                plan.check()?;
                let is_shared = side.name == OURS && load.target.disk_share_min.is_some();
                let before = is_shared.then(|| Flushed::of_ours(self.folder)).transpose()?;
                let outcome = load::run(&plan, Some(side.pid()))
                    .map_err(|error| format!("{} on {}: {error}", load.name, side.name))?;
                if let Some(before) = before {
                    let after = Flushed::of_ours(self.folder)?;
                    shares.push(Share::measure(self.folder, before, after)?);
                }
                eprintln!("{} round {round}: {}: {}", load.name, side.name, brief(&outcome));
                outcomes.push(outcome);
            }
        }
        for (side, outcomes) in self.sides.iter().zip(&outcomes) {
            describe(&mut section, &side.name, outcomes);
            if side.name == OURS {
                judge(&mut section, &load.target, outcomes);
                if let Some(least) = load.target.disk_share_min {
                    disk_share::judge(&mut section, outcomes, &shares, PERSISTENT_BYTES, least);
                }
            }
        }
        Ok(section)
    }

    /// Memory of idle connections on brokers that have not served any client yet: a broker that has keeps
    /// memory from before.
    pub(crate) fn idle(&self) -> Result<Section, String> {
        let mut section = Section::new("1,000 idle connections, each with a queue and a consumer");
        for side in self.sides {
            let settle = Duration::from_secs(2);
            let plan = IdlePlan { settle, ..IdlePlan::of(IDLE_CONNECTIONS) };
            let cost = idle::measure(&side.uri, side.pid(), &plan).map_err(text)?;
            section.value(&side.name, "memory each", format!("{:.1} KiB", cost.kib_per_connection));
            section.value(&side.name, "opened", format!("{:.0}/s", cost.opened_per_s));
            if side.name == OURS {
                section.check(Check::at_most("KiB each", cost.kib_per_connection, IDLE_KIB_MAX));
                section.check(Check::clean(cost.verdict.is_clean()));
            }
        }
        Ok(section)
    }
}

/// Measures the start of each side on an empty store, ours several times.
pub(crate) fn starts(
    program: Option<&Path>,
    rabbitmq: bool,
    folder: &Path,
    effort: Effort,
) -> Result<Section, String> {
    let mut section = Section::new("start to first message, empty store");
    if let Some(program) = program {
        let mut times = Vec::new();
        for attempt in 0..effort.rounds.max(2) * 2 + 1 {
            let data = folder.join(format!("start-{attempt}"));
            let launch = our_command(program, Protocol::Amqp091, &data)?;
            let patience = Duration::from_secs(20);
            let time = startup_time::measure(&launch.command, &launch.uri, patience);
            let time = time.map_err(text)?;
            times.push(time.first_message_ms);
        }
        section.value(OURS, "first message", format!("{} ms", spread(times.iter().copied(), 1)));
        section.check(Check::at_most("ms", median(times), START_MS_MAX));
    }
    if rabbitmq {
        let folder = folder.join("start-rabbitmq");
        std::fs::create_dir_all(&folder).map_err(text)?;
        let began = Instant::now();
        let broker = RabbitMq::start(&folder).map_err(text)?;
        startup_time::deliver_first(broker.uri()).map_err(text)?;
        let elapsed_ms = began.elapsed().as_secs_f64() * 1e3;
        section.value(super::side::RABBITMQ, "first message", format!("{elapsed_ms:.0} ms"));
    }
    Ok(section)
}

pub(super) fn rate_of(outcome: &Outcome) -> f64 {
    match outcome.rates.delivered {
        0.0 => outcome.rates.confirmed.max(outcome.rates.published),
        delivered => delivered,
    }
}

fn judge(section: &mut Section, target: &Target, outcomes: &[Outcome]) {
    if let Some(least) = target.rate_min {
        let rate = median(outcomes.iter().map(rate_of));
        section.check(Check::at_least("msgs/s", rate, least));
    }
    if let Some(most) = target.cpu_ns_max {
        let cpu_ns = median(outcomes.iter().map(broker_ns));
        section.check(Check::at_most("ns of broker CPU a message", cpu_ns, most));
    }
    let clean = outcomes.iter().flat_map(|it| &it.verdict).all(|verdict| verdict.is_clean());
    section.check(Check::clean(clean));
}

pub(super) fn broker_ns(outcome: &Outcome) -> f64 {
    outcome.broker.as_ref().map_or(0.0, |broker| broker.cpu_ns_per_message)
}

pub(super) fn brief(outcome: &Outcome) -> String {
    let clean = outcome.verdict.as_ref().is_none_or(|verdict| verdict.is_clean());
    format!(
        "{:.0} msgs/s, broker {:.0} ns, tool {:.0} ns a message{}",
        rate_of(outcome),
        broker_ns(outcome),
        outcome.tool.cpu_ns_per_message,
        if clean { "" } else { ", NOT CLEAN" }
    )
}

pub(super) fn describe(section: &mut Section, name: &str, outcomes: &[Outcome]) {
    section.value(name, "msgs/s", spread(outcomes.iter().map(rate_of), 0));
    section.value(name, "broker CPU", format!("{} ns", spread(outcomes.iter().map(broker_ns), 0)));
    let tool = outcomes.iter().map(|outcome| outcome.tool.cpu_ns_per_message);
    section.value(name, "tool CPU", format!("{} ns", spread(tool, 0)));
}
