//! What operators ask of a running node: control requests with all rights, and listings.

use crate::node::Node;
use crate::parcel::Whose;
use angarium_engine::{ConnectionId, Refusal, RefusalKind, Reply, Request, SessionId, Time};
use angarium_protocol as protocol;
use std::time::Duration;

/// The slot in whose name administration asks.
const OPERATOR: SessionId = SessionId { connection: ConnectionId(0), number: 1 };

/// One connection in a listing.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionInfo<'a> {
    /// Its slot, by which it can be closed.
    pub id: ConnectionId,
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
    /// Carries out a control request in `vhost`, with all rights. Connections of a user or to a virtual
    /// host that is deleted are closed.
    pub fn administer(
        &mut self,
        now: Time,
        vhost: &str,
        request: Request,
    ) -> Result<Reply, Refusal> {
        match request {
            Request::DeleteVhost { name } => self.delete_vhost(now, vhost, name),
            Request::DeleteUser { name } => {
                let gone = name.clone();
                let reply = self.ask(now, vhost, Request::DeleteUser { name })?;
                let why = format!("user '{gone}' was deleted");
                self.end_all_elsewhere(Whose::User(&gone), &why);
                self.end_guests(now, Whose::User(&gone));
                self.close_connections(now, &why, |session| session.user == gone);
                Ok(reply)
            }
            request => self.ask(now, vhost, request),
        }
    }

    fn delete_vhost(&mut self, now: Time, asked_in: &str, name: String) -> Result<Reply, Refusal> {
        if name == asked_in {
            let text = format!("virtual host '{name}' is the one that administration itself uses");
            return Err(Refusal::new(RefusalKind::PreconditionFailed, text));
        }
        if self.engine.list_vhosts().any(|vhost| vhost.name == name) {
            let why = format!("virtual host '{name}' was deleted");
            self.end_all_elsewhere(Whose::Vhost(&name), &why);
            self.end_guests(now, Whose::Vhost(&name));
            self.close_connections(now, &why, |session| session.vhost == name);
        }
        self.ask(now, asked_in, Request::DeleteVhost { name })
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

    fn ask(&mut self, now: Time, vhost: &str, request: Request) -> Result<Reply, Refusal> {
        self.engine.connect_internal(OPERATOR.connection, vhost)?;
        self.engine.open(OPERATOR);
        self.engine.request(now, OPERATOR, request, &mut self.world);
        let at = self.world.replies.iter().position(|answer| answer.session == OPERATOR);
        let reply = at.and_then(|at| self.world.replies.remove(at)).map(|answer| answer.reply);
        self.engine.disconnect(now, OPERATOR.connection, &mut self.world);
        reply.unwrap_or_else(|| {
            Err(Refusal::new(RefusalKind::NotImplemented, "this request cannot be made this way"))
        })
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
            age: now.since(connection.connected_at),
            session: connection.session.info(),
            received_bytes: connection.received_bytes,
            sent_bytes: connection.sent_bytes,
        })
    }
}
