//! Messages that are held back before they are routed.

use super::{add_clients, empty, producer, queue};
use crate::plan::{Binding, Exchange, Plan};
use crate::random::Random;
use angarium_engine::ExchangeKind;

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("delayed", random);
    plan.exchanges.push(Exchange {
        name: "later".to_owned(),
        kind: ExchangeKind::Direct,
        delaying: true,
    });
    for number in 0..random.index(2) + 1 {
        plan.queues.push(queue(format!("late.{number}")));
        plan.bindings.push(Binding { exchange: 0, queue: number, key: format!("late.{number}") });
    }
    let names: Vec<String> = plan.queues.iter().map(|queue| queue.name.clone()).collect();
    let mut producers = Vec::new();
    for _ in 0..random.between(1, 3) {
        let mut producer = producer(random, names.clone());
        producer.exchange = random.percent(80).then_some(0);
        producer.delay_max = producer.exchange.map(|_| *random.pick(&[10, 1_000, 5_000]));
        producer.mandatory_percent = 0;
        producers.push(producer);
    }
    let queues = 0..plan.queues.len();
    add_clients(&mut plan, random, producers, queues);
    plan
}
