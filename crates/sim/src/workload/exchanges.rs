//! Exchanges bound to each other, alternate exchanges, and headers exchanges.

use super::draw::{add_clients, empty, exchange, producer, queue};
use crate::plan::{Binding, Exchange, HeaderMatch, Plan, Target};
use crate::random::Random;
use angarium_engine::ExchangeKind;

const PATTERNS: &[&str] = &["#", "a.*", "*.b", "a.#.c", "a.b"];
const KEYS: &[&str] = &["a", "b", "a.b", "a.c", "a.b.c", "b.b"];
const HEADERS: &[&str] = &["one", "two", "x-three"];

pub(super) fn plan(random: &mut Random) -> Plan {
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
    for number in 0..random.between(2, 6) {
        let mut queue = queue(format!("end.{number}"));
        queue.durable = random.percent(70);
        plan.queues.push(queue);
    }
    for from in 0..count {
        let mut targets: Vec<Target> = Vec::new();
        for _ in 0..random.below(4) {
            targets.push(Target::Queue(random.index(plan.queues.len())));
        }
        for _ in 0..random.below(3) {
            targets.push(Target::Exchange(random.index(count)));
        }
        for target in targets {
            let kind = plan.exchanges[from].kind;
            let binding = binding(random, from, kind, target);
            plan.bindings.push(binding);
        }
    }
    let keys: Vec<String> = KEYS.iter().map(|key| (*key).to_owned()).collect();
    let mut producers = Vec::new();
    for _ in 0..random.between(1, 4) {
        let mut producer = producer(random, keys.clone());
        producer.exchange = Some(random.index(count));
        producer.messages = producer.messages.min(150);
        producer.headers = HEADERS.iter().map(|name| (*name).to_owned()).collect();
        producers.push(producer);
    }
    let queues = 0..plan.queues.len();
    add_clients(&mut plan, random, producers, queues);
    plan
}

fn binding(random: &mut Random, exchange: usize, kind: ExchangeKind, target: Target) -> Binding {
    let keys = if kind == ExchangeKind::Topic { PATTERNS } else { KEYS };
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
