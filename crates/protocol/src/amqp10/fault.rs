//! Errors of the peer, and refusals that are reported to it: what they end, their condition and text.

use super::codec::{Condition, Error, Malformed};
use angarium_engine::{Refusal, RefusalKind};

/// What an error ends (part 2, 2.8.14: the smallest thing that is wrong).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The connection.
    Connection,
    /// The session of the frame.
    Session,
    /// The link of that handle.
    Link(u32),
}

/// An error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) reach: Reach,
    pub(super) condition: Condition,
    /// What and why.
    pub(super) text: String,
}

impl Fault {
    pub(super) fn connection(condition: Condition, text: impl Into<String>) -> Fault {
        Fault { reach: Reach::Connection, condition, text: text.into() }
    }
    pub(super) fn session(condition: Condition, text: impl Into<String>) -> Fault {
        Fault { reach: Reach::Session, condition, text: text.into() }
    }
    pub(super) fn link(handle: u32, condition: Condition, text: impl Into<String>) -> Fault {
        Fault { reach: Reach::Link(handle), condition, text: text.into() }
    }
    /// The error of a link that the engine has refused something.
    pub(super) fn refused(handle: u32, refusal: Refusal) -> Fault {
        Fault::link(handle, condition(refusal.kind), refusal.text)
    }
    /// The error of a frame that cannot be decoded.
    pub(super) fn malformed(malformed: Malformed) -> Fault {
        Fault::connection(malformed.condition(), malformed.to_string())
    }
    /// As frames carry it.
    pub(super) fn error(&self) -> Error<'_> {
        Error::new(self.condition, &self.text)
    }
}

/// The condition of a refusal.
pub(super) fn condition(kind: RefusalKind) -> Condition {
    match kind {
        RefusalKind::NotFound => Condition::NotFound,
        RefusalKind::PreconditionFailed => Condition::PreconditionFailed,
        RefusalKind::AccessRefused => Condition::UnauthorizedAccess,
        RefusalKind::ResourceLocked => Condition::ResourceLocked,
        RefusalKind::NotAllowed => Condition::NotAllowed,
        RefusalKind::LimitExceeded | RefusalKind::MemoryShort | RefusalKind::StorageUnavailable => {
            Condition::ResourceLimitExceeded
        }
        RefusalKind::NotImplemented => Condition::NotImplemented,
        RefusalKind::Internal => Condition::InternalError,
    }
}
