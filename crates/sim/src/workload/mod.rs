//! Workloads, one file each: they draw the plans of runs.

mod backlog;
mod delayed;
mod direct;
pub(crate) mod draw;
mod exchanges;
mod leases;
mod limits;
mod priorities;
mod races;
mod requests;
mod routing;
mod sessions;
mod transactions;
mod work_queue;

use crate::plan::{Client, Plan};
use crate::random::Random;
use angarium_engine::SlowConsumerPolicy;
use draw::{calm, several_shards, spill};

/// The first kinds of workloads.
const KINDS: &[fn(&mut Random) -> Plan] = &[
    work_queue::plan,
    routing::plan,
    transactions::plan,
    limits::plan,
    races::plan,
    backlog::plan,
    priorities::plan,
    delayed::plan,
];

/// More kinds, drawn separately so that seeds of the first kinds keep their runs.
const LATER_KINDS: &[fn(&mut Random) -> Plan] =
    &[exchanges::plan, requests::plan, leases::plan, delayed::together];
/// Percentage of runs of the later kinds.
const LATER_PERCENT: u64 = 33;
/// Percentage of runs with direct messages, whatever kind was drawn.
const DIRECT_PERCENT: u64 = 25;
/// Percentage of runs with named sessions, whatever kind was drawn.
const SESSIONS_PERCENT: u64 = 8;
/// Seeds a separate generator for that choice.
const SESSIONS: u64 = 0x5e55_1000;
/// Seeds a separate generator for the choice of direct messages.
const DIRECT: u64 = 0xd17e_c700;
/// Percentage of runs in which clients share connections.
const SHARING_PERCENT: u64 = 25;

/// Percentage of runs with several shards.
const SHARDED_PERCENT: u64 = 30;
/// Seeds a separate generator for that choice.
const SHARDED: u64 = 0x0005_4b1a;
/// Seeds a separate generator for the spill disk.
const SPILLING: u64 = 0x5_9001;

/// The plan that follows from a seed's generator.
#[must_use]
pub fn plan(random: &mut Random) -> Plan {
    let mut apart = random.clone().fork();
    let later = apart.percent(LATER_PERCENT).then(|| *apart.pick(LATER_KINDS));
    let is_direct = Random::new(apart.clone().draw() ^ DIRECT).percent(DIRECT_PERCENT);
    let mut sharding = Random::new(apart.clone().draw() ^ SHARDED);
    let mut spill_random = Random::new(apart.clone().draw() ^ SPILLING);
    let direct = is_direct.then_some(direct::plan as fn(&mut Random) -> Plan);
    let is_of_sessions = Random::new(apart.clone().draw() ^ SESSIONS).percent(SESSIONS_PERCENT);
    let of_sessions = is_of_sessions.then_some(sessions::plan as fn(&mut Random) -> Plan);
    let kind = *random.pick(KINDS);
    let mut plan = direct.or(of_sessions).or(later).unwrap_or(kind)(random);
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
        plan.spill = spill(&mut spill_random);
        if spill_random.percent(70) {
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
