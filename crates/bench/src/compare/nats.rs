//! The comparison with nats-server: loads, round trips, idle subscribers and the cost of matching, with their
//! targets.

use super::native::{brief, broker_ns, describe, rate_of};
use super::nats_bench::{self, Scenario};
use super::relay::Relay;
use super::side::{OURS, Side, text};
use super::table::{Check, Report, Section, median, spread};
use super::{Effort, isolation};
use crate::load::idle::{self, IdlePlan};
use crate::load::{self, DRAIN, End, Misbehaving, Outcome, Plan, round_trip};
use crate::measure::bare_sockets;
use crate::report::grouped;
use std::path::Path;
use std::time::Duration;

/// Descriptors that a broker and the tool each need for the idle connections.
pub(crate) const DESCRIPTORS: u64 = IDLE_CONNECTIONS as u64 + 200;

/// The idle subscribers of one run, and the most memory each may take.
const IDLE_CONNECTIONS: usize = 10_000;
const IDLE_KIB_MAX: f64 = 4.0;
/// How often one message is sent to all of them, and how long it may take to the last one.
const WAVES: usize = 10;
const WAVE_MS_MAX: f64 = 50.0;
/// Times that it may take over bare sockets: on a slow machine these alone exceed the limit in time.
const BARE_WAVE_MAX: f64 = 1.2;

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

/// The comparison on all sides.
pub(crate) struct Nats<'a> {
    /// The brokers.
    pub(crate) sides: &'a [Side],
    /// How long and how often.
    pub(crate) effort: Effort,
    /// The program of nats-bench.
    pub(crate) public: Option<&'a Path>,
}

struct Load {
    name: &'static str,
    /// Our broker CPU per delivery may be at most this part of theirs.
    cpu_part_max: Option<f64>,
    /// Our deliveries per second must be at least this many times theirs.
    rate_min: Option<f64>,
    /// Our broker CPU nanoseconds per delivery.
    cpu_ns_max: Option<f64>,
    shape: fn(&mut Plan),
}

/// The loads; [`plan`] completes their plans. The window keeps a broker's buffers far below what makes it
/// drop messages or cut clients off, and is large enough never to be the bottleneck.
const LOADS: &[Load] = &[
    Load {
        name: "100 B 1->1",
        cpu_part_max: Some(1.0 / 3.0),
        rate_min: Some(3.0),
        cpu_ns_max: Some(200.0),
        shape: |plan| plan.ahead = 50_000,
    },
    Load {
        name: "1 KiB 1->1",
        cpu_part_max: Some(1.0 / 3.0),
        rate_min: Some(3.0),
        cpu_ns_max: None,
        shape: |plan| (plan.size_bytes, plan.ahead) = (1_024, 10_000),
    },
    Load {
        name: "100 B fan-out 10",
        cpu_part_max: Some(0.2),
        rate_min: Some(3.0),
        cpu_ns_max: None,
        shape: |plan| fan_out(plan, 10),
    },
    Load {
        name: "100 B fan-out 50",
        cpu_part_max: Some(0.2),
        rate_min: Some(3.0),
        cpu_ns_max: None,
        shape: |plan| fan_out(plan, 50),
    },
    Load {
        name: "100 B 10 pairs",
        cpu_part_max: None,
        rate_min: Some(2.0),
        cpu_ns_max: None,
        shape: |plan| {
            (plan.producers, plan.queues, plan.consumers) = (10, 10, 10);
            plan.ahead = 50_000;
        },
    },
    Load {
        name: "100 B queue group of 10",
        cpu_part_max: None,
        rate_min: None,
        cpu_ns_max: None,
        shape: |plan| (plan.consumers, plan.ahead) = (10, 50_000),
    },
    Load {
        name: "100 B nobody subscribes",
        cpu_part_max: None,
        rate_min: None,
        cpu_ns_max: None,
        shape: |plan| plan.consumers = 0,
    },
];

