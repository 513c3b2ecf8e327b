//! A broker of several shards, its NATS clients, and a script of what they say and hear.
//!
//! A line `a@1> SUB s 1` has client `a` on shard 1 send that; `a> …` is the same client again. A line
//! `a< MSG s 1 2|hi` is what it must have heard since the last time it was asked, with `|` for a line's
//! end inside; `a<` alone: nothing. `hold` keeps batches back, `carry` delivers them.

use super::{administer, small_journal, start};
use crate::{Node, Options, ShardBatch, SpillStore, WaitsFor, shard_of};
use angarium_engine::limits::Limits;
use angarium_engine::{Bound, ConnectionId, Quota, Request, ShardId, Time};
use angarium_journal::FaultyStorage;
use angarium_protocol::{Identity, Peer, Protocol};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Bytes unsent to a client at which it hears nothing more.
pub(super) const DIRECT_BYTES_MAX: usize = 64 << 10;
/// Bytes unsent at which publishers wait for it.
pub(super) const EGRESS_BYTES_MAX: usize = 16 << 10;

/// What is handed out before others get their turn.
pub(super) const HANDED_AT_ONCE: u64 = 160 << 10;

/// A client.
#[derive(Debug, Default)]
struct Client {
    shard: usize,
    /// `None` once it was disconnected.
    id: Option<ConnectionId>,
    heard: Vec<u8>,
    /// It reads nothing.
    is_deaf: bool,
}

/// All shards and clients.
pub(super) struct Broker {
    pub(super) nodes: Vec<Node>,
    pub(super) disk: FaultyStorage,
    /// That of the spill logs, and what is on it.
    pub(super) spill: FaultyStorage,
    spill_store: SpillStore,
    now: Time,
    clients: BTreeMap<String, Client>,
    /// From, to and what; in order for each pair.
    pub(super) batches: VecDeque<(usize, usize, ShardBatch)>,
    pub(super) holds: bool,
}

fn options(shard: usize, shards: usize) -> Options {
    Options {
        limits: Limits { handed_at_once: HANDED_AT_ONCE, ..Limits::default() },
        journal: small_journal(),
        outbox_bytes_max: EGRESS_BYTES_MAX,
        quota: Quota::default().with(Bound::UnsentBytes, DIRECT_BYTES_MAX as u64),
        shard: ShardId(shard as u8),
        shards,
        ..Options::alone([1; 32])
    }
}

impl Broker {
    pub(super) fn new(shards: usize) -> Broker {
        Broker::with(shards, options)
    }

    /// One of which a message reaches eight subscribers in a turn.
    pub(super) fn narrow(shards: usize) -> Broker {
        Broker::with(shards, |shard, shards| {
            let Options { limits, .. } = options(shard, shards);
            let limits = Limits { subscribers_at_once: 8, ..limits };
            Options { limits, ..options(shard, shards) }
        })
    }

    fn with(shards: usize, options: fn(usize, usize) -> Options) -> Broker {
        let disk = FaultyStorage::new(1);
        let now = Time(1_000_000_000);
        let nodes = start(&disk, now, shards, options);
        let (clients, batches) = (BTreeMap::new(), VecDeque::new());
        let (spill, spill_store) = (FaultyStorage::new(2), nodes[0].spill_store());
        let mut broker =
            Broker { nodes, disk, spill, spill_store, now, clients, batches, holds: false };
        broker.settle_down();
        broker
    }

    pub(super) fn administer(&mut self, vhost: &str, request: Request) {
        administer(&mut self.nodes[0], self.now, vhost, request);
        self.settle_down();
    }

    /// Has an operator ask for something, and nothing happen yet.
    pub(super) fn ask(&mut self, vhost: &str, request: Request) {
        self.nodes[0].administer(self.now, vhost, request);
    }

