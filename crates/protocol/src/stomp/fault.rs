//! Errors: the client gets an ERROR frame, behind which the connection ends.

use super::frame::Malformed;
use angarium_engine::{Refusal, RefusalKind};
use std::borrow::Cow;

/// An error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The `message` header: a few words that programs compare.
    pub(super) message: Cow<'static, str>,
    /// The body: what happened, why, and what to do.
    pub(super) text: String,
}

impl Fault {
    pub(super) fn new(message: &'static str, text: impl Into<String>) -> Fault {
        Fault { message: message.into(), text: text.into() }
    }

    /// A frame lacks a header.
    pub(super) fn missing(command: &str, header: &str) -> Fault {
        Fault::new("Missing header", format!("{command} needs a header '{header}'"))
    }
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Fault {
        let message = match malformed {
            Malformed::Command => "Bad command",
            Malformed::BodyTooLong(_) => "Message too large",
            _ => "Malformed frame",
        };
        Fault::new(message, malformed.to_string())
    }
}

/// The words that RabbitMQ has for a kind, in both of its forms: programs compare them.
fn words(kind: RefusalKind) -> (&'static str, &'static str) {
    match kind {
        RefusalKind::NotFound => ("not_found", "NOT_FOUND"),
        RefusalKind::Unroutable => ("no_route", "NO_ROUTE"),
        RefusalKind::PreconditionFailed | RefusalKind::LimitExceeded => {
            ("precondition_failed", "PRECONDITION_FAILED")
        }
        RefusalKind::AccessRefused => ("access_refused", "ACCESS_REFUSED"),
        RefusalKind::NotAllowed => ("not_allowed", "NOT_ALLOWED"),
        RefusalKind::ResourceLocked | RefusalKind::TakenOver => {
            ("resource_locked", "RESOURCE_LOCKED")
        }
        RefusalKind::NotImplemented => ("not_implemented", "NOT_IMPLEMENTED"),
        RefusalKind::MemoryShort | RefusalKind::StorageUnavailable | RefusalKind::InDoubt => {
            ("resource_error", "RESOURCE_ERROR")
        }
        RefusalKind::Internal => ("internal_error", "INTERNAL_ERROR"),
    }
}

/// The error for a refusal.
pub(super) fn refused(kind: RefusalKind, text: &str) -> Fault {
    let (message, shout) = words(kind);
    Fault::new(message, format!("{shout} - {text}"))
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        refused(refusal.kind, &refusal.text)
    }
}

/// An error for a frame with that receipt.
pub(super) type Failure = (Fault, Option<Box<str>>);
