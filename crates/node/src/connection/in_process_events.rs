//! What in-process clients get: replies, lost sessions, the end of their connection.

use angarium_engine::{ConnectionId, Refusal, Reply, SessionLoss};
use std::collections::{BTreeMap, VecDeque};

/// What an in-process client gets.
#[derive(Clone, Debug)]
pub enum InProcessEvent {
    /// The answer to its oldest request that is not answered.
    Reply(Result<Reply, Refusal>),
    /// It does not hold this session any more.
    SessionLost {
        /// The session's name.
        session: String,
        /// What happened to it.
        why: SessionLoss,
    },
    /// The connection has ended, and why.
    Closed(String),
}

/// In-process clients of one shard, and what they have not taken yet.
#[derive(Debug, Default)]
pub(crate) struct InProcess {
    pub(super) clients: BTreeMap<ConnectionId, Identity>,
    pub(super) events: VecDeque<(ConnectionId, InProcessEvent)>,
}

/// The user and virtual host of an in-process client.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) user: String,
    pub(super) vhost: String,
}

impl InProcess {
    pub(super) fn has(&self, id: ConnectionId) -> bool {
        self.clients.contains_key(&id)
    }

    pub(super) fn tell(&mut self, id: ConnectionId, event: InProcessEvent) {
        if self.has(id) {
            self.events.push_back((id, event));
        }
    }
}
