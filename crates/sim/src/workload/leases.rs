//! Queues with `x-expires`, and others without.

use super::draw::{add_clients, empty, producer, queue};
use crate::plan::amqp091::{LeaseKeeper, Role};
use crate::plan::{Plan, Queue};
use crate::random::Random;

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("leases", random);
    plan.queues.push(queue("permanent"));
    for number in 0..random.index(3) + 1 {
        let expires = random.between(50, 2_000);
        plan.queues.push(Queue {
            expires: Some(expires),
            lossy: true,
            ..queue(format!("lease.{number}"))
        });
        let away_max = expires * 1_000 * random.between(1, 3);
        plan.clients.push(Role::LeaseKeeper(LeaseKeeper { queue: number + 1, away_max }).into());
    }
    let producer = producer(random, vec!["permanent".to_owned()]);
    add_clients(&mut plan, random, vec![producer], [0]);
    plan
}
