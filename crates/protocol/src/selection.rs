//! Properties of messages by the names that selectors have for them: what [`crate::CONVENTIONS`] gives the
//! engine.
//!
//! A name stands for, in this order: what applications put in beside (headers, application properties); what
//! JMS has under it (`JMSPriority`, `JMSCorrelationID`, ...); a field of one of AMQP 1.0's sections
//! (`properties.subject`, `header.priority`, `application_properties.x`, `message_annotations.x`), in which a
//! dash and a low line are the same. The table is in `docs/protocols/selectors.md`.

use crate::properties::TextProperty;
use crate::{amqp10, amqp091, format, mqtt, nats, stomp};
use angarium_engine::Selectable;
use angarium_engine::selector::Value;

/// Milliseconds of a second.
const MILLIS: i64 = 1_000;

/// Gives a property of a message by its name.
pub(crate) fn read_property<'m>(message: &Selectable<'m>, name: &str) -> Value<'m> {
    if let Some(value) = header(message, name) {
        return value;
    }
    if let Some(name) = name.strip_prefix("JMS") {
        return jms_property(message, name);
    }
    let Some((section, field)) = name.split_once('.') else { return Value::Null };
    match section {
        "header" => header_field(message, field),
        "properties" => properties_field(message, field),
        "application_properties" | "application-properties" => {
            header(message, field).unwrap_or(Value::Null)
        }
        "message_annotations" | "message-annotations" => annotation(message, field),
        _ => Value::Null,
    }
}

/// What an application has put in under that name.
fn header<'m>(message: &Selectable<'m>, name: &str) -> Option<Value<'m>> {
    let properties = message.content.properties;
    match message.content.format {
        format::AMQP091 => amqp091::header_named(properties, name),
        format::NATS => nats::header_named(properties, name),
        format::AMQP10 => amqp10::application_property(properties, name),
        format::MQTT => mqtt::header_named(properties, name),
        format::STOMP => stomp::header_named(properties, name),
        _ => None,
    }
}

fn text<'m>(message: &Selectable<'m>, property: TextProperty) -> Value<'m> {
    let properties = message.content.properties;
    let found = match message.content.format {
        format::AMQP091 => amqp091::text_property(properties, property),
        format::NATS => nats::text_property(properties, property),
        format::MQTT => mqtt::text_property(properties, property),
        format::STOMP => stomp::text_property(properties, property),
        format::AMQP10 => return amqp10::properties_field(properties, field_of(property)),
        _ => None,
    };
    found.map_or(Value::Null, Value::Text)
}

fn reply_to<'m>(message: &Selectable<'m>) -> Value<'m> {
    let properties = message.content.properties;
    let found = match message.content.format {
        format::AMQP091 => amqp091::reply_to(properties),
        format::AMQP10 => return amqp10::properties_field(properties, "reply_to"),
        format::MQTT => mqtt::reply_to(properties),
        format::STOMP => stomp::reply_to(properties),
        format => nats::reply_of(format, properties),
    };
    found.map_or(Value::Null, Value::Text)
}

/// When it was made, in milliseconds since the Unix epoch.
fn timestamp<'m>(message: &Selectable<'m>) -> Value<'m> {
    let properties = message.content.properties;
    let seconds = match message.content.format {
        format::AMQP091 => amqp091::timestamp(properties),
        format::NATS => nats::timestamp(properties),
        format::STOMP => stomp::timestamp(properties),
        format::AMQP10 => return amqp10::properties_field(properties, "creation_time"),
        _ => None,
    };
    let millis = seconds.and_then(|seconds| i64::try_from(seconds).ok()?.checked_mul(MILLIS));
    millis.map_or(Value::Null, Value::Exact)
}

/// What JMS calls `JMS` and this.
fn jms_property<'m>(message: &Selectable<'m>, name: &str) -> Value<'m> {
    match name {
        "DeliveryMode" if message.content.persistent => Value::Text("PERSISTENT"),
        "DeliveryMode" => Value::Text("NON_PERSISTENT"),
        "Priority" => Value::Exact(message.content.priority.into()),
        "MessageID" => text(message, TextProperty::MessageId),
        "Timestamp" => timestamp(message),
        "CorrelationID" => text(message, TextProperty::CorrelationId),
        "Type" => text(message, TextProperty::Type),
        "Redelivered" => Value::Bool(message.delivery_count > 0),
        "XDeliveryCount" => Value::Exact(i64::from(message.delivery_count) + 1),
        "XUserID" => text(message, TextProperty::UserId),
        "XAppID" => text(message, TextProperty::AppId),
        "XGroupID" => properties_field(message, "group_id"),
        "XGroupSeq" => properties_field(message, "group_sequence"),
        _ => Value::Null,
    }
}

