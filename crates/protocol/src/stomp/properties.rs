//! The headers of messages that STOMP clients publish: what is kept of them, and the same in neutral words.
//!
//! [Kept](crate::format::STOMP) are the lines of SEND that say something of the message, escaped as in 1.2.

use super::destination::Destination;
use super::frame::{Malformed, Version, lines, put_name, put_value, unescaped};
use crate::properties::{HeaderValue, Property, REPLY_TO_HEADER, TextProperty, withdrawn};
use angarium_engine::Annotations;
use angarium_engine::selector::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The headers of SEND and MESSAGE that are the frame's and not the message's.
const OF_FRAMES: [&str; 9] = [
    "destination",
    "content-length",
    "receipt",
    "transaction",
    "message-id",
    "subscription",
    "ack",
    "redelivered",
    "persistent",
];
/// The header with the address of answers.
pub(super) const REPLY_TO: &str = "reply-to";
pub(super) const PRIORITY: &str = "priority";
pub(super) const USER_ID: &str = "user-id";
/// Time to live in milliseconds; and the time of its end, in milliseconds since the Unix epoch.
pub(super) const EXPIRATION: &str = "expiration";
pub(super) const EXPIRES: &str = "expires";
pub(super) const TIMESTAMP: &str = "timestamp";
/// Beyond it a timestamp counts milliseconds, as those of ActiveMQ's clients do.
const SECONDS_MAX: u64 = 99_999_999_999;

/// Whether a header is the frame's and not the message's.
#[inline]
pub(super) fn is_of_frame(name: &[u8]) -> bool {
    OF_FRAMES.iter().any(|own| own.as_bytes() == name)
}

/// The header that stands for a text.
pub(super) fn text_header(text: TextProperty) -> &'static str {
    match text {
        TextProperty::ContentType => "content-type",
        TextProperty::ContentEncoding => "content-encoding",
        TextProperty::CorrelationId => "correlation-id",
        // What RabbitMQ calls it: `message-id` is STOMP's own.
        TextProperty::MessageId => "amqp-message-id",
        TextProperty::Type => "type",
        TextProperty::AppId => "app-id",
        TextProperty::UserId => USER_ID,
        TextProperty::Expiration => EXPIRATION,
    }
}

/// Appends a header to those that are kept.
#[inline]
pub(super) fn keep(
    kept: &mut Vec<u8>,
    name: &[u8],
    value: &[u8],
    version: Version,
) -> Result<(), Malformed> {
    let is_odd = |byte: &u8| matches!(byte, b'\\' | b':' | b'\r');
    let is_plain = version != Version::V1_0 && !name.contains(&b'\\') && !value.iter().any(is_odd);
    if is_plain && str::from_utf8(name).is_ok() && str::from_utf8(value).is_ok() {
        kept.extend_from_slice(name);
        kept.push(b':');
        kept.extend_from_slice(value);
    } else {
        put_name(kept, &unescaped(name, version)?, Version::V1_2);
        kept.push(b':');
        put_value(kept, &unescaped(value, version)?, Version::V1_2);
    }
    kept.push(b'\n');
    Ok(())
}

pub(super) fn plain(raw: &[u8]) -> Cow<'_, str> {
    unescaped(raw, Version::V1_2).unwrap_or_default()
}

/// Takes kept headers apart; of several with one name the first counts.
pub(crate) fn visit_properties(raw: &[u8], see: &mut dyn FnMut(Property<'_>) -> bool) {
    let mut seen = BTreeSet::new();
    for (name, value) in lines(raw).filter(|(name, _)| seen.insert(*name)) {
        let (name, value) = (plain(name), plain(value));
        let address = match &*name {
            REPLY_TO => Destination::parse(&value, false).ok(),
            _ => None,
        };
        let reply = address.as_ref().and_then(Destination::reply);
        let property = reply.or_else(|| known(&name, &value));
        if !property.is_some_and(&mut *see) {
            let name = if name == REPLY_TO { REPLY_TO_HEADER } else { &*name };
            see(Property::Header(name, HeaderValue::Text(&value)));
        }
    }
}

/// The property that a header stands for.
fn known<'a>(name: &str, value: &'a str) -> Option<Property<'a>> {
    match name {
        PRIORITY => return value.trim().parse().ok().map(Property::Priority),
        TIMESTAMP => return seconds(value).map(Property::Timestamp),
        _ => {}
    }
    let text = TextProperty::ALL.into_iter().find(|text| text_header(*text) == name)?;
    Some(Property::Text(text, value))
}

fn seconds(text: &str) -> Option<u64> {
    let number: u64 = text.trim().parse().ok()?;
    Some(if number > SECONDS_MAX { number / 1_000 } else { number })
}

/// The first header of that name.
fn value_of<'m>(raw: &'m [u8], name: &str) -> Option<Cow<'m, str>> {
    let (_, value) = lines(raw).find(|(own, _)| *own == name.as_bytes())?;
    unescaped(value, Version::V1_2).ok()
}

/// The first header of that name where it has nothing that was escaped.
fn text_of<'m>(raw: &'m [u8], name: &str) -> Option<&'m str> {
    match value_of(raw, name)? {
        Cow::Borrowed(text) => Some(text),
        Cow::Owned(_) => None,
    }
}

/// The first header of that name as selectors see it: always a text.
pub(crate) fn header_named<'m>(raw: &'m [u8], name: &str) -> Option<Value<'m>> {
    Some(match value_of(raw, name)? {
        Cow::Borrowed(text) => Value::Text(text),
        Cow::Owned(_) => Value::Other,
    })
}

/// A property that is a text.
pub(crate) fn text_property(raw: &[u8], property: TextProperty) -> Option<&str> {
    text_of(raw, text_header(property))
}

/// Where replies go.
pub(crate) fn reply_to(raw: &[u8]) -> Option<&str> {
    text_of(raw, REPLY_TO)
}

/// When it was made, in seconds since the Unix epoch.
pub(crate) fn timestamp(raw: &[u8]) -> Option<u64> {
    seconds(&value_of(raw, TIMESTAMP)?)
}

/// Kept headers as the broker has changed them since they were published.
pub(crate) fn amended(raw: &[u8], annotations: &Annotations) -> Vec<u8> {
    let withdrawn = withdrawn(annotations);
    let mut rest = Vec::with_capacity(raw.len());
    for (name, value) in lines(raw) {
        let is_ttl = [EXPIRATION, EXPIRES].iter().any(|own| own.as_bytes() == name);
        let is_gone = withdrawn.iter().any(|gone| gone.as_bytes() == name);
        let is_gone = is_gone || is_ttl && annotations.ttl_removed;
        if !is_gone {
            rest.extend_from_slice(name);
            rest.push(b':');
            rest.extend_from_slice(value);
            rest.push(b'\n');
        }
    }
    rest
}
