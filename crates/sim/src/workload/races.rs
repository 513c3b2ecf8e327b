//! Queues that are purged and deleted while in use, exclusive and auto-delete ones included, and
//! one queue that must not be affected.

use super::draw::{add_clients, consumer, empty, exchange, producer, queue};
use crate::plan::amqp091::{QueueDeleter, Role};
use crate::plan::{Binding, Exchange, Plan};
use crate::random::Random;
use angarium_engine::ExchangeKind;

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("races", random);
    plan.may_refuse = true;
    plan.exchanges.push(Exchange { kind: ExchangeKind::Fanout, ..exchange("all") });
    plan.queues.push(queue("bystander"));
    plan.bindings.push(Binding::of_queue(0, 0, ""));
    for number in 0..random.between(1, 3) {
        let mut fleeting = queue(format!("fleeting.{number}"));
        fleeting.durable = random.percent(60);
        fleeting.lossy = true;
        match random.below(4) {
            0 => {
                fleeting.exclusive = true;
                fleeting.durable = false;
            }
            1 => fleeting.auto_delete = true,
            _ => {}
        }
        plan.queues.push(fleeting);
    }
    for queue in 1..plan.queues.len() {
        let is_own = plan.queues[queue].is_private();
        if is_own {
            plan.bindings.push(Binding::of_queue(0, queue, ""));
            let owner = consumer(random, queue);
            plan.clients.push(Role::Consumer(owner).into());
        } else {
            plan.clients.push(
                Role::QueueDeleter(QueueDeleter {
                    queue,
                    delete_percent: *random.pick(&[0, 50]),
                    pause_max: random.between(10_000, 600_000),
                })
                .into(),
            );
            let others = consumer(random, queue);
            plan.clients.push(Role::Consumer(others).into());
        }
    }
    let names: Vec<String> = plan.queues.iter().map(|queue| queue.name.clone()).collect();
    let mut producers = Vec::new();
    for _ in 0..random.between(1, 3) {
        let mut producer = producer(random, names.clone());
        if random.percent(50) {
            producer.exchange = Some(0);
        }
        producers.push(producer);
    }
    add_clients(&mut plan, random, producers, [0]);
    plan
}
