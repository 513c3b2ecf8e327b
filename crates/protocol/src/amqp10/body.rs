//! The body of an AMQP 1.0 message as other protocols have it: octets, text, or JSON.

use super::codec::{Limits, List, Map, Sections, Symbol, Timestamp, Uuid, Value};
use super::stored::{Kept, KeptBody};
use angarium_engine::{MessageView, Value as EngineValue};
use std::borrow::Cow;
use std::fmt::Write;

/// The content type of a body that is a value of text, where the message has none itself.
const TEXT: &str = "text/plain";
/// That of lists, maps and other values.
const JSON: &str = "application/json";
/// That of a large structure, which stays in its sections.
const ENCODED: &str = "application/vnd.amqp";

/// What the body of a message is to other protocols. A body of one data section, and what other protocols
/// have published, is lent.
pub(crate) fn payload<'a>(message: &MessageView<'a>) -> Cow<'a, [u8]> {
    let kept = Kept::of(message.properties).body;
    if kept == KeptBody::Octets || kept == KeptBody::LargeStructure {
        return Cow::Borrowed(message.body);
    }
    let limits = Limits { properties_bytes_max: usize::MAX };
    let Ok(sections) = Sections::walk(message.body, limits) else {
        return Cow::Borrowed(message.body);
    };
    match sections.amqp_value() {
        Ok(Some(Value::String(text) | Value::Symbol(Symbol(text)))) => {
            Cow::Borrowed(text.as_bytes())
        }
        Ok(Some(Value::Binary(octets))) => Cow::Borrowed(octets),
        Ok(Some(Value::Null)) => Cow::Borrowed(&[]),
        Ok(Some(value)) => {
            let mut json = String::new();
            put_json(&mut json, value);
            Cow::Owned(json.into_bytes())
        }
        _ if kept == KeptBody::Structure => Cow::Owned(sequences_as_json(&sections).into_bytes()),
        _ => Cow::Owned(sections.data().flatten().copied().collect()),
    }
}

/// The content type that a body has of itself.
pub(super) fn content_type(body: KeptBody) -> Option<&'static str> {
    match body {
        KeptBody::Octets | KeptBody::Sections => None,
        KeptBody::Text => Some(TEXT),
        KeptBody::Structure => Some(JSON),
        KeptBody::LargeStructure => Some(ENCODED),
    }
}

/// The values of all lists as one array.
fn sequences_as_json(sections: &Sections<'_>) -> String {
    let mut json = String::new();
    put_array(&mut json, sections.sequences().flatten().flat_map(|list| list.values()));
    json
}

/// Appends a value as JSON: octets in hexadecimal, what JSON has no number for as text.
pub(super) fn put_json(json: &mut String, value: Value<'_>) {
    match value {
        Value::Null => json.push_str("null"),
        Value::Boolean(value) => put(json, value),
        Value::UByte(value) => put(json, value),
        Value::UShort(value) => put(json, value),
        Value::UInt(value) => put(json, value),
        Value::ULong(value) => put(json, value),
        Value::Byte(value) => put(json, value),
        Value::Short(value) => put(json, value),
        Value::Int(value) => put(json, value),
        Value::Long(value) => put(json, value),
        Value::Float(value) if value.is_finite() => put(json, value),
        Value::Double(value) if value.is_finite() => put(json, value),
        Value::Timestamp(value) => put(json, value.0),
        Value::List(list) => put_list(json, list),
        Value::Map(map) => put_map(json, map),
        Value::Array(array) => put_array(json, array.values()),
        Value::Described(described) => put_json(json, described.value()),
        scalar => put_text(json, &text(scalar)),
    }
}

fn put(json: &mut String, value: impl std::fmt::Display) {
    // Writing to a string never fails.
    let _ = write!(json, "{value}");
}

fn put_text(json: &mut String, text: &str) {
    put(json, serde_json::Value::from(text));
}

fn put_list(json: &mut String, list: List<'_>) {
    put_array(json, list.values());
}

fn put_array<'a>(json: &mut String, values: impl Iterator<Item = Value<'a>>) {
    json.push('[');
    for (at, value) in values.enumerate() {
        if at > 0 {
            json.push(',');
        }
        put_json(json, value);
    }
    json.push(']');
}

