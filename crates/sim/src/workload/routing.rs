//! Messages routed to many queues by fanout, topic and direct exchanges.

use super::draw::{add_clients, empty, exchange, producer, queue};
use crate::plan::{Binding, Exchange, Plan};
use crate::random::Random;
use angarium_engine::ExchangeKind;

const PATTERNS: &[&str] = &["#", "a.*", "*.b", "a.#.c", "b.#", "a.b", "*"];
const KEYS: &[&str] = &["a", "b", "a.b", "a.c", "a.b.c", "b.b", "c.c.c", "a.b.b.c"];

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("routing", random);
    let kinds = [ExchangeKind::Fanout, ExchangeKind::Topic, ExchangeKind::Direct];
    for (number, kind) in kinds.into_iter().enumerate() {
        plan.exchanges.push(Exchange { kind, ..exchange(format!("x.{number}")) });
    }
    for number in 0..random.between(2, 7) {
        let mut queue = queue(format!("route.{number}"));
        queue.durable = random.percent(70);
        plan.queues.push(queue);
    }
    for queue in 0..plan.queues.len() {
        for exchange in 0..plan.exchanges.len() {
            for _ in 0..random.below(3) {
                let keys = if exchange == 1 { PATTERNS } else { KEYS };
                let key = *random.pick(keys);
                plan.bindings.push(Binding::of_queue(exchange, queue, key));
            }
        }
    }
    let keys: Vec<String> = KEYS.iter().map(|key| (*key).to_owned()).collect();
    let mut producers = Vec::new();
    for _ in 0..random.between(1, 4) {
        let mut producer = producer(random, keys.clone());
        producer.exchange = Some(random.index(plan.exchanges.len()));
        producer.messages = producer.messages.min(150);
        producers.push(producer);
    }
    let queues = 0..plan.queues.len();
    add_clients(&mut plan, random, producers, queues);
    plan
}
