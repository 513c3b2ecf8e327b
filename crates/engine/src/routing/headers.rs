//! How a headers exchange compares a binding's arguments with a message's headers.

use crate::{Arguments, Refusal, RefusalKind, Value};
use std::collections::BTreeMap;

/// The argument that says how the others are compared.
const X_MATCH: &str = "x-match";

/// A message's headers.
pub(super) type Headers = BTreeMap<String, Value>;

#[derive(Clone, Copy)]
struct Mode {
    /// Every argument has to match, else one is enough.
    all: bool,
    /// Arguments whose names begin with `x-` are compared as well.
    with_x: bool,
}

fn mode(arguments: Option<&Arguments>) -> Option<Mode> {
    let Some(value) = arguments.and_then(|arguments| arguments.get(X_MATCH)) else {
        return Some(Mode { all: true, with_x: false });
    };
    let Value::Text(text) = value else { return None };
    match text.as_str() {
        "all" => Some(Mode { all: true, with_x: false }),
        "any" => Some(Mode { all: false, with_x: false }),
        "all-with-x" => Some(Mode { all: true, with_x: true }),
        "any-with-x" => Some(Mode { all: false, with_x: true }),
        _ => None,
    }
}

/// Refuses arguments that a headers exchange cannot compare by.
pub(super) fn check(arguments: &Arguments) -> Result<(), Refusal> {
    if mode(Some(arguments)).is_some() {
        return Ok(());
    }
    let value = match arguments.get(X_MATCH) {
        Some(Value::Text(text)) => format!("value '{text}'"),
        _ => "type".to_owned(),
    };
    let text = format!(
        "invalid x-match field {value}; expected all, any, all-with-x, or any-with-x as text"
    );
    Err(Refusal::new(RefusalKind::PreconditionFailed, text))
}

/// Whether a binding with these arguments takes a message with these headers. Without arguments to
/// compare, `all` takes every message and `any` none.
pub(super) fn matches(arguments: Option<&Arguments>, headers: &Headers) -> bool {
    let Some(Mode { all, with_x }) = mode(arguments) else { return false };
    let mut compared = arguments
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != X_MATCH && (with_x || !name.starts_with("x-")));
    let equal = |(name, wanted): (&String, &Value)| {
        headers.get(name).is_some_and(|value| *wanted == Value::Null || wanted == value)
    };
    if all { compared.all(equal) } else { compared.any(equal) }
}
