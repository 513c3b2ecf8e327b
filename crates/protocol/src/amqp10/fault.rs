//! Errors of the peer, and refusals that are reported to it: what they end, their condition and text.

use super::codec::{Condition, Error, Malformed};
use super::mapping;
use angarium_engine::{PublishRefusal, Refusal};

/// What is wrong, as frames that end or refuse something say it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reason<'a> {
    pub(super) condition: Condition,
    pub(super) text: &'a str,
}

impl<'a> Reason<'a> {
    pub(super) fn new(condition: Condition, text: &'a str) -> Reason<'a> {
        Reason { condition, text }
    }
    /// Why a publish was refused.
    pub(super) fn of(refused: PublishRefusal<'a>) -> Reason<'a> {
        Reason::new(mapping::condition(refused.kind), refused.text)
    }
    pub(super) fn error(self) -> Error<'a> {
        Error::new(self.condition, self.text)
    }
}

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
        Fault::link(handle, mapping::condition(refusal.kind), refusal.text)
    }
    /// The error of a frame for a link that is not there.
    pub(super) fn unattached(what: &str, handle: u32) -> Fault {
        let text = format!("{what} for handle {handle}, with which no link is attached");
        Fault::session(Condition::UnattachedHandle, text)
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
