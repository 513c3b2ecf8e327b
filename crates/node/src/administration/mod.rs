//! Administration of a running node: requests with all rights, and listings.
//!
//! A request is asked in a slot of its own, as if by a client, and so is answered as a client's is: once
//! what it changed is flushed, and known to all shards.

pub(crate) mod deletions;

use crate::connection::read_pause::WaitsFor;
use crate::node::Node;
use angarium_engine::{ChannelId, ConnectionId, Refusal, Reply, Request, SlowConsumerPolicy, Time};
use angarium_protocol as protocol;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

/// An administrator's request; its answer bears the same ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// AdminRequests' requests that are not answered yet, and answers that the host has not taken.
#[derive(Debug, Default)]
pub(crate) struct AdminRequests {
    asked: u64,
    waiting: BTreeMap<ConnectionId, Ticket>,
    answers: VecDeque<(Ticket, Result<Reply, Refusal>)>,
}

/// What administrators have asked for and was not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Administration {
    pub(crate) admin_requests: AdminRequests,
    pub(crate) deletions: deletions::Deletions,
}

/// One connection in a listing.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionInfo<'a> {
    /// Its slot, by which it can be closed.
    pub id: ConnectionId,
    /// The number by which people know it, among those of all shards.
    pub number: u64,
    /// Since when it has been connected.
    pub connected_at: Time,
    /// How long that is.
    pub age: Duration,
    /// What its protocol handler knows: peer, user, virtual host, client, channels.
    pub session: protocol::ConnectionInfo<'a>,
    /// Messages that it has published.
    pub received_messages: u64,
    /// Messages that were written for it and not dropped again.
    pub sent_messages: u64,
    /// Bytes received from it.
    pub received_bytes: u64,
    /// Bytes sent to it.
    pub sent_bytes: u64,
    /// Bytes in memory that are still to be sent to it.
    pub unsent_bytes: u64,
    /// How many subjects it subscribes to without a queue.
    pub subjects: usize,
    /// It is too slow for direct messages: what became of them since it has been.
    pub lag: Option<SlowConsumerInfo>,
    /// It is not read from: what it waits for.
    pub waits_for: Option<WaitsFor>,
}

/// A user that [`Node::make_user`] creates.
#[derive(Clone, Copy, Debug)]
pub struct NewUser<'a> {
    /// The name.
    pub name: &'a str,
    /// The hash of the password, as the host makes and checks it.
    pub password_hash: &'a str,
    /// May administer the broker.
    pub administrator: bool,
}

/// What a client misses that is too slow for direct messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowConsumerInfo {
    /// What became of the first messages for which it was too slow.
    pub policy: SlowConsumerPolicy,
    /// Messages that it has missed.
    pub missed: u64,
    /// Messages that have waited on the disk for it.
    pub spooled: u64,
}

impl Node {
    /// Carries out a control request in `vhost`, with all rights; [`Node::next_admin_answer`] tells
    /// what came of it. Connections of a user or to a virtual host that is deleted are closed.
    pub fn administer(&mut self, now: Time, vhost: &str, request: Request) -> Ticket {
        let id = self.take_slot();
        self.administration.admin_requests.asked += 1;
        let ticket = Ticket(self.administration.admin_requests.asked);
        self.administration.admin_requests.waiting.insert(id, ticket);
        self.effects.begin_call();
        match self.await_endings(id, vhost, request) {
            Ok(Some(request)) => self.ask_as_administrator(now, id, vhost, request),
            Ok(None) => self.end_some_connections(now),
            Err(refusal) => self.answer_administrator(now, id, Err(refusal)),
        }
        self.answer(now);
        ticket
    }

    /// Asks the engine, in a slot of its own.
    pub(crate) fn ask_as_administrator(
        &mut self,
        now: Time,
        id: ConnectionId,
        vhost: &str,
        request: Request,
    ) {
        if let Err(refusal) = self.ask(now, id, vhost, request) {
            self.answer_administrator(now, id, Err(refusal));
        }
    }

