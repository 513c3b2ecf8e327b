//! The loads of this crate's own generator, and idle connections, with their targets.

use super::comparison::Comparison;
use super::disk_share::{self, Flushed, Share};
use super::relay::Relay;
use super::runs::{Runs, broker_mib, broker_ns, rate_of, unit};
use super::side::{MOSQUITTO, OURS, RUMQTTD, Side, text};
use super::table::{Check, Section, median, spread};
use crate::client::amqp091::Argument;
use crate::load::idle::{self, IdleCost, IdlePlan};
use crate::load::{self, End, Outcome, Plan, Verdict};
use crate::peer::QUORUM;
use std::time::Duration;

/// The targets of a load on our side.
#[derive(Debug, Clone, Copy)]
struct Targets {
    /// What the names of the peers begin with that it runs on, first the one that the others are in relation
    /// to; it runs on all sides if none is named.
    beside: &'static [&'static str],
    /// Messages per second.
    rate_min: Option<f64>,
    /// Messages per second as a multiple of the peer's.
    rate_times_min: Option<f64>,
    /// Broker CPU nanoseconds a message.
    cpu_ns_max: Option<f64>,
    /// Broker CPU a message as a part of the peer's.
    cpu_part_max: Option<f64>,
    /// Bytes of bodies as a part of what the bare disk takes.
    disk_share_min: Option<f64>,
}

const NO_TARGETS: Targets = Targets {
    beside: &[],
    rate_min: None,
    rate_times_min: None,
    cpu_ns_max: None,
    cpu_part_max: None,
    disk_share_min: None,
};

impl Targets {
    fn is_for(&self, side: &Side) -> bool {
        let mut beside = self.beside.iter();
        side.name == OURS || beside.len() == 0 || beside.any(|peer| side.name.starts_with(peer))
    }
}

/// A load; [`Comparison::plan`] completes its plan.
pub(super) struct Load {
    pub(super) name: &'static str,
    targets: Targets,
    pub(super) shape: fn(&mut Plan),
}

/// The loads beside RabbitMQ.
pub(super) const AMQP091: &[Load] = &[
    Load {
        name: "native 100 B auto-ack 1 pair",
        targets: Targets { rate_min: Some(1.5e6), cpu_ns_max: Some(350.0), ..NO_TARGETS },
        shape: |plan| plan.ahead = 50_000,
    },
    Load { name: "native 100 B auto-ack 10 pairs", targets: NO_TARGETS, shape: ten_pairs },
    Load {
        name: "native 100 B fan-out 10",
        targets: NO_TARGETS,
        shape: |plan| fan_out(plan, 10, 5_000),
    },
    Load {
        // Consumers use as much of the processors as producers: the disk's share has its target in the next
        // load, without consumers.
        name: "native 1 KiB persistent, 10 pairs, window 1,000",
        targets: Targets { rate_min: Some(1e5), ..NO_TARGETS },
        shape: |plan| {
            persistent(plan);
            (plan.consumers, plan.ack_every, plan.prefetch) = (10, 100, 2_000);
        },
    },
    Load {
        name: "native 1 KiB persistent, 10 producers, window 1,000, none consumes",
        targets: Targets { rate_min: Some(1e5), disk_share_min: Some(0.6), ..NO_TARGETS },
        shape: persistent,
    },
];

/// The loads beside nats-server. The bound keeps a broker's buffers far below what makes it drop messages or
/// cut clients off, and is large enough never to be the bottleneck.
pub(super) const NATS: &[Load] = &[
    Load {
        name: "100 B 1->1",
        targets: Targets { cpu_ns_max: Some(200.0), ..times(3.0, 1.0 / 3.0) },
        shape: |plan| plan.ahead = 50_000,
    },
    Load {
        name: "1 KiB 1->1",
        targets: times(3.0, 1.0 / 3.0),
        shape: |plan| (plan.size_bytes, plan.ahead) = (1_024, 10_000),
    },
    Load {
        name: "100 B fan-out 10",
        targets: times(3.0, 0.2),
        shape: |plan| fan_out(plan, 10, 20_000),
    },
    Load {
        name: "100 B fan-out 50",
        targets: times(3.0, 0.2),
        shape: |plan| fan_out(plan, 50, 20_000),
    },
    Load {
        name: "100 B 10 pairs",
        targets: Targets { rate_times_min: Some(2.0), ..NO_TARGETS },
        shape: ten_pairs,
    },
    Load {
        name: "100 B queue group of 10",
        targets: NO_TARGETS,
        shape: |plan| (plan.consumers, plan.ahead) = (10, 50_000),
    },
    Load { name: "100 B nobody subscribes", targets: NO_TARGETS, shape: |plan| plan.consumers = 0 },
];

/// The loads beside Artemis.
pub(super) const AMQP10: &[Load] = &[
    Load { name: "1 KiB 1->1 transient, window 500", targets: times(4.0, 0.2), shape: unsettled },
    Load {
        name: "1 KiB 1->1 flushed, window 500",
        targets: times(4.0, 0.2),
        shape: |plan| {
            unsettled(plan);
            plan.persistent = true;
        },
    },
];

