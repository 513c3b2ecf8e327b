//! Workloads of clients that speak AMQP 1.0: each of their queues has one consumer at most.

use super::draw::{empty, producers};
use crate::plan::Plan;
use crate::plan::QueueIndex;
use crate::plan::amqp10::{Browser, Client, Taker, Transactor};
use crate::plan::amqp091::{Mode, Role};
use crate::random::Random;

fn taker(random: &mut Random, queue: QueueIndex) -> Client {
    Client::Taker(Taker {
        queue,
        credit_max: *random.pick(&[1, 3, 20, 200]),
        fail_percent: *random.pick(&[0, 10, 30]),
        release_percent: *random.pick(&[10, 40]),
        drain_percent: *random.pick(&[5, 30]),
        think_max: random.between(500, 40_000),
        life_max: random.percent(40).then(|| random.between(100_000, 4_000_000)),
    })
}

/// Queues that one client each takes from by AMQP 1.0, as far as it gives credit.
pub(super) fn takers(random: &mut Random) -> Plan {
    let mut plan = empty("takers", random);
    plan.add_queues(random, 1..=3, "taken", 100);
    let names = plan.queue_names();
    let producers = producers(random, 1..=3, &names, |_, producer| producer.mode = Mode::Confirm);
    for producer in producers {
        plan.add(Role::Producer(producer));
    }
    for queue in 0..plan.queues.len() {
        plan.add(taker(random, queue));
    }
    plan
}

/// Transactions, several at once and over several sessions, of clients that take from one queue each.
pub(super) fn transactors(random: &mut Random) -> Plan {
    let mut plan = empty("transactors", random);
    plan.faults.crashes = random.between(1, 5);
    plan.add_queues(random, 2..=5, "ledger", 100);
    let count = random.between(1, 2).min(plan.queues.len() as u64 - 1) as usize;
    let taken: Vec<String> = plan.queue_names().drain(..count).collect();
    let producers = producers(random, 1..=2, &taken, |_, producer| {
        producer.mode = Mode::Confirm;
        producer.persistent_percent = 100;
    });
    for producer in producers {
        plan.add(Role::Producer(producer));
    }
    for from in 0..count {
        let mut to: Vec<QueueIndex> =
            (0..plan.queues.len()).filter(|queue| *queue != from && random.percent(70)).collect();
        if to.is_empty() {
            to.push(plan.queues.len() - 1);
        }
        plan.add(Client::Transactor(Transactor {
            from,
            to,
            sessions: random.between(1, 3) as u16,
            at_once: *random.pick(&[1, 1, 2, 4]),
            operations_max: *random.pick(&[1, 5, 15]),
            rollback_percent: *random.pick(&[0, 20, 60]),
            plain_percent: *random.pick(&[0, 10, 40]),
            persistent_percent: *random.pick(&[100, 50]),
            messages: random.between(50, 600) as u32,
            credit_max: *random.pick(&[1, 5, 50]),
            drain_percent: *random.pick(&[2, 20]),
            think_max: random.between(500, 20_000),
            life_max: random.percent(40).then(|| random.between(100_000, 4_000_000)),
        }));
    }
    plan
}

/// Clients that browse queues with and without a consumer, longer ones than fit into memory among them.
pub(super) fn browsers(random: &mut Random) -> Plan {
    let mut plan = empty("browsers", random);
    plan.sizes.resident_bytes_max = *random.pick(&[16 << 10, 32 << 10, 4 << 20]);
    plan.sizes.queue_resident_bytes_max =
        plan.sizes.resident_bytes_max.min(*random.pick(&[4 << 10, 16 << 10, 1 << 20]));
    plan.add_queues(random, 1..=3, "shown", 100);
    let names = plan.queue_names();
    let producers = producers(random, 1..=2, &names, |random, producer| {
        producer.mode = Mode::Confirm;
        producer.messages = random.between(50, 1_000) as u32;
        producer.pause_max = random.between(1_000, 20_000);
        producer.body_max = *random.pick(&[40, 400, 2_000]);
    });
    for producer in producers {
        plan.add(Role::Producer(producer));
    }
    for queue in 0..plan.queues.len() {
        if random.percent(40) {
            let taker = taker(random, queue);
            plan.add(taker);
        }
        for _ in 0..random.between(1, 3) {
            plan.add(Client::Browser(Browser {
                queue,
                credit_max: *random.pick(&[1, 10, 200, 10_000]),
                is_settled: random.percent(50),
                think_max: random.between(500, 100_000),
            }));
        }
    }
    plan
}
