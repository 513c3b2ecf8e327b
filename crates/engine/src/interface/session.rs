//! Sessions as requests ask for them.

use bytes::Bytes;
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