fn is(field: &str, name: &str) -> bool {
    let same = |(one, other): (u8, u8)| one == other || (one == b'-' && other == b'_');
    field.len() == name.len() && field.bytes().zip(name.bytes()).all(same)
}

/// A field of the section `header`.
fn header_field<'m>(message: &Selectable<'m>, field: &str) -> Value<'m> {
    let content = &message.content;
    match field {
        "durable" => Value::Bool(content.persistent),
        "priority" => Value::Exact(content.priority.into()),
        "ttl" => content.ttl.map_or(Value::Null, |ttl| {
            Value::Exact(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX))
        }),
        _ if is(field, "delivery_count") => Value::Exact(message.delivery_count.into()),
        _ => Value::Null,
    }
}

/// A field of the section `properties`.
fn properties_field<'m>(message: &Selectable<'m>, field: &str) -> Value<'m> {
    if message.content.format == format::AMQP10 {
        return amqp10::properties_field(message.content.properties, field);
    }
    if let Some(property) = TextProperty::ALL.into_iter().find(|it| is(field, field_of(*it))) {
        return text(message, property);
    }
    match field {
        _ if is(field, "reply_to") => reply_to(message),
        _ if is(field, "creation_time") => timestamp(message),
        _ => Value::Null,
    }
}

/// The field of the section `properties` for a text; nothing where that is no field of it.
fn field_of(text: TextProperty) -> &'static str {
    match text {
        TextProperty::MessageId => "message_id",
        TextProperty::CorrelationId => "correlation_id",
        TextProperty::ContentType => "content_type",
        TextProperty::ContentEncoding => "content_encoding",
        TextProperty::UserId => "user_id",
        TextProperty::Type => "subject",
        TextProperty::AppId | TextProperty::Expiration => "",
    }
}

