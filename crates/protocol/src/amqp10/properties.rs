//! AMQP 1.0's properties in neutral words, and as the broker has changed them since they were published.

use super::address;
use super::body::{content_type, scalar, text, uuid_text};
use super::codec::{
    MapWriter, MessageId, OwnedValue, Properties, SectionKind, Sections, Symbol, Timestamp, Value,
    entries as entries_in, put_list, put_map_section,
};
use super::stored::Kept;
use crate::properties::{
    GROUP_HEADER, HeaderValue, Property, REPLY_TO_HEADER, SEQUENCE_HEADER, TextProperty,
    reason_name,
};
use angarium_engine::{Annotations, Death, Value as EngineValue};
use std::borrow::Cow;

/// What begins the names of annotations that a receiver need not understand (part 3, 3.2.10).
pub(super) const EXTENSION_PREFIX: &str = "x-";
/// Annotations by which JMS clients, and the broker, say something to each other: no headers elsewhere.
const PRIVATE_PREFIX: &str = "x-opt-";
/// The annotations in which the broker says why and where a message died.
const DEATHS: &str = "x-opt-deaths";
/// The annotation that says how many messages a full queue has dropped from its head before this one.
const DROPPED: &str = "x-opt-dropped-count";
/// Annotations of RabbitMQ's deliveries.
const EXCHANGE: &str = "x-exchange";
const ROUTING_KEY: &str = "x-routing-key";

