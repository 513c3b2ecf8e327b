//! Queues with a length limit, time to live or delivery limit, with and without a dead-letter
//! queue.

use super::draw::{consumer, empty, producer, queue};
use crate::plan::Plan;
use crate::plan::amqp091::{Acks, Expiration, Mode, Role};
use crate::random::Random;
use angarium_engine::Overflow;

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("limits", random);
    for number in 0..random.index(4) + 2 {
        let mut limited = queue(format!("limit.{number}"));
        match random.below(3) {
            0 => {
                limited.length_max = Some(random.between(1, 30));
                limited.overflow = *random.pick(&[
                    Overflow::DropHead,
                    Overflow::RejectPublish,
                    Overflow::RejectPublishDeadLetter,
                ]);
            }
            1 => limited.ttl = Some(random.between(1, 3_000)),
            _ => limited.delivery_limit = Some(random.between(0, 5)),
        }
        let has_dead_letters =
            limited.overflow == Overflow::RejectPublishDeadLetter || random.percent(60);
        if has_dead_letters {
            limited.dead_letters_to = Some(plan.queues.len() + 1);
        }
        plan.queues.push(limited);
        if has_dead_letters {
            plan.queues.push(queue(format!("dead.{number}")));
        }
    }
    let limited: Vec<usize> = (0..plan.queues.len())
        .filter(|index| plan.queues[*index].name.starts_with("limit"))
        .collect();
    let names: Vec<String> = limited.iter().map(|index| plan.queues[*index].name.clone()).collect();
    for _ in 0..random.between(1, 3) {
        let mut producer = producer(random, names.clone());
        if random.percent(70) {
            producer.mode = Mode::Confirm;
        }
        if let Mode::Transactional(_) = producer.mode {
            // Transactions with full queues are left to the engine's tests.
            producer.mode = Mode::Plain;
        }
        let expiration = Expiration { percent: 50, millis_max: 2_000 };
        producer.expiration = random.percent(30).then_some(expiration);
        plan.clients.push(Role::Producer(producer).into());
    }
    for queue in limited {
        for _ in 0..random.below(3) {
            let mut consumer = consumer(random, queue);
            if consumer.acks != Acks::Auto {
                consumer.acks = Acks::Single;
                consumer.requeue_percent = *random.pick(&[10, 60]);
                consumer.discard_percent = *random.pick(&[0, 30]);
            }
            plan.clients.push(Role::Consumer(consumer).into());
        }
    }
    plan
}
