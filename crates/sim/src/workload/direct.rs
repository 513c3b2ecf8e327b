//! Direct messages between NATS clients: subjects with wildcards, queue groups, requests, slow readers;
//! and between them and AMQP clients, through the one address space.

use super::{consumer, empty, exchange, producer, queue};
use crate::plan::nats::{Listening, Nats, Part, Publishing, Requesting, Responding};
use crate::plan::{Binding, Exchange, Plan, Role};
use crate::random::Random;
use angarium_engine::SlowConsumerPolicy;
use angarium_engine::{ExchangeKind, QUEUE_SUBJECT_PREFIX};
use angarium_protocol::SUBJECT_EXCHANGE;

const SUBJECTS: &[&str] = &["a", "a.b", "a.c", "a.b.c", "b.b", "b"];
/// None takes what the broker itself says, under `$SYS`.
const PATTERNS: &[&str] = &["a.*", "*.b", "a.>", "a.b", "*", "b.*", "a.*.c", "a"];
const SERVICES: &[&str] = &["svc.one", "svc.two"];
/// Nobody ever takes requests that go there.
const NO_SERVICE: &str = "svc.none";
/// What queues are bound by.
const BINDINGS: &[&str] = &["a.#", "*.b", "a.b", "a.*.c"];

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("direct", random);
    let is_tight = random.percent(50);
    plan.sizes.outbox_bytes_max =
        if is_tight { *random.pick(&[1 << 10, 2 << 10, 8 << 10]) } else { 16 << 20 };
    if is_tight {
        // What the network holds is not behind yet.
        plan.faults.pipe_bytes = plan.faults.pipe_bytes.min(2 << 10);
    }
    let policies = [
        SlowConsumerPolicy::Disconnect,
        SlowConsumerPolicy::DropNew,
        SlowConsumerPolicy::Spool,
        SlowConsumerPolicy::DropNew,
    ];
    plan.slow_consumer_policy = *random.pick(&policies);
    let pattern = |random: &mut Random| (*random.pick(PATTERNS)).to_owned();
    for _ in 0..random.between(1, 3) {
        let mut client = client(random);
        client.parts.push(publishing(random, is_tight, plan.duration));
        if random.percent(40) {
            let pattern = pattern(random);
            client.parts.push(listening(random, pattern, None));
        }
        plan.clients.push(Role::Nats(client));
    }
    for _ in 0..random.between(1, 3) {
        let mut client = client(random);
        client.slow = is_tight && random.percent(75);
        for _ in 0..random.between(1, 3) {
            let pattern = pattern(random);
            client.parts.push(listening(random, pattern, None));
        }
        plan.clients.push(Role::Nats(client));
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

/// Has whoever only listens fall behind soon, and much.
pub(super) fn lag(plan: &mut Plan) {
    plan.sizes.outbox_bytes_max = 1 << 10;
    plan.faults.pipe_bytes = plan.faults.pipe_bytes.min(2 << 10);
    for role in &mut plan.clients {
        let Role::Nats(client) = role else { continue };
        client.slow |= client.parts.iter().all(|part| matches!(part, Part::Listen(_)));
    }
}

fn client(random: &mut Random) -> Nats {
    Nats {
        echo: random.percent(60),
        headers: random.percent(85),
        verbose: random.percent(15),
        slow: false,
        parts: Vec::new(),
    }
}

fn publishing(random: &mut Random, is_tight: bool, duration: u64) -> Part {
    let count = random.between(1, 4);
    let mut subjects: Vec<String> =
        (0..count).map(|_| (*random.pick(SUBJECTS)).to_owned()).collect();
    subjects.sort_unstable();
    subjects.dedup();
    let messages = random.between(20, 200);
    let burst_max = *random.pick(&[1, 4, 20]);
    Part::Publish(Publishing {
        subjects,
        messages: u32::try_from(messages).expect("small"),
        burst_max,
        body_max: *random.pick(if is_tight { &[300, 2_000, 8_000] } else { &[30, 300, 2_000] }),
        headers_percent: *random.pick(&[0, 40, 100]),
        pause_max: pause(random, duration, messages / burst_max),
    })
}

/// A longest pause with which so many bursts take little of the planned time, or about all of it.
fn pause(random: &mut Random, duration: u64, bursts: u64) -> u64 {
    let most = if random.percent(50) { 20_000 } else { 2 * duration / (1 + bursts) };
    random.between(500, 1_000 + most)
}

fn listening(random: &mut Random, pattern: String, group: Option<String>) -> Part {
    let until = random.percent(25).then(|| random.between(1, 20));
    let life_max = random.percent(25).then(|| random.between(50_000, 3_000_000));
    Part::Listen(Listening { pattern, group, until, until_later: random.percent(40), life_max })
}

fn add_groups(plan: &mut Plan, random: &mut Random, is_tight: bool) {
    for number in 0..random.between(1, 2) {
        let group = format!("group.{number}");
        let pattern = (*random.pick(PATTERNS)).to_owned();
        for _ in 0..random.between(2, 4) {
            let mut client = client(random);
            client.slow = is_tight && random.percent(20);
            // Members may listen to different patterns, and are one group nevertheless.
            let own = random.percent(20).then(|| (*random.pick(PATTERNS)).to_owned());
            let pattern = own.unwrap_or_else(|| pattern.clone());
            client.parts.push(listening(random, pattern, Some(group.clone())));
            if random.percent(20) {
                client.parts.push(publishing(random, is_tight, plan.duration));
            }
            plan.clients.push(Role::Nats(client));
        }
    }
}

fn add_services(plan: &mut Plan, random: &mut Random) {
    for _ in 0..random.between(1, 2) {
        let mut client = client(random);
        let mut subjects: Vec<String> = vec![(*random.pick(SERVICES)).to_owned()];
        if random.percent(50) {
            subjects.push(NO_SERVICE.to_owned());
        }
        let messages = random.between(10, 120);
        client.parts.push(Part::Request(Requesting {
            subjects,
            messages: u32::try_from(messages).expect("small"),
            window: u32::try_from(random.between(1, 15)).expect("small"),
            own_inboxes: random.percent(40),
            pause_max: pause(random, plan.duration, messages),
        }));
        plan.clients.push(Role::Nats(client));
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
        plan.clients.push(Role::Nats(client));
    }
}

/// AMQP clients: queues that catch what is published, and producers whose messages are heard.
fn add_queues(plan: &mut Plan, random: &mut Random) {
    plan.exchanges.push(Exchange { kind: ExchangeKind::Topic, ..exchange(SUBJECT_EXCHANGE) });
    for number in 0..random.between(1, 2) {
        let mut queue = queue(format!("catch.{number}"));
        queue.durable = random.percent(70);
        plan.queues.push(queue);
        for _ in 0..random.between(1, 2) {
            plan.bindings.push(Binding::of_queue(0, number as usize, *random.pick(BINDINGS)));
        }
        for _ in 0..random.below(3) {
            let consumer = consumer(random, number as usize);
            plan.clients.push(Role::Consumer(consumer));
        }
    }
    for _ in 0..random.between(1, 2) {
        let keys = SUBJECTS.iter().map(|subject| (*subject).to_owned()).collect();
        let mut producer = producer(random, keys);
        producer.exchange = Some(0);
        producer.messages = producer.messages.min(150);
        producer.body_max = producer.body_max.min(2_000);
        plan.clients.push(Role::Producer(producer));
    }
    if random.percent(50) {
        let mut client = client(random);
        let mut straight = publishing(random, true, plan.duration);
        if let Part::Publish(plan) = &mut straight {
            plan.subjects = vec![format!("{QUEUE_SUBJECT_PREFIX}catch.0")];
        }
        client.parts.push(straight);
        plan.clients.push(Role::Nats(client));
    }
}
