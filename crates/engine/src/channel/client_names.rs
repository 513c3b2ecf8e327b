//! Names that connections have to themselves: a client that must not run twice claims one.

use crate::ConnectionId;
use std::collections::BTreeMap;

/// A name within its virtual host.
type Name = (u32, Box<str>);

/// The names of all virtual hosts that are claimed.
#[derive(Debug, Default)]
pub(crate) struct ClientNames {
    holders: BTreeMap<Name, ConnectionId>,
    /// One for each connection that has one.
    held: BTreeMap<ConnectionId, Name>,
}

impl ClientNames {
    /// A connection has ended.
    pub(crate) fn release(&mut self, connection: ConnectionId) {
        if let Some(name) = self.held.remove(&connection) {
            self.holders.remove(&name);
        }
    }

    /// Who has a name.
    pub(crate) fn holder(&self, name: &Name) -> Option<ConnectionId> {
        self.holders.get(name).copied()
    }

    /// A connection has a name, in place of the one that it had.
    pub(crate) fn give(&mut self, connection: ConnectionId, name: Name) {
        self.release(connection);
        self.holders.insert(name.clone(), connection);
        self.held.insert(connection, name);
    }
}
