//! Direct messages between NATS clients: wildcards, queue groups, requests, slow consumers; and
//! between NATS and AMQP 0-9-1 clients.

use super::draw::{empty, exchange, owned, producers, queue};
use crate::plan::nats::{self, Part, Publishing, Requesting, Responding, Subscribing};
use crate::plan::{Binding, Client, Exchange, Plan, Queue};
use crate::random::Random;
use angarium_engine::{ExchangeKind, QUEUE_SUBJECT_PREFIX, SlowConsumerPolicy};
use angarium_protocol::SUBJECT_EXCHANGE;
use std::collections::BTreeSet;

const SUBJECTS: &[&str] = &["a", "a.b", "a.c", "a.b.c", "b.b", "b"];
/// None matches the broker's own subjects under `$SYS`.
const PATTERNS: &[&str] = &["a.*", "*.b", "a.>", "a.b", "*", "b.*", "a.*.c", "a"];
const SERVICES: &[&str] = &["svc.one", "svc.two"];
/// A subject without responders.
const NO_SERVICE: &str = "svc.none";
/// Binding keys of queues.
const BINDINGS: &[&str] = &["a.#", "*.b", "a.b", "a.*.c"];

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("direct", random);
    let is_tight = random.percent(50);
    plan.sizes.outbox_bytes_max =
        if is_tight { *random.pick(&[1 << 10, 2 << 10, 8 << 10]) } else { 16 << 20 };
    if is_tight {
        // Bytes in the network do not count for the slow-consumer limit.
        plan.faults.pipe_bytes = plan.faults.pipe_bytes.min(2 << 10);
    }
    let policies = [
        SlowConsumerPolicy::Disconnect,
        SlowConsumerPolicy::DropNew,
        SlowConsumerPolicy::Spool,
        SlowConsumerPolicy::DropNew,
    ];
    plan.slow_consumer_policy = *random.pick(&policies);
    for _ in 0..random.between(1, 3) {
        let mut client = client(random);
        client.parts.push(publishing(random, is_tight, plan.duration));
        if random.percent(40) {
            let pattern = *random.pick(PATTERNS);
            client.parts.push(subscribing(random, pattern, None));
        }
        plan.add(client);
    }
    for _ in 0..random.between(1, 3) {
        let mut client = client(random);
        client.slow = is_tight && random.percent(75);
        for _ in 0..random.between(1, 3) {
            let pattern = *random.pick(PATTERNS);
            client.parts.push(subscribing(random, pattern, None));
        }
        plan.add(client);
    }
    if random.percent(60) {
        add_groups(&mut plan, random, is_tight);
    }
    if random.percent(60) {
        add_services(&mut plan, random);
    }
    if random.percent(50) {
        add_queues(&mut plan, random);
    }
    if plan.slow_consumer_policy == SlowConsumerPolicy::DropNew && random.percent(50) {
        plan.slow_consumer_policy = SlowConsumerPolicy::DropOldest;
    }
    plan
}

/// Makes clients that only subscribe slow consumers.
pub(super) fn slow_down(plan: &mut Plan) {
    plan.sizes.outbox_bytes_max = 1 << 10;
    plan.faults.pipe_bytes = plan.faults.pipe_bytes.min(2 << 10);
    for client in &mut plan.clients {
        let Client::Nats(client) = client else { continue };
        client.slow |= client.parts.iter().all(|part| matches!(part, Part::Subscribe(_)));
    }
}

fn client(random: &mut Random) -> nats::Client {
    nats::Client {
        echo: random.percent(60),
        headers: random.percent(85),
        verbose: random.percent(15),
        slow: false,
        parts: Vec::new(),
    }
}

fn publishing(random: &mut Random, is_tight: bool, duration: u64) -> Part {
    let count = random.between(1, 4);
    let subjects: BTreeSet<String> =
        (0..count).map(|_| (*random.pick(SUBJECTS)).to_owned()).collect();
    let messages = random.between(20, 200);
    let burst_max = *random.pick(&[1, 4, 20]);
    Part::Publish(Publishing {
        subjects: subjects.into_iter().collect(),
        messages: messages as u32,
        burst_max,
        body_max: *random.pick(if is_tight { &[300, 2_000, 8_000] } else { &[30, 300, 2_000] }),
        headers_percent: *random.pick(&[0, 40, 100]),
        pause_max: pause(random, duration, messages / burst_max),
    })
}

