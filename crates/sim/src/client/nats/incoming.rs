//! What arrives at a NATS client.

use crate::history::{HeadersSeen, MessageId};

/// What arrived.
#[derive(Clone, Debug)]
pub(crate) enum Incoming {
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
pub(crate) struct Arrived {
    pub(crate) sid: u32,
    pub(crate) subject: String,
    pub(crate) reply: Option<String>,
    /// The message that its body names, if the body is intact.
    pub(crate) id: Option<MessageId>,
    pub(crate) headers: HeadersSeen,
    pub(crate) missed: u64,
    /// The subject of the request, if this is the 503 for a request without responders.
    pub(crate) no_responders: Option<String>,
}
