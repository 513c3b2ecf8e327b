//! Who and where: newtypes for connections, sessions and stored positions.

/// A connection, named by the slot that the host keeps it in. Slots are reused after
/// [`crate::Engine::disconnect`]. A connection owns exclusive queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// One ordered stream of publishes, subscriptions and settlements within a connection, with its own
/// delivery tags: an AMQP 0-9-1 channel, an AMQP 1.0 session, an MQTT connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    /// The connection it belongs to.
    pub connection: ConnectionId,
    /// Which of that connection's sessions it is.
    pub number: u16,
}

/// Where the host stored a record: segment number in the upper 32 bits, byte offset in the lower.
/// Later records have greater positions. The engine compares positions and asks for their segment,
/// nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// The segment that holds the record: the unit in which disk space is given back.
    #[must_use]
    pub fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }
}
