//! Requests through a queue, and replies by direct reply-to.

use super::draw::{empty, queue};
use crate::plan::Plan;
use crate::plan::amqp091::{Requester, Responder, Role};
use crate::random::Random;

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("requests", random);
    // A client whose output is above this limit loses replies.
    plan.sizes.outbox_bytes_max = *random.pick(&[128 << 10, 1 << 20]);
    for number in 0..random.between(1, 2) {
        let mut requests = queue(format!("requests.{number}"));
        requests.durable = random.percent(70);
        plan.queues.push(requests);
    }
    for queue in 0..plan.queues.len() {
        for _ in 0..random.between(1, 4) {
            plan.clients.push(
                Role::Requester(Requester {
                    queue,
                    messages: u32::try_from(random.between(20, 300)).expect("small"),
                    window: u32::try_from(random.between(1, 40)).expect("small"),
                    persistent_percent: *random.pick(&[0, 0, 50, 100]),
                    pause_max: random.between(500, 40_000),
                })
                .into(),
            );
        }
        for _ in 0..random.between(1, 3) {
            plan.clients.push(
                Role::Responder(Responder {
                    queue,
                    prefetch: u16::try_from(random.between(1, 20)).expect("small"),
                    mandatory_percent: *random.pick(&[0, 50, 100]),
                    think_max: random.between(500, 20_000),
                })
                .into(),
            );
        }
    }
    plan
}
