//! The connections of a shard by slot, and those that have something to do.

use super::Connection;
use super::limits::ConnectionLimits;
use super::query::ConnectionQueries;
use crate::effects::Verification;
use angarium_engine::{ConnectionId, Time};
use angarium_protocol::websocket::Code;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// How often idle connections are looked at: heartbeats, handshake timeouts, unused buffers.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

/// All connections of a shard.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// By [`ConnectionId`]; the first slot is the broker's own, for its advisories.
    pub(crate) slots: Vec<Option<Box<Connection>>>,
    pub(crate) free: Vec<ConnectionId>,
    /// The number of the last connection that was accepted here.
    pub(crate) serial: u64,
    /// Why the node shuts down, if it does; new connections are closed with the same reason.
    pub(crate) stopping: Option<Box<str>>,
    /// Connections that may go on with kept input.
    pub(crate) resumable: Vec<ConnectionId>,
    /// Connections that go on with kept input in the next turn.
    pub(crate) resting: VecDeque<ConnectionId>,
    /// Connections that are closing, or wait to be greeted, and when that ends at the latest. Entries of
    /// connections that have gone are ignored.
    pub(crate) closing: BTreeSet<(Time, ConnectionId)>,
    /// Connections whose clients have closed their WebSockets and that are not ended yet.
    pub(crate) closed: Vec<(ConnectionId, Code)>,
    /// Room for what is inside the frames of one read.
    pub(crate) unframed: Vec<u8>,
    pub(crate) next_sweep: Option<Time>,
    /// How many slots the sweep under way has looked at; 0: none is under way.
    pub(crate) swept: usize,
    /// Credentials that the host has not taken yet.
    pub(crate) verifications: VecDeque<Verification>,
    pub(crate) connection_queries: ConnectionQueries,
    pub(crate) connection_limits: ConnectionLimits,
}

impl Connections {
    pub(crate) fn new() -> Connections {
        Connections { slots: vec![None], ..Connections::default() }
    }

    /// The connection in a slot.
    #[inline]
    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(id.0 as usize)?.as_deref()
    }

    /// The connection in a slot, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.slots.get_mut(id.0 as usize)?.as_deref_mut()
    }
}
