//! The smallest host: one thread, no network, a disk in memory, and clients that are only their bytes.

use super::client::Client;
pub(super) use super::client::Said;
pub(super) use super::frames::message;
use super::{small_journal, start};
use crate::{Node, Options, ReadJob, SpillOptions, Ticket};
use angarium_engine::limits::Limits;
use angarium_engine::{Bound, ConnectionId, Quota, RefusalKind, Request, ShardId, Time};
use angarium_journal::{FaultyStorage, Job, ReadBuffer};
use angarium_protocol::amqp091::codec::{Method, Table};
use angarium_protocol::amqp091::frame;
use angarium_protocol::{Credentials, Identity, Peer, Protocol};
use std::time::Duration;

pub(super) const RESIDENT_BYTES_MAX: u64 = 64 << 10;
/// So that a checkpoint takes more than one turn wherever there are messages.
pub(super) const SNAPSHOT_AT_ONCE: usize = 10;
/// So that some sixty direct messages are the work of a step.
const HANDED_AT_ONCE: u64 = 16 << 10;
pub(super) const EGRESS_BYTES_MAX: usize = 16 << 10;

/// A node and what surrounds it.
pub(super) struct Host {
    /// By shard; none while it is down.
    pub(super) nodes: Vec<Node>,
    shards: usize,
    options: fn(usize, usize) -> Options,
    pub(super) disk: FaultyStorage,
    pub(super) now: Time,
    clients: Vec<Client>,
    jobs: Vec<Job>,
    reads: Vec<ReadJob>,
    /// Jobs are taken from the node and not carried out.
    pub(super) holds_jobs: bool,
}

pub(super) fn options(shard: usize, shards: usize) -> Options {
    Options {
        limits: Limits {
            resident_bytes_max: RESIDENT_BYTES_MAX,
            queue_resident_bytes_max: RESIDENT_BYTES_MAX,
            snapshot_at_once: SNAPSHOT_AT_ONCE,
            handed_at_once: HANDED_AT_ONCE,
            ..Limits::default()
        },
        journal: small_journal(),
        outbox_bytes_max: EGRESS_BYTES_MAX,
        quota: Quota::default().with(Bound::UnsentBytes, 4 * EGRESS_BYTES_MAX as u64),
        spill: SpillOptions { bytes_max: 8 << 20, ..SpillOptions::default() },
        local_users: vec!["user".to_owned()],
        shard: ShardId(shard as u8),
        shards,
        ..Options::alone([1; 32])
    }
}

impl Host {
    /// A broker of `shards` shards; clients are on the last one unless stated otherwise.
    pub(super) fn new(shards: usize) -> Host {
        Host::on(FaultyStorage::new(1), shards, options)
    }

    /// The same, with what is on that disk.
    pub(super) fn on(
        disk: FaultyStorage,
        shards: usize,
        options: fn(usize, usize) -> Options,
    ) -> Host {
        let mut host = Host {
            nodes: Vec::new(),
            shards,
            options,
            disk,
            now: Time(1_000_000_000),
            clients: Vec::new(),
            jobs: Vec::new(),
            reads: Vec::new(),
            holds_jobs: false,
        };
        host.start();
        host
    }

    fn start(&mut self) {
        self.nodes = start(&self.disk, self.now, self.shards, self.options);
        self.settle_down();
        self.answered();
    }

    /// Home.
    pub(super) fn node(&mut self) -> &mut Node {
        self.nodes.first_mut().expect("it runs")
    }

    /// Asks for something as an operator.
    pub(super) fn ask(&mut self, vhost: &str, request: Request) -> Ticket {
        let now = self.now;
        self.node().administer(now, vhost, request)
    }

    /// The answers to operators since the last call.
    pub(super) fn answered(&mut self) -> Vec<(Ticket, Result<(), RefusalKind>)> {
        let answers = std::iter::from_fn(|| self.node().next_admin_answer());
        let kinds = answers
            .map(|(ticket, answer)| (ticket, answer.map(|_| ()).map_err(|refusal| refusal.kind)));
        kinds.collect()
    }

    /// Asks, and lets everything happen that comes of it.
    pub(super) fn operate(&mut self, vhost: &str, request: Request) -> Result<(), RefusalKind> {
        let ticket = self.ask(vhost, request);
        self.settle_down();
        let answered = self.answered();
        assert!(matches!(answered[..], [(its, _)] if its == ticket), "{answered:?}");
        answered[0].1
    }

