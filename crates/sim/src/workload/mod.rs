//! Workloads, a function each: they draw the plans of runs.

mod amqp10;
mod direct;
pub(crate) mod draw;
mod mqtt;
mod queues;
mod routing;

use crate::plan::{Client, Plan};
use crate::random::Random;
use angarium_engine::SlowConsumerPolicy;
use draw::{calm, several_shards, spill};

/// Draws a plan of one kind.
type Kind = fn(&mut Random) -> Plan;

/// The first kinds of workloads.
const KINDS: &[Kind] = &[
    queues::work_queue,
    routing::plain,
    queues::transactions,
    queues::limits,
    queues::races,
    queues::backlog,
    queues::priorities,
    queues::delayed,
];

/// More kinds, drawn separately so that seeds of the first kinds keep their runs.
const LATER_KINDS: &[Kind] =
    &[routing::nested, queues::requests, queues::leases, queues::delayed_together];
/// Percentage of runs of the later kinds.
const LATER_PERCENT: u64 = 33;
/// Percentage of runs with direct messages, whatever kind was drawn.
const DIRECT_PERCENT: u64 = 25;
/// Percentage of runs with named sessions, whatever kind was drawn.
const SESSIONS_PERCENT: u64 = 8;
/// Percentage of runs with clients of AMQP 1.0, whatever kind was drawn. Takers have a part of their own, so
/// that their seeds keep their runs.
const AMQP10_PERCENT: u64 = 16;
const TAKERS_PERCENT: u64 = 8;
const AMQP10_KINDS: &[Kind] = &[amqp10::transactors, amqp10::browsers];
/// Percentage of runs with clients of MQTT, whatever kind was drawn.
const MQTT_PERCENT: u64 = 8;
/// Percentage of runs in which clients share connections.
const SHARING_PERCENT: u64 = 25;
/// Percentage of runs with several shards.
const SHARDED_PERCENT: u64 = 30;

// Each of these seeds a separate generator.
const SESSIONS: u64 = 0x5e55_1000;
const DIRECT: u64 = 0xd17e_c700;
const SHARDED: u64 = 0x0005_4b1a;
const TAKERS: u64 = 0x7a_4e75;
const SPILLING: u64 = 0x5_9001;
const MQTT: u64 = 0x3_0117;

/// The plan that follows from a seed's generator.
pub fn plan(random: &mut Random) -> Plan {
    let mut apart = random.clone().fork();
    let later = apart.percent(LATER_PERCENT).then(|| *apart.pick(LATER_KINDS));
    let drawn = apart.clone().draw();
    let [mut sharding, mut spilling, mut direct, mut sessions, mut takers, mut mqtt] =
        [SHARDED, SPILLING, DIRECT, SESSIONS, TAKERS, MQTT].map(|seed| Random::new(drawn ^ seed));
    let kind = *random.pick(KINDS);
    let by_amqp10 = takers.below(100);
    let kind: Kind = if direct.percent(DIRECT_PERCENT) {
        direct::plan
    } else if sessions.percent(SESSIONS_PERCENT) {
        queues::sessions
    } else if by_amqp10 < TAKERS_PERCENT {
        amqp10::takers
    } else if by_amqp10 < AMQP10_PERCENT {
        *takers.pick(AMQP10_KINDS)
    } else if mqtt.percent(MQTT_PERCENT) {
        mqtt::plan
    } else {
        later.unwrap_or(kind)
    };
    let mut plan = kind(random);
    if random.percent(15) {
        plan.faults = calm(random);
    }
    if apart.percent(SHARING_PERCENT) {
        share_connections(&mut plan, &mut apart);
    }
    if sharding.percent(SHARDED_PERCENT) {
        plan.shards = several_shards(&mut sharding);
    }
    if plan.slow_consumer_policy == SlowConsumerPolicy::Spool {
        plan.spill = spill(&mut spilling);
        if spilling.percent(70) {
            direct::slow_down(&mut plan);
        }
    }
    plan
}

/// Lets clients share connections, each with its own channels.
fn share_connections(plan: &mut Plan, random: &mut Random) {
    let mut roles = Vec::new();
    for client in std::mem::take(&mut plan.clients) {
        match client {
            Client::Amqp091(own) => roles.extend(own),
            other => plan.clients.push(other),
        }
    }
    while !roles.is_empty() {
        let mut together = Vec::new();
        for _ in 0..random.between(1, 4).min(roles.len() as u64) {
            together.push(roles.swap_remove(random.index(roles.len())));
        }
        plan.clients.push(Client::Amqp091(together));
    }
}
