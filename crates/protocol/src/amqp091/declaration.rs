//! Declarations whose arguments come as values rather than as a table, as RabbitMQ's management has them:
//! in the engine's words, and back.

use super::codec::Table;
use super::codec::table::{DEPTH_MAX, TableWriter, ValueWriter, checked, put_table};
use super::fault::Fault;
use super::mapping;
use angarium_engine::{
    Arguments, Binding, BindingTarget, EXCHANGE_OPTIONS, ExchangeKind, ExchangeOptions,
    QUEUE_OPTIONS, QueueOptions, Value,
};

/// What RabbitMQ calls exchanges that hold messages back, and the argument that says how they route.
const DELAYED: &str = "x-delayed-message";
const DELAYED_TYPE: &str = "x-delayed-type";
/// Longest name in a table.
const NAME_BYTES_MAX: usize = 255;

/// What a queue with these flags is declared with. Errors say why it is refused, as a client would hear it.
pub fn queue_options(
    name: &str,
    vhost: &str,
    flags: QueueOptions,
    arguments: &Arguments,
) -> Result<QueueOptions, String> {
    with_table(arguments, |table| {
        let told = mapping::queue_options(name, vhost, table)?;
        let QueueOptions { durable, auto_delete, .. } = flags;
        let options = QueueOptions { durable, auto_delete, ..told };
        mapping::check_quorum(name, vhost, &options)?;
        Ok(options)
    })
}

/// What an exchange of that type is declared with, without its flags.
pub fn exchange_options(
    kind: &str,
    name: &str,
    vhost: &str,
    arguments: &Arguments,
) -> Result<ExchangeOptions, String> {
    with_table(arguments, |table| mapping::exchange_options(kind, name, vhost, table))
}

/// A binding in a virtual host.
pub fn binding(
    vhost: &str,
    source: &str,
    target: BindingTarget,
    key: &str,
    arguments: &Arguments,
) -> Result<Binding, String> {
    let (source, key) = (source.to_owned(), key.to_owned());
    with_table(arguments, |table| mapping::binding(vhost, source, target, key, table))
}

/// The arguments that a queue was declared with, but those at their defaults.
#[must_use]
pub fn queue_arguments(options: &QueueOptions) -> Arguments {
    let set = QUEUE_OPTIONS.iter().filter_map(|option| {
        let value = option.get(options)?;
        Some((format!("x-{}", option.name), value))
    });
    set.chain(options.other.clone()).collect()
}

/// The type that an exchange was declared with, and its arguments.
#[must_use]
pub fn exchange_arguments(options: &ExchangeOptions) -> (&'static str, Arguments) {
    let set = EXCHANGE_OPTIONS.iter().filter_map(|option| {
        let value = option.get(options)?;
        Some((option.name.to_owned(), value))
    });
    let mut arguments: Arguments = set.collect();
    let kind = match options.kind {
        ExchangeKind::Filtered => mapping::JMS_EXCHANGE,
        kind => kind.name(),
    };
    if !options.delaying {
        return (kind, arguments);
    }
    arguments.insert(DELAYED_TYPE.to_owned(), Value::Text(kind.to_owned()));
    (DELAYED, arguments)
}

/// A table as values, such as the headers of a message.
#[must_use]
pub fn values(table: Table<'_>) -> Arguments {
    mapping::arguments(table)
}

/// Appends arguments as a table, with its length in front. Refused: what no table may have.
pub fn put_arguments(out: &mut Vec<u8>, arguments: &Arguments) -> Result<(), String> {
    if !are_within(arguments, 1) {
        return Err("arguments are nested too deep, or a name is longer than 255 bytes".to_owned());
    }
    put_table(out, |table| put_entries(table, arguments));
    Ok(())
}

