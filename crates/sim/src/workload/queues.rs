//! Workloads on queues that messages are published to by name.

use super::draw::{consumer, empty, exchange, producer, producers, queue, several_shards};
use crate::plan::amqp091::{
    Acks, Expiration, LeaseKeeper, Mode, QueueDeleter, Relay, Requester, Responder, Role,
};
use crate::plan::{Binding, Exchange, Plan, Queue, QueueIndex, SessionClient};
use crate::random::Random;
use angarium_engine::{ExchangeKind, Overflow};

/// Producers and consumers on a few queues, durable and not.
pub(super) fn work_queue(random: &mut Random) -> Plan {
    let mut plan = empty("work queue", random);
    plan.add_queues(random, 1..=4, "work", 75);
    let producers = producers(random, 1..=4, &plan.queue_names(), |_, _| {});
    plan.add_clients(random, producers, 0..plan.queues.len());
    if random.percent(40) {
        // A consumer with a prefetch limit in bytes.
        let mut limited = consumer(random, 0);
        limited.prefetch_bytes = random.between(100, 30_000);
        plan.add_consumer(limited);
    }
    plan
}

/// Transactions over several queues, and relays that settle and publish in one.
pub(super) fn transactions(random: &mut Random) -> Plan {
    let mut plan = empty("transactions", random);
    let count = random.index(3) + 3;
    plan.queues.extend((0..count).map(|number| queue(format!("ledger.{number}"))));
    let names = plan.queue_names();
    let mut producers = producers(random, 1..=3, &names, |random, producer| {
        producer.mode = Mode::Transactional(random.between(1, 15));
        producer.persistent_percent = 100;
    });
    // Its confirms show that the others' settles are flushed.
    let mut confirming = producer(random, names);
    confirming.mode = Mode::Confirm;
    producers.push(confirming);
    plan.add_clients(random, producers, 2..count);
    for _ in 0..random.between(1, 2) {
        plan.add(Role::Relay(Relay {
            from: 0,
            to: (1..count).filter(|_| random.percent(70)).collect(),
            batch: random.between(1, 8),
            rollback_percent: 20,
        }));
    }
    plan
}

/// Queues with a length limit, time to live or delivery limit, with and without a dead-letter queue.
pub(super) fn limits(random: &mut Random) -> Plan {
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
    let is_limited = |index: &QueueIndex| plan.queues[*index].name.starts_with("limit");
    let limited: Vec<QueueIndex> = (0..plan.queues.len()).filter(is_limited).collect();
    let names: Vec<String> = limited.iter().map(|index| plan.queues[*index].name.clone()).collect();
    let producers = producers(random, 1..=3, &names, |random, producer| {
        if random.percent(70) {
            producer.mode = Mode::Confirm;
        }
        if let Mode::Transactional(_) = producer.mode {
            // Transactions with full queues are left to the engine's tests.
            producer.mode = Mode::Plain;
        }
        let expiration = Expiration { percent: 50, millis_max: 2_000 };
        producer.expiration = random.percent(30).then_some(expiration);
    });
    plan.add_clients(random, producers, []);
    for queue in limited {
        for _ in 0..random.below(3) {
            let mut consumer = consumer(random, queue);
            if consumer.acks != Acks::Auto {
                consumer.acks = Acks::Single;
                consumer.requeue_percent = *random.pick(&[10, 60]);
                consumer.discard_percent = *random.pick(&[0, 30]);
            }
            plan.add_consumer(consumer);
        }
    }
    plan
}

/// Queues that are purged and deleted while in use, exclusive and auto-delete ones included, and one
/// queue that must not be affected.
pub(super) fn races(random: &mut Random) -> Plan {
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
        if plan.queues[queue].is_private() {
            plan.bindings.push(Binding::of_queue(0, queue, ""));
        } else {
            plan.add(Role::QueueDeleter(QueueDeleter {
                queue,
                delete_percent: *random.pick(&[0, 50]),
                pause_max: random.between(10_000, 600_000),
            }));
        }
        plan.add_consumer(consumer(random, queue));
    }
    let producers = producers(random, 1..=3, &plan.queue_names(), |random, producer| {
        producer.exchange = random.percent(50).then_some(0);
    });
    plan.add_clients(random, producers, [0]);
    plan
}

/// More messages than fit into memory: they are paged out and in.
pub(super) fn backlog(random: &mut Random) -> Plan {
    let mut plan = empty("backlog", random);
    plan.sizes.resident_bytes_max = 32 << 10;
    plan.sizes.queue_resident_bytes_max = *random.pick(&[4 << 10, 16 << 10, 32 << 10]);
    plan.duration = random.between(3_000_000, 8_000_000);
    let queues = random.between(1, 2);
    plan.queues.extend((0..queues).map(|number| queue(format!("backlog.{number}"))));
    let producers = producers(random, 1..=2, &plan.queue_names(), |random, producer| {
        producer.mode = Mode::Confirm;
        // More than a page of the index (1,024 entries) in every other run.
        producer.messages = random.between(300, 3_000) as u32;
        producer.window = 500;
        producer.pause_max = 8_000;
        producer.body_max = *random.pick(&[40, 400]);
    });
    plan.add_clients(random, producers, []);
    for queue in 0..plan.queues.len() {
        for _ in 0..random.below(2) {
            let mut slow = consumer(random, queue);
            slow.think_max = random.between(5_000, 100_000);
            plan.add_consumer(slow);
        }
    }
    plan
}

