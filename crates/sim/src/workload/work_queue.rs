//! Producers and consumers on a few queues, durable and not.

use super::draw::{add_clients, consumer, empty, producer, queue};
use crate::plan::Plan;
use crate::plan::amqp091::Role;
use crate::random::Random;

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("work queue", random);
    for number in 0..random.between(1, 4) {
        let mut queue = queue(format!("work.{number}"));
        queue.durable = random.percent(75);
        plan.queues.push(queue);
    }
    let names: Vec<String> = plan.queues.iter().map(|queue| queue.name.clone()).collect();
    let producers = (0..random.between(1, 4)).map(|_| producer(random, names.clone())).collect();
    let queues = 0..plan.queues.len();
    add_clients(&mut plan, random, producers, queues);
    if random.percent(40) {
        // A consumer with a prefetch limit in bytes.
        let mut limited = consumer(random, 0);
        limited.prefetch_bytes = random.between(100, 30_000);
        plan.clients.push(Role::Consumer(limited).into());
    }
    plan
}
