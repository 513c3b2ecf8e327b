//! MQTT's properties in neutral words.

use super::codec::property::put;
use super::codec::{Properties, PropertyId, PropertyValue};
use super::mapping;
use super::stored::Stored;
use crate::names::NAMES;
use crate::properties::{HeaderValue, Property, TextProperty, withdrawn};
use angarium_engine::selector::Value;
use angarium_engine::{Annotations, QUEUE_SUBJECT_PREFIX};

/// The header for correlation data that is no text.
const CORRELATION_HEADER: &str = "Correlation-Data";

/// Takes properties in [MQTT's format](crate::format::MQTT) apart.
pub(crate) fn visit_properties(raw: &[u8], see: &mut dyn FnMut(Property<'_>) -> bool) {
    for (id, value) in Stored::read(raw).properties.iter() {
        match (id, value) {
            (PropertyId::ContentType, PropertyValue::Text(text)) => {
                see(Property::Text(TextProperty::ContentType, text));
            }
            (PropertyId::ResponseTopic, PropertyValue::Text(topic)) => {
                see_reply(&mapping::subject_of(topic), see);
            }
            (PropertyId::CorrelationData, PropertyValue::Binary(bytes)) => {
                match str::from_utf8(bytes) {
                    Ok(text) => see(Property::Text(TextProperty::CorrelationId, text)),
                    Err(_) => {
                        see(Property::Header(CORRELATION_HEADER, HeaderValue::of_bytes(bytes)))
                    }
                };
            }
            (_, PropertyValue::Pair(name, value)) => {
                see(Property::Header(name, HeaderValue::Text(value)));
            }
            _ => {}
        }
    }
}

/// The first user property of that name, as selectors see it.
pub(crate) fn header_named<'m>(raw: &'m [u8], name: &str) -> Option<Value<'m>> {
    let mut pairs = Stored::read(raw).properties.user_properties();
    pairs.find(|(own, _)| *own == name).map(|(_, value)| Value::Text(value))
}

/// A property that is a text.
pub(crate) fn text_property(raw: &[u8], property: TextProperty) -> Option<&str> {
    let properties = Stored::read(raw).properties;
    match property {
        TextProperty::ContentType => properties.text(PropertyId::ContentType),
        TextProperty::CorrelationId => {
            str::from_utf8(properties.binary(PropertyId::CorrelationData)?).ok()
        }
        _ => None,
    }
}

/// Where replies go, in the words of the default exchange; where that has other characters than the response
/// topic, there is none for selectors.
pub(crate) fn reply_to(raw: &[u8]) -> Option<&str> {
    let topic = Stored::read(raw).properties.text(PropertyId::ResponseTopic)?;
    (!topic.contains(['/', '.'])).then_some(topic)
}

/// Properties in [MQTT's format](crate::format::MQTT) as the broker has changed them since they were
/// published.
pub(crate) fn amended(raw: &[u8], annotations: &Annotations) -> Vec<u8> {
    let stored = Stored::read(raw);
    let withdrawn = withdrawn(annotations);
    let mut properties = Vec::with_capacity(raw.len());
    for (id, value) in stored.properties.iter() {
        let is_gone = matches!(value, PropertyValue::Pair(name, _) if withdrawn.contains(&name));
        if !is_gone {
            put(&mut properties, id, value);
        }
    }
    let mut out = Vec::with_capacity(raw.len());
    Stored { properties: Properties::of(&properties), ..stored }.write(&mut out);
    out
}

/// Shows where replies go: to a queue, an inbox, or another subject.
fn see_reply(subject: &str, see: &mut dyn FnMut(Property<'_>) -> bool) {
    let queue = subject.strip_prefix(QUEUE_SUBJECT_PREFIX).filter(|name| !name.is_empty());
    see(match queue {
        Some(queue) => Property::ReplyTo(queue),
        None if NAMES.is_answer_address(subject) => Property::ReplyTo(subject),
        None => Property::ReplySubject(subject),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_topics_are_addresses() {
        for (topic, expected) in [
            ("a/b", Property::ReplySubject("a.b")),
            ("$QUEUE/orders", Property::ReplyTo("orders")),
            ("_INBOX/x", Property::ReplyTo("_INBOX.x")),
        ] {
            let mut seen = 0;
            see_reply(&mapping::subject_of(topic), &mut |property| {
                seen += usize::from(property == expected);
                true
            });
            assert_eq!(seen, 1, "{topic}");
        }
    }

    #[test]
    fn properties_are_taken_apart() {
        let mut raw = Vec::new();
        let properties = b"\x03\0\x0atext/plain\x08\0\x03r/1\x09\0\x02\0\xff\x26\0\x01a\0\x01b";
        Stored { properties: Properties::of(properties), ..Stored::default() }.write(&mut raw);
        let mut seen = Vec::new();
        visit_properties(&raw, &mut |property| {
            seen.push(format!("{property:?}"));
            true
        });
        assert_eq!(
            seen,
            [
                r#"Text(ContentType, "text/plain")"#,
                r#"ReplySubject("r.1")"#,
                r#"Header("Correlation-Data", Other(Bytes([0, 255])))"#,
                r#"Header("a", Text("b"))"#,
            ]
        );
        assert_eq!(header_named(&raw, "a"), Some(Value::Text("b")));
    }
}