/// The loads beside Mosquitto and rumqttd. Of QoS 0 rumqttd drops what its subscribers are too slow for, and
/// it keeps nothing over a restart.
pub(super) const MQTT: &[Load] = &[
    Load {
        name: "QoS 0 100 B 1->1",
        targets: Targets {
            rate_times_min: Some(10.0),
            cpu_ns_max: Some(200.0),
            ..beside(&[MOSQUITTO])
        },
        shape: |plan| plan.ahead = 50_000,
    },
    Load {
        name: "QoS 0 100 B fan-out 50",
        targets: Targets { rate_times_min: Some(10.0), ..beside(&[MOSQUITTO]) },
        shape: |plan| fan_out(plan, 50, 20_000),
    },
    Load {
        name: "QoS 1 100 B 1->1, window 100, kept by nobody",
        targets: Targets { rate_times_min: Some(1.5), ..beside(&[RUMQTTD, MOSQUITTO]) },
        shape: |plan| (plan.window, plan.ack_every) = (100, 10),
    },
    Load {
        name: "QoS 1 100 B kept and flushed, 10 pairs, window 100",
        targets: Targets { rate_times_min: Some(2.0), ..beside(&[MOSQUITTO]) },
        shape: kept_pairs,
    },
    Load {
        name: "QoS 2 100 B kept and flushed, 10 pairs, window 100",
        targets: Targets { rate_min: Some(6e4), ..beside(&[MOSQUITTO]) },
        shape: |plan| {
            kept_pairs(plan);
            plan.exactly_once = true;
        },
    },
];

const fn beside(beside: &'static [&'static str]) -> Targets {
    Targets { beside, ..NO_TARGETS }
}

/// Pairs whose messages sessions keep over a restart, where the broker does.
fn kept_pairs(plan: &mut Plan) {
    (plan.producers, plan.queues, plan.consumers) = (10, 10, 10);
    (plan.persistent, plan.window, plan.ack_every) = (true, 100, 10);
}

/// One pair, both sides of which wait for outcomes.
fn unsettled(plan: &mut Plan) {
    (plan.size_bytes, plan.window) = (PERSISTENT_BYTES, 500);
    (plan.ack_every, plan.prefetch) = (50, 1_000);
}

const fn times(rate_min: f64, cpu_max: f64) -> Targets {
    Targets { rate_times_min: Some(rate_min), cpu_part_max: Some(cpu_max), ..NO_TARGETS }
}

fn ten_pairs(plan: &mut Plan) {
    (plan.producers, plan.queues, plan.consumers, plan.ahead) = (10, 10, 10, 50_000);
}

fn fan_out(plan: &mut Plan, subscribers: usize, ahead: u64) {
    (plan.fan_out, plan.queues, plan.consumers) = (true, subscribers, subscribers);
    plan.ahead = ahead;
}

/// Octets of a body in the persistent loads.
const PERSISTENT_BYTES: usize = 1_024;

fn persistent(plan: &mut Plan) {
    (plan.producers, plan.queues, plan.consumers) = (10, 10, 0);
    (plan.size_bytes, plan.persistent, plan.window) = (PERSISTENT_BYTES, true, 1_000);
    let (name, value) = QUORUM;
    plan.queue_arguments = vec![(name.to_owned(), Argument::from_text(value))];
}

/// Idle connections, and their targets.
pub(super) struct Idle {
    pub(super) name: &'static str,
    pub(super) connections: usize,
    pub(super) kib_max: f64,
    pub(super) waves: Option<Waves>,
}

/// Messages to all idle connections, one after the other.
pub(super) struct Waves {
    pub(super) count: usize,
    /// How long a message may take to the last connection.
    pub(super) ms_max: f64,
    /// How many times what it takes over bare sockets: on a slow machine these alone exceed the other limit.
    pub(super) bare_times_max: f64,
}