/// What annotations say beside the message.
fn annotation<'m>(message: &Selectable<'m>, field: &str) -> Value<'m> {
    if message.content.format == format::AMQP10 {
        return amqp10::annotation(message.content.properties, field);
    }
    match field {
        _ if is(field, "x_exchange") => Value::Text(message.exchange),
        _ if is(field, "x_routing_key") => Value::Text(message.routing_key),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp091::codec::properties::Properties;
    use crate::amqp091::codec::{put_table, table};
    use angarium_engine::selector::Selector;
    use angarium_engine::{Content, Format};
    use std::time::Duration;

    fn check(format: Format, properties: &[u8], selected: &[&str], passed: &[&str]) {
        let content = Content {
            format,
            properties,
            body: b"",
            shared: None,
            persistent: true,
            priority: 7,
            ttl: Some(Duration::from_secs(2)),
        };
        let (exchange, routing_key) = ("x", "k.1");
        let message = Selectable { exchange, routing_key, content, delivery_count: 2 };
        for (texts, expected) in [(selected, true), (passed, false)] {
            for text in texts {
                let selector = Selector::parse(text).unwrap();
                let found = selector.matches(&|name: &str| read_property(&message, name));
                assert_eq!(found, expected, "{text}");
            }
        }
    }

    #[test]
    fn properties_of_amqp_0_9_1_have_names() {
        let mut headers = Vec::new();
        put_table(&mut headers, |table| {
            table.value("colour").text("red");
            table.value("size").int(9);
            table.value("is_new").bool(true);
            table.value("JMSType").text("own");
        });
        let list = Properties {
            headers: headers.get(4..).map(|entries| table::checked(entries).unwrap()),
            message_id: Some("id:1"),
            correlation_id: Some("c"),
            reply_to: Some("answers"),
            timestamp: Some(1_700_000_000),
            kind: Some("order"),
            ..Properties::default()
        };
        let mut raw = Vec::new();
        list.encode(&mut raw);
        check(
            format::AMQP091,
            &raw,
            &[
                "colour = 'red' AND size > 8.5 AND is_new",
                "application_properties.colour = 'red'",
                "[application-properties.size] = 9",
                "JMSMessageID = 'id:1' AND JMSCorrelationID = 'c'",
                "JMSTimestamp = 1700000000000 AND properties.creation_time = JMSTimestamp",
                "JMSType = 'own' AND properties.subject = 'order'",
                "JMSPriority = 7 AND header.priority = 7 AND header.durable AND header.ttl = 2000",
                "JMSDeliveryMode = 'PERSISTENT' AND JMSRedelivered AND JMSXDeliveryCount = 3",
                "properties.reply_to = 'answers' AND [properties.reply-to] = 'answers'",
                "[message_annotations.x-exchange] = 'x'",
                "[message-annotations.x-routing-key] LIKE 'k.%'",
                "weight IS NULL AND JMSXGroupID IS NULL AND properties.nothing IS NULL",
            ],
            &["colour = 'blue'", "colour > 5", "Colour = 'red'", "size = '9'"],
        );
        check(
            format::AMQP091,
            &[0, 0],
            &["JMSType IS NULL", "colour IS NULL"],
            &["colour = 'red'"],
        );
    }

    #[test]
    fn headers_of_nats_are_texts() {
        let mut raw = vec![0, 3];
        raw.extend_from_slice(b"a.bNATS/1.0\r\ncolour: red\r\nsize: 9\r\nNats-Msg-Id: 1\r\n\r\n");
        check(
            format::NATS,
            &raw,
            &[
                "colour = 'red' AND size = '9'",
                "JMSMessageID = '1' AND properties.reply_to = 'a.b'",
                "[message_annotations.x-routing-key] = 'k.1'",
                "weight IS NULL",
            ],
            &["size = 9", "colour = 'blue'"],
        );
        check(format::NATS, b"", &["colour IS NULL"], &["JMSMessageID = '1'"]);
        check(Format(99), b"nothing known", &["colour IS NULL"], &["JMSMessageID = '1'"]);
    }

    #[test]
    fn properties_of_amqp_1_0_have_names() {
        use crate::amqp10::codec::{
            Field, MessageId, Properties, SectionKind, Symbol, Timestamp, put_map_section,
        };
        // Flags, kind of the body, priority, time to live: as they are kept before the sections.
        let mut raw = vec![0; 7];
        put_map_section(&mut raw, SectionKind::MessageAnnotations, |map| {
            map.put(&Symbol("x-team"), &"red");
        });
        let properties = Properties {
            message_id: Some(MessageId::String("ID:1")),
            correlation_id: Some(MessageId::ULong(7)),
            subject: Some("order"),
            content_type: Some(Symbol("text/plain")),
            creation_time: Some(Timestamp(1_700_000_000_123)),
            group_id: Some("g"),
            group_sequence: Some(2),
            ..Properties::default()
        };
        properties.write(&mut raw);
        put_map_section(&mut raw, SectionKind::ApplicationProperties, |map| {
            map.put(&"colour", &"red");
            map.put(&"size", &9i16);
            map.put(&"weight", &1.5f32);
            map.put(&"is_new", &true);
            map.put(&"huge", &u64::MAX);
        });
        check(
            format::AMQP10,
            &raw,
            &[
                "colour = 'red' AND size = 9 AND weight = 1.5 AND is_new AND huge > 1E18",
                "application_properties.colour = 'red'",
                "JMSMessageID = 'ID:1' AND JMSCorrelationID = 7 AND JMSType = 'order'",
                "JMSTimestamp = 1700000000123 AND JMSXGroupID = 'g' AND JMSXGroupSeq = 2",
                "[properties.content-type] = 'text/plain' AND properties.to IS NULL",
                "[message_annotations.x-team] = 'red'",
                "JMSPriority = 7 AND JMSDeliveryMode = 'PERSISTENT' AND JMSXDeliveryCount = 3",
            ],
            &["colour = 'blue'", "size = '9'", "JMSCorrelationID = '7'"],
        );
        check(format::AMQP10, b"", &["colour IS NULL"], &["JMSType = 'order'"]);
    }
}
