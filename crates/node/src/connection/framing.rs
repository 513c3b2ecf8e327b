//! What lies between a connection's transport and its protocol handler.

use angarium_protocol::Protocol;
use angarium_protocol::websocket::Incoming;

/// How far a connection has come of which it is to be found out what its client speaks, or that is framed.
#[derive(Debug)]
pub(crate) enum Framing {
    /// The first bytes say what it is.
    FirstBytes,
    /// The request that opens a WebSocket is awaited.
    Opening,
    /// What comes is frames.
    WebSocket(Incoming),
}

impl Framing {
    /// Of a connection for which a listener has that protocol.
    pub(crate) fn new(protocol: Protocol) -> Option<Box<Framing>> {
        match protocol {
            Protocol::Any => Some(Box::new(Framing::FirstBytes)),
            Protocol::WebSocket => Some(Box::new(Framing::Opening)),
            _ => None,
        }
    }
}
