//! Delayed messages.

use super::draw::{add_clients, empty, exchange, producer, queue};
use crate::plan::amqp091::Role;
use crate::plan::{Binding, Exchange, Plan};
use crate::random::Random;

/// More messages that become due together than fit into memory.
pub(super) fn together(random: &mut Random) -> Plan {
    let mut plan = plan(random);
    plan.workload = "delayed together";
    let step = *random.pick(&[500, 2_000, 4_000]);
    for role in plan.roles_mut() {
        if let Role::Producer(producer) = role
            && producer.delay_max.is_some()
        {
            producer.delay_step = Some(step);
            producer.pause_max = 2_000;
        }
    }
    plan
}

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("delayed", random);
    plan.exchanges.push(Exchange { delaying: true, ..exchange("later") });
    for number in 0..random.index(2) + 1 {
        plan.queues.push(queue(format!("late.{number}")));
        plan.bindings.push(Binding::of_queue(0, number, format!("late.{number}")));
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
