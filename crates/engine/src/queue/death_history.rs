//! Dead-letter history that a publisher sent along: a message that a consumer takes and publishes
//! anew goes on with it, as it does in RabbitMQ 3.

use super::stored::Incoming;
use crate::interface::limits::{DEATHS_SENT_MAX, NAME_BYTES_MAX};
use crate::{Arguments, Content, Death, DeathReason, ReadHeaders, Time, Value};
use std::time::Duration;

/// The header that holds it.
const HEADER: &str = "x-death";
/// The header that holds a message's further routing keys, but for those that are to be hidden.
const FURTHER_KEYS_HEADER: &str = "CC";

/// The history in a message's headers, most recent first. What is no such thing is left out.
pub(super) fn sent_along(content: &Content<'_>, read: ReadHeaders) -> Vec<Death> {
    let mut deaths = Vec::new();
    read(content.format, content.properties, &mut |name, value| {
        if let (HEADER, Value::List(entries)) = (name, value) {
            let entries = entries.iter().take(DEATHS_SENT_MAX);
            deaths = entries.filter_map(death).collect();
        }
    });
    deaths
}

/// The routing keys that a history may name: those that the message itself does.
pub(super) fn known_keys(incoming: &Incoming<'_>, read: ReadHeaders) -> Vec<String> {
    let mut keys = vec![incoming.routing_key.to_owned()];
    if !incoming.also_to.is_empty() {
        let content = &incoming.content;
        read(content.format, content.properties, &mut |name, value| {
            if let (FURTHER_KEYS_HEADER, Value::List(further)) = (name, value) {
                keys.extend(further.iter().filter_map(routing_key));
            }
        });
    }
    keys
}

fn death(entry: &Value) -> Option<Death> {
    let Value::Map(entry) = entry else { return None };
    let reason = match text(entry, "reason")? {
        "rejected" => DeathReason::Rejected,
        "expired" => DeathReason::Expired,
        "maxlen" => DeathReason::MaxLength,
        "delivery_limit" => DeathReason::DeliveryLimit,
        _ => return None,
    };
    let count = match entry.get("count") {
        Some(Value::Int(count)) => u64::try_from(*count).ok()?.max(1),
        _ => 1,
    };
    let time = match entry.get("time") {
        Some(Value::Timestamp(seconds)) => *seconds,
        _ => 0,
    };
    let millis = text(entry, "original-expiration").and_then(|text| text.parse().ok());
    Some(Death {
        reason,
        queue: name(text(entry, "queue")?)?.to_owned(),
        exchange: name(text(entry, "exchange").unwrap_or_default())?.to_owned(),
        routing_keys: match entry.get("routing-keys") {
            Some(Value::List(keys)) => keys.iter().filter_map(routing_key).collect(),
            _ => Vec::new(),
        },
        count,
        time: Time(seconds_to_micros(time)),
        original_ttl: millis.map(Duration::from_millis),
    })
}

fn seconds_to_micros(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000_000)
}

fn text<'a>(entry: &'a Arguments, field: &str) -> Option<&'a str> {
    match entry.get(field)? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn name(text: &str) -> Option<&str> {
    (text.len() <= NAME_BYTES_MAX).then_some(text)
}

fn routing_key(key: &Value) -> Option<String> {
    match key {
        Value::Text(key) => name(key).map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(fields: &[(&str, Value)]) -> Value {
        Value::Map(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn an_entry_is_taken_over() {
        let full = entry(&[
            ("reason", text("expired")),
            ("queue", text("q")),
            ("exchange", text("x")),
            ("count", Value::Int(3)),
            ("time", Value::Timestamp(5)),
            ("routing-keys", Value::List(vec![text("k"), Value::Int(1), text("cc")])),
            ("original-expiration", text("100")),
        ]);
        let expected = Death {
            reason: DeathReason::Expired,
            queue: "q".to_owned(),
            exchange: "x".to_owned(),
            routing_keys: vec!["k".to_owned(), "cc".to_owned()],
            count: 3,
            time: Time(5_000_000),
            original_ttl: Some(Duration::from_millis(100)),
        };
        assert_eq!(death(&full), Some(expected));
    }

    #[test]
    fn so_many_entries_are_taken_over_and_no_more() {
        fn read(_: crate::Format, properties: &[u8], visit: &mut dyn FnMut(&str, Value)) {
            let one = entry(&[("reason", text("rejected")), ("queue", text("q"))]);
            visit(HEADER, Value::List(vec![one; properties.len()]));
        }
        let properties = [0; DEATHS_SENT_MAX + 1];
        for (sent, taken) in [
            (DEATHS_SENT_MAX - 1, DEATHS_SENT_MAX - 1),
            (DEATHS_SENT_MAX, DEATHS_SENT_MAX),
            (DEATHS_SENT_MAX + 1, DEATHS_SENT_MAX),
        ] {
            let content = Content {
                format: crate::Format::Amqp091,
                properties: &properties[..sent],
                body: b"",
                shared: None,
                persistent: false,
                priority: 0,
                ttl: None,
            };
            assert_eq!(sent_along(&content, read).len(), taken);
        }
    }

    #[test]
    fn what_is_none_is_left_out() {
        let long = "n".repeat(NAME_BYTES_MAX + 1);
        for fields in [
            &[][..],
            &[("reason", text("rejected"))],
            &[("queue", text("q"))],
            &[("reason", text("bored")), ("queue", text("q"))],
            &[("reason", text("rejected")), ("queue", text(&long))],
            &[("reason", text("rejected")), ("queue", Value::Int(1))],
            &[("reason", text("rejected")), ("queue", text("q")), ("count", Value::Int(-1))],
        ] {
            assert_eq!(death(&entry(fields)), None, "{fields:?}");
        }
        assert_eq!(death(&text("rejected")), None);
        let least = [("reason", text("maxlen")), ("queue", text("q")), ("count", Value::Int(0))];
        assert_eq!(death(&entry(&least)).map(|death| death.count), Some(1));
    }
}
