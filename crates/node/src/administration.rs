//! What operators ask of a running node: control requests with all rights, and listings.
//!
//! A request is asked in a slot of its own, as if by a client, and so is answered as a client's is: once
//! what it changed is flushed, and known to all shards.

use crate::node::Node;
use crate::parcel::Whose;
use angarium_engine::{ConnectionId, Refusal, RefusalKind, Reply, Request, SessionId, Time};
use angarium_journal::State;
use angarium_protocol as protocol;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// An operator's request; its answer bears the same ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// Operators' requests that are not answered yet, and answers that the host has not taken.
#[derive(Debug, Default)]
pub(crate) struct Operators {
    asked: u64,
    waiting: BTreeMap<ConnectionId, Ticket>,
    answers: VecDeque<(Ticket, Result<Reply, Refusal>)>,
}

/// One connection in a listing.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionInfo<'a> {
    /// Its slot, by which it can be closed.
    pub id: ConnectionId,
    /// The number by which people know it, among those of all shards.
    pub number: u64,
    /// How long it has been connected.
    pub age: Duration,
    /// What its protocol session knows: peer, user, virtual host, client, channels.
    pub session: protocol::ConnectionInfo<'a>,
    /// Bytes received from it.
    pub received_bytes: u64,
    /// Bytes sent to it.
    pub sent_bytes: u64,
}

impl Node {
    /// Carries out a control request in `vhost`, with all rights; [`Node::next_operator_answer`] tells
    /// what came of it. Connections of a user or to a virtual host that is deleted are closed.
    pub fn administer(&mut self, now: Time, vhost: &str, request: Request) -> Ticket {
        let id = self.take_slot();
        self.operators.asked += 1;
        let ticket = Ticket(self.operators.asked);
        self.operators.waiting.insert(id, ticket);
        self.world.begin_call();
        let asked = match request {
            Request::DeleteVhost { name } => self.delete_vhost(now, id, vhost, name),
            Request::DeleteUser { name } => {
                if self.can_delete() && self.engine.list_users().any(|user| user.name == name) {
                    let why = format!("user '{name}' was deleted");
                    self.end_all_elsewhere(Whose::User(&name), &why);
                    self.end_guests(now, Whose::User(&name));
                    self.close_connections(now, &why, |session| session.user == name);
                }
                self.ask(now, id, vhost, Request::DeleteUser { name })
            }
            request => self.ask(now, id, vhost, request),
        };
        if let Err(refusal) = asked {
            self.answer_operator(now, id, Err(refusal));
        }
        self.answer(now);
        ticket
    }

    /// The next answer to an operator's request, if there is one: refusals at once, others once what
    /// they changed is flushed and all shards know it.
    pub fn next_operator_answer(&mut self) -> Option<(Ticket, Result<Reply, Refusal>)> {
        self.operators.answers.pop_front()
    }

    fn delete_vhost(
        &mut self,
        now: Time,
        id: ConnectionId,
        asked_in: &str,
        name: String,
    ) -> Result<(), Refusal> {
        if name == asked_in {
            let text = format!("virtual host '{name}' is the one that administration itself uses");
            return Err(Refusal::new(RefusalKind::PreconditionFailed, text));
        }
        if self.can_delete() && self.engine.list_vhosts().any(|vhost| vhost.name == name) {
            let why = format!("virtual host '{name}' was deleted");
            self.end_all_elsewhere(Whose::Vhost(&name), &why);
            self.end_guests(now, Whose::Vhost(&name));
            self.close_connections(now, &why, |session| session.vhost == name);
        }
        self.ask(now, id, asked_in, Request::DeleteVhost { name })
    }

    /// Whether users and virtual hosts can be deleted, so that their connections are closed.
    fn can_delete(&self) -> bool {
        !matches!(self.storage_state, State::Failed(_))
    }

    /// Closes the connections whose sessions are meant.
    fn close_connections(
        &mut self,
        now: Time,
        why: &str,
        is_meant: impl Fn(&protocol::ConnectionInfo<'_>) -> bool,
    ) {
        let meant: Vec<ConnectionId> = self
            .connections(now)
            .filter(|connection| is_meant(&connection.session))
            .map(|connection| connection.id)
            .collect();
        for id in meant {
            self.close_connection(now, id, why);
        }
    }

    fn ask(
        &mut self,
        now: Time,
        connection: ConnectionId,
        vhost: &str,
        request: Request,
    ) -> Result<(), Refusal> {
        let session = SessionId { connection, number: 1 };
        self.engine.connect_internal(connection, vhost)?;
        self.engine.open(session);
        self.engine.request(now, session, request, &mut self.world);
        Ok(())
    }

    /// Hands the host the answer to what was asked in a slot, where that was an operator's request.
    pub(crate) fn answer_operator(
        &mut self,
        now: Time,
        id: ConnectionId,
        answer: Result<Reply, Refusal>,
    ) {
        let Some(ticket) = self.operators.waiting.remove(&id) else { return };
        self.engine.disconnect(now, id, &mut self.world);
        self.world.reset(id);
        self.free.push(id);
        self.operators.answers.push_back((ticket, answer));
    }

    /// Every client's connection.
    pub fn connections(&self, now: Time) -> impl Iterator<Item = ConnectionInfo<'_>> {
        let slots = (0u32..).take(self.connections.len());
        slots.filter_map(move |slot| self.connection(now, ConnectionId(slot)))
    }

    /// One of them.
    pub fn connection(&self, now: Time, id: ConnectionId) -> Option<ConnectionInfo<'_>> {
        let connection = self.connections.get(id.0 as usize)?.as_ref()?;
        Some(ConnectionInfo {
            id,
            number: self.options.number_of(id),
            age: now.since(connection.connected_at),
            session: connection.session.info(),
            received_bytes: connection.received_bytes,
            sent_bytes: connection.sent_bytes,
        })
    }
}
