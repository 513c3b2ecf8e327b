//! Named sessions that clients take from each other, beside a queue that keeps the journal busy.

use super::draw::{add_clients, empty, producer, queue, several_shards};
use crate::plan::Plan;
use crate::plan::sessions::SessionClient;
use crate::random::Random;

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("sessions", random);
    plan.queues.push(queue("q"));
    let producers = vec![producer(random, vec!["q".to_owned()])];
    add_clients(&mut plan, random, producers, [0]);
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
