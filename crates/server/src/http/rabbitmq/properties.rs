//! The properties of messages, as RabbitMQ's management has them: an object with those that are set.

use super::super::request_types::engine_values;
use super::super::views::json_object;
use angarium_protocol::amqp091::codec::Properties;
use angarium_protocol::amqp091::codec::table::checked;
use angarium_protocol::amqp091::declaration;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Longest text.
const TEXT_BYTES_MAX: usize = 255;

const TEXTS: [&str; 9] = [
    "content_type",
    "content_encoding",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "type",
    "user_id",
    "app_id",
];
const NUMBERS: [&str; 3] = ["delivery_mode", "priority", "timestamp"];

/// The properties of a message, as they are given.
#[derive(Debug, Default)]
pub(super) struct GivenProperties {
    texts: BTreeMap<String, String>,
    numbers: BTreeMap<String, u64>,
    /// A table, with its length.
    headers: Option<Vec<u8>>,
}

impl GivenProperties {
    pub(super) fn read(value: Value) -> Result<GivenProperties, String> {
        let given = match value {
            Value::Object(given) => given,
            Value::Null => Map::new(),
            // What some tools send for none.
            Value::Array(items) if items.is_empty() => Map::new(),
            _ => return Err("properties: must be an object".to_owned()),
        };
        let mut properties = GivenProperties::default();
        for (name, value) in given {
            properties.set(&name, &value)?;
        }
        Ok(properties)
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match (name, value) {
            (_, Value::Null) => {}
            ("headers", Value::Object(headers)) => {
                let mut bytes = Vec::new();
                declaration::put_arguments(&mut bytes, &engine_values(headers))?;
                self.headers = Some(bytes);
            }
            (_, Value::String(text)) if TEXTS.contains(&name) => {
                if text.len() > TEXT_BYTES_MAX {
                    return Err(format!(
                        "properties: {name} is longer than {TEXT_BYTES_MAX} bytes"
                    ));
                }
                self.texts.insert(name.to_owned(), text.clone());
            }
            (_, value) if NUMBERS.contains(&name) => {
                let text = value.as_str().and_then(|text| text.parse().ok());
                let number = value.as_u64().or(text);
                let number = number.ok_or_else(|| format!("properties: {name} is no number"))?;
                self.numbers.insert(name.to_owned(), number);
            }
            _ => return Err(format!("properties: {name} is unknown, or of another type")),
        }
        Ok(())
    }

    /// As they are sent.
    pub(super) fn lent(&self) -> Result<Properties<'_>, String> {
        let text = |name: &str| self.texts.get(name).map(String::as_str);
        let octet = |name: &str| {
            let number = self.numbers.get(name).copied();
            let octet = number.map(u8::try_from).transpose();
            octet.map_err(|_| format!("properties: {name} is above 255"))
        };
        let headers = self.headers.as_deref().map(|bytes| checked(&bytes[4..])).transpose();
        Ok(Properties {
            content_type: text("content_type"),
            content_encoding: text("content_encoding"),
            headers: headers.map_err(|error| error.0.to_owned())?,
            delivery_mode: octet("delivery_mode")?,
            priority: octet("priority")?,
            correlation_id: text("correlation_id"),
            reply_to: text("reply_to"),
            expiration: text("expiration"),
            message_id: text("message_id"),
            timestamp: self.numbers.get("timestamp").copied(),
            kind: text("type"),
            user_id: text("user_id"),
            app_id: text("app_id"),
            cluster_id: None,
        })
    }
}

/// Properties that are nothing but these headers, an object in JSON, as they are sent.
pub(in crate::http) fn message_properties(headers: Option<&str>) -> Result<Vec<u8>, String> {
    let headers: Value = match headers {
        Some(text) => serde_json::from_str(text).map_err(|why| format!("headers: {why}"))?,
        None => Value::Null,
    };
    let properties = GivenProperties::read(json!({ "headers": headers }))?;
    let mut bytes = Vec::new();
    properties.lent()?.encode(&mut bytes);
    Ok(bytes)
}

/// As they are shown, from how they came.
pub(super) fn shown_properties(raw: &[u8]) -> Value {
    let Ok(properties) = Properties::decode(raw) else { return json!({}) };
    let texts = [
        ("content_type", properties.content_type),
        ("content_encoding", properties.content_encoding),
        ("correlation_id", properties.correlation_id),
        ("reply_to", properties.reply_to),
        ("expiration", properties.expiration),
        ("message_id", properties.message_id),
        ("type", properties.kind),
        ("user_id", properties.user_id),
        ("app_id", properties.app_id),
        ("cluster_id", properties.cluster_id),
    ];
    let numbers = [
        ("delivery_mode", properties.delivery_mode.map(u64::from)),
        ("priority", properties.priority.map(u64::from)),
        ("timestamp", properties.timestamp),
    ];
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name, Value::from(text?))));
    let numbers = numbers.into_iter().filter_map(|(name, it)| Some((name, Value::from(it?))));
    let set = texts.chain(numbers).map(|(name, value)| (name.to_owned(), value));
    let mut shown: Map<String, Value> = set.collect();
    if let Some(headers) = properties.headers {
        let headers = declaration::values(headers);
        shown.insert("headers".to_owned(), json_object(headers.iter()).into());
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_shown_as_they_were_given() {
        let given = json!({
            "content_type": "text/plain", "delivery_mode": 2, "priority": 3,
            "timestamp": 1_700_000_000, "type": "t",
            "headers": { "a": 1, "b": ["x", null], "c": { "d": true } },
        });
        let properties = GivenProperties::read(given.clone()).unwrap();
        let mut raw = Vec::new();
        properties.lent().unwrap().encode(&mut raw);
        assert_eq!(shown_properties(&raw), given);
        for wrong in [
            json!({ "content_type": 1 }),
            json!({ "none": "x" }),
            json!({ "priority": "high" }),
            json!({ "headers": [] }),
            json!([1]),
        ] {
            assert!(GivenProperties::read(wrong.clone()).is_err(), "{wrong}");
        }
        let above = GivenProperties::read(json!({ "priority": 300 })).unwrap();
        assert!(above.lent().is_err());
        for none in [json!([]), json!(null)] {
            assert!(GivenProperties::read(none).is_ok());
        }
    }
}
