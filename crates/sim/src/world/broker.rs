//! The broker under test: one node per shard, and the batches between them.
//!
//! Callers name a connection by its place. The first shard is home.

use super::happening::{Flight, Route};
use crate::client::USER;
use crate::history::Sample;
use crate::network::Place;
use crate::random::Random;
use angarium_engine::{Refusal, Request, ShardId, Time};
use angarium_journal::{Done, FaultyStorage, Job, State};
use angarium_node::{
    InProcessEvent, Node, Options, ReadDone, ShardBatch, SpillDone, SpillJob, SpillStore,
    Verification,
};
use angarium_protocol::{Authentication, Peer};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The reason with which connections end in an orderly close.
pub(super) const CLOSED_IN_ORDER: &str = "the node is closed in order";
/// The shard with the journal.
pub(super) const HOME: usize = 0;

/// A running broker.
pub(super) struct Broker {
    /// By shard.
    nodes: Vec<Node>,
    /// The options of all nodes, apart from the shard.
    options: Options,
    /// The store of all shards' spill logs.
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

    /// Creates the user of the simulated clients.
    pub(super) fn enter_user(&mut self, now: Time) -> Result<(), String> {
        let user =
            angarium_node::NewUser { name: USER, password_hash: "simulated", administrator: false };
        let made = self.nodes[HOME].make_user(now, "/", &user);
        made.map_err(|refusal| refusal.text)
    }

