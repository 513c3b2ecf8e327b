//! The broker under test: one node per shard, and the batches between them. The first shard is home.

use super::happening::{Flight, Route};
use crate::client::USER;
use crate::history::Sample;
use crate::network::Place;
use crate::random::Random;
use angarium_engine::{Refusal, ShardId, Time};
use angarium_journal::{FaultyStorage, State};
use angarium_node::{
    InProcessEvent, NewUser, Node, Options, ShardBatch, SpillDone, SpillJob, SpillStore,
};
use angarium_protocol::Peer;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The reason with which connections end in an orderly close.
pub(super) const CLOSED_IN_ORDER: &str = "the node is closed in order";
/// The shard with the journal.
pub(super) const HOME: usize = 0;

pub(super) struct Broker {
    /// By shard.
    pub(super) nodes: Vec<Node>,
    /// The options of all nodes, apart from the shard.
    options: Options,
    spill_store: SpillStore,
    /// Shards with a spill job under way; each has one at a time.
    spilling: BTreeSet<usize>,
    /// Batches under way, oldest first.
    batches: BTreeMap<Route, VecDeque<ShardBatch>>,
}

impl Broker {
    /// Starts the home shard on the disk.
    pub(super) fn recover(
        options: Options,
        disk: &FaultyStorage,
        now: Time,
    ) -> Result<Broker, String> {
        let home = Node::recover(options.clone(), disk, now)?;
        Ok(Broker {
            spill_store: home.spill_store(),
            nodes: vec![home],
            options,
            spilling: BTreeSet::new(),
            batches: BTreeMap::new(),
        })
    }

    /// Creates the user of the simulated clients where there is none, and starts the other shards.
    pub(super) fn open(&mut self, now: Time) -> Result<(), String> {
        if self.nodes[HOME].engine().list_users().next().is_none() {
            let user = NewUser { name: USER, password_hash: "simulated", administrator: false };
            self.nodes[HOME].make_user(now, "/", &user).map_err(|refusal| refusal.text)?;
        }
        if self.options.shards == 1 {
            return Ok(());
        }
        let introduction = self.nodes[HOME].introduction();
        for shard in 1..self.options.shards {
            let mut options = self.options.clone();
            options.shard = shard_id(shard);
            options.seed[8] = options.shard.0;
            self.nodes.push(Node::join(options, &introduction)?);
        }
        Ok(())
    }

    // ---- connections ----

    fn any_shard(&self, random: &mut Random) -> usize {
        if self.nodes.len() > 1 { random.index(self.nodes.len()) } else { HOME }
    }

    /// Accepts a connection on a random shard.
    pub(super) fn connected(&mut self, now: Time, peer: Peer, random: &mut Random) -> Place {
        let shard = self.any_shard(random);
        Place { shard, slot: self.nodes[shard].connected(now, peer) }
    }

    /// Takes the connections of a shard that have output, or are to be closed.
    pub(super) fn take_dirty(&mut self, shard: usize) -> Vec<Place> {
        let mut dirty = Vec::new();
        self.nodes[shard].take_dirty(&mut dirty);
        dirty.into_iter().map(|slot| Place { shard, slot }).collect()
    }

    /// An in-process client connects to a random shard.
    pub(super) fn connect_in_process(
        &mut self,
        user: &str,
        random: &mut Random,
    ) -> Result<Place, Refusal> {
        let shard = self.any_shard(random);
        let slot = self.nodes[shard].connect_in_process(user, "/")?;
        Ok(Place { shard, slot })
    }

    /// The next thing that an in-process client gets.
    pub(super) fn next_in_process_event(&mut self) -> Option<(Place, InProcessEvent)> {
        self.nodes.iter_mut().enumerate().find_map(|(shard, node)| {
            let (slot, event) = node.next_in_process_event()?;
            Some((Place { shard, slot }, event))
        })
    }

    // ---- batches ----

