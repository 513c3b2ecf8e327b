//! In what a declaration differs from the queue or exchange that exists.

use crate::Value;
use std::borrow::Cow;
use std::fmt;

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
    /// An argument that the broker only keeps, under the name that the client gave it.
    pub is_own: bool,
    /// Its value in the declaration; `None`: it has the default.
    pub received: Option<Value>,
    /// Its value in what exists; `None`: it has the default.
    pub current: Option<Value>,
}

impl DifferentOption {
    /// An option of the broker's, if the values differ.
    pub(crate) fn find(
        name: &'static str,
        received: Option<Value>,
        current: Option<Value>,
    ) -> Option<DifferentOption> {
        let name = Cow::Borrowed(name);
        (received != current).then_some(DifferentOption { name, is_own: false, received, current })
    }
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
