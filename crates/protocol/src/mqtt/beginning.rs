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