    /// The shard with most clients.
    pub(super) fn front(&mut self) -> &mut Node {
        self.nodes.last_mut().expect("it runs")
    }

    pub(super) fn crash(&mut self) {
        self.nodes.clear();
        self.went();
    }

    pub(super) fn close(&mut self) {
        let now = self.now;
        for client in &mut self.clients {
            if let Some(slot) = client.slot.take() {
                self.nodes[client.shard].disconnected(now, slot);
            }
        }
        self.settle_down();
        self.close_at_once();
    }

    /// The same, just after what clients have sent was read.
    pub(super) fn close_at_once(&mut self) {
        let now = self.now;
        self.node().close(now);
        self.settle_down();
        self.nodes.clear();
        self.went();
    }

    fn went(&mut self) {
        self.disk.crash();
        self.jobs.clear();
        self.reads.clear();
        self.clients.clear();
        self.start();
    }

    /// Lets time pass, in steps in which a node would be woken.
    pub(super) fn pass(&mut self, millis: u64) {
        for _ in 0..millis / 100 {
            self.wait(Duration::from_millis(100));
        }
    }

    /// Lets time pass at once.
    pub(super) fn wait(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        let now = self.now;
        for node in &mut self.nodes {
            node.expire(now);
        }
        self.settle_down();
    }

    // ---- turns ----

    /// Turns until nothing happens any more.
    pub(super) fn settle_down(&mut self) {
        while self.turn() {}
    }

    /// The same, in a scenario that holds jobs back.
    pub(super) fn turns(&mut self) {
        self.settle_down();
    }

    /// One turn; says whether anything happened.
    pub(super) fn turn(&mut self) -> bool {
        let mut is_busy = false;
        for shard in 0..self.nodes.len() {
            is_busy |= self.turn_of(shard);
        }
        if !self.holds_jobs {
            is_busy |= self.work();
        }
        self.nodes.iter_mut().for_each(|node| node.take_dirty(&mut Vec::new()));
        is_busy |= self.carry_output();
        for client in 0..self.clients.len() {
            is_busy |= self.read(client);
        }
        is_busy
    }

    /// Lets home have what the other shards have read.
    pub(super) fn hand_over(&mut self) {
        for shard in 1..self.nodes.len() {
            self.turn_of(shard);
        }
    }

    fn turn_of(&mut self, shard: usize) -> bool {
        let (now, node) = (self.now, &mut self.nodes[shard]);
        node.end_turn(now);
        let mut is_busy = node.has_work();
        self.jobs.extend(std::iter::from_fn(|| node.next_job()));
        self.reads.extend(std::iter::from_fn(|| node.next_read()));
        while let Some(asked) = node.next_verification() {
            let Credentials::Password { user, password } = asked.credentials else { continue };
            let is_right = asked.password_hash.as_deref() == Some(password.as_str());
            let answer = if is_right { Ok(Identity { user }) } else { Err("wrong".to_owned()) };
            node.verified(now, asked.connection, asked.serial, answer);
            is_busy = true;
        }
        while let Some((to, batch)) = self.nodes[shard].next_batch() {
            self.nodes[usize::from(to.0)].arrived(now, ShardId(shard as u8), batch);
            is_busy = true;
        }
        is_busy
    }

    /// Carries jobs and reads out.
    fn work(&mut self) -> bool {
        let is_busy = !self.jobs.is_empty() || !self.reads.is_empty();
        let (now, home) = (self.now, &mut self.nodes[0]);
        for job in self.jobs.drain(..) {
            home.job_done(now, job.run(&self.disk));
        }
        for read in self.reads.drain(..) {
            home.read_done(now, read.run(&self.disk, &mut ReadBuffer::default()));
        }
        is_busy
    }

    fn carry_output(&mut self) -> bool {
        let mut is_busy = false;
        let now = self.now;
        for client in &mut self.clients {
            let Some(slot) = client.slot else { continue };
            let node = &mut self.nodes[client.shard];
            let bytes = node.outgoing(slot).to_vec();
            if !bytes.is_empty() && !client.is_deaf {
                node.sent(slot, bytes.len());
                client.input.extend(bytes);
                is_busy = true;
            }
            if node.should_close(slot) {
                node.disconnected(now, slot);
                client.slot = None;
                is_busy = true;
            }
        }
        is_busy
    }

    // ---- clients ----

    /// A client that is connected and has a channel.
    pub(super) fn client(&mut self) -> usize {
        self.client_with_heartbeat(0)
    }

