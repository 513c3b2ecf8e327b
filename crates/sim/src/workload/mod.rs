//! The kinds of runs, one file each: from chance to a plan.

mod backlog;
mod delayed;
mod direct;
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

use crate::plan::{
    Acks, Consumer, Exchange, Faults, Mode, Plan, Producer, Queue, Role, Shards, Sizes, Spool,
};
use crate::random::Random;
use angarium_engine::ExchangeKind;
use angarium_engine::SlowConsumerPolicy;

/// All kinds.
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

/// Kinds that were added later. They are drawn apart, so that the seeds of the others keep their runs.
const LATER_KINDS: &[fn(&mut Random) -> Plan] =
    &[exchanges::plan, requests::plan, leases::plan, delayed::together];
/// How many in a hundred runs are of those.
const LATER_PERCENT: u64 = 33;
/// How many in a hundred runs are of direct messages, whatever they were without.
const DIRECT_PERCENT: u64 = 25;
/// How many in a hundred runs are of named sessions, whatever they were without.
const SESSIONS_PERCENT: u64 = 8;
/// Draws those apart from all others.
const SESSIONS: u64 = 0x5e55_1000;
/// Draws those apart from all others.
const DIRECT: u64 = 0xd17e_c700;
/// In how many in a hundred runs some clients share a connection.
const SHARING_PERCENT: u64 = 25;

/// How many in a hundred runs are of a broker of several shards.
const SHARDED_PERCENT: u64 = 30;
/// Draws those apart from all others.
const SHARDED: u64 = 0x0005_4b1a;
/// Draws what goes wrong with the disk of direct messages that wait apart from all others.
const SPOOLING: u64 = 0x5_9001;

/// The plan that follows from a seed's generator.
#[must_use]
pub fn plan(random: &mut Random) -> Plan {
    let mut apart = random.clone().fork();
    let later = apart.percent(LATER_PERCENT).then(|| *apart.pick(LATER_KINDS));
    let is_direct = Random::new(apart.clone().draw() ^ DIRECT).percent(DIRECT_PERCENT);
    let mut sharding = Random::new(apart.clone().draw() ^ SHARDED);
    let mut spooling = Random::new(apart.clone().draw() ^ SPOOLING);
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
        plan.spool = spool(&mut spooling);
        if spooling.percent(70) {
            direct::lag(&mut plan);
        }
    }
    plan
}

/// A broker of several shards.
pub(crate) fn several_shards(random: &mut Random) -> Shards {
    Shards {
        count: *random.pick(&[2, 2, 2, 3, 3, 5, 5, 16, 64]),
        delay_max: *random.pick(&[50, 1_000, 20_000, 100_000]),
        nap_percent: *random.pick(&[0, 2, 20]),
        nap_max: *random.pick(&[1_000, 50_000]),
    }
}

/// Has clients share connections, each with channels of its own.
fn share_connections(plan: &mut Plan, random: &mut Random) {
    let roles = std::mem::take(&mut plan.clients).into_iter();
    let (alone, mut roles) = roles.partition(|role| matches!(role, Role::Nats(_)));
    plan.clients = alone;
    while !roles.is_empty() {
        let mut together = Vec::new();
        for _ in 0..random.between(1, 4).min(roles.len() as u64) {
            together.push(roles.swap_remove(random.index(roles.len())));
        }
        plan.clients.push(Role::Several(together));
    }
}

/// A plan with nothing in it but sizes and faults.
fn empty(workload: &'static str, random: &mut Random) -> Plan {
    Plan {
        workload,
        exchanges: Vec::new(),
        queues: Vec::new(),
        bindings: Vec::new(),
        clients: Vec::new(),
        sessions: Vec::new(),
        duration: random.between(1_000_000, 12_000_000),
        sizes: sizes(random),
        faults: faults(random),
        shards: Shards::ONE,
        slow_consumer_policy: SlowConsumerPolicy::DropNew,
        spool: Spool::default(),
        may_refuse: false,
    }
}

fn sizes(random: &mut Random) -> Sizes {
    let resident = *random.pick(&[16 << 10, 128 << 10, 4 << 20]);
    let segment_bytes = *random.pick(&[16 << 10, 64 << 10, 256 << 10]);
    Sizes {
        resident_bytes_max: resident,
        queue_resident_bytes_max: (resident / *random.pick(&[1, 4])).max(4 << 10),
        segment_bytes,
        checkpoint_bytes: u64::from(segment_bytes) * random.between(1, 6),
        backlog_bytes_max: *random.pick(&[16 << 10, 256 << 10, 4 << 20]),
        outbox_bytes_max: *random.pick(&[2 << 10, 32 << 10, 1 << 20]),
        disk_bytes: 256 << 20,
    }
}

