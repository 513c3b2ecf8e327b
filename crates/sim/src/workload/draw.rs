//! Draws the parts of plans: sizes, faults, queues, producers and consumers.

use crate::plan::amqp091::{Acks, Consumer, Mode, Producer, Role};
use crate::plan::{Client, Exchange, Faults, Plan, Queue, QueueIndex, Shards, Sizes, Spill};
use crate::random::Random;
use angarium_engine::{ExchangeKind, SlowConsumerPolicy};
use std::ops::RangeInclusive;

/// Draws a broker of several shards.
pub(crate) fn several_shards(random: &mut Random) -> Shards {
    Shards {
        count: *random.pick(&[2, 2, 2, 3, 3, 5, 5, 16, 64]),
        delay_max: *random.pick(&[50, 1_000, 20_000, 100_000]),
        late_percent: *random.pick(&[0, 2, 20]),
        late_max: *random.pick(&[1_000, 50_000]),
    }
}

/// A plan with nothing in it but sizes and faults.
pub(super) fn empty(workload: &'static str, random: &mut Random) -> Plan {
    Plan {
        workload,
        exchanges: Vec::new(),
        queues: Vec::new(),
        bindings: Vec::new(),
        clients: Vec::new(),
        sessions: Vec::new(),
        duration: random.between(1_000_000, 12_000_000),
        sizes: sizes(random),
        faults: faults(random),
        shards: Shards::ONE,
        slow_consumer_policy: SlowConsumerPolicy::DropNew,
        spill: Spill::default(),
        may_refuse: false,
    }
}

fn sizes(random: &mut Random) -> Sizes {
    let resident = *random.pick(&[16 << 10, 128 << 10, 4 << 20]);
    let segment_bytes = *random.pick(&[16 << 10, 64 << 10, 256 << 10]);
    Sizes {
        resident_bytes_max: resident,
        queue_resident_bytes_max: (resident / *random.pick(&[1, 4])).max(4 << 10),
        segment_bytes,
        checkpoint_bytes: u64::from(segment_bytes) * random.between(1, 6),
        backlog_bytes_max: *random.pick(&[16 << 10, 256 << 10, 4 << 20]),
        outbox_bytes_max: *random.pick(&[2 << 10, 32 << 10, 1 << 20]),
        disk_bytes: 256 << 20,
    }
}

/// A network that only delays.
pub(super) fn calm(random: &mut Random) -> Faults {
    Faults {
        fragment_max: 64 << 10,
        delay_max: random.between(50, 2_000),
        disk_delay_max: random.between(100, 20_000),
        pipe_bytes: 64 << 10,
        ..Faults::default()
    }
}

fn faults(random: &mut Random) -> Faults {
    Faults {
        crashes: random.below(4),
        closes: random.below(2),
        sync_errors: u64::from(random.percent(15)),
        disk_fulls: u64::from(random.percent(20)),
        bit_flip: random.percent(10),
        cuts: random.below(6),
        stalls: random.below(6),
        fragment_max: *random.pick(&[64, 1_500, 16 << 10, 64 << 10]),
        delay_max: *random.pick(&[100, 1_000, 20_000]),
        disk_delay_max: *random.pick(&[500, 10_000, 200_000]),
        pipe_bytes: *random.pick(&[300, 4 << 10, 64 << 10]),
    }
}

/// The spill disk; in one run of three it has no faults.
pub(super) fn spill(random: &mut Random) -> Spill {
    let chunk_bytes = *random.pick(&[300, 1 << 10, 8 << 10]);
    let loaded_max = *random.pick(&[1, 1, 3, 32]);
    if random.percent(33) {
        return Spill { chunk_bytes, loaded_max, ..Spill::default() };
    }
    Spill {
        chunk_bytes,
        loaded_max,
        chunks_max: random.percent(25).then(|| *random.pick(&[1, 10, 100])),
        failures: random.below(5),
        fulls: random.below(3),
        corruptions: random.below(6),
        slowness_max: *random.pick(&[0, 0, 50_000, 1_000_000]),
    }
}

pub(super) fn queue(name: impl Into<String>) -> Queue {
    Queue { name: name.into(), durable: true, ..Queue::default() }
}

/// A direct exchange.
pub(crate) fn exchange(name: impl Into<String>) -> Exchange {
    Exchange { name: name.into(), kind: ExchangeKind::Direct, delaying: false, alternate: None }
}

/// Draws a producer with these routing keys.
pub(super) fn producer(random: &mut Random, keys: Vec<String>) -> Producer {
    let mode = match random.below(10) {
        0 => Mode::Plain,
        1 | 2 => Mode::Transactional(random.between(1, 12)),
        _ => Mode::Confirm,
    };
    Producer {
        keys,
        messages: random.between(20, 400) as u32,
        window: random.between(1, 100) as u32,
        mode,
        persistent_percent: *random.pick(&[100, 100, 70, 0]),
        mandatory_percent: *random.pick(&[0, 30]),
        body_max: *random.pick(&[100, 2_000, 20_000]),
        pause_max: random.between(1_000, 60_000),
        rollback_percent: 20,
        ..Producer::default()
    }
}

pub(super) fn consumer(random: &mut Random, queue: QueueIndex) -> Consumer {
    let acks = match random.below(8) {
        0 => Acks::Auto,
        1 | 2 => Acks::Multiple(random.between(2, 20)),
        _ => Acks::Single,
    };
    Consumer {
        queue,
        acks,
        prefetch: *random.pick(&[1, 2, 10, 100, 0]),
        prefetch_bytes: 0,
        requeue_percent: *random.pick(&[0, 0, 10, 40]),
        discard_percent: *random.pick(&[0, 0, 10]),
        think_max: random.between(500, 40_000),
        gets: random.percent(15),
        life_max: random.percent(40).then(|| random.between(100_000, 4_000_000)),
    }
}

/// Draws producers with these routing keys, each of them changed by `alter`.
pub(super) fn producers(
    random: &mut Random,
    count: RangeInclusive<u64>,
    keys: &[String],
    mut alter: impl FnMut(&mut Random, &mut Producer),
) -> Vec<Producer> {
    let count = random.between(*count.start(), *count.end());
    let altered = (0..count).map(|_| {
        let mut producer = producer(random, keys.to_vec());
        alter(random, &mut producer);
        producer
    });
    altered.collect()
}

pub(super) fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

impl Plan {
    pub(super) fn add(&mut self, client: impl Into<Client>) {
        self.clients.push(client.into());
    }

    pub(super) fn add_consumer(&mut self, consumer: Consumer) {
        self.add(Role::Consumer(consumer));
    }

    /// Adds `producers` and, for each of `queues`, a few consumers.
    pub(super) fn add_clients(
        &mut self,
        random: &mut Random,
        producers: Vec<Producer>,
        queues: impl IntoIterator<Item = QueueIndex>,
    ) {
        for producer in producers {
            self.add(Role::Producer(producer));
        }
        for queue in queues {
            for _ in 0..random.below(3) {
                self.add_consumer(consumer(random, queue));
            }
        }
    }

    /// Adds queues, of which some are not durable.
    pub(super) fn add_queues(
        &mut self,
        random: &mut Random,
        count: RangeInclusive<u64>,
        prefix: &str,
        durable_percent: u64,
    ) {
        for number in 0..random.between(*count.start(), *count.end()) {
            let durable = random.percent(durable_percent);
            self.queues.push(Queue { durable, ..queue(format!("{prefix}.{number}")) });
        }
    }

    pub(super) fn queue_names(&self) -> Vec<String> {
        self.queues.iter().map(|queue| queue.name.clone()).collect()
    }
}
