//! Workloads on exchanges, which route messages to many queues.

use super::draw::{empty, exchange, owned, producers};
use crate::plan::{Binding, Exchange, HeaderMatch, Plan, Target};
use crate::random::Random;
use angarium_engine::ExchangeKind;

const PATTERNS: &[&str] = &["#", "a.*", "*.b", "a.#.c", "b.#", "a.b", "*"];
const KEYS: &[&str] = &["a", "b", "a.b", "a.c", "a.b.c", "b.b", "c.c.c", "a.b.b.c"];
/// Patterns and keys of exchanges that are bound to each other.
const NESTED_PATTERNS: &[&str] = &["#", "a.*", "*.b", "a.#.c", "a.b"];
const NESTED_KEYS: &[&str] = &["a", "b", "a.b", "a.c", "a.b.c", "b.b"];
const HEADERS: &[&str] = &["one", "two", "x-three"];

/// Messages routed to many queues by fanout, topic and direct exchanges.
pub(super) fn plain(random: &mut Random) -> Plan {
    let mut plan = empty("routing", random);
    let kinds = [ExchangeKind::Fanout, ExchangeKind::Topic, ExchangeKind::Direct];
    for (number, kind) in kinds.into_iter().enumerate() {
        plan.exchanges.push(Exchange { kind, ..exchange(format!("x.{number}")) });
    }
    plan.add_queues(random, 2..=7, "route", 70);
    for queue in 0..plan.queues.len() {
        for exchange in 0..plan.exchanges.len() {
            for _ in 0..random.below(3) {
                let keys = if exchange == 1 { PATTERNS } else { KEYS };
                let key = *random.pick(keys);
                plan.bindings.push(Binding::of_queue(exchange, queue, key));
            }
        }
    }
    let producers = producers(random, 1..=4, &owned(KEYS), |random, producer| {
        producer.exchange = Some(random.index(plan.exchanges.len()));
        producer.messages = producer.messages.min(150);
    });
    plan.add_clients(random, producers, 0..plan.queues.len());
    plan
}

/// Exchanges bound to each other, alternate exchanges, and headers exchanges.
pub(super) fn nested(random: &mut Random) -> Plan {
    let mut plan = empty("exchanges", random);
    let kinds = [
        ExchangeKind::Headers,
        ExchangeKind::Topic,
        ExchangeKind::Direct,
        ExchangeKind::Fanout,
        ExchangeKind::Headers,
    ];
    let count = kinds.len();
    for (number, kind) in kinds.into_iter().enumerate() {
        let alternate = random.percent(40).then(|| random.index(count));
        plan.exchanges.push(Exchange { kind, alternate, ..exchange(format!("e.{number}")) });
    }
    plan.add_queues(random, 2..=6, "end", 70);
    for (from, kind) in kinds.into_iter().enumerate() {
        let mut targets: Vec<Target> = Vec::new();
        for _ in 0..random.below(4) {
            targets.push(Target::Queue(random.index(plan.queues.len())));
        }
        for _ in 0..random.below(3) {
            targets.push(Target::Exchange(random.index(count)));
        }
        for target in targets {
            let binding = binding(random, from, kind, target);
            plan.bindings.push(binding);
        }
    }
    let producers = producers(random, 1..=4, &owned(NESTED_KEYS), |random, producer| {
        producer.exchange = Some(random.index(count));
        producer.messages = producer.messages.min(150);
        producer.headers = owned(HEADERS);
    });
    plan.add_clients(random, producers, 0..plan.queues.len());
    plan
}

fn binding(random: &mut Random, exchange: usize, kind: ExchangeKind, target: Target) -> Binding {
    let keys = if kind == ExchangeKind::Topic { NESTED_PATTERNS } else { NESTED_KEYS };
    let key = (*random.pick(keys)).to_owned();
    let mut headers =
        HeaderMatch { any: random.percent(50), with_x: random.percent(50), headers: Vec::new() };
    for name in HEADERS {
        if random.percent(40) {
            headers.headers.push(((*name).to_owned(), i64::from(random.percent(50))));
        }
    }
    Binding { exchange, target, key, headers }
}
