//! Names that connections have to themselves: a client that must not run twice claims one.

use crate::engine::Engine;
use crate::interface::limits::SUBSCRIPTION_NAME_BYTES_MAX;
use crate::interface::refusal::refuse;
use crate::{ConnectionId, Effects, Refusal, Reply};
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

    fn holder(&self, name: &Name) -> Option<ConnectionId> {
        self.holders.get(name).copied()
    }

    /// A connection has a name, in place of the one that it had.
    fn give(&mut self, connection: ConnectionId, name: Name) {
        self.release(connection);
        self.holders.insert(name.clone(), connection);
        self.held.insert(connection, name);
    }
}

impl Engine {
    /// The connection of a channel claims a name.
    pub(crate) fn claim_client_name<F: Effects>(
        &mut self,
        slot: u32,
        name: &str,
        fx: &mut F,
    ) -> Result<Reply, Refusal> {
        if name.len() > SUBSCRIPTION_NAME_BYTES_MAX {
            refuse!(LimitExceeded, "a client name of {} bytes is too long", name.len());
        }
        let channel = &self.clients.channels[slot];
        let (connection, key) = (channel.id.connection, (channel.vhost, Box::from(name)));
        let holder = self.clients.names.holder(&key).filter(|holder| *holder != connection);
        if let Some(holder) = holder {
            if self.clients.user(holder) != self.clients.user(connection) {
                refuse!(AccessRefused, "a connection of another user has the client name '{name}'");
            }
            fx.client_doubted(holder);
            refuse!(ResourceLocked, "another connection has the client name '{name}'");
        }
        self.clients.names.give(connection, key);
        Ok(Reply::Done)
    }
}
