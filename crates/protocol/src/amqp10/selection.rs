//! Properties of AMQP 1.0 messages by the names that selectors have for them. Each is read where it lies:
//! what was taken was checked, and what comes before is passed by its width.

use super::codec::{
    Properties, SectionKind, Symbol, Timestamp, Value as Encoded, element, entry_named,
    section_value,
};
use super::stored::Kept;
use angarium_engine::selector::Value;

/// The application property of that name; of several, the first.
#[inline]
pub(crate) fn application_property<'m>(raw: &'m [u8], name: &str) -> Option<Value<'m>> {
    let section = section_value(Kept::of(raw).sections, SectionKind::ApplicationProperties)?;
    entry_named(section, name).map(value)
}

/// The message annotation of that name.
pub(crate) fn annotation<'m>(raw: &'m [u8], name: &str) -> Value<'m> {
    let section = section_value(Kept::of(raw).sections, SectionKind::MessageAnnotations);
    section.and_then(|section| entry_named(section, name)).map_or(Value::Null, value)
}

/// The field of the section `properties` of that name, in which a dash and a low line are the same.
pub(crate) fn properties_field<'m>(raw: &'m [u8], field: &str) -> Value<'m> {
    let fields = Properties::INFO.fields;
    let Some(number) = fields.iter().position(|name| is(field, name)) else { return Value::Null };
    let section = section_value(Kept::of(raw).sections, SectionKind::Properties);
    match (section.and_then(|section| element(section, number)), fields[number]) {
        (None, _) => Value::Null,
        (Some(Encoded::Binary(octets)), "user-id") => {
            str::from_utf8(octets).map_or(Value::Null, Value::Text)
        }
        // JMS has it as an int.
        (Some(Encoded::UInt(number)), "group-sequence") => Value::Exact((number as i32).into()),
        (Some(found), _) => value(found),
    }
}

fn is(field: &str, name: &str) -> bool {
    let same = |(one, other): (u8, u8)| one == other || (one == b'_' && other == b'-');
    field.len() == name.len() && field.bytes().zip(name.bytes()).all(same)
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