    /// Sends a shard's batches; returns the receiving shards.
    pub(super) fn take_batches(&mut self, from: usize) -> Vec<usize> {
        let mut receivers = Vec::new();
        while let Some((to, batch)) = self.nodes[from].next_batch() {
            let to = usize::from(to.0);
            self.batches(Route { from, to }).push_back(batch);
            receivers.push(to);
        }
        receivers
    }

    pub(super) fn batches(&mut self, route: Route) -> &mut VecDeque<ShardBatch> {
        self.batches.entry(route).or_default()
    }

    /// Delivers the oldest batch.
    pub(super) fn batch_arrives(&mut self, now: Time, route: Route) {
        if let Some(batch) = self.batches(route).pop_front() {
            self.nodes[route.to].arrived(now, shard_id(route.from), batch);
        }
    }

    /// Runs turns of all shards until no batches are under way.
    pub(super) fn settle_down(&mut self, now: Time) {
        loop {
            for shard in 0..self.nodes.len() {
                self.nodes[shard].end_turn(now);
                self.take_batches(shard);
            }
            let waiting = self.batches.iter().filter(|(_, batches)| !batches.is_empty());
            let waiting: Vec<Route> = waiting.map(|(route, _)| *route).collect();
            if waiting.is_empty() {
                return;
            }
            for route in waiting {
                self.batch_arrives(now, route);
            }
        }
    }

    // ---- work for the host ----

    /// Takes all work that a shard has for the host.
    pub(super) fn take_work(&mut self, shard: usize) -> Vec<Flight> {
        let node = &mut self.nodes[shard];
        let mut flights = Vec::new();
        while let Some(job) = node.next_job() {
            flights.push(Flight::Job(job));
        }
        while let Some(read) = node.next_read() {
            flights.push(Flight::Read(read));
        }
        if !self.spilling.contains(&shard)
            && let Some(job) = node.spill_mut().next_job()
        {
            self.spilling.insert(shard);
            flights.push(Flight::Spill(shard, job));
        }
        while let Some(verification) = node.next_verification() {
            flights.push(Flight::Verification(shard, verification));
        }
        flights
    }

    pub(super) fn spill(&mut self, job: SpillJob, disk: &FaultyStorage) -> SpillDone {
        self.spill_store.run(job, disk)
    }

    pub(super) fn spill_done(&mut self, shard: usize, done: SpillDone) {
        self.spilling.remove(&shard);
        self.nodes[shard].spill_mut().done(done);
    }

    // ---- the end ----

    /// Tells every client to disconnect.
    pub(super) fn shut_down(&mut self, now: Time) {
        for node in &mut self.nodes {
            node.shutdown(now, CLOSED_IN_ORDER);
        }
    }

    /// Writes the records of an orderly close.
    pub(super) fn close(&mut self, now: Time, disk: &FaultyStorage) {
        self.nodes[HOME].close(now);
        while let Some(job) = self.nodes[HOME].next_job() {
            self.nodes[HOME].job_done(now, job.run(disk));
        }
    }

    // ---- what the host sees of it ----

    /// The state of the journal.
    pub(super) fn storage(&self) -> &State {
        self.nodes[HOME].journal().state()
    }

    /// Whether settles are left for later turns, or dead letters are being read back.
    pub(super) fn settles_in_parts(&self) -> bool {
        let engine = self.nodes[HOME].engine();
        engine.is_settling() || engine.is_reading_dead_letters()
    }

    /// What it holds in memory, including output to these connections.
    pub(super) fn sample(&self, places: impl Iterator<Item = Place>) -> Sample {
        let unsent = places.map(|place| self.nodes[place.shard].unsent(place.slot) as u64);
        let resident = self.nodes.iter().map(|node| node.engine().resident_bytes());
        Sample {
            resident_bytes: resident.sum(),
            unsent_bytes: unsent.max().unwrap_or(0),
            backlog_bytes: self.nodes[HOME].journal().stats().backlog_bytes,
        }
    }
}

fn shard_id(shard: usize) -> ShardId {
    ShardId(u8::try_from(shard).expect("at most 64 shards"))
}
