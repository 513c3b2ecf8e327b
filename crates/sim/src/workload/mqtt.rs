//! MQTT: sessions that outlive connections, with messages that arrive at least or exactly once, shared
//! subscriptions and wills; and clients that look at what is retained.

use super::draw::empty;
use crate::plan::mqtt::{Client, Kept, Publishing, Subscribing, Watcher};
use crate::plan::{Client as AnyClient, Plan};
use crate::random::Random;

pub(super) fn plan(random: &mut Random) -> Plan {
    let mut plan = empty("mqtt", random);
    // A damaged queue stops: who waits for its messages waits for ever.
    plan.faults.bit_flip = false;
    let mut number = 0;
    let mut next = || {
        number += 1;
        number
    };
    for _ in 0..random.between(1, 3) {
        let client = Kept { publish: Some(publishing(random)), ..kept(random, next()) };
        plan.add(Client::Kept(client));
    }
    for _ in 0..random.between(1, 3) {
        let client = Kept { subscribe: Some(subscribing(random)), ..kept(random, next()) };
        plan.add(Client::Kept(client));
    }
    if random.percent(40) {
        for _ in 0..random.between(1, 3) {
            let subscribe = Subscribing { is_shared: true, qos: 2, ..subscribing(random) };
            plan.add(Client::Kept(Kept { subscribe: Some(subscribe), ..kept(random, next()) }));
        }
    }
    if random.percent(50) {
        let (publish, subscribe) = (Some(publishing(random)), Some(subscribing(random)));
        plan.add(Client::Kept(Kept { publish, subscribe, ..kept(random, next()) }));
    }
    for number in 0..random.below(3) {
        plan.add(Client::Watcher(Watcher {
            number: number as u32,
            qos: random.below(3) as u8,
            life_max: random.between(100_000, 3_000_000),
        }));
    }
    plan
}

fn kept(random: &mut Random, number: u32) -> Kept {
    Kept {
        number,
        publish: None,
        subscribe: None,
        has_will: random.percent(30),
        life_max: random.percent(60).then(|| random.between(100_000, 3_000_000)),
    }
}

fn publishing(random: &mut Random) -> Publishing {
    Publishing {
        qos: *random.pick(&[1, 2, 2]),
        retain_percent: *random.pick(&[0, 10, 100]),
        messages: random.between(10, 150) as u32,
        window: random.between(1, 20) as usize,
        body_max: *random.pick(&[30, 300, 3_000]),
        pause_max: *random.pick(&[2_000, 50_000, 300_000]),
    }
}

fn subscribing(random: &mut Random) -> Subscribing {
    Subscribing {
        qos: *random.pick(&[1, 2, 2]),
        is_shared: false,
        window: *random.pick(&[1, 3, 20, 100]),
        late_percent: *random.pick(&[0, 5, 40]),
    }
}

impl From<Client> for AnyClient {
    fn from(client: Client) -> AnyClient {
        AnyClient::Mqtt(client)
    }
}
