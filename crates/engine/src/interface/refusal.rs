//! Why a request was refused, in words that every protocol can put into its own; in what a declaration
//! differs from the queue or exchange that exists.

use crate::Value;
use std::borrow::Cow;
use std::fmt;

/// Returns a refusal of that kind from the function, with a text as of `format!`.
macro_rules! refuse {
    ($kind:ident, $($text:tt)+) => {
        return Err($crate::Refusal::new($crate::RefusalKind::$kind, format!($($text)+)))
    };
}
pub(crate) use refuse;

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
    /// Another connection of its client has taken its place.
    TakenOver,
    /// Not allowed to any user, such as declaring a reserved name.
    NotAllowed,
    /// A limit was reached.
    LimitExceeded,
    /// Understood and not offered.
    NotImplemented,
    /// No queue takes the message.
    Unroutable,
    /// The connection, or its user, holds as much memory as it may.
    MemoryShort,
    /// The journal cannot store now.
    StorageUnavailable,
    /// It may have been done or not: the journal failed before that was stored.
    InDoubt,
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

    /// The refusal of a durable change while no record can be written.
    pub(crate) fn no_room() -> Refusal {
        let text =
            "the disk is full: what is to survive a restart cannot be changed until there is room";
        Refusal::new(RefusalKind::StorageUnavailable, text)
    }

    /// The answer to a durable change that was made before it was known that no record can be written.
    pub(crate) fn awaits_room() -> Refusal {
        let text =
            "the disk is full: that is kept once there is room, and lost if the broker ends before";
        Refusal::new(RefusalKind::InDoubt, text)
    }
}

/// What was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// A queue.
    Queue,
    /// An exchange.
    Exchange,
}

/// The first option in which a declaration differs from what exists.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// What was declared.
    pub declared: Declared,
    /// Its name.
    pub name: String,
    /// Its virtual host.
    pub vhost: String,
    /// The option.
    pub option: DifferentOption,
}

/// An option with two values.
#[derive(Clone, Debug, PartialEq)]
pub struct DifferentOption {
    /// The option's name, in lower case with hyphens; that of the argument where it is the client's own.
    pub name: Cow<'static, str>,
    /// Its value in the declaration; `None`: it has the default.
    pub received: Option<Value>,
    /// Its value in what exists; `None`: it has the default.
    pub current: Option<Value>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { declared, name, vhost, option } = self;
        let declared = match declared {
            Declared::Queue => "queue",
            Declared::Exchange => "exchange",
        };
        write!(f, "{declared} '{name}' in vhost '{vhost}' differs in {}: received ", option.name)?;
        write_value(f, option.received.as_ref())?;
        f.write_str(", current is ")?;
        write_value(f, option.current.as_ref())
    }
}

fn write_value(f: &mut fmt::Formatter<'_>, value: Option<&Value>) -> fmt::Result {
    match value {
        None | Some(Value::Null) => f.write_str("none"),
        Some(Value::Bool(value)) => write!(f, "{value}"),
        Some(Value::Int(value)) => write!(f, "{value}"),
        Some(Value::Float(value)) => write!(f, "{value}"),
        Some(Value::Timestamp(seconds)) => write!(f, "{seconds}"),
        Some(Value::Text(text)) => write!(f, "'{text}'"),
        Some(Value::Bytes(_) | Value::List(_) | Value::Map(_)) => f.write_str("..."),
    }
}