fn fan_out(plan: &mut Plan, subscribers: usize) {
    (plan.fan_out, plan.queues, plan.consumers) = (true, subscribers, subscribers);
    plan.ahead = 20_000;
}

impl Nats<'_> {
    /// Runs the selected loads. Idle subscribers come first: a broker that has served clients keeps memory
    /// from before.
    pub(crate) fn run(
        &self,
        report: &mut Report,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(), String> {
        if wanted("idle") {
            report.add(self.idle()?);
        }
        for load in LOADS.iter().filter(|load| wanted(load.name)) {
            report.add(self.load(load)?);
        }
        for scenario in nats_bench::ALL.iter().filter(|it| wanted(it.name)) {
            if let Some(program) = self.public {
                report.add(self.public(program, scenario)?);
            }
        }
        if wanted("round trip") {
            report.add(self.round_trips()?);
        }
        if wanted("isolation") {
            report.add(isolation::compare(self.sides, self.effort, MISBEHAVING)?);
        }
        if wanted("match") {
            report.add(self.matching(0)?);
            report.add(self.matching(SPREAD)?);
        }
        Ok(())
    }

    fn plan(&self, side: &Side, shape: impl Fn(&mut Plan)) -> Result<Plan, String> {
        let end = End::After { warm_up: Duration::from_secs(1), measured: self.effort.native };
        let mut plan = Plan { end, ..Plan::new(side.uri.clone()) };
        shape(&mut plan);
        plan.check()?;
        Ok(plan)
    }

    fn once(&self, side: &Side, name: &str, plan: &Plan) -> Result<Outcome, String> {
        let outcome = load::run(plan, Some(side.pid()))
            .map_err(|error| format!("{name} on {}: {error}", side.name))?;
        eprintln!("{name}: {}: {}", side.name, brief(&outcome));
        Ok(outcome)
    }

    /// Measures each side in turn, as many rounds as the effort has.
    fn rounds<T>(
        &self,
        mut measure: impl FnMut(&Side) -> Result<T, String>,
    ) -> Result<Vec<Vec<T>>, String> {
        let mut found: Vec<Vec<T>> = self.sides.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.effort.rounds {
            for (side, found) in self.sides.iter().zip(&mut found) {
                found.push(measure(side)?);
            }
        }
        Ok(found)
    }

    /// Our median of `value` and the peer's, of the sides that are there.
    fn medians<T>(&self, found: &[Vec<T>], value: impl Fn(&T) -> f64) -> Medians {
        let of = |ours: bool| {
            let mut sides = self.sides.iter().zip(found);
            let side = sides.find(|(side, _)| (side.name == OURS) == ours);
            side.map(|(_, found)| median(found.iter().map(&value)))
        };
        Medians { ours: of(true), theirs: of(false) }
    }

    fn load(&self, load: &Load) -> Result<Section, String> {
        let mut section = Section::new(load.name);
        let mut relay = Relay::default();
        let found = self.rounds(|side| {
            let plan = self.plan(side, load.shape)?;
            relay.measure(load.name, &plan, self.effort.native / 4)?;
            self.once(side, load.name, &plan)
        })?;
        for (side, outcomes) in self.sides.iter().zip(&found) {
            describe(&mut section, &side.name, outcomes);
            let lost: u64 = outcomes.iter().flat_map(|it| &it.verdict).map(|it| it.lost).sum();
            if lost > 0 {
                section.value(&side.name, "lost", lost.to_string());
            }
        }
        relay.describe(&mut section);
        let broker = self.medians(&found, broker_ns);
        if let Some((most, ratio)) = load.cpu_part_max.zip(broker.ratio()) {
            section.check(Check::at_most("of its broker CPU", ratio, most));
        }
        if let Some((least, ratio)) = load.rate_min.zip(self.medians(&found, rate_of).ratio()) {
            section.check(Check::at_least("times its msgs/s", ratio, least));
        }
        if let Some((most, ours)) = load.cpu_ns_max.zip(broker.ours) {
            section.check(Check::at_most("ns of broker CPU a message", ours, most));
        }
        self.check_clean(&mut section, &found);
        Ok(section)
    }

    fn check_clean(&self, section: &mut Section, found: &[Vec<Outcome>]) {
        let ours = self.sides.iter().zip(found).filter(|(side, _)| side.name == OURS);
        let outcomes: Vec<&Outcome> = ours.flat_map(|(_, outcomes)| outcomes).collect();
        if !outcomes.is_empty() {
            let verdicts = || outcomes.iter().flat_map(|it| &it.verdict);
            let clean = verdicts().all(load::Verdict::is_clean);
            section.check(Check::clean(clean));
        }
    }

    fn public(&self, program: &Path, scenario: &Scenario) -> Result<Section, String> {
        let mut section = Section::new(scenario.name);
        // About as long as the other loads take.
        let seconds = self.effort.native.as_secs();
        let deliveries = seconds * if scenario.size_bytes > 500 { 400_000 } else { 1_000_000 };
        let found = self.rounds(|side| {
            let run = nats_bench::run(program, scenario, side, deliveries)?;
            eprintln!(
                "{}: {}: {:.0} msgs/s, broker {:.0} ns, tool {:.0} ns a message",
                scenario.name, side.name, run.delivered_per_s, run.broker_ns, run.tool_ns
            );
            Ok(run)
        })?;
        for (side, runs) in self.sides.iter().zip(&found) {
            let name = side.name.as_str();
            section.value(name, "msgs/s", spread(runs.iter().map(|it| it.delivered_per_s), 0));
            let broker = spread(runs.iter().map(|it| it.broker_ns), 0);
            section.value(name, "broker CPU", format!("{broker} ns"));
            let tool = spread(runs.iter().map(|it| it.tool_ns), 0);
            section.value(name, "tool CPU", format!("{tool} ns"));
        }
        if let Some(part) = self.medians(&found, |run| run.broker_ns).ratio() {
            section.check(Check::at_most("of its broker CPU", part, scenario.cpu_part_max));
        }
        Ok(section)
    }

    fn round_trips(&self) -> Result<Section, String> {
        let mut section = Section::new("100 B round trip, idle otherwise");
        let span = self.effort.native / 2;
        let (mut relay, mut clean) = (Vec::new(), true);
        let found = self.rounds(|side| {
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
        for (side, latencies) in self.sides.iter().zip(&found) {
            let p50 = spread(latencies.iter().map(|it| it.p50_us), 1);
            section.value(&side.name, "p50", format!("{p50} us"));
            let p99 = spread(latencies.iter().map(|it| it.p99_us), 1);
            section.value(&side.name, "p99", format!("{p99} us"));
        }
        let bare = spread(relay.iter().copied(), 1);
        section.value("machine", "bare relay p50", format!("{bare} us"));
        let p50 = self.medians(&found, |latency| latency.p50_us);
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

    fn idle(&self) -> Result<Section, String> {
        let mut section =
            Section::new("10,000 idle subscribers of one subject, then one message to all");
        let settle = Duration::from_secs(2);
        let bare = idle::measure_bare(IDLE_CONNECTIONS, WAVES).map_err(text)?;
        let bare_ms = median(bare.iter().copied());
        let bare = format!("{} ms", spread(bare.into_iter(), 1));
        eprintln!("idle: bare sockets: one message to all {bare}");
        section.value("machine", "bare sockets, one to all", bare);
        for side in self.sides {
            let plan = IdlePlan { settle, waves: WAVES, ..IdlePlan::of(IDLE_CONNECTIONS) };
            let cost = idle::measure(&side.uri, side.pid(), &plan)
                .map_err(|error| format!("idle subscribers on {}: {error}", side.name))?;
            let (name, each) = (side.name.as_str(), cost.kib_per_connection);
            let waves = || cost.waves_ms.iter().copied();
            eprintln!(
                "idle: {name}: {each:.1} KiB each, one message to all {} ms",
                spread(waves(), 1)
            );
            section.value(name, "memory each", format!("{each:.1} KiB"));
            section.value(name, "opened", format!("{:.0}/s", cost.opened_per_s));
            section.value(name, "one to all", format!("{} ms", spread(waves(), 1)));
            if side.name == OURS {
                section.check(Check::at_most("KiB each", each, IDLE_KIB_MAX));
                let wave_ms = median(waves());
                section.check(Check::at_most("ms to the last one", wave_ms, WAVE_MS_MAX));
                let part = wave_ms / bare_ms;
                section.check(Check::at_most("times the bare sockets' ms", part, BARE_WAVE_MAX));
                section.check(Check::clean(cost.verdict.is_clean()));
            }
        }
        Ok(section)
    }

    /// The cost of a message beside more and more subscriptions that do not match it. All counts take turns
    /// in every round, so that drift affects all alike. With a `spread` over many subjects, a cache of
    /// matches does not help.
    fn matching(&self, spread: u64) -> Result<Section, String> {
        let over = if spread > 0 {
            format!(", {} subjects", grouped(spread as f64))
        } else {
            String::new()
        };
        let mut section =
            Section::new(&format!("100 B 1->1{over}, match beside 1 / 1,000 / 1,000,000 others"));
        let found = self.rounds(|side| {
            let with = |bystanders: usize| {
                let name = format!("match{over} beside {bystanders}");
                let plan = self.plan(side, |plan| {
                    (plan.ahead, plan.bystanders) = (50_000, bystanders);
                    (plan.spread, plan.instructions) = (spread, true);
                })?;
                self.once(side, &name, &plan)
            };
            BYSTANDERS.iter().map(|count| with(*count)).collect::<Result<Vec<_>, _>>()
        })?;
        for (side, rounds) in self.sides.iter().zip(&found) {
            let costs = costs(rounds, &|outcome| Some(broker_ns(outcome))).unwrap_or_default();
            let show = |costs: &[f64]| {
                let shown: Vec<String> = costs.iter().map(|cost| grouped(*cost)).collect();
                shown.join(" / ")
            };
            section.value(&side.name, "broker CPU", format!("{} ns", show(&costs)));
            let counted = costs_of_instructions(rounds);
            let counts = counted.as_deref().map_or(NOT_COUNTABLE.to_owned(), show);
            section.value(&side.name, "instructions", counts);
            // Time is noisy, the more so with a thousand times the memory: it is shown and has no target.
            if let Some(judged) = counted.filter(|_| side.name == OURS) {
                let least = judged.iter().copied().fold(f64::INFINITY, f64::min);
                let most = judged.iter().copied().fold(0.0, f64::max);
                let times = most / least.max(1e-9);
                section.check(Check::at_most("times the cheapest", times, BYSTANDERS_COST_MAX));
            }
        }
        Ok(section)
    }
}

/// For each count of bystanders the median over the rounds; `None` if a round lacks the value.
fn costs(rounds: &[Vec<Outcome>], value: &dyn Fn(&Outcome) -> Option<f64>) -> Option<Vec<f64>> {
    (0..BYSTANDERS.len())
        .map(|index| {
            let values = rounds.iter().map(|round| value(&round[index]));
            values.collect::<Option<Vec<f64>>>().map(median)
        })
        .collect()
}

fn costs_of_instructions(rounds: &[Vec<Outcome>]) -> Option<Vec<f64>> {
    costs(rounds, &|outcome| outcome.instructions_per_message)
}

/// Medians over the rounds of each side that is there.
struct Medians {
    ours: Option<f64>,
    theirs: Option<f64>,
}

impl Medians {
    /// Ours in parts of theirs.
    fn ratio(&self) -> Option<f64> {
        Some(self.ours? / self.theirs?)
    }
}
