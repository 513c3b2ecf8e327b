//! How a headers exchange compares a binding's arguments with a message's headers.

use crate::interface::refusal::refuse;
use crate::{Arguments, Names, Refusal, Value};
use std::collections::BTreeMap;

/// A message's headers.
pub(super) type Headers = BTreeMap<String, Value>;

#[derive(Clone, Copy)]
struct Mode {
    /// Every argument has to match, else one is enough.
    all: bool,
    /// Arguments whose names begin with the extensions' prefix are compared as well.
    with_x: bool,
}

fn mode(names: &Names, arguments: Option<&Arguments>) -> Option<Mode> {
    let Some(value) = arguments.and_then(|arguments| arguments.get(names.match_argument)) else {
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
pub(super) fn check(names: &Names, arguments: &Arguments) -> Result<(), Refusal> {
    if mode(names, Some(arguments)).is_some() {
        return Ok(());
    }
    let value = match arguments.get(names.match_argument) {
        Some(Value::Text(text)) => format!("value '{text}'"),
        _ => "type".to_owned(),
    };
    refuse!(
        PreconditionFailed,
        "invalid {} field {value}; expected all, any, all-with-x, or any-with-x as text",
        names.match_argument
    );
}

/// What of a binding's arguments is compared.
#[derive(Clone, Copy)]
pub(super) struct Compared<'a> {
    names: &'static Names,
    arguments: Option<&'a Arguments>,
    /// Every argument has to match, else one is enough.
    pub(super) all: bool,
    with_x: bool,
}

impl<'a> Compared<'a> {
    /// Those that headers are compared with.
    pub(super) fn arguments(self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let Compared { names, with_x, .. } = self;
        self.arguments.into_iter().flatten().filter(move |(name, _)| {
            *name != names.match_argument && (with_x || !name.starts_with(names.extension_prefix))
        })
    }

    /// Whether the binding takes every message.
    pub(super) fn takes_all(self) -> bool {
        self.all && self.arguments().next().is_none()
    }
}

/// What is compared; `None`: the arguments say nothing that a headers exchange knows.
pub(super) fn compared<'a>(
    names: &'static Names,
    arguments: Option<&'a Arguments>,
) -> Option<Compared<'a>> {
    let Mode { all, with_x } = mode(names, arguments)?;
    Some(Compared { names, arguments, all, with_x })
}

/// Whether a binding with these arguments takes a message with these headers. Without arguments to
/// compare, `all` takes every message and `any` none.
pub(super) fn matches(
    names: &'static Names,
    arguments: Option<&Arguments>,
    headers: &Headers,
) -> bool {
    let Some(compared) = compared(names, arguments) else { return false };
    let all = compared.all;
    let mut compared = compared.arguments();
    let equal = |(name, wanted): (&String, &Value)| {
        headers.get(name).is_some_and(|value| *wanted == Value::Null || wanted == value)
    };
    if all { compared.all(equal) } else { compared.any(equal) }
}