fn with_table<T>(
    arguments: &Arguments,
    read: impl FnOnce(Table<'_>) -> Result<T, Fault>,
) -> Result<T, String> {
    let mut bytes = Vec::new();
    put_arguments(&mut bytes, arguments)?;
    let table = checked(&bytes[4..]).map_err(|error| error.0.to_owned())?;
    read(table).map_err(|fault| fault.text)
}

/// Whether a table at that depth may have these entries.
fn are_within(arguments: &Arguments, depth: usize) -> bool {
    arguments.iter().all(|(name, value)| name.len() <= NAME_BYTES_MAX && is_within(value, depth))
}

fn is_within(value: &Value, depth: usize) -> bool {
    match value {
        Value::List(items) => {
            depth < DEPTH_MAX && items.iter().all(|item| is_within(item, depth + 1))
        }
        Value::Map(map) => depth < DEPTH_MAX && are_within(map, depth + 1),
        _ => true,
    }
}

fn put_entries(table: &mut TableWriter<'_>, arguments: &Arguments) {
    for (name, value) in arguments {
        put_value(table.value(name), value);
    }
}

/// Appends a value in this protocol's types.
pub(super) fn put_value(writer: ValueWriter<'_>, value: &Value) {
    match value {
        Value::Null => writer.void(),
        Value::Bool(value) => writer.bool(*value),
        Value::Int(value) => writer.int(*value),
        Value::Float(value) => writer.float(*value),
        Value::Text(text) => writer.text(text),
        Value::Bytes(bytes) => writer.bytes(bytes),
        Value::Timestamp(seconds) => writer.timestamp(*seconds),
        Value::List(items) => writer.array(items, put_value),
        Value::Map(map) => writer.table(|table| put_entries(table, map)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(pairs: &[(&str, Value)]) -> Arguments {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn what_a_queue_is_declared_with_is_shown_again() {
        let flags = QueueOptions { durable: true, ..QueueOptions::default() };
        for given in [
            arguments(&[]),
            arguments(&[("x-max-length", Value::Int(3)), ("x-overflow", text("reject-publish"))]),
            arguments(&[("x-queue-type", text("quorum")), ("mine", Value::Bool(true))]),
            arguments(&[("list", Value::List(vec![Value::Int(1), Value::Null]))]),
        ] {
            let options = queue_options("q", "/", flags.clone(), &given).unwrap();
            assert!(options.durable);
            assert_eq!(queue_arguments(&options), given);
        }
        let wrong = arguments(&[("x-max-length", text("many"))]);
        let why = queue_options("q", "/", flags, &wrong).unwrap_err();
        assert!(why.contains("x-max-length"), "{why}");
    }

    #[test]
    fn what_an_exchange_is_declared_with_is_shown_again() {
        for (kind, given) in [
            ("topic", arguments(&[])),
            ("fanout", arguments(&[("alternate-exchange", text("else"))])),
            (DELAYED, arguments(&[(DELAYED_TYPE, text("direct"))])),
            ("x-jms-topic", arguments(&[])),
        ] {
            let options = exchange_options(kind, "e", "/", &given).unwrap();
            assert_eq!(exchange_arguments(&options), (kind, given));
        }
        assert!(exchange_options("none", "e", "/", &arguments(&[])).is_err());
    }

    #[test]
    fn what_no_table_may_have_is_refused() {
        let deep = (0..40).fold(Value::Null, |inner, _| Value::List(vec![inner]));
        assert!(put_arguments(&mut Vec::new(), &arguments(&[("deep", deep)])).is_err());
        let long = arguments(&[(&"n".repeat(256), Value::Null)]);
        assert!(put_arguments(&mut Vec::new(), &long).is_err());
        // As deep as a table may be.
        let deepest = (0..DEPTH_MAX - 1).fold(Value::Null, |inner, _| Value::List(vec![inner]));
        let mut bytes = Vec::new();
        put_arguments(&mut bytes, &arguments(&[("deepest", deepest)])).unwrap();
        assert!(checked(&bytes[4..]).is_ok());
    }
}
