//! Priority queues, and queues with a single active consumer.

use super::draw::{add_clients, consumer, empty, producer, queue};
use crate::plan::Plan;
use crate::plan::amqp091::Role;
use crate::random::Random;

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("priorities", random);
    for number in 0..random.between(1, 3) {
        let mut queue = queue(format!("ranked.{number}"));
        queue.priority_max = random.percent(70).then(|| *random.pick(&[1, 5, 10, 255]));
        queue.single_active = random.percent(50);
        plan.queues.push(queue);
    }
    let names: Vec<String> = plan.queues.iter().map(|queue| queue.name.clone()).collect();
    let mut producers = Vec::new();
    for _ in 0..random.between(1, 3) {
        let mut producer = producer(random, names.clone());
        producer.priority_max = *random.pick(&[3, 12]);
        producers.push(producer);
    }
    let queues = 0..plan.queues.len();
    add_clients(&mut plan, random, producers, queues);
    for _ in 0..2 {
        let mut rival = consumer(random, 0);
        rival.gets = false;
        rival.life_max = Some(random.between(200_000, 2_000_000));
        plan.clients.push(Role::Consumer(rival).into());
    }
    plan
}