/// A network that only delays.
fn calm(random: &mut Random) -> Faults {
    Faults {
        fragment_max: 64 << 10,
        delay_max: random.between(50, 2_000),
        disk_delay_max: random.between(100, 20_000),
        pipe_bytes: 64 << 10,
        ..Faults::default()
    }
}

fn faults(random: &mut Random) -> Faults {
    Faults {
        crashes: random.below(4),
        closes: random.below(2),
        sync_errors: u64::from(random.percent(15)),
        disk_fulls: u64::from(random.percent(20)),
        bit_flip: random.percent(10),
        cuts: random.below(6),
        stalls: random.below(6),
        fragment_max: *random.pick(&[64, 1_500, 16 << 10, 64 << 10]),
        delay_max: *random.pick(&[100, 1_000, 20_000]),
        disk_delay_max: *random.pick(&[500, 10_000, 200_000]),
        pipe_bytes: *random.pick(&[300, 4 << 10, 64 << 10]),
    }
}

/// In one run of three nothing goes wrong with it.
fn spool(random: &mut Random) -> Spool {
    let chunk_bytes = *random.pick(&[300, 1 << 10, 8 << 10]);
    let loaded_max = *random.pick(&[1, 1, 3, 32]);
    if random.percent(33) {
        return Spool { chunk_bytes, loaded_max, ..Spool::default() };
    }
    Spool {
        chunk_bytes,
        loaded_max,
        chunks_max: random.percent(25).then(|| *random.pick(&[1, 10, 100])),
        failures: random.below(5),
        fulls: random.below(3),
        rots: random.below(6),
        slowness_max: *random.pick(&[0, 0, 50_000, 1_000_000]),
    }
}

fn queue(name: impl Into<String>) -> Queue {
    Queue { name: name.into(), durable: true, ..Queue::default() }
}

/// A direct exchange.
pub(crate) fn exchange(name: impl Into<String>) -> Exchange {
    Exchange { name: name.into(), kind: ExchangeKind::Direct, delaying: false, alternate: None }
}

/// A producer of some kind for the named queues.
fn producer(random: &mut Random, keys: Vec<String>) -> Producer {
    let mode = match random.below(10) {
        0 => Mode::Plain,
        1 | 2 => Mode::Transactional(random.between(1, 12)),
        _ => Mode::Confirm,
    };
    Producer {
        exchange: None,
        keys,
        messages: u32::try_from(random.between(20, 400)).expect("small"),
        window: u32::try_from(random.between(1, 100)).expect("small"),
        mode,
        persistent_percent: *random.pick(&[100, 100, 70, 0]),
        mandatory_percent: *random.pick(&[0, 30]),
        body_max: *random.pick(&[100, 2_000, 20_000]),
        priority_max: 0,
        ttl: None,
        delay_max: None,
        delay_step: None,
        headers: Vec::new(),
        pause_max: random.between(1_000, 60_000),
        rollback_percent: 20,
    }
}

/// A consumer of some kind.
fn consumer(random: &mut Random, queue: usize) -> Consumer {
    let acks = match random.below(8) {
        0 => Acks::Auto,
        1 | 2 => Acks::Multiple(random.between(2, 20)),
        _ => Acks::Single,
    };
    Consumer {
        queue,
        acks,
        prefetch: *random.pick(&[1, 2, 10, 100, 0]),
        prefetch_bytes: 0,
        requeue_percent: *random.pick(&[0, 0, 10, 40]),
        discard_percent: *random.pick(&[0, 0, 10]),
        think_max: random.between(500, 40_000),
        gets: random.percent(15),
        life_max: random.percent(40).then(|| random.between(100_000, 4_000_000)),
    }
}

/// Adds `producers` and, for each of `queues`, a few consumers.
fn add_clients(
    plan: &mut Plan,
    random: &mut Random,
    producers: Vec<Producer>,
    queues: impl IntoIterator<Item = usize>,
) {
    plan.clients.extend(producers.into_iter().map(Role::Producer));
    for queue in queues {
        for _ in 0..random.below(3) {
            let consumer = consumer(random, queue);
            plan.clients.push(Role::Consumer(consumer));
        }
    }
}