impl Comparison<'_> {
    pub(super) fn plan(&self, side: &Side, shape: impl Fn(&mut Plan)) -> Result<Plan, String> {
        let end = End::After { warm_up: Duration::from_secs(1), measured: self.effort.native };
        let mut plan = Plan { end, ..Plan::new(side.uri.clone()) };
        shape(&mut plan);
        plan.check()?;
        Ok(plan)
    }

    pub(super) fn once(&self, side: &Side, name: &str, plan: &Plan) -> Result<Outcome, String> {
        let outcome = load::run(plan, Some(side.pid()))
            .map_err(|error| format!("{name} on {}: {error}", side.name))?;
        let clean = outcome.verdict.as_ref().is_none_or(Verdict::is_clean);
        eprintln!(
            "{name}: {}: {:.0} msgs/s, broker {:.0} ns, tool {:.0} ns a message{}",
            side.name,
            rate_of(&outcome),
            broker_ns(&outcome),
            outcome.tool.cpu_ns_per_message,
            if clean { "" } else { ", NOT CLEAN" }
        );
        Ok(outcome)
    }

    /// Runs a load on all sides, beside bare relays if there is one.
    pub(super) fn load(&self, load: &Load, mut relay: Option<Relay>) -> Result<Section, String> {
        let mut section = Section::new(load.name);
        let mut shares = Vec::new();
        let sides = self.sides.iter().filter(|side| load.targets.is_for(side));
        let found = Runs::measure(sides, self.effort.rounds, |side| {
            let plan = self.plan(side, load.shape)?;
            if let Some(relay) = &mut relay {
                relay.measure(load.name, &plan, self.effort.native / 4)?;
            }
            let is_shared = side.name == OURS && load.targets.disk_share_min.is_some();
            let before = is_shared.then(|| Flushed::of_ours(self.folder)).transpose()?;
            let outcome = self.once(side, load.name, &plan)?;
            if let Some(before) = before {
                let after = Flushed::of_ours(self.folder)?;
                shares.push(Share::measure(self.folder, before, after)?);
            }
            Ok(outcome)
        })?;
        found.show(&mut section, "msgs/s", unit("", 0), rate_of);
        found.show(&mut section, "broker CPU", unit(" ns", 0), broker_ns);
        found.show(&mut section, "tool CPU", unit(" ns", 0), |it| it.tool.cpu_ns_per_message);
        found.show(&mut section, "memory", unit(" MiB", 0), broker_mib);
        for it in &found.0 {
            let lost: u64 = it.runs.iter().flat_map(|it| &it.verdict).map(|it| it.lost).sum();
            if lost > 0 {
                section.value(&it.side, "lost", lost.to_string());
            }
        }
        relay.iter().for_each(|relay| relay.describe(&mut section));
        judge(&mut section, &load.targets, &found);
        if let Some((least, ours)) = load.targets.disk_share_min.zip(found.ours()) {
            disk_share::judge(&mut section, ours, &shares, PERSISTENT_BYTES, least);
        }
        Ok(section)
    }

    /// Idle connections on brokers that have not served any client yet: a broker that has keeps memory from
    /// before.
    pub(super) fn idle(&self, idle: &Idle) -> Result<Section, String> {
        let mut section = Section::new(idle.name);
        let (settle, waves) = (Duration::from_secs(2), idle.waves.as_ref());
        let waves_count = waves.map_or(0, |waves| waves.count);
        let plan = IdlePlan { settle, waves: waves_count, ..IdlePlan::of(idle.connections) };
        let mut bare_ms = 0.0;
        if waves_count > 0 {
            let bare = idle::measure_bare(idle.connections, waves_count).map_err(text)?;
            bare_ms = median(bare.iter().copied());
            let bare = format!("{} ms", spread(bare, 1));
            eprintln!("idle: bare sockets: one message to all {bare}");
            section.value("machine", "bare sockets, one to all", bare);
        }
        let found = Runs::measure(self.sides, 1, |side| {
            let cost = idle::measure(&side.uri, side.pid(), &plan)
                .map_err(|error| format!("idle connections on {}: {error}", side.name))?;
            eprintln!("idle: {}: {:.1} KiB each", side.name, cost.kib_per_connection);
            Ok(cost)
        })?;
        let each = |cost: &IdleCost| cost.kib_per_connection;
        found.show(&mut section, "memory each", unit(" KiB", 1), each);
        found.show(&mut section, "opened", unit("/s", 0), |cost| cost.opened_per_s);
        found.show_all(&mut section, "one to all", unit(" ms", 1), |cost| cost.waves_ms.clone());
        if let Some([cost]) = found.ours() {
            section.check(Check::at_most("KiB each", each(cost), idle.kib_max));
            if let Some(Waves { ms_max, bare_times_max, .. }) = waves {
                let wave_ms = median(cost.waves_ms.iter().copied());
                section.check(Check::at_most("ms to the last one", wave_ms, *ms_max));
                let times = wave_ms / bare_ms;
                let check = Check::at_most("times the bare sockets' ms", times, *bare_times_max);
                section.check(check);
            }
            section.check(Check::clean(cost.verdict.is_clean()));
        }
        Ok(section)
    }
}

fn judge(section: &mut Section, targets: &Targets, found: &Runs<Outcome>) {
    let peer = targets.beside.first().copied().unwrap_or_default();
    let its = if peer.is_empty() { "its".to_owned() } else { format!("{peer}'s") };
    let rate = found.medians_beside(peer, rate_of);
    let broker = found.medians_beside(peer, broker_ns);
    if let Some((most, ratio)) = targets.cpu_part_max.zip(broker.ratio()) {
        section.check(Check::at_most(&format!("of {its} broker CPU"), ratio, most));
    }
    if let Some((least, ratio)) = targets.rate_times_min.zip(rate.ratio()) {
        section.check(Check::at_least(&format!("times {its} msgs/s"), ratio, least));
    }
    if let Some((least, ours)) = targets.rate_min.zip(rate.ours) {
        section.check(Check::at_least("msgs/s", ours, least));
    }
    if let Some((most, ours)) = targets.cpu_ns_max.zip(broker.ours) {
        section.check(Check::at_most("ns of broker CPU a message", ours, most));
    }
    if let Some(ours) = found.ours() {
        let clean = ours.iter().flat_map(|it| &it.verdict).all(Verdict::is_clean);
        section.check(Check::clean(clean));
    }
}
