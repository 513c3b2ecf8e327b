//! AMQP 0-9-1's properties in neutral words, and those of other protocols in its own.

use super::codec::properties::{self, Properties};
use super::codec::table::ValueWriter;
use super::codec::wire::truncated;
use super::codec::{FieldValue, put_table, table};
use super::declaration::put_value;
use super::mapping;
use crate::properties::{HeaderValue, Property, REPLY_TO_HEADER, TextProperty, text};
use crate::translation::{amended, visit};
use angarium_engine::{MessageView, Value};
use std::collections::BTreeMap;

/// Most bytes of a property that is a text (spec 4.2.5.3).
const TEXT_BYTES_MAX: usize = 255;
/// What a header takes beyond its name and its value.
const HEADER_BYTES: usize = 16;

/// Takes a property list apart. One with a text that is no UTF-8 shows its headers alone.
pub(crate) fn visit_properties(raw: &[u8], see: &mut dyn FnMut(Property<'_>) -> bool) {
    let list = Properties::decode(raw).unwrap_or_else(|_| {
        let headers = properties::headers(raw);
        Properties { headers, ..Properties::default() }
    });
    if let Some(address) = list.reply_to {
        see(Property::ReplyTo(address));
    }
    for property in TextProperty::ALL {
        if let Some(text) = text_of(&list, property) {
            see(Property::Text(property, text));
        }
    }
    if let Some(priority) = list.priority {
        see(Property::Priority(priority));
    }
    if let Some(seconds) = list.timestamp {
        see(Property::Timestamp(seconds));
    }
    for entry in list.headers.unwrap_or_default().entries() {
        let value = match entry.value {
            FieldValue::LongStr(bytes) => HeaderValue::of_bytes(bytes),
            other => HeaderValue::Other(mapping::value(other)),
        };
        see(Property::Header(entry.name, value));
    }
}

/// A property that is a text.
pub(crate) fn text_property(raw: &[u8], property: TextProperty) -> Option<&str> {
    text_of(&Properties::decode(raw).ok()?, property)
}

fn text_of<'a>(list: &Properties<'a>, property: TextProperty) -> Option<&'a str> {
    match property {
        TextProperty::ContentType => list.content_type,
        TextProperty::ContentEncoding => list.content_encoding,
        TextProperty::CorrelationId => list.correlation_id,
        TextProperty::MessageId => list.message_id,
        TextProperty::Type => list.kind,
        TextProperty::AppId => list.app_id,
        TextProperty::UserId => list.user_id,
        TextProperty::Expiration => list.expiration,
    }
}

/// Where replies go.
pub(crate) fn reply_to(raw: &[u8]) -> Option<&str> {
    Properties::decode(raw).ok()?.reply_to
}

/// When it was made, in seconds since the Unix epoch.
pub(crate) fn timestamp(raw: &[u8]) -> Option<u64> {
    Properties::decode(raw).ok()?.timestamp
}

/// What a foreign message's properties come to, before they are encoded.
#[derive(Debug, Default)]
struct Collected {
    reply_to: Option<String>,
    /// In the order of [`TextProperty::ALL`].
    texts: [Option<String>; TextProperty::ALL.len()],
    priority: Option<u8>,
    timestamp: Option<u64>,
    /// Each name once, as long as it can be here, with all values that came under it.
    headers: BTreeMap<String, Vec<Value>>,
    /// Bytes of headers for which there is room still: a content header is one frame.
    room: usize,
}

/// The properties of another protocol's message as a property list, with the broker's `own` headers. Those
/// of the message that would take more than `headers_bytes_max` together are left out.
#[cold]
pub(super) fn translated(
    message: &MessageView<'_>,
    headers_bytes_max: usize,
    own: &[u8],
) -> Vec<u8> {
    let mut collected = Collected { room: headers_bytes_max, ..Collected::default() };
    visit(message.format, &amended(message), &mut |property| collected.take(property));
    let mut headers = Vec::new();
    if !collected.headers.is_empty() || !own.is_empty() {
        put_table(&mut headers, |table| {
            for (name, values) in &collected.headers {
                put_values(table.value(name), values);
            }
            table.out.extend_from_slice(own);
        });
    }
    let [
        content_type,
        content_encoding,
        correlation_id,
        message_id,
        kind,
        app_id,
        user_id,
        expiration,
    ] = collected.texts.each_ref().map(Option::as_deref);
    let list = Properties {
        content_type,
        content_encoding,
        headers: headers.get(4..).map(|entries| table::checked(entries).expect("we wrote it")),
        delivery_mode: Some(if message.persistent { 2 } else { 1 }),
        priority: collected.priority,
        correlation_id,
        reply_to: collected.reply_to.as_deref(),
        message_id,
        timestamp: collected.timestamp,
        kind,
        app_id,
        user_id,
        expiration,
        ..Properties::default()
    };
    let mut raw = Vec::new();
    list.encode(&mut raw);
    raw
}

impl Collected {
    /// Whether there is a place for it: none for a second one, or one that does not fit.
    fn take(&mut self, property: Property<'_>) -> bool {
        match property {
            Property::ReplyTo(address) | Property::ReplySubject(address) => {
                match address.len() > TEXT_BYTES_MAX {
                    true => self.header(REPLY_TO_HEADER, HeaderValue::Text(address)),
                    false => self.reply_to = Some(address.to_owned()),
                }
            }
            Property::Text(text, value) => {
                let slot = &mut self.texts[text as usize];
                if slot.is_some() || value.len() > TEXT_BYTES_MAX {
                    return false;
                }
                *slot = Some(value.to_owned());
            }
            Property::Priority(priority) => self.priority = Some(priority),
            Property::Timestamp(_) if self.timestamp.is_some() => return false,
            Property::Timestamp(seconds) => self.timestamp = Some(seconds),
            Property::Header(name, value) => self.header(name, value),
        }
        true
    }

    fn header(&mut self, name: &str, value: HeaderValue<'_>) {
        let name = truncated(name);
        let mut bytes = 0;
        value.texts(&mut |text| bytes += text.len());
        let left = self.room.checked_sub(name.len() + bytes + HEADER_BYTES);
        self.room = left.unwrap_or(0);
        if left.is_none() {
            return;
        }
        let values = self.headers.entry(name.to_owned()).or_default();
        match value {
            HeaderValue::Text(text) => values.push(Value::Text(text.to_owned())),
            HeaderValue::Other(Value::List(list)) => values.extend(list),
            HeaderValue::Other(value) => values.push(value),
        }
    }
}

/// One value as it is, several as an array.
fn put_values(value: ValueWriter<'_>, values: &[Value]) {
    match values {
        [only] => put_flat(value, only),
        several => value.array(several, put_flat),
    }
}

/// A value in this protocol's types; what is nested as JSON.
fn put_flat(writer: ValueWriter<'_>, value: &Value) {
    match value {
        Value::List(_) | Value::Map(_) => writer.text(&text(value)),
        flat => put_value(writer, flat),
    }
}