/// Priority queues, and queues with a single active consumer.
pub(super) fn priorities(random: &mut Random) -> Plan {
    let mut plan = empty("priorities", random);
    for number in 0..random.between(1, 3) {
        plan.queues.push(Queue {
            priority_max: random.percent(70).then(|| *random.pick(&[1, 5, 10, 255])),
            single_active: random.percent(50),
            ..queue(format!("ranked.{number}"))
        });
    }
    let producers = producers(random, 1..=3, &plan.queue_names(), |random, producer| {
        producer.priority_max = *random.pick(&[3, 12]);
    });
    plan.add_clients(random, producers, 0..plan.queues.len());
    for _ in 0..2 {
        let mut rival = consumer(random, 0);
        rival.gets = false;
        rival.life_max = Some(random.between(200_000, 2_000_000));
        plan.add_consumer(rival);
    }
    plan
}

/// Delayed messages.
pub(super) fn delayed(random: &mut Random) -> Plan {
    let mut plan = empty("delayed", random);
    plan.exchanges.push(Exchange { delaying: true, ..exchange("later") });
    for number in 0..random.index(2) + 1 {
        plan.queues.push(queue(format!("late.{number}")));
        plan.bindings.push(Binding::of_queue(0, number, format!("late.{number}")));
    }
    let producers = producers(random, 1..=3, &plan.queue_names(), |random, producer| {
        producer.exchange = random.percent(80).then_some(0);
        producer.delay_max = producer.exchange.map(|_| *random.pick(&[10, 1_000, 5_000]));
        producer.mandatory_percent = 0;
    });
    plan.add_clients(random, producers, 0..plan.queues.len());
    plan
}

/// More messages that become due together than fit into memory.
pub(super) fn delayed_together(random: &mut Random) -> Plan {
    let mut plan = delayed(random);
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

/// Requests through a queue, and replies by direct reply-to.
pub(super) fn requests(random: &mut Random) -> Plan {
    let mut plan = empty("requests", random);
    // A client whose output is above this limit loses replies.
    plan.sizes.outbox_bytes_max = *random.pick(&[128 << 10, 1 << 20]);
    plan.add_queues(random, 1..=2, "requests", 70);
    for queue in 0..plan.queues.len() {
        for _ in 0..random.between(1, 4) {
            plan.add(Role::Requester(Requester {
                queue,
                messages: random.between(20, 300) as u32,
                window: random.between(1, 40) as u32,
                persistent_percent: *random.pick(&[0, 0, 50, 100]),
                pause_max: random.between(500, 40_000),
            }));
        }
        for _ in 0..random.between(1, 3) {
            plan.add(Role::Responder(Responder {
                queue,
                prefetch: random.between(1, 20) as u16,
                mandatory_percent: *random.pick(&[0, 50, 100]),
                think_max: random.between(500, 20_000),
            }));
        }
    }
    plan
}

/// Queues with `x-expires`, and others without.
pub(super) fn leases(random: &mut Random) -> Plan {
    let mut plan = empty("leases", random);
    plan.queues.push(queue("permanent"));
    for number in 0..random.index(3) + 1 {
        let expires = random.between(50, 2_000);
        let lease = queue(format!("lease.{number}"));
        plan.queues.push(Queue { expires: Some(expires), lossy: true, ..lease });
        let away_max = expires * 1_000 * random.between(1, 3);
        plan.add(Role::LeaseKeeper(LeaseKeeper { queue: number + 1, away_max }));
    }
    let producer = producer(random, vec!["permanent".to_owned()]);
    plan.add_clients(random, vec![producer], [0]);
    plan
}

/// Named sessions that clients take from each other, beside a queue that keeps the journal busy.
pub(super) fn sessions(random: &mut Random) -> Plan {
    let mut plan = empty("sessions", random);
    plan.queues.push(queue("q"));
    let producer = producer(random, plan.queue_names());
    plan.add_clients(random, vec![producer], [0]);
    let sessions = random.index(4) + 1;
    for _ in 0..random.between(2, 8) {
        plan.sessions.push(SessionClient {
            sessions,
            expiry_max: *random.pick(&[20, 300, 3_000]),
            recorded_percent: *random.pick(&[0, 50, 100, 100]),
            fresh_percent: *random.pick(&[0, 0, 20]),
            pause_max: *random.pick(&[2_000, 50_000, 500_000]),
        });
    }
    if random.percent(60) {
        plan.shards = several_shards(random);
    }
    plan
}
