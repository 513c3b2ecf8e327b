//! Properties of AMQP 1.0 messages by the names that selectors have for them.

use super::codec::{MessageId, Properties, Symbol, Timestamp, Value as Encoded};
use super::stored::Kept;
use angarium_engine::selector::Value;

/// The application property of that name; of several, the first.
pub(crate) fn application_property<'m>(raw: &'m [u8], name: &str) -> Option<Value<'m>> {
    let sections = Kept::of(raw).sections();
    sections.application_properties.is_some().then_some(())?;
    sections.application_properties().ok()?.get(name).map(value)
}

/// The message annotation of that name.
pub(crate) fn annotation<'m>(raw: &'m [u8], name: &str) -> Value<'m> {
    let annotations = Kept::of(raw).sections().message_annotations().unwrap_or_default();
    annotations.get(name).map_or(Value::Null, value)
}

/// The field of the section `properties` of that name, whose words are joined by low lines.
pub(crate) fn properties_field<'m>(raw: &'m [u8], field: &str) -> Value<'m> {
    let properties = Kept::of(raw).sections().properties().unwrap_or_default();
    let Properties { message_id, correlation_id, .. } = properties;
    let text = |text: Option<&'m str>| text.map_or(Value::Null, Value::Text);
    match field {
        "message_id" => id(message_id),
        "correlation_id" => id(correlation_id),
        "user_id" => text(properties.user_id.and_then(|octets| str::from_utf8(octets).ok())),
        "to" => text(properties.to),
        "subject" => text(properties.subject),
        "reply_to" => text(properties.reply_to),
        "content_type" => text(properties.content_type.map(|Symbol(name)| name)),
        "content_encoding" => text(properties.content_encoding.map(|Symbol(name)| name)),
        "absolute_expiry_time" => time(properties.absolute_expiry_time),
        "creation_time" => time(properties.creation_time),
        "group_id" => text(properties.group_id),
        // JMS has it as an int.
        "group_sequence" => {
            properties.group_sequence.map_or(Value::Null, |it| Value::Exact((it as i32).into()))
        }
        "reply_to_group_id" => text(properties.reply_to_group_id),
        _ => Value::Null,
    }
}

fn time<'m>(time: Option<Timestamp>) -> Value<'m> {
    time.map_or(Value::Null, |Timestamp(millis)| Value::Exact(millis))
}

fn id(id: Option<MessageId<'_>>) -> Value<'_> {
    match id {
        None => Value::Null,
        Some(MessageId::String(id)) => Value::Text(id),
        Some(MessageId::ULong(id)) => unsigned(id),
        Some(MessageId::Binary(_) | MessageId::Uuid(_)) => Value::Other,
    }
}

fn unsigned<'m>(number: u64) -> Value<'m> {
    i64::try_from(number).map_or(Value::Approximate(number as f64), Value::Exact)
}

fn value(value: Encoded<'_>) -> Value<'_> {
    match value {
        Encoded::Null => Value::Null,
        Encoded::Boolean(value) => Value::Bool(value),
        Encoded::UByte(value) => Value::Exact(value.into()),
        Encoded::UShort(value) => Value::Exact(value.into()),
        Encoded::UInt(value) => Value::Exact(value.into()),
        Encoded::ULong(value) => unsigned(value),
        Encoded::Byte(value) => Value::Exact(value.into()),
        Encoded::Short(value) => Value::Exact(value.into()),
        Encoded::Int(value) => Value::Exact(value.into()),
        Encoded::Long(value) => Value::Exact(value),
        Encoded::Float(value) => Value::Approximate(value.into()),
        Encoded::Double(value) => Value::Approximate(value),
        Encoded::Timestamp(Timestamp(millis)) => Value::Exact(millis),
        Encoded::String(text) | Encoded::Symbol(Symbol(text)) => Value::Text(text),
        _ => Value::Other,
    }
}