    /// Plays a script.
    pub(super) fn play(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line {
                "hold" => self.holds = true,
                "carry" => {
                    self.holds = false;
                    self.settle_down();
                }
                _ => self.play_line(line),
            }
        }
    }

    fn play_line(&mut self, line: &str) {
        let at = line.find(['>', '<']).expect("a line has a client and a direction");
        let (name, text) = (&line[..at], line[at + 1..].trim().replace('|', "\r\n"));
        if line.as_bytes()[at] == b'<' {
            let expected = if text.is_empty() { text } else { format!("{text}\r\n") };
            assert_eq!(self.heard(name), expected, "{line}");
            return;
        }
        let (name, shard) = name.split_once('@').unwrap_or((name, "0"));
        if !self.clients.contains_key(name) {
            self.connect(name, shard.parse().unwrap());
        }
        self.say(name, &format!("{text}\r\n"));
    }

    /// Connects a client that says nothing yet.
    pub(super) fn accept(&mut self, name: &str, shard: usize, protocol: Protocol) {
        self.accept_as(name, shard, Peer { protocol, ..Peer::default() });
    }

    pub(super) fn accept_as(&mut self, name: &str, shard: usize, peer: Peer) {
        let shard = shard % self.nodes.len();
        let peer = Peer { address: "here:1".to_owned(), ..peer };
        let id = Some(self.nodes[shard].connected(self.now, peer));
        self.clients.insert(name.to_owned(), Client { shard, id, ..Client::default() });
        self.settle_down();
    }

    /// Connects a client; returns the INFO that it got first.
    pub(super) fn connect(&mut self, name: &str, shard: usize) -> String {
        self.accept(name, shard, Protocol::Nats);
        let info = self.heard(name);
        self.say(
            name,
            "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true,\
             \"user\":\"user\",\"pass\":\"secret\"}\r\n",
        );
        self.heard(name);
        info
    }

    /// The numbers by which people know the clients, each of which leads back to its client.
    pub(super) fn listed(&self) -> BTreeSet<u64> {
        let mut listed = BTreeSet::new();
        for (shard, node) in self.nodes.iter().enumerate() {
            for it in node.connections_in(self.now, 0..node.connection_places()) {
                let number = it.figures.number;
                assert_eq!(shard_of(number, self.nodes.len()), shard);
                assert_eq!(node.connection_of(number), Some(it.id));
                listed.insert(number);
            }
        }
        listed
    }

    /// Lets a client send, and everything happen that comes of it.
    pub(super) fn say(&mut self, name: &str, text: &str) {
        self.send(name, text);
        self.settle_down();
    }

    /// The same, bytes.
    pub(super) fn say_bytes(&mut self, name: &str, bytes: &[u8]) {
        self.send_bytes(name, bytes);
        self.settle_down();
    }

    /// Lets a client send.
    pub(super) fn send(&mut self, name: &str, text: &str) {
        self.send_bytes(name, text.as_bytes());
    }

    fn send_bytes(&mut self, name: &str, bytes: &[u8]) {
        let client = &self.clients[name];
        let id = client.id.expect("it is connected");
        self.nodes[client.shard].received(self.now, id, bytes);
    }

    /// Lets all shards begin to shut down.
    pub(super) fn shut_down(&mut self, why: &str) {
        for node in &mut self.nodes {
            node.shutdown(self.now, why);
        }
        self.settle_down();
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        for node in &mut self.nodes {
            node.expire(self.now);
        }
        self.settle_down();
    }

    /// What a client heard since it was last asked.
    pub(super) fn heard(&mut self, name: &str) -> String {
        String::from_utf8(self.heard_bytes(name)).unwrap()
    }

    /// The same, bytes.
    pub(super) fn heard_bytes(&mut self, name: &str) -> Vec<u8> {
        std::mem::take(&mut self.clients.get_mut(name).expect("it is known").heard)
    }

    /// Has a client that is deaf hear that number of bytes.
    pub(super) fn hear_some(&mut self, name: &str, count: usize) {
        let client = self.clients.get_mut(name).expect("it is known");
        let (node, id) = (&mut self.nodes[client.shard], client.id.expect("it is connected"));
        client.heard.extend(&node.outgoing(id)[..count]);
        node.sent(id, count);
    }

    pub(super) fn is_connected(&self, name: &str) -> bool {
        self.clients[name].id.is_some()
    }

    /// Whether a client that says nothing more is to be answered before it is dropped.
    pub(super) fn is_awaited(&mut self, name: &str) -> bool {
        let Client { shard, id, .. } = self.clients[name];
        self.nodes[shard].input_ended(self.now, id.expect("connected"))
    }

    /// Whether a client's input is read.
    pub(super) fn is_read(&self, name: &str) -> bool {
        let client = &self.clients[name];
        client.id.is_some_and(|id| self.nodes[client.shard].wants_read(id))
    }

    /// What it waits for that is not read from, as listings show it.
    pub(super) fn waits_for(&self, name: &str) -> Option<WaitsFor> {
        let client = &self.clients[name];
        self.nodes[client.shard].connection(self.now, client.id?)?.waits_for
    }

    /// How many bytes there is room for of a client's input that is kept.
    pub(super) fn kept(&self, name: &str) -> usize {
        let client = &self.clients[name];
        let id = client.id.expect("it is connected");
        let connection = self.nodes[client.shard].connections.slots[id.0 as usize].as_ref();
        connection.expect("it is connected").carry.capacity()
    }

    /// Lets a client read, or not.
    pub(super) fn set_deaf(&mut self, name: &str, is_deaf: bool) {
        self.clients.get_mut(name).expect("it is known").is_deaf = is_deaf;
        self.settle_down();
    }

    pub(super) fn disconnect(&mut self, name: &str) {
        let client = self.clients.get_mut(name).expect("it is known");
        let id = client.id.take().expect("it is connected");
        self.nodes[client.shard].disconnected(self.now, id);
        self.settle_down();
    }

    /// A client goes, and another one is in its place at once; says in how many turns that has its PONG.
    pub(super) fn replace(&mut self, old: &str, new: &str) -> usize {
        let client = self.clients.get_mut(old).expect("it is known");
        let (shard, id) = (client.shard, client.id.take().expect("it is connected"));
        self.nodes[shard].disconnected(self.now, id);
        let peer = Peer { protocol: Protocol::Nats, ..Peer::default() };
        let next = self.nodes[shard].connected(self.now, peer);
        assert_eq!(id, next, "the place is used again");
        let client = Client { shard, id: Some(next), ..Client::default() };
        self.clients.insert(new.to_owned(), client);
        let login = "{\"verbose\":false,\"user\":\"user\",\"pass\":\"secret\"}";
        self.send(new, &format!("CONNECT {login}\r\nPING\r\n"));
        let mut turns = 0;
        while !String::from_utf8_lossy(&self.clients[new].heard).contains("PONG") {
            turns += 1;
            assert!(self.turn(), "no PONG");
        }
        turns
    }

    /// Whether something is to be done before a client says more.
    pub(super) fn has_work(&self) -> bool {
        !self.batches.is_empty() || self.nodes.iter().any(Node::has_work)
    }

    /// Turns of all shards until nothing happens any more.
    pub(super) fn settle_down(&mut self) {
        while self.turn() {}
    }

    /// One turn of all shards; says whether anything happened.
    /// Delivers to one shard what others have sent it.
    pub(super) fn carry_to(&mut self, shard: usize) {
        for (from, to, batch) in std::mem::take(&mut self.batches) {
            if to == shard {
                self.nodes[to].arrived(self.now, ShardId(from as u8), batch);
            } else {
                self.batches.push_back((from, to, batch));
            }
        }
    }

    pub(super) fn turn(&mut self) -> bool {
        let mut is_busy = false;
        for shard in 0..self.nodes.len() {
            is_busy |= self.turn_of(shard);
        }
        while !self.holds
            && let Some((from, to, batch)) = self.batches.pop_front()
        {
            self.nodes[to].arrived(self.now, ShardId(from as u8), batch);
            is_busy = true;
        }
        is_busy
    }

    fn turn_of(&mut self, shard: usize) -> bool {
        let Broker { nodes, disk, spill, spill_store, now, clients, batches, .. } = self;
        let (node, now) = (&mut nodes[shard], *now);
        node.end_turn(now);
        let mut is_busy = node.has_work();
        while let Some(job) = node.next_job() {
            node.job_done(now, job.run(disk));
            is_busy = true;
        }
        while let Some(job) = node.spill_mut().next_job() {
            node.spill_mut().done(spill_store.run(job, spill));
            is_busy = true;
        }
        while let Some(asked) = node.next_verification() {
            let identity = Identity { user: asked.credentials.user().to_owned() };
            node.verified(now, asked.connection, asked.serial, Ok(identity));
            is_busy = true;
        }
        node.take_dirty(&mut Vec::new());
        for client in clients.values_mut().filter(|client| client.shard == shard) {
            let Some(id) = client.id else { continue };
            let bytes = node.outgoing(id).to_vec();
            if !bytes.is_empty() && !client.is_deaf {
                node.sent(id, bytes.len());
                client.heard.extend(bytes);
                is_busy = true;
            }
            if node.should_close(id) {
                node.disconnected(now, id);
                client.id = None;
                is_busy = true;
            }
        }
        while let Some((to, batch)) = node.next_batch() {
            batches.push_back((shard, usize::from(to.0), batch));
            is_busy = true;
        }
        is_busy
    }
}
