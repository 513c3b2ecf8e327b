//! Publishers that put more into a queue than its consumers get, and those that flood others with what
//! comes to nothing, are read from a moment later.

use crate::node::Node;
use angarium_engine::{ConnectionId, Time};
use std::time::Duration;

/// How long such a connection is not read from. With 64 KiB read at once, even then it may send 64 MB
/// a second: it is slowed down, not stopped, so that nothing can wait for it in a circle.
const PAUSE: Duration = Duration::from_millis(1);

/// A read of as much, most of which came to nothing, is a flood's.
const FLOOD_BYTES: usize = 32 << 10;
/// How long after its input a connection is there for others.
const COMPANY: Duration = Duration::from_millis(1);

/// Who sends what somebody gets: those that a flood would disturb.
#[derive(Debug, Default)]
pub(crate) struct Company {
    /// Who sent last, and when.
    last: Option<ConnectionId>,
    last_sent: Time,
    /// When any other one last sent.
    others_sent: Time,
}

impl Company {
    /// Input came from a connection.
    #[inline]
    fn heard_from(&mut self, now: Time, connection: ConnectionId) {
        if self.last.replace(connection) != Some(connection) {
            self.others_sent = self.last_sent;
        }
        self.last_sent = now;
    }

    /// Whether others than `connection` have just sent something.
    fn is_there(&self, now: Time, connection: ConnectionId) -> bool {
        let is_last = self.last == Some(connection);
        let sent = if is_last { self.others_sent } else { self.last_sent };
        now.since(sent) < COMPANY
    }
}

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

    /// After `bytes` of input, before which the engine had `taken` and `wasted` so many messages: slows
    /// the connection down if most of it came to nothing and others are there. What nobody gets may
    /// wait; without others, but for other floods, it is as fast as it can be.
    #[inline]
    pub(crate) fn slow_flood(
        &mut self,
        now: Time,
        id: ConnectionId,
        bytes: usize,
        (taken, wasted): (u64, u64),
    ) {
        let (taken, wasted) = (self.engine.taken() - taken, self.engine.wasted() - wasted);
        let is_flood = bytes >= FLOOD_BYTES && wasted > taken / 2;
        if !is_flood {
            self.company.heard_from(now, id);
        } else if self.company.is_there(now, id) {
            self.slow_down(now, id);
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
