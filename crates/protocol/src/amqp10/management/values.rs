//! Values of management messages: maps of AMQP 1.0 to and from the engine's options and arguments.

use super::super::body::{scalar, text};
use super::super::codec::{Field, MapWriter, OwnedValue, Symbol, Timestamp, Value, put_list};
use angarium_engine::{Arguments, QUEUE_OPTIONS, QueueOptions, Value as EngineValue};
use std::collections::BTreeMap;

/// A value in the engine's terms.
pub(super) fn engine_value(value: Value<'_>) -> EngineValue {
    match value {
        // Limits above what the engine counts to are none that it would reach.
        Value::ULong(value) => EngineValue::Int(i64::try_from(value).unwrap_or(i64::MAX)),
        Value::Binary(octets) => EngineValue::Bytes(octets.to_vec()),
        Value::List(list) => EngineValue::List(list.values().map(engine_value).collect()),
        Value::Array(array) => EngineValue::List(array.values().map(engine_value).collect()),
        Value::Map(map) => {
            let entries = map
                .entries()
                .filter_map(|(key, value)| Some((key_text(key)?.to_owned(), engine_value(value))));
            EngineValue::Map(entries.collect())
        }
        Value::Described(described) => engine_value(described.value()),
        other => scalar(other).unwrap_or_else(|| EngineValue::Text(text(other).into_owned())),
    }
}

/// The text of a key that is a string or a symbol.
pub(super) fn key_text(key: Value<'_>) -> Option<&str> {
    match key {
        Value::String(text) | Value::Symbol(Symbol(text)) => Some(text),
        _ => None,
    }
}

/// The arguments in a map; `None`: it is no map, or has a key that is no text.
pub(super) fn arguments(value: Value<'_>) -> Option<Arguments> {
    let Value::Map(map) = value else { return None };
    let mut arguments = BTreeMap::new();
    for (key, value) in map.entries() {
        arguments.insert(key_text(key)?.to_owned(), engine_value(value));
    }
    Some(arguments)
}

/// A value in this protocol's terms.
pub(super) fn owned(value: &EngineValue) -> OwnedValue {
    match value {
        EngineValue::Null => OwnedValue::new(&Value::Null),
        EngineValue::Bool(value) => OwnedValue::new(value),
        EngineValue::Int(value) => OwnedValue::new(value),
        EngineValue::Float(value) => OwnedValue::new(value),
        EngineValue::Text(text) => OwnedValue::new(&text.as_str()),
        EngineValue::Bytes(bytes) => OwnedValue::new(&bytes.as_slice()),
        EngineValue::Timestamp(seconds) => {
            let seconds = i64::try_from(*seconds).unwrap_or(i64::MAX);
            OwnedValue::new(&Timestamp(seconds.saturating_mul(1000)))
        }
        EngineValue::List(values) => list(values.iter().map(owned)),
        EngineValue::Map(map) => arguments_map(map),
    }
}

/// A list of values.
pub(super) fn list(values: impl Iterator<Item = OwnedValue>) -> OwnedValue {
    let mut bytes = Vec::new();
    put_list(&mut bytes, |list| values.for_each(|value| list.put(&value.value())));
    OwnedValue::decode(&bytes).unwrap_or_else(|_| OwnedValue::new(&Value::Null))
}

/// Arguments as a map.
pub(super) fn arguments_map(arguments: &Arguments) -> OwnedValue {
    OwnedValue::map(|map| {
        for (name, value) in arguments {
            put(map, name, &owned(value).value());
        }
    })
}

/// The arguments that a queue was declared with.
pub(super) fn queue_arguments(options: &QueueOptions) -> OwnedValue {
    let mut arguments = options.other.clone();
    for option in QUEUE_OPTIONS {
        if let Some(value) = option.get(options) {
            arguments.insert(format!("x-{}", option.name), value);
        }
    }
    arguments_map(&arguments)
}

/// Adds an entry with a text as key.
pub(super) fn put<'v>(map: &mut MapWriter<'_>, key: &str, value: &impl Field<'v>) {
    map.put(&key, value);
}