    /// Starts the other shards.
    pub(super) fn open(&mut self) -> Result<(), String> {
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

    /// Accepts a connection on a random shard.
    pub(super) fn connected(&mut self, now: Time, peer: Peer, random: &mut Random) -> Place {
        let shard = if self.nodes.len() > 1 { random.index(self.nodes.len()) } else { HOME };
        Place { shard, slot: self.nodes[shard].connected(now, peer) }
    }

    /// Whether it wants to read.
    pub(super) fn wants_read(&self, place: Place) -> bool {
        self.nodes[place.shard].wants_read(place.slot)
    }

    /// Bytes arrived.
    pub(super) fn received(&mut self, now: Time, place: Place, bytes: &[u8]) {
        self.nodes[place.shard].received(now, place.slot, bytes);
    }

    /// Bytes to be sent.
    pub(super) fn outgoing(&self, place: Place) -> &[u8] {
        self.nodes[place.shard].outgoing(place.slot)
    }

    /// Records that `bytes` bytes were sent.
    pub(super) fn sent(&mut self, place: Place, bytes: usize) {
        self.nodes[place.shard].sent(place.slot, bytes);
    }

    /// Why the broker closes the connection, once all output is sent.
    pub(super) fn end_reason(&self, place: Place) -> Option<String> {
        let node = &self.nodes[place.shard];
        let is_over = node.should_close(place.slot);
        is_over.then(|| node.end_reason(place.slot).unwrap_or_default().to_owned())
    }

    /// The transport is gone.
    pub(super) fn disconnected(&mut self, now: Time, place: Place) {
        self.nodes[place.shard].disconnected(now, place.slot);
    }

    /// Takes the connections of a shard that have output, or are to be closed.
    pub(super) fn take_dirty(&mut self, shard: usize) -> Vec<Place> {
        let mut dirty = Vec::new();
        self.nodes[shard].take_dirty(&mut dirty);
        dirty.into_iter().map(|slot| Place { shard, slot }).collect()
    }

    // ---- in-process clients ----

    /// An in-process client connects, and is placed by chance.
    pub(super) fn connect_in_process(
        &mut self,
        user: &str,
        random: &mut Random,
    ) -> Result<Place, Refusal> {
        let shard = if self.nodes.len() > 1 { random.index(self.nodes.len()) } else { HOME };
        let slot = self.nodes[shard].connect_in_process(user, "/")?;
        Ok(Place { shard, slot })
    }

    /// It asks for something.
    pub(super) fn request_in_process(&mut self, now: Time, place: Place, request: Request) {
        self.nodes[place.shard].request_in_process(now, place.slot, request);
    }

    /// It is gone.
    pub(super) fn disconnect_in_process(&mut self, now: Time, place: Place) {
        self.nodes[place.shard].disconnect_in_process(now, place.slot);
    }

    /// The next thing that one of them gets.
    pub(super) fn next_in_process_event(&mut self) -> Option<(Place, InProcessEvent)> {
        self.nodes.iter_mut().enumerate().find_map(|(shard, node)| {
            let (slot, event) = node.next_in_process_event()?;
            Some((Place { shard, slot }, event))
        })
    }

    // ---- turns ----

    /// Ends a shard's turn; returns whether it has more work.
    pub(super) fn end_turn(&mut self, now: Time, shard: usize) -> bool {
        self.nodes[shard].end_turn(now);
        self.nodes[shard].has_work()
    }

    /// When [`Broker::expire`] has something to do.
    pub(super) fn deadline(&self, shard: usize) -> Option<Time> {
        self.nodes[shard].deadline()
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now: Time, shard: usize) {
        self.nodes[shard].expire(now);
    }

    // ---- batches ----

    /// Sends a shard's batches; returns the receiving shards.
    pub(super) fn take_batches(&mut self, from: usize) -> Vec<usize> {
        let mut receivers = Vec::new();
        while let Some((to, batch)) = self.nodes[from].next_batch() {
            let to = usize::from(to.0);
            self.batches.entry(Route { from, to }).or_default().push_back(batch);
            receivers.push(to);
        }
        receivers
    }

    /// Number of batches under way.
    pub(super) fn batches(&self, route: Route) -> usize {
        self.batches.get(&route).map_or(0, VecDeque::len)
    }

    /// Delivers the oldest batch.
    pub(super) fn batch_arrives(&mut self, now: Time, route: Route) {
        if let Some(batch) = self.take_batch(route) {
            self.nodes[route.to].arrived(now, shard_id(route.from), batch);
        }
    }

    /// Removes the oldest batch.
    pub(super) fn take_batch(&mut self, route: Route) -> Option<ShardBatch> {
        self.batches.get_mut(&route)?.pop_front()
    }

    /// Swaps the two oldest batches.
    pub(super) fn swap_batches(&mut self, route: Route) {
        if let Some(batches) = self.batches.get_mut(&route).filter(|batches| batches.len() > 1) {
            batches.swap(0, 1);
        }
    }

    /// Runs turns of all shards until no batches are under way.
    pub(super) fn settle_down(&mut self, now: Time) {
        loop {
            for shard in 0..self.nodes.len() {
                self.end_turn(now, shard);
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
            && let Some(job) = node.next_spill_job()
        {
            self.spilling.insert(shard);
            flights.push(Flight::Spill(shard, job));
        }
        while let Some(verification) = node.next_verification() {
            flights.push(Flight::Verification(shard, verification));
        }
        flights
    }

    fn next_job(&mut self) -> Option<Job> {
        self.nodes[HOME].next_job()
    }

    /// A disk job ended.
    pub(super) fn job_done(&mut self, now: Time, done: Done) {
        self.nodes[HOME].job_done(now, done);
    }

    /// A read ended.
    pub(super) fn read_done(&mut self, now: Time, done: ReadDone) {
        self.nodes[HOME].read_done(now, done);
    }

    /// Runs a spill job.
    pub(super) fn spill(&mut self, job: SpillJob, disk: &FaultyStorage) -> SpillDone {
        self.spill_store.run(job, disk)
    }

    /// A spill job of a shard ended.
    pub(super) fn spill_done(&mut self, shard: usize, done: SpillDone) {
        self.spilling.remove(&shard);
        self.nodes[shard].spill_done(done);
    }

    /// Answers a shard's request to check credentials.
    pub(super) fn verified(
        &mut self,
        now: Time,
        shard: usize,
        asked: &Verification,
        answer: Authentication,
    ) {
        self.nodes[shard].verified(now, asked.connection, asked.serial, answer);
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
        while let Some(job) = self.next_job() {
            self.job_done(now, job.run(disk));
        }
    }

    // ---- what the host sees of it ----

    /// The state of the journal.
    pub(super) fn storage(&self) -> &State {
        self.nodes[HOME].journal().state()
    }

    /// Number of records that could not be read back.
    pub(super) fn unreadable(&self) -> u64 {
        self.nodes[HOME].engine().counters().unreadable
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
