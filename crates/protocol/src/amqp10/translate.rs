//! Other protocols' properties in AMQP 1.0's own. The table is in `docs/protocols/mapping.md`.

use super::address;
use super::codec::{
    Field, MapWriter, MessageId, Properties, SectionKind, Symbol, Timestamp, Value, put_map_section,
};
use super::properties::{EXTENSION_PREFIX, put_own_annotations};
use super::stored::{Kept, KeptBody};
use crate::properties::{
    DROPPED_HEADER, GROUP_HEADER, HeaderValue, Property, SEQUENCE_HEADER, TextProperty, text,
};
use crate::translation::{amended, visit};
use angarium_engine::{MessageView, Value as EngineValue};
use std::collections::BTreeMap;

/// Whether the destination for replies is a queue or a topic, to JMS clients.
const JMS_REPLY_TO: &str = "x-opt-jms-reply-to";
const JMS_QUEUE: i8 = 0;
const JMS_TOPIC: i8 = 1;
/// Where another protocol's message was published to.
const EXCHANGE: &str = "x-exchange";
const ROUTING_KEY: &str = "x-routing-key";
/// The annotation that other protocols' `app-id` becomes.
const APP_ID: &str = "x-opt-app-id";

/// The properties of another protocol's message in this format.
#[cold]
pub(super) fn translated(message: &MessageView<'_>) -> Vec<u8> {
    let mut collected = Collected::default();
    visit(message.format, &amended(message), &mut |property| collected.take(property));
    let kept = Kept {
        priority: collected.priority,
        ttl: collected.ttl,
        body: KeptBody::Octets,
        sections: &[],
    };
    kept.encode(|out| {
        put_map_section(out, SectionKind::MessageAnnotations, |map| {
            map.put(&Symbol(EXCHANGE), &message.exchange);
            map.put(&Symbol(ROUTING_KEY), &message.routing_key);
            put_own_annotations(map, message.annotations);
            collected.put_annotations(map);
        });
        collected.put_properties(out);
        collected.put_application_properties(out);
    })
}

/// What a foreign message's properties come to, before they are encoded.
#[derive(Debug, Default)]
struct Collected {
    /// The address, and what it is to JMS clients.
    reply_to: Option<(String, i8)>,
    /// In the order of [`TextProperty::ALL`].
    texts: [Option<String>; TextProperty::ALL.len()],
    priority: Option<u8>,
    /// In milliseconds.
    ttl: Option<u32>,
    /// In seconds.
    timestamp: Option<u64>,
    /// Each name once, with all values that came under it.
    headers: BTreeMap<String, Vec<EngineValue>>,
}

impl Collected {
    /// Whether there is a place for it: none for a second one.
    fn take(&mut self, property: Property<'_>) -> bool {
        match property {
            Property::ReplyTo(name) => {
                self.reply_to = Some((address::of_queue(name).into_owned(), JMS_QUEUE));
            }
            Property::ReplySubject(subject) => {
                self.reply_to = Some((address::of_topic(subject), JMS_TOPIC));
            }
            Property::Text(TextProperty::Expiration, millis) => {
                self.ttl = millis.parse().ok().map(|it: u64| u32::try_from(it).unwrap_or(u32::MAX));
            }
            Property::Text(text, value) => {
                let is_symbol =
                    matches!(text, TextProperty::ContentType | TextProperty::ContentEncoding);
                let slot = &mut self.texts[text as usize];
                if slot.is_some() || (is_symbol && !value.is_ascii()) {
                    return false;
                }
                *slot = Some(value.to_owned());
            }
            Property::Priority(priority) => self.priority = Some(priority),
            Property::Timestamp(seconds) => self.timestamp = Some(seconds),
            Property::Header(name, value) => {
                let values = self.headers.entry(name.to_owned()).or_default();
                values.push(match value {
                    HeaderValue::Text(text) => EngineValue::Text(text.to_owned()),
                    HeaderValue::Other(value) => value,
                });
            }
        }
        true
    }

    fn text(&self, property: TextProperty) -> Option<&str> {
        self.texts[property as usize].as_deref()
    }

    fn put_annotations(&self, map: &mut MapWriter<'_>) {
        if let Some(app_id) = self.text(TextProperty::AppId) {
            map.put(&Symbol(APP_ID), &app_id);
        }
        if let Some((_, kind)) = &self.reply_to {
            map.put(&Symbol(JMS_REPLY_TO), kind);
        }
        let headers = self.headers.iter().filter(|(name, _)| is_annotation(name));
        for (name, values) in headers.filter(|(name, _)| name.as_str() != DROPPED_HEADER) {
            put_entry(map, &Symbol(name), values);
        }
    }

    fn put_properties(&self, out: &mut Vec<u8>) {
        let group = self.headers.get(GROUP_HEADER).and_then(|it| it.first()?.as_text());
        let sequence = self.headers.get(SEQUENCE_HEADER).and_then(|it| match it.first()? {
            EngineValue::Text(number) => number.parse().ok(),
            number => number.as_int(),
        });
        let millis = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000);
        let properties = Properties {
            message_id: self.text(TextProperty::MessageId).map(MessageId::String),
            user_id: self.text(TextProperty::UserId).map(str::as_bytes),
            subject: self.text(TextProperty::Type),
            reply_to: self.reply_to.as_ref().map(|(address, _)| address.as_str()),
            correlation_id: self.text(TextProperty::CorrelationId).map(MessageId::String),
            content_type: self.text(TextProperty::ContentType).map(Symbol),
            content_encoding: self.text(TextProperty::ContentEncoding).map(Symbol),
            creation_time: self.timestamp.map(|seconds| Timestamp(millis(seconds))),
            group_id: group,
            group_sequence: sequence.filter(|_| group.is_some()).map(|it| it as u32),
            ..Properties::default()
        };
        properties.write(out);
    }

    fn put_application_properties(&self, out: &mut Vec<u8>) {
        let is_group = |name: &str| name == GROUP_HEADER || name == SEQUENCE_HEADER;
        let mut rest = self.headers.iter();
        if !rest.any(|(name, _)| !is_annotation(name) && !is_group(name)) {
            return;
        }
        put_map_section(out, SectionKind::ApplicationProperties, |map| {
            for (name, values) in &self.headers {
                if !is_annotation(name) && !is_group(name) {
                    put_entry(map, &name.as_str(), values);
                }
            }
        });
    }
}

/// Whether a header becomes a message annotation; any other becomes an application property.
fn is_annotation(name: &str) -> bool {
    name.starts_with(EXTENSION_PREFIX) && name.is_ascii()
}

/// An entry with one value as it is, or with the texts of several, parted by commas.
fn put_entry<'k>(map: &mut MapWriter<'_>, key: &impl Field<'k>, values: &[EngineValue]) {
    match values {
        [EngineValue::Null] => map.put(key, &Value::Null),
        [EngineValue::Bool(value)] => map.put(key, value),
        [EngineValue::Int(value)] => map.put(key, value),
        [EngineValue::Float(value)] => map.put(key, value),
        [EngineValue::Text(text)] => map.put(key, &text.as_str()),
        [EngineValue::Bytes(bytes)] => map.put(key, &bytes.as_slice()),
        [EngineValue::Timestamp(seconds)] => {
            let seconds = i64::try_from(*seconds).unwrap_or(i64::MAX);
            map.put(key, &Timestamp(seconds.saturating_mul(1000)));
        }
        several => {
            let texts: Vec<String> = several.iter().map(text).collect();
            map.put(key, &texts.join(", ").as_str());
        }
    }
}
