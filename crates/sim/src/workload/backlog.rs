//! More messages than fit into memory: they are paged out and in.

use super::draw::{consumer, empty, producer, queue};
use crate::plan::Plan;
use crate::plan::amqp091::{Mode, Role};
use crate::random::Random;

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("backlog", random);
    plan.sizes.resident_bytes_max = 32 << 10;
    plan.sizes.queue_resident_bytes_max = *random.pick(&[4 << 10, 16 << 10, 32 << 10]);
    plan.duration = random.between(3_000_000, 8_000_000);
    for number in 0..random.between(1, 2) {
        plan.queues.push(queue(format!("backlog.{number}")));
    }
    let names: Vec<String> = plan.queues.iter().map(|queue| queue.name.clone()).collect();
    for _ in 0..random.between(1, 2) {
        let mut producer = producer(random, names.clone());
        producer.mode = Mode::Confirm;
        // More than a page of the index (1,024 entries) in every other run.
        producer.messages = u32::try_from(random.between(300, 3_000)).expect("small");
        producer.window = 500;
        producer.pause_max = 8_000;
        producer.body_max = *random.pick(&[40, 400]);
        plan.clients.push(Role::Producer(producer).into());
    }
    for queue in 0..plan.queues.len() {
        for _ in 0..random.below(2) {
            let mut slow = consumer(random, queue);
            slow.think_max = random.between(5_000, 100_000);
            plan.clients.push(Role::Consumer(slow).into());
        }
    }
    plan
}
