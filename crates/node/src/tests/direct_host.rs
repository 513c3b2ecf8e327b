//! A node with NATS clients that take a given number of bytes.

use super::host::options;
use crate::{Node, Options, SpillJob, SpillStore};
use angarium_engine::{ConnectionId, Time};
use angarium_journal::FaultyStorage;
use angarium_protocol::nats::codec::{Headers, ServerOp};
use angarium_protocol::{Identity, Peer, Protocol};
use std::time::Duration;

pub(super) const CONNECT: &str =
    r#"CONNECT {"verbose":false,"pedantic":false,"headers":true,"protocol":1,"echo":false"#;

/// A node, its disks, and clients that are the bytes they got.
pub(super) struct TestHost {
    pub(super) node: Node,
    pub(super) disk: FaultyStorage,
    pub(super) spill: FaultyStorage,
    pub(super) spill_store: SpillStore,
    pub(super) now: Time,
    pub(super) clients: Vec<Client>,
    pub(super) holds_jobs: bool,
    pub(super) jobs: Vec<SpillJob>,
}

pub(super) struct Client {
    pub(super) slot: Option<ConnectionId>,
    pub(super) input: Vec<u8>,
    /// Bytes that it takes in a turn.
    pub(super) takes: usize,
}

/// What a client got on one subscription: the numbers, and how many it was told that it missed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Got {
    pub(super) numbers: Vec<u64>,
    pub(super) missed: u64,
}

impl TestHost {
    pub(super) fn new(change: impl FnOnce(&mut Options)) -> TestHost {
        let mut options = options(0, 1);
        change(&mut options);
        let disk = FaultyStorage::new(1);
        let now = Time(1_000_000_000);
        let mut node = Node::recover(options, &disk, now).unwrap();
        for name in ["guest", "ann"] {
            let user = crate::NewUser { name, password_hash: "secret", administrator: false };
            node.make_user(now, "/", &user).unwrap();
        }
        let (spill, spill_store) = (FaultyStorage::new(2), node.spill_store());
        let (clients, jobs) = (Vec::new(), Vec::new());
        TestHost { node, disk, spill, spill_store, now, clients, holds_jobs: false, jobs }
    }

    /// A client that says more in CONNECT.
    pub(super) fn connect(&mut self, more: &str) -> usize {
        self.connect_from(Peer::default(), more)
    }

    pub(super) fn connect_from(&mut self, peer: Peer, more: &str) -> usize {
        let peer = Peer { protocol: Protocol::Nats, local: true, ..peer };
        let slot = self.node.connected(self.now, peer);
        self.clients.push(Client { slot: Some(slot), input: Vec::new(), takes: usize::MAX });
        let client = self.clients.len() - 1;
        self.send(client, &format!("{CONNECT}{more}}}\r\n"));
        self.turns();
        client
    }

    pub(super) fn send(&mut self, client: usize, text: &str) {
        let slot = self.clients[client].slot.expect("connected");
        self.node.received(self.now, slot, text.as_bytes());
    }

    /// Publishes messages that begin with their numbers, a turn after each few.
    pub(super) fn publish(&mut self, client: usize, subject: &str, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let body = format!("{number:0>1000}");
            self.send(client, &format!("PUB {subject} 1000\r\n{body}\r\n"));
            if number % 8 == 7 {
                self.turns();
            }
        }
        self.turns();
    }

    pub(super) fn turns(&mut self) {
        while self.turn() {}
    }

    pub(super) fn turn(&mut self) -> bool {
        let now = self.now;
        self.node.end_turn(now);
        let mut is_busy = self.node.has_work();
        while let Some(asked) = self.node.next_verification() {
            let user = asked.credentials.user().to_owned();
            self.node.verified(now, asked.connection, asked.serial, Ok(Identity { user }));
            is_busy = true;
        }
        while let Some(job) = self.node.next_job() {
            self.node.job_done(now, job.run(&self.disk));
            is_busy = true;
        }
        self.jobs.extend(std::iter::from_fn(|| self.node.spill_mut().next_job()));
        if !self.holds_jobs {
            for job in self.jobs.drain(..) {
                self.node.spill_mut().done(self.spill_store.run(job, &self.spill));
                is_busy = true;
            }
        }
        self.node.take_dirty(&mut Vec::new());
        for client in &mut self.clients {
            let Some(slot) = client.slot else { continue };
            let bytes = self.node.outgoing(slot);
            let bytes = bytes[..bytes.len().min(client.takes)].to_vec();
            if !bytes.is_empty() {
                self.node.sent(slot, bytes.len());
                client.input.extend(bytes);
                is_busy = true;
            }
            if self.node.should_close(slot) {
                self.node.disconnected(now, slot);
                client.slot = None;
                is_busy = true;
            }
        }
        is_busy
    }

    pub(super) fn takes(&mut self, client: usize, bytes: usize) {
        self.clients[client].takes = bytes;
        self.turns();
    }

    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now.plus(time);
        while self.now < until {
            self.now = self.now.plus(Duration::from_millis(100));
            self.node.expire(self.now);
            self.turns();
        }
    }

    pub(super) fn is_connected(&self, client: usize) -> bool {
        self.clients[client].slot.is_some()
    }

    /// What the client got on a subscription, since the beginning.
    pub(super) fn got(&self, client: usize, sid: &str) -> Got {
        let mut got = Got::default();
        let mut rest = &self.clients[client].input[..];
        while let Some((op, used)) = ServerOp::decode(rest, usize::MAX).unwrap() {
            rest = &rest[used..];
            let ServerOp::Message(message) = op else { continue };
            if message.sid != sid.as_bytes() {
                continue;
            }
            let number = |text: &[u8]| std::str::from_utf8(text).unwrap().parse().unwrap();
            got.numbers.push(number(message.body));
            let missed = Headers::read(message.headers).get("Angarium-Missed");
            got.missed += missed.as_deref().map_or(0, number);
        }
        got
    }
}