    /// Creates a user with all permissions in `vhost`, before clients connect. Refusals are returned; the
    /// flush may come later.
    pub fn make_user(&mut self, now: Time, vhost: &str, user: &NewUser<'_>) -> Result<(), Refusal> {
        let NewUser { name, password_hash, administrator } = *user;
        let (name, password_hash) = (name.to_owned(), password_hash.to_owned());
        let everything = || ".*".to_owned();
        let permit = Request::SetPermissions {
            user: name.clone(),
            vhost: vhost.to_owned(),
            configure: everything(),
            write: everything(),
            read: everything(),
        };
        for request in [Request::PutUser { name, password_hash, administrator }, permit] {
            self.administer(now, vhost, request);
        }
        while let Some((_, answer)) = self.next_admin_answer() {
            answer?;
        }
        Ok(())
    }

    /// The next answer to an administrator's request, if there is one: refusals at once, others once what
    /// they changed is flushed and all shards know it.
    pub fn next_admin_answer(&mut self) -> Option<(Ticket, Result<Reply, Refusal>)> {
        self.administration.admin_requests.answers.pop_front()
    }

    fn ask(
        &mut self,
        now: Time,
        connection: ConnectionId,
        vhost: &str,
        request: Request,
    ) -> Result<(), Refusal> {
        let session = ChannelId { connection, number: 1 };
        self.engine.connect_internal(connection, vhost)?;
        self.engine.open(session);
        self.engine.request(now, session, request, &mut self.effects);
        Ok(())
    }

    /// Hands the host the answer to what was asked in a slot, where that was an administrator's request.
    pub(crate) fn answer_administrator(
        &mut self,
        now: Time,
        id: ConnectionId,
        answer: Result<Reply, Refusal>,
    ) {
        let Some(ticket) = self.administration.admin_requests.waiting.remove(&id) else { return };
        self.engine.disconnect(now, id, &mut self.effects);
        self.effects.reset(id);
        self.connections.free.push(id);
        self.administration.admin_requests.answers.push_back((ticket, answer));
    }

    /// Every client's connection.
    pub fn connections(&self, now: Time) -> impl Iterator<Item = ConnectionInfo<'_>> {
        self.connections_in(now, 0..self.connection_places())
    }

    /// ConnectionLimits that connections have or had; each keeps its own.
    pub fn connection_places(&self) -> usize {
        self.connections.slots.len()
    }

    /// The connections in some of them.
    pub fn connections_in(
        &self,
        now: Time,
        places: Range<usize>,
    ) -> impl Iterator<Item = ConnectionInfo<'_>> {
        // Nobody is in the first one.
        let (from, to) = (places.start.max(1), places.end.min(self.connection_places()));
        let slots = (from..to).filter_map(|slot| u32::try_from(slot).ok());
        slots.filter_map(move |slot| self.connection(now, ConnectionId(slot)))
    }

    /// The connection with that number in listings.
    pub fn connection_of(&self, number: u64) -> Option<ConnectionId> {
        let is_it = |id: &ConnectionId| {
            let connection = self.connections.slots[id.0 as usize].as_ref();
            connection.is_some_and(|it| self.options.number_of(it.serial) == number)
        };
        self.slots().find(is_it)
    }

    /// One of them.
    pub fn connection(&self, now: Time, id: ConnectionId) -> Option<ConnectionInfo<'_>> {
        let connection = self.connections.slots.get(id.0 as usize)?.as_ref()?;
        let mut session = connection.handler.info();
        // What is unsent to it may keep it for a while.
        if connection.ended.is_some() {
            session.state = "closing";
        }
        Some(ConnectionInfo {
            id,
            number: self.options.number_of(connection.serial),
            connected_at: connection.connected_at,
            age: now.since(connection.connected_at),
            session,
            received_messages: connection.received_messages,
            sent_messages: self.effects.outbox[id.0 as usize].writer.output.messages,
            received_bytes: connection.received_bytes,
            sent_bytes: connection.sent_bytes,
            unsent_bytes: self.effects.outbox[id.0 as usize].unsent() as u64,
            subjects: self.engine.subjects_subscribed_to(id),
            lag: self.slow_consumer_info(id),
            waits_for: self.shown_wait(now, id),
        })
    }
}