/// A longest pause with which `bursts` wake-ups take little of the planned time, or about all of
/// it.
fn pause(random: &mut Random, duration: u64, bursts: u64) -> u64 {
    let most = if random.percent(50) { 20_000 } else { 2 * duration / (1 + bursts) };
    random.between(500, 1_000 + most)
}

fn subscribing(random: &mut Random, pattern: &str, group: Option<&str>) -> Part {
    let until = random.percent(25).then(|| random.between(1, 20));
    let life_max = random.percent(25).then(|| random.between(50_000, 3_000_000));
    Part::Subscribe(Subscribing {
        pattern: pattern.to_owned(),
        group: group.map(str::to_owned),
        until,
        until_later: random.percent(40),
        life_max,
    })
}

fn add_groups(plan: &mut Plan, random: &mut Random, is_tight: bool) {
    for number in 0..random.between(1, 2) {
        let group = format!("group.{number}");
        let pattern = *random.pick(PATTERNS);
        for _ in 0..random.between(2, 4) {
            let mut client = client(random);
            client.slow = is_tight && random.percent(20);
            // Members of one group may subscribe to different patterns.
            let own = random.percent(20).then(|| *random.pick(PATTERNS));
            client.parts.push(subscribing(random, own.unwrap_or(pattern), Some(&group)));
            if random.percent(20) {
                client.parts.push(publishing(random, is_tight, plan.duration));
            }
            plan.add(client);
        }
    }
}

fn add_services(plan: &mut Plan, random: &mut Random) {
    for _ in 0..random.between(1, 2) {
        let mut client = client(random);
        let mut subjects = owned(&[*random.pick(SERVICES)]);
        subjects.extend(random.percent(50).then(|| NO_SERVICE.to_owned()));
        let messages = random.between(10, 120);
        client.parts.push(Part::Request(Requesting {
            subjects,
            messages: messages as u32,
            window: random.between(1, 15) as u32,
            own_inboxes: random.percent(40),
            pause_max: pause(random, plan.duration, messages),
        }));
        plan.add(client);
    }
    let group = random.percent(70).then(|| "services".to_owned());
    for _ in 0..random.between(1, 3) {
        let mut client = client(random);
        let pattern = *random.pick(&["svc.one", "svc.one", "svc.two"]);
        client.parts.push(Part::Respond(Responding {
            pattern: pattern.to_owned(),
            group: group.clone(),
            think_max: random.between(500, 20_000),
        }));
        plan.add(client);
    }
}

/// Adds AMQP 0-9-1 clients: queues that direct messages are routed to, and producers to subjects.
fn add_queues(plan: &mut Plan, random: &mut Random) {
    plan.exchanges.push(Exchange { kind: ExchangeKind::Topic, ..exchange(SUBJECT_EXCHANGE) });
    for number in 0..random.index(2) + 1 {
        let durable = random.percent(70);
        plan.queues.push(Queue { durable, ..queue(format!("catch.{number}")) });
        for _ in 0..random.between(1, 2) {
            plan.bindings.push(Binding::of_queue(0, number, *random.pick(BINDINGS)));
        }
        plan.add_clients(random, Vec::new(), [number]);
    }
    let producers = producers(random, 1..=2, &owned(SUBJECTS), |_, producer| {
        producer.exchange = Some(0);
        producer.messages = producer.messages.min(150);
        producer.body_max = producer.body_max.min(2_000);
    });
    plan.add_clients(random, producers, []);
    if random.percent(50) {
        let mut client = client(random);
        let mut to_queue = publishing(random, true, plan.duration);
        if let Part::Publish(plan) = &mut to_queue {
            plan.subjects = vec![format!("{QUEUE_SUBJECT_PREFIX}catch.0")];
        }
        client.parts.push(to_queue);
        plan.add(client);
    }
}
