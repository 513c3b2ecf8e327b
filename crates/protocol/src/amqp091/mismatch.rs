//! In what a declaration differs, in RabbitMQ's words: programs look for them.

use angarium_engine::{Declared, DifferentOption, Mismatch, Value};
use std::borrow::Cow;

/// The text of the error: `inequivalent arg 'x-max-length' for queue 'q' in vhost '/': ...`.
pub(super) fn text(mismatch: &Mismatch) -> String {
    let Mismatch { declared, name, vhost, option } = mismatch;
    let (declared, values) = match declared {
        Declared::Queue => ("queue", queue_values(option)),
        Declared::Exchange => ("exchange", exchange_values(option)),
    };
    let argument = argument(option);
    format!("inequivalent arg '{argument}' for {declared} '{name}' in vhost '{vhost}': {values}")
}

/// The name of the argument, or field, that sets an option.
fn argument(option: &DifferentOption) -> Cow<'_, str> {
    match &*option.name {
        "durable" | "auto_delete" | "exclusive" | "internal" | "type" | "alternate-exchange" => {
            Cow::Borrowed(&option.name)
        }
        name => Cow::Owned(format!("x-{name}")),
    }
}

/// Both values, with their types where one is missing.
fn queue_values(option: &DifferentOption) -> String {
    match (&option.received, &option.current) {
        (Some(received), Some(current)) => {
            let (received, current) = (shown(received).0, shown(current).0);
            format!("received '{received}' but current is '{current}'")
        }
        (received, current) => {
            let (received, current) = (with_type(received.as_ref()), with_type(current.as_ref()));
            format!("received {received} but current is {current}")
        }
    }
}

fn exchange_values(option: &DifferentOption) -> String {
    let value = |value: &Option<Value>| match (&*option.name, value) {
        ("alternate-exchange", None) => "none".to_owned(),
        ("alternate-exchange", Some(value)) => format!("the value '{}'", shown(value).0),
        ("type", Some(Value::Text(kind))) if kind == "delayed-message" => format!("'x-{kind}'"),
        (_, value) => {
            format!("'{}'", value.as_ref().map(|value| shown(value).0).unwrap_or_default())
        }
    };
    format!("received {} but current is {}", value(&option.received), value(&option.current))
}

fn with_type(value: Option<&Value>) -> String {
    match value {
        None => "none".to_owned(),
        Some(value) => {
            let (value, kind) = shown(value);
            format!("the value '{value}' of type '{kind}'")
        }
    }
}

/// A value and its type; small integers as clients send them.
fn shown(value: &Value) -> (String, &'static str) {
    match value {
        Value::Int(number) if i32::try_from(*number).is_ok() => (number.to_string(), "signedint"),
        Value::Int(number) => (number.to_string(), "long"),
        Value::Text(text) => (text.clone(), "longstr"),
        Value::Bool(value) => (value.to_string(), "bool"),
        Value::Float(number) => (number.to_string(), "double"),
        Value::Timestamp(seconds) => (seconds.to_string(), "timestamp"),
        Value::Null => (String::new(), "void"),
        Value::Bytes(_) => ("...".to_owned(), "binary"),
        Value::List(_) => ("...".to_owned(), "array"),
        Value::Map(_) => ("...".to_owned(), "table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(declared: Declared, name: &'static str, values: [Option<Value>; 2], expected: &str) {
        let [received, current] = values;
        let option = DifferentOption { name: name.into(), received, current };
        let mismatch = Mismatch { declared, name: "q".into(), vhost: "/".into(), option };
        assert_eq!(text(&mismatch), format!("inequivalent arg {expected}"));
    }

    fn word(text: &str) -> Option<Value> {
        Some(Value::Text(text.to_owned()))
    }

    #[test]
    fn queues_differ() {
        let check = |name, received, current, expected: &str| {
            let expected = expected.replacen(": ", " for queue 'q' in vhost '/': ", 1);
            check(Declared::Queue, name, [received, current], &expected);
        };
        let yes = || Some(Value::Bool(true));
        let no = || Some(Value::Bool(false));
        let int = |number| Some(Value::Int(number));
        check("durable", yes(), no(), "'durable': received 'true' but current is 'false'");
        check("max-length", int(6), int(5), "'x-max-length': received '6' but current is '5'");
        check(
            "message-ttl",
            int(1_073_741_824_000),
            None,
            "'x-message-ttl': received the value '1073741824000' of type 'long' but current is none",
        );
        check(
            "overflow",
            word("reject-publish"),
            None,
            "'x-overflow': received the value 'reject-publish' of type 'longstr' but current is none",
        );
        check(
            "durability",
            None,
            word("memory"),
            "'x-durability': received none but current is the value 'memory' of type 'longstr'",
        );
        check(
            "single-active-consumer",
            yes(),
            None,
            "'x-single-active-consumer': received the value 'true' of type 'bool' but current is none",
        );
    }

    #[test]
    fn exchanges_differ() {
        let check = |name, received, current, expected: &str| {
            let expected = expected.replacen(": ", " for exchange 'q' in vhost '/': ", 1);
            check(Declared::Exchange, name, [received, current], &expected);
        };
        let (yes, no) = (Some(Value::Bool(true)), Some(Value::Bool(false)));
        check("internal", no, yes, "'internal': received 'false' but current is 'true'");
        check(
            "type",
            word("direct"),
            word("delayed-message"),
            "'type': received 'direct' but current is 'x-delayed-message'",
        );
        check(
            "delayed-type",
            word("direct"),
            word("topic"),
            "'x-delayed-type': received 'direct' but current is 'topic'",
        );
        check(
            "alternate-exchange",
            None,
            word("alt"),
            "'alternate-exchange': received none but current is the value 'alt'",
        );
    }
}
