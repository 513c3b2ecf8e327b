//! Names that connections have to themselves: a client that must not run twice claims one.

use crate::interface::limits::SUBSCRIPTION_NAME_BYTES_MAX;
use crate::interface::refusal::refuse;
use crate::{ConnectionId, Refusal, Reply};
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

    /// A connection claims a name, in place of the one that it had.
    pub(crate) fn claim(
        &mut self,
        connection: ConnectionId,
        vhost: u32,
        name: &str,
    ) -> Result<Reply, Refusal> {
        if name.len() > SUBSCRIPTION_NAME_BYTES_MAX {
            refuse!(LimitExceeded, "a client name of {} bytes is too long", name.len());
        }
        let key = (vhost, Box::from(name));
        if self.holders.get(&key).is_some_and(|holder| *holder != connection) {
            refuse!(ResourceLocked, "another connection has the client name '{name}'");
        }
        self.release(connection);
        self.holders.insert(key.clone(), connection);
        self.held.insert(connection, key);
        Ok(Reply::Done)
    }
}
