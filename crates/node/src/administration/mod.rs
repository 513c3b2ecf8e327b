//! Administration of a running node: requests with all rights, and listings.
//!
//! A request is asked in a slot of its own, as if by a client, and so is answered as a client's is: once
//! what it changed is flushed, and known to all shards.

mod broker_topics;
pub(crate) mod revocations;

use crate::connection::read_pause::WaitsFor;
use crate::node::Node;
use crate::options::Options;
use crate::outbox::SlowConsumerInfo;
use angarium_engine::{
    ChannelId, ConnectionId, Publish, PublishFacts, Refusal, Reply, Request, ShardId, Time,
};
use angarium_protocol::{self as protocol, Figures, Traffic};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// An administrator's request; its answer bears the same ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// What administrators have asked for and was not answered yet, and answers that the host has not taken.
#[derive(Debug, Default)]
pub(crate) struct Administration {
    asked: u64,
    waiting: BTreeMap<ConnectionId, Ticket>,
    answers: VecDeque<(Ticket, Result<Reply, Refusal>)>,
    pub(crate) revocations: revocations::Revocations,
}

/// One connection in a listing.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionInfo<'a> {
    /// Its slot, by which it can be closed.
    pub id: ConnectionId,
    /// What queries of clients order it by.
    pub figures: Figures,
    /// What its protocol handler knows: peer, user, virtual host, client, channels.
    pub info: protocol::ConnectionInfo<'a>,
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

impl Node {
    /// Carries out a control request in `vhost`, with all rights; [`Node::next_admin_answer`] tells
    /// what came of it. Connections of a user or to a virtual host that is deleted are closed.
    pub fn administer(&mut self, now: Time, vhost: &str, request: Request) -> Ticket {
        let id = self.take_slot();
        self.administration.asked += 1;
        let ticket = Ticket(self.administration.asked);
        self.administration.waiting.insert(id, ticket);
        self.effects.begin_call(now);
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
        if let Err(refusal) = self.engine.connect_internal(id, vhost) {
            return self.answer_administrator(now, id, Err(refusal));
        }
        let channel = ChannelId { connection: id, number: 1 };
        self.engine.open(channel);
        self.engine.request(now, channel, request, &mut self.effects);
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
        for request in [Request::CreateUser { name, password_hash, administrator }, permit] {
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
        self.administration.answers.pop_front()
    }

    /// Hands the host the answer to what was asked in a slot, where that was an administrator's request.
    pub(crate) fn answer_administrator(
        &mut self,
        now: Time,
        id: ConnectionId,
        answer: Result<Reply, Refusal>,
    ) {
        let Some(ticket) = self.administration.waiting.remove(&id) else { return };
        self.engine.disconnect(now, id, &mut self.effects);
        self.free_slot(id);
        self.administration.answers.push_back((ticket, answer));
    }

    /// Where a publish would go, and who would be refused; nothing is sent. At home.
    pub fn publish_facts(
        &mut self,
        vhost: &str,
        publish: &Publish<'_>,
        user: Option<&str>,
    ) -> Result<PublishFacts, Refusal> {
        self.engine.publish_facts(vhost, publish, user)
    }

    /// What it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// How many slots there are for connections; a connection keeps its own.
    pub fn connection_places(&self) -> usize {
        self.connections.slots.len()
    }

    /// The connections in some slots.
    pub fn connections_in(
        &self,
        now: Time,
        places: Range<usize>,
    ) -> impl Iterator<Item = ConnectionInfo<'_>> {
        // The first one is the broker's own.
        let (from, to) = (places.start.max(1), places.end.min(self.connection_places()));
        let slots = (from..to).filter_map(|slot| u32::try_from(slot).ok());
        slots.filter_map(move |slot| self.connection(now, ConnectionId(slot)))
    }

    /// The connection with that number in listings.
    pub fn connection_of(&self, number: u64) -> Option<ConnectionId> {
        self.slots().find(|id| {
            let connection = self.connections.get(*id);
            connection.is_some_and(|it| self.options.number_of(it.serial) == number)
        })
    }

    /// The shard of a connection that is in this slot here, and its slot there: at home, those of other
    /// shards have slots too.
    pub fn owner_of(&self, id: ConnectionId) -> Option<(ShardId, ConnectionId)> {
        let outbox = self.effects.outbox.get(id.0 as usize)?;
        let remote = outbox.remote.as_ref();
        Some(remote.map_or((self.options.shard, id), |it| (it.shard, it.connection)))
    }

    /// The connection in a slot.
    pub fn connection(&self, now: Time, id: ConnectionId) -> Option<ConnectionInfo<'_>> {
        let connection = self.connections.get(id)?;
        let mut info = connection.handler.info();
        // What is unsent to it may keep it for a while.
        if connection.ended.is_some() {
            info.state = "closing";
        }
        let outbox = &self.effects.outbox[id.0 as usize];
        let traffic = Traffic {
            subjects: self.engine.subjects_subscribed_to(id) as u64,
            messages_sent: outbox.writer.output.messages,
            ..connection.traffic
        };
        let figures = Figures {
            number: self.options.number_of(connection.serial),
            connected_at: connection.connected_at,
            last_input: info.last_input,
            unsent_bytes: outbox.unsent() as u64,
            traffic,
        };
        Some(ConnectionInfo {
            id,
            figures,
            info,
            lag: self.slow_consumer_info(id),
            waits_for: self.shown_wait(now, id),
        })
    }
}
