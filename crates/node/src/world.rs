//! What engine and sessions reach during one call: outlets, journal, and what waits for the host.
//!
//! Effects are carried out the moment the engine calls them, in memory: a delivery is written into
//! its connection's outlet, a record into the journal's batch. The host moves bytes and blocks.

use angarium_engine as engine;
use angarium_engine::{
    Confirm, ConnectionId, Delivery, Effects, Load, Refusal, Reply, Returned, SessionId,
};
use angarium_journal::Journal;
use angarium_protocol::{Credentials, Outlet, World as ProtocolWorld};
use std::cell::Cell;
use std::collections::VecDeque;

/// Credentials that the host is to check, off the shard's thread.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The connection that waits for the answer.
    pub connection: ConnectionId,
    /// Tells this connection from an earlier one in the same slot.
    pub serial: u64,
    /// What the client said.
    pub credentials: Credentials,
    /// The user's stored password hash; `None` where there is no such user (the host takes as long
    /// to say no).
    pub password_hash: Option<String>,
    /// Where the client comes from, for the log and for back-off.
    pub address: String,
    /// Whether it comes from this very host.
    pub local: bool,
}

/// A connection's output and what the host must know about it.
#[derive(Debug, Default)]
pub(crate) struct Egress {
    pub(crate) outlet: Outlet,
    /// Bytes at the start of `outlet.bytes` that are already sent.
    pub(crate) sent: usize,
    /// It is in `World::dirty`.
    is_dirty: bool,
    /// The engine was refused room; tell it when there is some.
    wants_room: Cell<bool>,
}

impl Egress {
    /// Bytes still to be sent.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.outlet.bytes[self.sent..]
    }
}

/// The surroundings of engine and sessions.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) journal: Journal,
    pub(crate) egress: Vec<Egress>,
    /// Connections with output, each once.
    pub(crate) dirty: Vec<ConnectionId>,
    /// Answers that sessions have not seen yet.
    pub(crate) replies: VecDeque<(SessionId, Result<Reply, Refusal>)>,
    pub(crate) loads: VecDeque<Load>,
    /// Credentials that sessions handed in; the node completes them to [`Verification`]s.
    pub(crate) credentials: Vec<(ConnectionId, Credentials)>,
    /// Something was stored in a queue during this call into a session.
    pub(crate) has_stored: bool,
    /// Unsent bytes beyond which a connection gets no further deliveries.
    pub(crate) egress_bytes_max: usize,
}

impl World {
    pub(crate) fn new(journal: Journal, egress_bytes_max: usize) -> World {
        World {
            journal,
            egress: Vec::new(),
            dirty: Vec::new(),
            replies: VecDeque::new(),
            loads: VecDeque::new(),
            credentials: Vec::new(),
            has_stored: false,
            egress_bytes_max,
        }
    }

    /// Notes that `bytes` of the connection's output were sent; says whether the engine waits for the
    /// room that made.
    pub(crate) fn sent(&mut self, connection: ConnectionId, bytes: usize) -> bool {
        let egress = &mut self.egress[connection.0 as usize];
        egress.sent += bytes;
        debug_assert!(egress.sent <= egress.outlet.bytes.len());
        if egress.sent == egress.outlet.bytes.len() {
            egress.outlet.bytes.clear();
            egress.sent = 0;
        } else if egress.sent > egress.outlet.bytes.len() / 2 {
            // Moves less than was sent, so that the sum of all moves stays linear.
            egress.outlet.bytes.drain(..egress.sent);
            egress.sent = 0;
        }
        let has_room = egress.pending().len() <= self.egress_bytes_max / 2;
        has_room && egress.wants_room.replace(false)
    }

    /// Takes the connections with output since the last call.
    pub(crate) fn take_dirty(&mut self, into: &mut Vec<ConnectionId>) {
        for connection in self.dirty.drain(..) {
            self.egress[connection.0 as usize].is_dirty = false;
            into.push(connection);
        }
    }

    /// Makes the connection's egress new, for the next connection in this slot.
    pub(crate) fn reset(&mut self, connection: ConnectionId) {
        let slot = connection.0 as usize;
        if slot >= self.egress.len() {
            self.egress.resize_with(slot + 1, Egress::default);
        }
        let is_dirty = self.egress[slot].is_dirty;
        self.egress[slot] = Egress { is_dirty, ..Egress::default() };
    }

    /// Marks the connection as one with output, and gives its outlet out.
    #[inline]
    pub(crate) fn touch(&mut self, connection: ConnectionId) -> &mut Outlet {
        let egress = &mut self.egress[connection.0 as usize];
        if !egress.is_dirty {
            egress.is_dirty = true;
            self.dirty.push(connection);
        }
        &mut egress.outlet
    }
}

impl Effects for World {
    #[inline]
    fn deliver(&mut self, delivery: &Delivery<'_>) {
        self.touch(delivery.session.connection).deliver(delivery);
    }

    fn confirm(&mut self, session: SessionId, confirm: Confirm) {
        self.touch(session.connection).confirm(session, confirm);
    }

    fn returned(&mut self, session: SessionId, returned: &Returned<'_>) {
        self.touch(session.connection).returned(session, returned);
    }

    fn cancelled(&mut self, session: SessionId, subscription: &str) {
        self.touch(session.connection).cancelled(session, subscription);
    }

    fn reply(&mut self, session: SessionId, reply: Result<Reply, Refusal>) {
        self.replies.push_back((session, reply));
    }

    #[inline]
    fn has_room(&self, connection: ConnectionId) -> bool {
        let egress = &self.egress[connection.0 as usize];
        let has_room = egress.outlet.bytes.len() - egress.sent < self.egress_bytes_max;
        if !has_room {
            egress.wants_room.set(true);
        }
        has_room
    }

    #[inline]
    fn append(&mut self, parts: &[&[u8]], durable: bool) -> engine::Position {
        engine::Position(self.journal.append(parts, durable).0)
    }

    fn reserve(&mut self, bytes: usize, records: usize) {
        self.journal.reserve(bytes, records);
    }

    #[inline]
    fn retain(&mut self, position: engine::Position, count: u32) {
        self.has_stored = true;
        self.journal.retain(angarium_journal::Position(position.0), count);
    }

    #[inline]
    fn release(&mut self, position: engine::Position, count: u32) {
        self.journal.release(angarium_journal::Position(position.0), count);
    }

    fn load(&mut self, load: Load) {
        self.loads.push_back(load);
    }
}

impl ProtocolWorld for World {
    #[inline]
    fn outlet(&mut self, connection: ConnectionId) -> &mut Outlet {
        self.touch(connection)
    }

    fn authenticate(&mut self, connection: ConnectionId, credentials: Credentials) {
        self.credentials.push((connection, credentials));
    }
}
