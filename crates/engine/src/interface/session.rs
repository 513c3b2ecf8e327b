//! Sessions as requests ask for them, and what a claim is answered.

use crate::{Format, QueueOptions};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// How long a session lives on once no channel holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionExpiry {
    /// Not at all.
    #[default]
    AtDetach,
    /// So long.
    After(Duration),
    /// Until it is ended.
    Never,
}

impl SessionExpiry {
    /// Whether a session lives on without a holder.
    pub(crate) fn outlives_holder(self) -> bool {
        !matches!(self, SessionExpiry::AtDetach | SessionExpiry::After(Duration::ZERO))
    }
}

/// Asks for a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimSession {
    /// Its name within the virtual host.
    pub name: String,
    /// A session of that name that is there ends, and a new one begins.
    pub fresh: bool,
    /// How long it lives on once its holder has given it up or ended.
    pub expiry: SessionExpiry,
    /// It survives a restart, if it lives on without a holder.
    pub recorded: bool,
    /// What is kept with it from now on; `None`: what was.
    pub state: Option<Bytes>,
    /// It has a queue of its own, with these bounds where it is created now. What depends on the session is
    /// not taken from here: whether the queue is durable, exclusive, expires, or has priorities.
    pub queue: Option<Box<QueueOptions>>,
}

/// A session that a channel holds since its claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimedSession {
    /// Its name.
    pub name: Arc<str>,
    /// It was there before.
    pub is_resumed: bool,
    /// The expiry that was granted.
    pub expiry: SessionExpiry,
    /// What was kept with it until now.
    pub state: Bytes,
    /// Its attributes by key.
    pub attributes: Vec<(Bytes, Bytes)>,
    /// The name of its queue; empty: it has none.
    pub queue: String,
    /// Places of its queue that were released and are still in use, lowest first.
    pub released: Vec<u64>,
}

/// Changes a session that the channel holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeSession {
    /// Its name.
    pub name: String,
    /// How long it lives on from now on; `None`: as before.
    pub expiry: Option<SessionExpiry>,
    /// Attributes that it has from now on: key and value.
    pub put: Vec<(Bytes, Bytes)>,
    /// Keys of attributes that it no longer has.
    pub remove: Vec<Bytes>,
    /// Whether its queue hands out only what is flushed; `None`: as before. A claim begins without.
    pub waits_for_flush: Option<bool>,
}

/// Makes the session that the channel holds a member of a shared queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JoinShared {
    /// The group that the members are. Subscribers of this group do not get what the queue gets.
    pub group: String,
    /// The exchange that leads messages to the queue, and the key.
    pub source: String,
    /// See there.
    pub key: String,
    /// What the queue is declared with where it is created now: it is durable, and flushed.
    pub queue: Box<QueueOptions>,
}

/// A message that is published for the holder of a session once that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Will {
    /// As [`crate::Publish::exchange`].
    pub exchange: String,
    /// As [`crate::Publish::routing_key`].
    pub routing_key: String,
    /// The encoding of `properties`.
    pub format: Format,
    /// The properties in that encoding.
    pub properties: Bytes,
    /// The payload.
    pub body: Bytes,
    /// Whether it is to survive a restart once it is published.
    pub persistent: bool,
    /// Its priority.
    pub priority: u8,
    /// Whether it stays behind then, as [`crate::Publish::retain`] says.
    pub retain: bool,
    /// Its time to live from then on.
    pub ttl: Option<Duration>,
    /// How long after the detach it is published, unless the session is claimed again or ends before.
    pub delay: Duration,
}

/// Why a channel does not hold a session any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLoss {
    /// Another channel has claimed it.
    TakenOver,
    /// It was ended, or its user or virtual host was deleted.
    Ended,
}

impl SessionLoss {
    /// What happened to the session.
    pub(crate) fn text(self) -> &'static str {
        match self {
            SessionLoss::TakenOver => "was taken over",
            SessionLoss::Ended => "was ended",
        }
    }
}
