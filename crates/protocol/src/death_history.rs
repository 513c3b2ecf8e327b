//! The dead-letter history that a publisher sends along in headers: a message that a consumer takes and
//! publishes anew keeps it, as in RabbitMQ 3.

use crate::properties::{DEATH_REASONS, FURTHER_KEYS_HEADER};
use crate::read_headers;
use angarium_engine::limits::{DEATHS_SENT_MAX, NAME_BYTES_MAX};
use angarium_engine::{Arguments, Content, Death, Time, Value};
use std::time::Duration;

/// The header that holds it.
const HEADER: &str = "x-death";

/// The history in a message's headers, most recent first. Malformed entries are left out.
pub(crate) fn deaths(content: &Content<'_>) -> Vec<Death> {
    let mut deaths = Vec::new();
    read_headers(content.format, content.properties, &mut |name, value| {
        if let (HEADER, Value::List(entries)) = (name, value) {
            deaths = entries_of(&entries);
        }
    });
    deaths
}

/// The routing keys in the header for further ones.
pub(crate) fn further_keys(content: &Content<'_>) -> Vec<String> {
    let mut keys = Vec::new();
    read_headers(content.format, content.properties, &mut |name, value| {
        if let (FURTHER_KEYS_HEADER, Value::List(further)) = (name, value) {
            keys.extend(further.iter().filter_map(routing_key));
        }
    });
    keys
}

fn entries_of(entries: &[Value]) -> Vec<Death> {
    entries.iter().take(DEATHS_SENT_MAX).filter_map(death).collect()
}

fn death(entry: &Value) -> Option<Death> {
    let Value::Map(entry) = entry else { return None };
    let named = text(entry, "reason")?;
    let (reason, _) = DEATH_REASONS.into_iter().find(|(_, name)| *name == named)?;
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
        time: Time(time.saturating_mul(1_000_000)),
        original_ttl: millis.map(Duration::from_millis),
    })
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
    use angarium_engine::DeathReason;

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
    fn the_number_of_entries_is_bounded() {
        let one = entry(&[("reason", text("rejected")), ("queue", text("q"))]);
        for (sent, taken) in [
            (DEATHS_SENT_MAX - 1, DEATHS_SENT_MAX - 1),
            (DEATHS_SENT_MAX, DEATHS_SENT_MAX),
            (DEATHS_SENT_MAX + 1, DEATHS_SENT_MAX),
        ] {
            assert_eq!(entries_of(&vec![one.clone(); sent]).len(), taken);
        }
    }

    #[test]
    fn malformed_entries_are_left_out() {
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
