//! Publishers that put more into a queue than its consumers get are read from a moment later.

use crate::node::Node;
use angarium_engine::{ConnectionId, Time};
use std::time::Duration;

/// How long such a connection is not read from. With 64 KiB read at once, even then it may send 64 MB
/// a second: it is slowed down, not stopped, so that nothing can wait for it in a circle.
const PAUSE: Duration = Duration::from_millis(1);

/// Connections that are slowed down, and when they go on: all together.
#[derive(Debug, Default)]
pub(crate) struct Slowed {
    connections: Vec<ConnectionId>,
    until: Option<Time>,
}

impl Slowed {
    fn add(&mut self, now: Time, connection: ConnectionId) {
        self.connections.push(connection);
        self.until.get_or_insert(now.plus(PAUSE));
    }

    /// When they go on.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.until
    }

    /// Those that go on now.
    fn take_due(&mut self, now: Time) -> Vec<ConnectionId> {
        if self.until.is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.until = None;
        std::mem::take(&mut self.connections)
    }
}

impl Node {
    /// The connection is not to be read from for a moment.
    pub(crate) fn slow_down(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.connections[id.0 as usize].as_mut() else { return };
        if !std::mem::replace(&mut connection.is_slowed, true) {
            self.slowed.add(now, id);
        }
    }

    /// Lets those go on whose moment is over.
    pub(crate) fn let_slowed_go_on(&mut self, now: Time) {
        for id in self.slowed.take_due(now) {
            if let Some(connection) = self.connections[id.0 as usize].as_mut() {
                connection.is_slowed = false;
            }
        }
    }
}