fn put_map(json: &mut String, map: Map<'_>) {
    json.push('{');
    for (at, (key, value)) in map.entries().enumerate() {
        if at > 0 {
            json.push(',');
        }
        put_key(json, key);
        json.push(':');
        put_json(json, value);
    }
    json.push('}');
}

/// Appends what JSON has for a key. One that is a list, a map or an array is not shown: its JSON inside of a
/// text would double with each level.
fn put_key(json: &mut String, key: Value<'_>) {
    match key {
        Value::List(_) | Value::Map(_) | Value::Array(_) | Value::Described(_) => {
            put_text(json, "(compound)");
        }
        scalar => put_text(json, &text(scalar)),
    }
}

/// A value as text: numbers in decimal, octets and decimals in hexadecimal, what is nested as JSON.
pub(super) fn text(value: Value<'_>) -> Cow<'_, str> {
    match value {
        Value::String(text) | Value::Symbol(Symbol(text)) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        Value::Char(letter) => letter.to_string().into(),
        Value::Uuid(uuid) => uuid_text(uuid).into(),
        Value::Float(value) => value.to_string().into(),
        Value::Double(value) => value.to_string().into(),
        Value::Binary(octets) => hexadecimal(octets).into(),
        Value::Decimal32(octets) => hexadecimal(&octets).into(),
        Value::Decimal64(octets) => hexadecimal(&octets).into(),
        Value::Decimal128(octets) => hexadecimal(&octets).into(),
        other => {
            let mut json = String::new();
            put_json(&mut json, other);
            json.into()
        }
    }
}

fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// A UUID as RFC 9562 writes it.
pub(super) fn uuid_text(Uuid(octets): Uuid) -> String {
    let digits = hexadecimal(&octets);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    parts.join("-")
}

/// What a value is to the engine that is no text, no octets and not nested, and that it has a type for.
pub(super) fn scalar(value: Value<'_>) -> Option<EngineValue> {
    Some(match value {
        Value::Null => EngineValue::Null,
        Value::Boolean(value) => EngineValue::Bool(value),
        Value::UByte(value) => EngineValue::Int(value.into()),
        Value::UShort(value) => EngineValue::Int(value.into()),
        Value::UInt(value) => EngineValue::Int(value.into()),
        Value::ULong(value) => EngineValue::Int(i64::try_from(value).ok()?),
        Value::Byte(value) => EngineValue::Int(value.into()),
        Value::Short(value) => EngineValue::Int(value.into()),
        Value::Int(value) => EngineValue::Int(value.into()),
        Value::Long(value) => EngineValue::Int(value),
        Value::Float(value) => EngineValue::Float(value.into()),
        Value::Double(value) => EngineValue::Float(value),
        Value::Timestamp(Timestamp(millis)) => {
            EngineValue::Timestamp(u64::try_from(millis).ok()? / 1000)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp10::codec::{OwnedValue, Timestamp, put_list};

    fn check(value: &OwnedValue, json: &str) {
        let mut written = String::new();
        put_json(&mut written, value.value());
        assert_eq!(written, json);
    }

    #[test]
    fn values_are_json() {
        check(&OwnedValue::new(&"a \"b\""), r#""a \"b\"""#);
        check(&OwnedValue::new(&u64::MAX), "18446744073709551615");
        check(&OwnedValue::new(&f64::NAN), r#""NaN""#);
        check(&OwnedValue::new(&Timestamp(-1)), "-1");
        check(&OwnedValue::new(&Uuid([0xab; 16])), r#""abababab-abab-abab-abab-abababababab""#);
        let map = OwnedValue::map(|map| {
            map.put(&"bytes", &&[1u8, 255][..]);
            map.put(&7u32, &true);
        });
        check(&map, r#"{"bytes":"01ff","7":true}"#);
        let mut list = Vec::new();
        put_list(&mut list, |list| {
            list.put(&'x');
            list.put_null();
            list.put(&map.value());
        });
        let list = OwnedValue::decode(&list).expect("we wrote it");
        check(&list, r#"["x",null,{"bytes":"01ff","7":true}]"#);
    }
}
