//! Transactions over several queues, and relays that settle and publish in one.

use super::draw::{add_clients, empty, producer, queue};
use crate::plan::Plan;
use crate::plan::amqp091::{Mode, Relay, Role};
use crate::random::Random;

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("transactions", random);
    let count = random.index(3) + 3;
    for number in 0..count {
        plan.queues.push(queue(format!("ledger.{number}")));
    }
    let names: Vec<String> = plan.queues.iter().map(|queue| queue.name.clone()).collect();
    let mut producers = Vec::new();
    for _ in 0..random.between(1, 3) {
        let mut producer = producer(random, names.clone());
        producer.mode = Mode::Transactional(random.between(1, 15));
        producer.persistent_percent = 100;
        producers.push(producer);
    }
    // Its confirms show that the others' settles are flushed.
    let mut confirming = producer(random, names.clone());
    confirming.mode = Mode::Confirm;
    producers.push(confirming);
    add_clients(&mut plan, random, producers, 2..count);
    for _ in 0..random.between(1, 2) {
        plan.clients.push(
            Role::Relay(Relay {
                from: 0,
                to: (1..count).filter(|_| random.percent(70)).collect(),
                batch: random.between(1, 8),
                rollback_percent: 20,
            })
            .into(),
        );
    }
    plan
}
