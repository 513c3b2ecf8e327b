//! In what a declaration differs from the queue there is, in the words that RabbitMQ has for it:
//! programs look for them.

use crate::{Durability, Overflow, QueueOptions, Value};
use std::collections::BTreeSet;
use std::time::Duration;

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
    let (now, then) = (arguments(current), arguments(received));
    for ((name, current), (_, received)) in now.iter().zip(&then) {
        if current != received {
            return Some(told_argument(name, received.as_ref(), current.as_ref()));
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

/// The options that arguments set, by the arguments' names.
fn arguments(options: &QueueOptions) -> [(&'static str, Option<Value>); 12] {
    let millis = |time: Option<Duration>| {
        time.map(|time| Value::Int(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
    };
    let number = |number: Option<u64>| {
        number.map(|number| Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
    };
    let text = |text: &Option<String>| text.clone().map(Value::Text);
    let overflow = match options.overflow {
        Overflow::DropHead => None,
        Overflow::RejectPublish => Some("reject-publish"),
        Overflow::RejectPublishDeadLetter => Some("reject-publish-dlx"),
    };
    let durability = match options.durability {
        Durability::Flushed => None,
        Durability::Buffered => Some("buffered"),
        Durability::Memory => Some("memory"),
    };
    [
        ("x-durability", durability.map(|name| Value::Text(name.to_owned()))),
        ("x-message-ttl", millis(options.message_ttl)),
        ("x-expires", millis(options.expires)),
        ("x-max-length", number(options.length_max)),
        ("x-max-length-bytes", number(options.bytes_max)),
        ("x-overflow", overflow.map(|name| Value::Text(name.to_owned()))),
        ("x-dead-letter-exchange", text(&options.dead_letter_exchange)),
        ("x-dead-letter-routing-key", text(&options.dead_letter_routing_key)),
        ("x-max-priority", number(options.priority_max.map(u64::from))),
        ("x-single-active-consumer", options.single_active.then_some(Value::Bool(true))),
        ("x-delivery-limit", number(options.delivery_limit.map(u64::from))),
        ("x-consumer-timeout", millis(options.settle_timeout)),
    ]
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
