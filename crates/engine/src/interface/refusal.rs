//! Why a request was refused, in words that every protocol can put into its own.

use crate::interface::mismatch::Mismatch;

/// The kind of a refusal; each protocol's mapping has one code for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// Nothing of that name exists.
    NotFound,
    /// It exists with other properties than the request assumes; or an unknown delivery tag.
    PreconditionFailed,
    /// The user's permissions do not allow it.
    AccessRefused,
    /// Another connection holds it exclusively.
    ResourceLocked,
    /// Not allowed to any user, such as declaring a reserved name.
    NotAllowed,
    /// A limit was reached.
    LimitExceeded,
    /// Understood and not offered.
    NotImplemented,
    /// The journal cannot store now.
    StorageUnavailable,
    /// A broken invariant of the broker.
    Internal,
}

/// A refusal: its kind and a sentence that says what happened and why, without a protocol's words.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The kind.
    pub kind: RefusalKind,
    /// What and why: lower case, no full stop, names quoted: `no queue 'orders' in vhost '/'`.
    pub text: String,
    /// The option in which a declaration differs, where that is why.
    pub mismatch: Option<Box<Mismatch>>,
}

impl Refusal {
    /// A refusal of `kind` that says `text`.
    pub fn new(kind: RefusalKind, text: impl Into<String>) -> Refusal {
        Refusal { kind, text: text.into(), mismatch: None }
    }

    /// The refusal of a declaration that differs from what exists.
    pub(crate) fn of_mismatch(mismatch: Mismatch) -> Refusal {
        let (kind, text) = (RefusalKind::PreconditionFailed, mismatch.to_string());
        Refusal { kind, text, mismatch: Some(Box::new(mismatch)) }
    }

    /// The refusal of a durable change after the journal has failed.
    pub(crate) fn not_kept() -> Refusal {
        let text = "the journal has failed: what is to survive a restart cannot be changed";
        Refusal::new(RefusalKind::StorageUnavailable, text)
    }
}
