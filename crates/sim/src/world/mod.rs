//! The world of one run: virtual time, a node, its disks, clients and the connections between
//! them, driven by a queue of events.

mod broker;
mod claimants;
mod disk_work;
mod faults;
mod happening;
mod premature_pong;
mod sessions;
mod shards;
mod spill;
mod stages;
mod traffic;

use crate::canary::Canary;
use crate::client::{Endpoint, Numbers, Surroundings, client_for};
use crate::history::{Event, History, Sample};
use crate::network::{Link, Place};
use crate::plan::{Plan, Spill};
use crate::random::Random;
use angarium_engine::limits::Limits;
use angarium_engine::{Bound, Quota, Time};
use angarium_journal::{FaultyStorage, ReadBuffer};
use angarium_node::SpillOptions;
use angarium_protocol::{mqtt, nats};
use broker::Broker;
use claimants::Claimants;
use happening::{Flight, Happening, Route, Stage};
use premature_pong::PrematurePong;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

/// When every run begins: 2026-01-01, in microseconds since 1970.
const START: Time = Time(1_767_225_600_000_000);
/// Seeds of the separate generators for shards and the spill disk.
const SHARDED: u64 = 0x0000_54a2_d000;
const SPILL_SEED: u64 = 0x5_9001_ed00;
/// Events after which a run is given up as endless.
const EVENTS_MAX: u64 = 20_000_000;

/// One run.
pub struct World {
    now: Time,
    random: Random,
    plan: Plan,
    /// By time, then by number.
    events: BinaryHeap<Reverse<(Time, u64, Happening)>>,
    events_total: u64,
    /// What happened so far.
    pub history: History,
    numbers: Numbers,
    disk: FaultyStorage,
    read_buffer: ReadBuffer,
    /// The spill disk.
    spill_disk: FaultyStorage,
    /// Draws its faults.
    spill_random: Random,
    /// The number of next spill jobs before which files are damaged.
    spill_corruptions: u64,
    broker: Option<Broker>,
    /// Work under way; lost with the node.
    flights: BTreeMap<u64, Flight>,
    clients: Vec<Box<dyn Endpoint>>,
    claimants: Claimants,
    links: BTreeMap<u64, Link>,
    /// Links by their place in the broker.
    by_place: BTreeMap<Place, u64>,
    next_number: u64,
    /// Draws what only brokers of several shards need.
    shard_random: Random,
    /// Shards whose turn is about to end.
    turns_due: BTreeSet<usize>,
    /// Pairs of shards with batches that are about to arrive.
    routes_due: BTreeSet<Route>,
    /// The node has been asked to close in order.
    is_shutting_down: bool,
    /// By shard: when its scheduled deadline is.
    deadlines_at: BTreeMap<usize, Time>,
    stage: Stage,
    canary: Option<Canary>,
    premature_pong: PrematurePong,
    highest: Sample,
    settles_in_parts: bool,
    /// The disk operation at which power fails.
    power_fails_at: Option<u64>,
    /// The file in which a bit was flipped, if one was.
    flipped: Option<String>,
}

