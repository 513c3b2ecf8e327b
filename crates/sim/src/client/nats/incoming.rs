//! What arrives at a NATS client.

use crate::history::{HeadersSeen, MessageId};

/// What arrived.
#[derive(Clone, Debug)]
pub(super) enum Incoming {
    /// INFO, and whether the broker is in lame duck mode.
    Info { lame_duck: bool },
    /// MSG or HMSG.
    Message(Arrived),
    /// PING.
    Ping,
    /// PONG.
    Pong,
    /// +OK.
    Done,
    /// -ERR.
    Error(String),
}

/// A message as it arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrived {
    pub(super) sid: u32,
    pub(super) subject: String,
    pub(super) reply: Option<String>,
    /// The message that its body names, if the body is intact.
    pub(super) id: Option<MessageId>,
    pub(super) headers: HeadersSeen,
    pub(super) missed: u64,
    /// The subject of the request, if this is the 503 for a request without responders.
    pub(super) no_responders: Option<String>,
}
