//! What a client has asked for by CONNECT, and what it gets, until CONNACK.

use angarium_engine::{SessionExpiry, Will};

/// What the client has asked for by CONNECT, until CONNACK.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    pub(super) clean_start: bool,
    pub(super) expiry: SessionExpiry,
    pub(super) will: Option<Box<Will>>,
    /// The session was there.
    pub(super) is_resumed: bool,
    /// Places of its queue that the client has to be told once more that they were released.
    pub(super) released: Vec<u64>,
    /// The expiry was asked for, and another one was granted.
    pub(super) is_expiry_ours: bool,
}

impl Beginning {
    /// Bytes that it takes, about.
    pub(super) fn held_bytes(&self) -> usize {
        let will = self.will.as_ref();
        let will = will.map_or(0, |it| it.body.len() + it.properties.len() + it.routing_key.len());
        size_of::<Beginning>() + will + self.released.capacity() * size_of::<u64>()
    }
}