/// Takes properties in [AMQP 1.0's format](crate::format::AMQP10) apart.
pub(crate) fn visit_properties(raw: &[u8], see: &mut dyn FnMut(Property<'_>) -> bool) {
    let kept = Kept::of(raw);
    let sections = kept.sections();
    let properties = sections.properties().unwrap_or_default();
    visit_texts(&kept, &properties, see);
    if let Some(address) = properties.reply_to {
        match address::reply(address) {
            Some(address) => see(Property::ReplyTo(&address)),
            None => see(Property::Header(REPLY_TO_HEADER, HeaderValue::Text(address))),
        };
    }
    if let Some(priority) = kept.priority {
        see(Property::Priority(priority));
    }
    if let Some(Timestamp(millis)) = properties.creation_time
        && let Ok(millis) = u64::try_from(millis)
    {
        see(Property::Timestamp(millis / 1000));
    }
    if let Some(group) = properties.group_id {
        see(Property::Header(GROUP_HEADER, HeaderValue::Text(group)));
        if let Some(sequence) = properties.group_sequence {
            // JMS has it as an int.
            let sequence = EngineValue::Int((sequence as i32).into());
            see(Property::Header(SEQUENCE_HEADER, HeaderValue::Other(sequence)));
        }
    }
    visit_headers(&sections, &mut |name, value| {
        see(Property::Header(name, value));
    });
}

/// The texts. Whom `user-id` names was checked when the message was taken.
fn visit_texts(
    kept: &Kept<'_>,
    properties: &Properties<'_>,
    see: &mut dyn FnMut(Property<'_>) -> bool,
) {
    let mut see_text = |property, text: Option<&str>| {
        if let Some(text) = text {
            see(Property::Text(property, text));
        }
    };
    let content = properties.content_type.map(|Symbol(name)| name);
    see_text(TextProperty::ContentType, content.or_else(|| content_type(kept.body)));
    see_text(TextProperty::ContentEncoding, properties.content_encoding.map(|it| it.0));
    let correlation = properties.correlation_id.map(id_text);
    see_text(TextProperty::CorrelationId, correlation.as_deref());
    let id = properties.message_id.map(id_text);
    see_text(TextProperty::MessageId, id.as_deref());
    see_text(TextProperty::Type, properties.subject);
    see_text(TextProperty::UserId, properties.user_id.and_then(|user| str::from_utf8(user).ok()));
    let ttl = kept.ttl.map(|millis| millis.to_string());
    see_text(TextProperty::Expiration, ttl.as_deref());
}

/// Application properties, and annotations that are not private to this protocol.
fn visit_headers(sections: &Sections<'_>, see: &mut dyn FnMut(&str, HeaderValue<'_>)) {
    let annotations = sections.message_annotations().unwrap_or_default();
    for (key, value) in annotations.entries() {
        if let Value::Symbol(Symbol(name)) = key
            && name.starts_with(EXTENSION_PREFIX)
            && !name.starts_with(PRIVATE_PREFIX)
        {
            see(name, header_value(value));
        }
    }
    let properties = sections.application_properties().unwrap_or_default();
    for (key, value) in properties.entries() {
        if let Value::String(name) = key {
            see(name, header_value(value));
        }
    }
}

/// Visits the headers in properties of this format.
pub(crate) fn read_headers(raw: &[u8], see: &mut dyn FnMut(&str, EngineValue)) {
    visit_headers(&Kept::of(raw).sections(), &mut |name, value| match value {
        HeaderValue::Text(text) => see(name, EngineValue::Text(text.to_owned())),
        HeaderValue::Other(value) => see(name, value),
    });
}

/// An id as text: a UUID as RFC 9562 writes it, octets that are no text in hexadecimal.
fn id_text(id: MessageId<'_>) -> Cow<'_, str> {
    match id {
        MessageId::String(id) => id.into(),
        MessageId::ULong(id) => id.to_string().into(),
        MessageId::Uuid(id) => uuid_text(id).into(),
        MessageId::Binary(octets) => match str::from_utf8(octets) {
            Ok(text) => text.into(),
            Err(_) => text(Value::Binary(octets)),
        },
    }
}

/// A value as a header: numbers that 64 bits with a sign cannot hold, characters, UUIDs and decimals as text,
/// what is nested as JSON.
fn header_value(value: Value<'_>) -> HeaderValue<'_> {
    match value {
        Value::String(text) | Value::Symbol(Symbol(text)) => HeaderValue::Text(text),
        Value::Binary(octets) => HeaderValue::of_bytes(octets),
        value => HeaderValue::Other(
            scalar(value).unwrap_or_else(|| EngineValue::Text(text(value).into_owned())),
        ),
    }
}

/// Properties in this format as the broker has changed them since they were published: without a time to
/// live that was removed, with what consumers have added that returned the message, and with the broker's own
/// annotations.
pub(crate) fn amended(raw: &[u8], annotations: &Annotations) -> Vec<u8> {
    let mut kept = Kept::of(raw);
    if annotations.ttl_removed {
        kept.ttl = None;
    }
    let is_told = !annotations.deaths.is_empty() || annotations.dropped > 0;
    if !is_told && annotations.changed.is_empty() {
        return kept.encode(|out| out.extend_from_slice(kept.sections));
    }
    let sections = kept.sections();
    let rest = sections.message_annotations.map_or(0, |section| section.end);
    let published = sections.message_annotations().unwrap_or_default();
    let own = [DEATHS, DROPPED].map(|name| Value::Symbol(Symbol(name)));
    let mut entries: Vec<(Value<'_>, Value<'_>)> = Vec::new();
    for (key, value) in published.entries().chain(entries_in(&annotations.changed)) {
        let key = match key {
            // Some clients take strings for symbols.
            Value::String(name) => Value::Symbol(Symbol(name)),
            key => key,
        };
        let is_key = matches!(key, Value::Symbol(_) | Value::ULong(_)) && !own.contains(&key);
        match entries.iter_mut().find(|(known, _)| *known == key) {
            Some(entry) => entry.1 = value,
            None if is_key => entries.push((key, value)),
            None => {}
        }
    }
    kept.encode(|out| {
        put_map_section(out, SectionKind::MessageAnnotations, |map| {
            entries.iter().for_each(|(key, value)| map.put(key, value));
            put_own_annotations(map, annotations);
        });
        out.extend_from_slice(kept.sections.get(rest..).unwrap_or_default());
    })
}

/// Properties in this format with the annotations that RabbitMQ puts into each delivery: its clients look for
/// some, and take messages without any for broken.
pub(super) fn with_way(raw: &[u8], exchange: &str, routing_key: &str) -> Vec<u8> {
    let kept = Kept::of(raw);
    let sections = kept.sections();
    let rest = sections.message_annotations.map_or(0, |section| section.end);
    kept.encode(|out| {
        put_map_section(out, SectionKind::MessageAnnotations, |map| {
            let published = sections.message_annotations().unwrap_or_default();
            let own = [Value::Symbol(Symbol(EXCHANGE)), Value::Symbol(Symbol(ROUTING_KEY))];
            for (key, value) in published.entries().filter(|(key, _)| !own.contains(key)) {
                map.put(&key, &value);
            }
            map.put(&Symbol(EXCHANGE), &exchange);
            map.put(&Symbol(ROUTING_KEY), &routing_key);
        });
        out.extend_from_slice(kept.sections.get(rest..).unwrap_or_default());
    })
}

/// The annotations in which the broker says what it knows of a message.
pub(super) fn put_own_annotations(map: &mut MapWriter<'_>, annotations: &Annotations) {
    if annotations.dropped > 0 {
        map.put(&Symbol(DROPPED), &annotations.dropped);
    }
    if !annotations.deaths.is_empty() {
        let mut deaths = Vec::new();
        put_list(&mut deaths, |list| {
            annotations.deaths.iter().for_each(|death| list.put(&death_map(death).value()));
        });
        let deaths = OwnedValue::decode(&deaths).expect("we wrote it");
        map.put(&Symbol(DEATHS), &deaths.value());
    }
}

/// One death, as RabbitMQ 4 describes it.
fn death_map(death: &Death) -> OwnedValue {
    OwnedValue::map(|map| {
        map.put(&Symbol("queue"), &death.queue.as_str());
        map.put(&Symbol("reason"), &Symbol(reason_name(death.reason)));
        map.put(&Symbol("count"), &death.count);
        let seconds = i64::try_from(death.time.seconds()).unwrap_or(i64::MAX);
        map.put(&Symbol("last-time"), &Timestamp(seconds.saturating_mul(1000)));
        map.put(&Symbol("exchange"), &death.exchange.as_str());
        let mut keys = Vec::new();
        put_list(&mut keys, |list| {
            death.routing_keys.iter().for_each(|key| list.put(&key.as_str()));
        });
        let keys = OwnedValue::decode(&keys).expect("we wrote it");
        map.put(&Symbol("routing-keys"), &keys.value());
        if let Some(ttl) = death.original_ttl {
            let millis = u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX);
            map.put(&Symbol("ttl"), &millis);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp10::body::put_json;
    use crate::amqp10::codec::{Field, Header, Limits, put_section};
    use crate::amqp10::stored::take;

    use angarium_engine::{DeathReason, Time};
    use std::time::Duration;

    const LIMITS: Limits = Limits { properties_bytes_max: 1 << 16 };

    /// The properties that are kept of a message with these sections.
    fn kept(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut message = Vec::new();
        fill(&mut message);
        let sections = Sections::walk(&message, LIMITS).expect("it is well-formed");
        let mut properties = Vec::new();
        take(&sections, &mut properties).expect("it is taken");
        properties
    }

    /// What a consumer adds that returns a message.
    fn returned_with(entries: &[(&str, u32)]) -> Vec<u8> {
        let map = OwnedValue::map(|map| {
            entries.iter().for_each(|(key, value)| map.put(&Symbol(key), value));
        });
        let Value::Map(map) = map.value() else { unreachable!("it is a map") };
        map.bytes().to_vec()
    }

    /// What other protocols see of a message with these sections, in order.
    fn check_seen(fill: impl FnOnce(&mut Vec<u8>), expected: &[&str]) {
        let mut seen = Vec::new();
        visit_properties(&kept(fill), &mut |property| {
            seen.push(match property {
                Property::ReplyTo(address) | Property::ReplySubject(address) => {
                    format!("ReplyTo {address}")
                }
                Property::Text(kind, text) => format!("{kind:?} {text}"),
                Property::Priority(priority) => format!("Priority {priority}"),
                Property::Timestamp(seconds) => format!("Timestamp {seconds}"),
                Property::Header(name, HeaderValue::Text(text)) => format!("{name}: '{text}'"),
                Property::Header(name, HeaderValue::Other(value)) => format!("{name}: {value:?}"),
            });
            true
        });
        assert_eq!(seen, expected);
    }

    #[test]
    fn other_protocols_see_what_they_have_words_for() {
        check_seen(
            |out| {
                let header = Header { priority: 7, ttl: Some(5000), ..Default::default() };
                header.write(out);
                put_map_section(out, SectionKind::MessageAnnotations, |map| {
                    map.put(&Symbol("x-opt-jms-msg-type"), &5i8);
                    map.put(&Symbol("x-team"), &"red");
                    map.put(&Symbol("other"), &1u32);
                });
                let properties = Properties {
                    message_id: Some(MessageId::ULong(u64::MAX)),
                    user_id: Some(b"ada"),
                    to: Some("queue://q"),
                    subject: Some("order"),
                    reply_to: Some("queue://answers"),
                    correlation_id: Some(MessageId::Binary(&[0xff, 0])),
                    content_encoding: Some(Symbol("gzip")),
                    creation_time: Some(Timestamp(1_700_000_000_999)),
                    group_id: Some("g"),
                    group_sequence: Some(u32::MAX),
                    ..Properties::default()
                };
                properties.write(out);
                put_map_section(out, SectionKind::ApplicationProperties, |map| {
                    map.put(&"colour", &"blue");
                    map.put(&"weight", &1.5f64);
                    map.put(&"big", &u64::MAX);
                    map.put(&"none", &Value::Null);
                });
                put_section(out, SectionKind::Value, &"text");
            },
            &[
                "ContentType text/plain",
                "ContentEncoding gzip",
                "CorrelationId ff00",
                "MessageId 18446744073709551615",
                "Type order",
                "UserId ada",
                "Expiration 5000",
                "ReplyTo answers",
                "Priority 7",
                "Timestamp 1700000000",
                "JMSXGroupID: 'g'",
                "JMSXGroupSeq: Int(-1)",
                "x-team: 'red'",
                "colour: 'blue'",
                "weight: Float(1.5)",
                "big: Text(\"18446744073709551615\")",
                "none: Null",
            ],
        );
        let topic = Properties { reply_to: Some("topic://a"), ..Properties::default() };
        check_seen(|out| topic.write(out), &["Reply-To: 'topic://a'"]);
    }

    #[test]
    fn dead_letters_say_so_in_an_annotation() {
        let raw = kept(|out| {
            let header = Header { ttl: Some(9), ..Default::default() };
            header.write(out);
            put_map_section(out, SectionKind::MessageAnnotations, |map| {
                map.put(&Symbol("x-opt-deaths"), &"forged");
                map.put(&Symbol("x-mine"), &1u32);
            });
            Properties { subject: Some("s"), ..Properties::default() }.write(out);
        });
        let death = Death {
            reason: DeathReason::Expired,
            queue: "q".to_owned(),
            exchange: String::new(),
            routing_keys: vec!["q".to_owned()],
            count: 2,
            time: Time(7_000_000),
            original_ttl: Some(Duration::from_millis(9)),
        };
        let annotations = Annotations {
            deaths: vec![death],
            ttl_removed: true,
            dropped: 3,
            changed: returned_with(&[("x-mine", 2), ("x-tried", 3), ("x-opt-deaths", 4)]).into(),
            ..Annotations::default()
        };
        let amended = amended(&raw, &annotations);
        let kept = Kept::of(&amended);
        assert_eq!(kept.ttl, None);
        let sections = kept.sections();
        assert_eq!(sections.properties().expect("they are whole").subject, Some("s"));
        let map = sections.message_annotations().expect("they are whole");
        let mut json = String::new();
        put_json(&mut json, Value::Map(map));
        let time = annotations.deaths[0].time.seconds() * 1000;
        let death = format!(
            r#"{{"queue":"q","reason":"expired","count":2,"last-time":{time},"exchange":"","#
        ) + r#""routing-keys":["q"],"ttl":9}"#;
        let expected = r#"{"x-mine":2,"x-tried":3,"x-opt-dropped-count":3,"x-opt-deaths":["#
            .to_owned()
            + &death
            + "]}";
        assert_eq!(json, expected);
    }

    #[test]
    fn rabbitmqs_annotations_are_added_to_the_publishers() {
        let raw = kept(|out| {
            put_map_section(out, SectionKind::MessageAnnotations, |map| {
                map.put(&Symbol("x-mine"), &1u32);
                map.put(&Symbol("x-exchange"), &"forged");
            });
            Properties { subject: Some("s"), ..Properties::default() }.write(out);
        });
        for (raw, expected) in [
            (&raw[..], r#"{"x-mine":1,"x-exchange":"e","x-routing-key":"k"}"#),
            (&kept(|_| {})[..], r#"{"x-exchange":"e","x-routing-key":"k"}"#),
        ] {
            let told = with_way(raw, "e", "k");
            let map = Kept::of(&told).sections().message_annotations().expect("they are whole");
            let mut json = String::new();
            put_json(&mut json, Value::Map(map));
            assert_eq!(json, expected);
        }
    }
}
