//! In what a declaration differs from the queue there is, in the words that RabbitMQ has for it:
//! programs look for them.

use crate::{QUEUE_OPTIONS, QueueOptions, Value};
use std::collections::BTreeSet;

/// The first option in which a declaration differs, what it says, and what holds: `inequivalent arg
/// 'x-max-length' ...`, less whose it is.
pub(crate) fn difference(
    current: &QueueOptions,
    received: &QueueOptions,
) -> Option<(String, String)> {
    for (name, current, received) in [
        ("durable", current.durable, received.durable),
        ("auto_delete", current.auto_delete, received.auto_delete),
        ("exclusive", current.exclusive, received.exclusive),
    ] {
        if current != received {
            return Some(told(name, &format!("'{received}'"), &format!("'{current}'")));
        }
    }
    for option in QUEUE_OPTIONS {
        let (current, received) = (option.get(current), option.get(received));
        if current != received {
            let name = format!("x-{}", option.name);
            return Some(told_argument(&name, received.as_ref(), current.as_ref()));
        }
    }
    let (now, then) = (&current.other, &received.other);
    let names: BTreeSet<&String> = now.keys().chain(then.keys()).collect();
    let other = names.into_iter().find(|name| now.get(*name) != then.get(*name))?;
    Some(told_argument(other, then.get(other), now.get(other)))
}

fn told(name: &str, received: &str, current: &str) -> (String, String) {
    (name.to_owned(), format!("received {received} but current is {current}"))
}

/// An argument that differs. Types are told where one side has none.
fn told_argument(
    name: &str,
    received: Option<&Value>,
    current: Option<&Value>,
) -> (String, String) {
    match (received, current) {
        (Some(received), Some(current)) => {
            let (received, current) = (shown(received).0, shown(current).0);
            told(name, &format!("'{received}'"), &format!("'{current}'"))
        }
        _ => told(name, &with_type(received), &with_type(current)),
    }
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
    use crate::Overflow;
    use std::time::Duration;

    fn check(received: QueueOptions, name: &str, text: &str) {
        let current = QueueOptions { length_max: Some(5), ..QueueOptions::default() };
        let received = QueueOptions { length_max: received.length_max.or(Some(5)), ..received };
        let expected = (name.to_owned(), text.to_owned());
        assert_eq!(difference(&current, &received), Some(expected));
    }

    #[test]
    fn each_is_told_by_its_argument() {
        let none = QueueOptions::default;
        assert_eq!(difference(&none(), &none()), None);
        check(
            QueueOptions { durable: true, ..none() },
            "durable",
            "received 'true' but current is 'false'",
        );
        check(
            QueueOptions { length_max: Some(6), ..none() },
            "x-max-length",
            "received '6' but current is '5'",
        );
        check(
            QueueOptions { message_ttl: Some(Duration::from_secs(1 << 30)), ..none() },
            "x-message-ttl",
            "received the value '1073741824000' of type 'long' but current is none",
        );
        check(
            QueueOptions { overflow: Overflow::RejectPublish, ..none() },
            "x-overflow",
            "received the value 'reject-publish' of type 'longstr' but current is none",
        );
        check(
            QueueOptions { single_active: true, ..none() },
            "x-single-active-consumer",
            "received the value 'true' of type 'bool' but current is none",
        );
        let other = [("x-own".to_owned(), Value::List(Vec::new()))].into();
        check(
            QueueOptions { other, ..none() },
            "x-own",
            "received the value '...' of type 'array' but current is none",
        );
    }
}