impl World {
    /// A world for `plan`.
    pub fn new(plan: Plan, seed: u64, canary: Option<Canary>) -> World {
        let mut random = Random::new(seed ^ 0x5eed);
        let disk = FaultyStorage::new(random.draw());
        disk.set_capacity(Some(plan.sizes.disk_bytes));
        if canary == Some(Canary::SyncLies) {
            disk.lie();
        }
        let mut world = World {
            now: START,
            random,
            history: History::new(plan.clone()),
            plan,
            events: BinaryHeap::new(),
            events_total: 0,
            numbers: Numbers::default(),
            disk,
            spill_random: Random::new(seed ^ SPILL_SEED),
            spill_corruptions: 0,
            read_buffer: ReadBuffer::default(),
            spill_disk: FaultyStorage::new(1),
            broker: None,
            flights: BTreeMap::new(),
            clients: Vec::new(),
            claimants: Claimants::default(),
            links: BTreeMap::new(),
            by_place: BTreeMap::new(),
            next_number: 0,
            shard_random: Random::new(seed ^ SHARDED),
            turns_due: BTreeSet::new(),
            routes_due: BTreeSet::new(),
            is_shutting_down: false,
            deadlines_at: BTreeMap::new(),
            stage: Stage::Working,
            canary,
            premature_pong: PrematurePong::default(),
            highest: Sample::default(),
            settles_in_parts: false,
            power_fails_at: None,
            flipped: None,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        for plan in self.plan.clients.clone() {
            let start = self.now.plus(Duration::from_micros(self.random.below(500_000)));
            let random = self.random.fork();
            self.add_client(client_for(&plan, start, random));
        }
        self.begin_sessions();
        self.schedule_faults();
        self.schedule(0, Happening::Restart);
        self.schedule(self.plan.duration, Happening::Stage);
    }

    fn add_client(&mut self, mut client: Box<dyn Endpoint>) {
        if let Some(canary) = self.canary {
            client.break_rule(canary, self.random.fork());
        }
        self.clients.push(client);
        self.schedule_client(self.clients.len() - 1);
    }

    /// Runs to the end; returns whether the node rightly refused to start on a damaged disk. Fails if
    /// the run gets stuck or a client finds an error; the checks judge the history.
    pub fn run(&mut self) -> Result<bool, String> {
        while let Some(Reverse((time, _, what))) = self.events.pop() {
            debug_assert!(time >= self.now);
            self.now = time;
            self.events_total += 1;
            if self.events_total > EVENTS_MAX {
                return Err(format!("no end after {EVENTS_MAX} events"));
            }
            self.happen(what)?;
            self.take_session_events();
            if self.stage == Stage::Over || self.stage == Stage::Refused {
                break;
            }
        }
        Ok(self.stage == Stage::Refused)
    }

    fn happen(&mut self, what: Happening) -> Result<(), String> {
        match what {
            Happening::Client(client) => self.client_due(client),
            Happening::Claimant(client) => self.claimant_due(client),
            Happening::Up(link) => self.up(link),
            Happening::Down(link) => self.down(link)?,
            Happening::NodeLost(link) => self.node_lost(link),
            Happening::ClientLost(link) => self.client_lost(link),
            Happening::Work(flight) => self.work(flight),
            Happening::Worked(flight) => self.worked(flight),
            Happening::Verified(flight) => self.verified(flight),
            Happening::Turn(shard) => self.turn(shard),
            Happening::Deadline(shard) => self.deadline(shard),
            Happening::Batches(route) => self.batches(route),
            Happening::Fault(fault) => self.fault(fault),
            Happening::Restart => self.restart()?,
            Happening::Stage => self.stage()?,
        }
        Ok(())
    }

    fn schedule(&mut self, micros: u64, what: Happening) {
        self.next_number += 1;
        let due = self.now.plus(Duration::from_micros(micros));
        self.events.push(Reverse((due, self.next_number, what)));
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn note(&mut self, event: Event) {
        self.history.note(self.now, event);
    }

    /// Records a clear new maximum of the node's memory, and whether settles are spread over turns.
    fn measure(&mut self) {
        let Some(broker) = self.broker.as_ref() else { return };
        let in_parts = broker.settles_in_parts();
        if std::mem::replace(&mut self.settles_in_parts, in_parts) != in_parts {
            self.history.note(self.now, Event::SettlesInParts(in_parts));
        }
        let sample = broker.sample(self.by_place.keys().copied());
        let highest = &mut self.highest;
        let measures = [
            (&mut highest.resident_bytes, sample.resident_bytes),
            (&mut highest.unsent_bytes, sample.unsent_bytes),
            (&mut highest.backlog_bytes, sample.backlog_bytes),
        ];
        if measures.iter().any(|(before, now)| *now > **before + **before / 8) {
            for (before, now) in measures {
                *before = now.max(*before);
            }
            self.history.note(self.now, Event::Measured(sample));
        }
    }

    /// Calls a client with its surroundings.
    fn with_client<T>(
        &mut self,
        client: usize,
        act: impl FnOnce(&mut dyn Endpoint, &mut Surroundings<'_>) -> T,
    ) -> T {
        let mut at =
            Surroundings { now: self.now, history: &mut self.history, numbers: &mut self.numbers };
        act(&mut *self.clients[client], &mut at)
    }

    /// The node's options. Work is divided differently at each start, by `seed`.
    fn options(&self, seed: u64) -> angarium_node::Options {
        let sizes = &self.plan.sizes;
        // Entries in a page are only checked against limits once they are read back; the checks of
        // limits and dead letters need them in memory.
        let has_limits = self.plan.queues.iter().any(|queue| {
            queue.length_max.is_some() || queue.dead_letters_to.is_some() || queue.ttl.is_some()
        });
        let mut limits = Limits {
            resident_bytes_max: sizes.resident_bytes_max,
            queue_resident_bytes_max: sizes.queue_resident_bytes_max,
            settles_at_once: one_of(seed, &[1, 3, 1024]),
            given_back_at_once: one_of(seed, &[1, 4096, 5, 40]),
            loaded_at_once: one_of(seed / 3, &[512, 1, 5]),
            snapshot_at_once: one_of(seed, &[1, 3, 10, 50, 2048]),
            backlog_bytes_per_second: one_of(seed, &[128 << 20, 1 << 20, 64 << 10]),
            handed_at_once: one_of(seed, &[1, 4 << 20, 1_000, 20_000]),
            large_body_bytes: one_of(seed, &[64 << 10, 1, 64 << 10, 64, 64 << 10, 500, 2_000]),
            ..Limits::default()
        };
        if !has_limits {
            limits.page_entries = one_of(seed, &[1024, 7, 2, 100]);
        }
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        angarium_node::Options {
            limits,
            journal: angarium_journal::Options {
                segment_bytes: sizes.segment_bytes,
                // Some stores grow their segments.
                first_segment_bytes: sizes.segment_bytes >> (seed % 3),
                checkpoint_bytes: sizes.checkpoint_bytes,
                backlog_bytes_max: sizes.backlog_bytes_max,
            },
            mqtt: mqtt_settings().into(),
            nats: nats_settings().into(),
            outbox_bytes_max: sizes.outbox_bytes_max,
            quota: Quota::default()
                .with_slow_consumer_policy(self.plan.slow_consumer_policy)
                .with(Bound::UnsentBytes, sizes.direct_bytes_max() as u64),
            spill: self.spill_options(),
            shards: self.plan.shards.count,
            ..angarium_node::Options::alone(key)
        }
    }

    fn spill_options(&self) -> SpillOptions {
        let Spill { chunks_max, chunk_bytes, loaded_max, .. } = self.plan.spill;
        let most = chunks_max.map(|chunks| chunks * chunk_bytes as u64);
        let bytes_max = most.unwrap_or(SpillOptions::default().bytes_max);
        SpillOptions { bytes_max, chunk_bytes, loaded_max, ..SpillOptions::default() }
    }
}

fn one_of<T: Copy>(seed: u64, values: &[T]) -> T {
    values[seed as usize % values.len()]
}

/// Stalled clients are not disconnected.
fn mqtt_settings() -> mqtt::Settings {
    mqtt::Settings { handshake_timeout: Duration::from_secs(150), ..mqtt::Settings::default() }
}

/// Idle clients are pinged within a run, and stalled ones are not disconnected.
fn nats_settings() -> nats::Settings {
    nats::Settings {
        ping_interval: Duration::from_secs(3),
        pings_out_max: 50,
        login_timeout: Duration::from_secs(150),
        ..nats::Settings::default()
    }
}
