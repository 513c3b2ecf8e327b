//! Typed values of message headers and binding arguments, independent of any protocol's encoding.

use std::collections::BTreeMap;

/// A value as headers exchanges compare them and annotations carry them.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value: as a binding argument it matches any value of that header.
    Null,
    /// A truth value.
    Bool(bool),
    /// Every signed or unsigned integer width.
    Int(i64),
    /// Both float widths.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes that are not text.
    Bytes(Vec<u8>),
    /// Seconds since the Unix epoch.
    Timestamp(u64),
    /// A list of values.
    List(Vec<Value>),
    /// Named values.
    Map(BTreeMap<String, Value>),
}

impl Value {
    /// The number, if it is one.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// What an entry of a map costs beside its text.
const ENTRY_BYTES: usize = 96;

/// About how much memory arguments take.
pub(crate) fn arguments_bytes(arguments: &BTreeMap<String, Value>) -> usize {
    arguments.iter().map(|(name, value)| ENTRY_BYTES + name.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(values) => values.iter().map(|it| size_of::<Value>() + value_bytes(it)).sum(),
        Value::Map(values) => arguments_bytes(values),
        _ => 0,
    }
}