    pub(super) fn client_with_heartbeat(&mut self, heartbeat: u16) -> usize {
        let client = self.connect_with("secret", heartbeat);
        self.open_channel(client)
    }

    /// Such a client on that shard.
    pub(super) fn client_on(&mut self, shard: usize) -> usize {
        let client = self.connect_on(shard);
        self.open_channel(client)
    }

    /// One without a channel.
    pub(super) fn connect_on(&mut self, shard: usize) -> usize {
        self.connect_to(shard, Peer { local: true, ..Peer::default() }, "secret", 0)
    }

    fn open_channel(&mut self, client: usize) -> usize {
        self.send(client, 1, &Method::ChannelOpen { out_of_band: "" });
        self.settle_down();
        self.heard(client);
        client
    }

    pub(super) fn connect(&mut self, password: &'static str) -> usize {
        self.connect_with(password, 0)
    }

    fn connect_with(&mut self, password: &'static str, heartbeat: u16) -> usize {
        self.connect_as(Peer { local: true, ..Peer::default() }, password, heartbeat)
    }

    pub(super) fn connect_as(
        &mut self,
        peer: Peer,
        password: &'static str,
        heartbeat: u16,
    ) -> usize {
        self.connect_to(self.nodes.len() - 1, peer, password, heartbeat)
    }

    fn connect_to(
        &mut self,
        shard: usize,
        peer: Peer,
        password: &'static str,
        heartbeat: u16,
    ) -> usize {
        let client = self.add(shard, peer, password, heartbeat);
        self.send_bytes(client, &frame::PROTOCOL_HEADER);
        self.settle_down();
        client
    }

    /// A client of another protocol, which has sent nothing yet.
    pub(super) fn connect_other(&mut self, shard: usize) -> usize {
        self.connect_by(shard, Protocol::default())
    }

    /// The same, of a listener for that protocol.
    pub(super) fn connect_by(&mut self, shard: usize, protocol: Protocol) -> usize {
        let client = self.add(shard, Peer { local: true, protocol, ..Peer::default() }, "", 0);
        self.clients[client].is_other = true;
        client
    }

    /// How many clients there have been.
    pub(super) fn clients(&self) -> usize {
        self.clients.len()
    }

    /// The bytes that came for such a client since the last call.
    pub(super) fn taken(&mut self, client: usize) -> Vec<u8> {
        std::mem::take(&mut self.clients[client].input)
    }

    fn add(&mut self, shard: usize, peer: Peer, password: &'static str, heartbeat: u16) -> usize {
        let slot = self.nodes[shard].connected(self.now, peer);
        self.clients.push(Client {
            shard,
            slot: Some(slot),
            input: Vec::new(),
            said: Vec::new(),
            partial: None,
            password,
            heartbeat,
            is_deaf: false,
            is_other: false,
            transcript: None,
        });
        self.clients.len() - 1
    }

    pub(super) fn is_closed(&self, client: usize) -> bool {
        self.clients[client].slot.is_none()
    }

    pub(super) fn slot(&self, client: usize) -> ConnectionId {
        self.clients[client].slot.expect("connected")
    }

    pub(super) fn wants_read(&mut self, client: usize) -> bool {
        let Client { shard, slot, .. } = self.clients[client];
        self.nodes[shard].wants_read(slot.expect("connected"))
    }

    pub(super) fn waits_for(&self, client: usize) -> Option<crate::WaitsFor> {
        let Client { shard, slot, .. } = self.clients[client];
        self.nodes[shard].connection(self.now, slot?)?.waits_for
    }

    /// What the client heard since the last time.
    pub(super) fn heard(&mut self, client: usize) -> Vec<Said> {
        let said = std::mem::take(&mut self.clients[client].said);
        said.into_iter().filter(|said| *said != Said::Ok).collect()
    }

    pub(super) fn send(&mut self, client: usize, channel: u16, method: &Method<'_>) {
        let mut bytes = Vec::new();
        method.write_frame(channel, &mut bytes);
        self.send_bytes(client, &bytes);
    }

    /// The methods that the client was sent since the last time, word for word; from the first time on.
    pub(super) fn transcript(&mut self, client: usize) -> Vec<String> {
        self.clients[client].transcript.replace(Vec::new()).unwrap_or_default()
    }

    pub(super) fn send_bytes(&mut self, client: usize, bytes: &[u8]) {
        let Client { shard, slot, .. } = self.clients[client];
        if let Some(slot) = slot {
            self.nodes[shard].received(self.now, slot, bytes);
        }
    }

