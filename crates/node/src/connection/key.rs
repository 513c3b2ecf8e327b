//! The identity of a connection.

use angarium_engine::ConnectionId;

/// A connection, told from earlier ones in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionKey {
    pub(crate) id: ConnectionId,
    pub(crate) serial: u64,
}