    pub(super) fn declare(&mut self, client: usize, queue: &str) {
        self.declare_with(client, queue, false);
    }

    /// The number of ready messages.
    pub(super) fn count(&mut self, client: usize, queue: &str) -> u32 {
        self.declare_with(client, queue, true);
        let said = std::mem::take(&mut self.clients[client].said);
        let count = said.iter().rev().find_map(|said| match said {
            Said::Count(count) => Some(*count),
            _ => None,
        });
        count.unwrap_or_else(|| panic!("no count in {said:?}"))
    }

    fn declare_with(&mut self, client: usize, queue: &str, passive: bool) {
        let method = Method::QueueDeclare {
            ticket: 0,
            queue,
            passive,
            durable: true,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments: Table::default(),
        };
        self.send(client, 1, &method);
        self.settle_down();
    }

    pub(super) fn confirm_select(&mut self, client: usize) {
        self.send(client, 1, &Method::ConfirmSelect { no_wait: false });
        self.settle_down();
    }

    pub(super) fn publish(&mut self, client: usize, queue: &str, body: &[u8], persistent: bool) {
        self.publish_many(client, queue, body, persistent, 1);
    }

    /// Publishes a message `count` times in one read.
    pub(super) fn publish_many(
        &mut self,
        client: usize,
        queue: &str,
        body: &[u8],
        persistent: bool,
        count: usize,
    ) {
        self.send_bytes(client, &message(queue, body, persistent).repeat(count));
    }

    /// Shows that the client is there.
    pub(super) fn heartbeat(&mut self, client: usize) {
        self.send_bytes(client, &[frame::HEARTBEAT, 0, 0, 0, 0, 0, 0, frame::END]);
    }

    pub(super) fn consume(&mut self, client: usize, queue: &str, prefetch_count: u16) {
        let qos = Method::BasicQos { prefetch_size: 0, prefetch_count, global: false };
        self.send(client, 1, &qos);
        let method = Method::BasicConsume {
            ticket: 0,
            queue,
            consumer_tag: "c",
            no_local: false,
            no_ack: false,
            exclusive: false,
            no_wait: false,
            arguments: Table::default(),
        };
        self.send(client, 1, &method);
        self.settle_down();
    }

    /// Sends `count` Gets in one read.
    pub(super) fn get(&mut self, client: usize, queue: &str, count: usize) {
        let mut bytes = Vec::new();
        for _ in 0..count {
            Method::BasicGet { ticket: 0, queue, no_ack: true }.write_frame(1, &mut bytes);
        }
        self.send_bytes(client, &bytes);
        self.settle_down();
    }

    /// Stops or goes on taking in what comes for the client.
    pub(super) fn set_deaf(&mut self, client: usize, is_deaf: bool) {
        self.clients[client].is_deaf = is_deaf;
    }

    pub(super) fn unsent(&mut self, client: usize) -> usize {
        let Client { shard, slot, .. } = self.clients[client];
        self.nodes[shard].outgoing(slot.expect("connected")).len()
    }

    /// Acknowledges everything up to a delivery; nothing comes of it yet.
    pub(super) fn send_ack_up_to(&mut self, client: usize, delivery_tag: u64) {
        self.send(client, 1, &Method::BasicAck { delivery_tag, multiple: true });
    }

    pub(super) fn ack(&mut self, client: usize, delivery_tag: u64) {
        self.send(client, 1, &Method::BasicAck { delivery_tag, multiple: false });
        self.settle_down();
    }

    pub(super) fn goodbye(&mut self, client: usize) {
        let method =
            Method::ConnectionClose { reply_code: 200, reply_text: "", class_id: 0, method_id: 0 };
        self.send(client, 0, &method);
        self.settle_down();
    }

    /// Takes in what came for the client, and answers the handshake; says whether it answered.
    fn read(&mut self, client: usize) -> bool {
        if self.clients[client].is_other {
            return false;
        }
        let mut answer = Vec::new();
        let input = std::mem::take(&mut self.clients[client].input);
        let mut used = 0;
        while let Some((frame, length)) = frame::read(&input[used..], 0).expect("sound frames") {
            used += length;
            self.clients[client].frame(frame, &mut answer);
        }
        self.clients[client].input = input[used..].to_vec();
        if !answer.is_empty() {
            self.send_bytes(client, &answer);
        }
        !answer.is_empty()
    }
}
