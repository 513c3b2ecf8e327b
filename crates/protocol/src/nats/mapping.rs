//! Where NATS's words meet the engine's: properties, reply subjects, refusals.

use super::codec::Headers;
use super::codec::headers::{HeadersWriter, without};
use super::{fault, subject};
use crate::names::NAMES;
use crate::properties::{HeaderValue, Property, REPLY_TO_HEADER, TextProperty, withdrawn};
use crate::translation::visit;
use angarium_engine::selector::Value;
use angarium_engine::{
    Annotations, Format, MessageView, QUEUE_SUBJECT_PREFIX, Refusal, RefusalKind,
    SlowConsumerPolicy, Subscribe,
};
use std::borrow::Cow;

/// The header that tells a subscriber how many messages it missed before this one.
pub(super) const MISSED: &str = "Angarium-Missed";
/// What a subject begins with whose subscription says what becomes of messages for which the client
/// is too slow: the policy's name and the subject itself follow. SUB has no place of its own for it.
pub const SLOW_CONSUMER_PREFIX: &str = "$SLOW_CONSUMER.";
/// Headers for the status line that a message from a NATS server would have.
const STATUS: &str = "Status";
const DESCRIPTION: &str = "Description";
const PRIORITY: &str = "Priority";
const TIMESTAMP: &str = "Timestamp";

/// The header that stands for a text.
fn text_header(text: TextProperty) -> &'static str {
    match text {
        TextProperty::ContentType => "Content-Type",
        TextProperty::ContentEncoding => "Content-Encoding",
        TextProperty::CorrelationId => "Correlation-Id",
        // What NATS's own libraries call it.
        TextProperty::MessageId => "Nats-Msg-Id",
        TextProperty::Type => "Message-Type",
        TextProperty::AppId => "App-Id",
        TextProperty::UserId => "User-Id",
        TextProperty::Expiration => "Expiration",
    }
}

/// Appends properties in [NATS's format](crate::format::NATS); nothing where there is neither reply
/// nor header block.
#[inline]
pub(super) fn put_properties(out: &mut Vec<u8>, reply: &[u8], headers: &[u8]) {
    if reply.is_empty() && headers.is_empty() {
        return;
    }
    let length = u16::try_from(reply.len()).expect("a reply subject fits a control line");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(reply);
    let is_missed = |name: &[u8]| name.eq_ignore_ascii_case(MISSED.as_bytes());
    let may_be_forged =
        |line: &[u8]| line.trim_ascii_start().get(..MISSED.len()).is_some_and(is_missed);
    if headers.split(|byte| *byte == b'\n').any(may_be_forged) {
        return out.extend_from_slice(&without(headers, is_missed));
    }
    out.extend_from_slice(headers);
}

/// Reply subject and header block of properties in [NATS's format](crate::format::NATS).
#[inline]
pub(super) fn split(raw: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = raw.split_first_chunk::<2>() else { return (&[], &[]) };
    rest.split_at_checked(u16::from_be_bytes(*length).into()).unwrap_or((&[], &[]))
}

/// The reply subject in the properties of a NATS client's message.
#[must_use]
pub fn reply_of(format: Format, properties: &[u8]) -> Option<&str> {
    let reply = (format == crate::format::NATS).then(|| split(properties).0)?;
    str::from_utf8(reply).ok().filter(|reply| !reply.is_empty())
}

/// Takes properties in [NATS's format](crate::format::NATS) apart.
pub(crate) fn visit_properties(raw: &[u8], see: &mut dyn FnMut(Property<'_>) -> bool) {
    let (reply, block) = split(raw);
    if !reply.is_empty()
        && let Ok(reply) = str::from_utf8(reply)
    {
        let queue = reply.strip_prefix(QUEUE_SUBJECT_PREFIX).filter(|name| !name.is_empty());
        see(match queue {
            Some(queue) => Property::ReplyTo(queue),
            None if NAMES.is_answer_address(reply) => Property::ReplyTo(reply),
            None => Property::ReplySubject(reply),
        });
    }
    if block.is_empty() {
        return;
    }
    let headers = Headers::read(block);
    if let Some((code, description)) = headers.status() {
        header(STATUS, code, see);
        if !description.is_empty() {
            header(DESCRIPTION, description, see);
        }
    }
    for (name, value) in headers.entries() {
        let property = str::from_utf8(&value).ok().and_then(|value| known(name, value));
        if !property.is_some_and(&mut *see) {
            header(&String::from_utf8_lossy(name), &value, see);
        }
    }
}

/// The first header of that name, whose case counts, as selectors see it: always a text.
pub(crate) fn header_named<'m>(raw: &'m [u8], name: &str) -> Option<Value<'m>> {
    let (_, block) = split(raw);
    Some(match Headers::read(block).get(name)? {
        Cow::Borrowed(value) => str::from_utf8(value).map_or(Value::Other, Value::Text),
        // It is folded over several lines.
        Cow::Owned(_) => Value::Other,
    })
}

/// A property that is a text.
pub(crate) fn text_property(raw: &[u8], property: TextProperty) -> Option<&str> {
    let name = text_header(property).as_bytes();
    value_of(raw, |own| own.eq_ignore_ascii_case(name)).filter(|_| !property.is_brokers())
}

/// When it was made, in seconds since the Unix epoch.
pub(crate) fn timestamp(raw: &[u8]) -> Option<u64> {
    value_of(raw, |own| own.eq_ignore_ascii_case(TIMESTAMP.as_bytes()))?.parse().ok()
}

/// The first header of such a name.
fn value_of(raw: &[u8], is_meant: impl Fn(&[u8]) -> bool) -> Option<&str> {
    let (_, block) = split(raw);
    let mut entries = Headers::read(block).entries();
    match entries.find(|(name, _)| is_meant(name))?.1 {
        Cow::Borrowed(value) => str::from_utf8(value).ok(),
        Cow::Owned(_) => None,
    }
}

fn header(name: &str, value: &[u8], see: &mut dyn FnMut(Property<'_>) -> bool) {
    see(Property::Header(name, HeaderValue::of_bytes(value)));
}

/// The property that a header stands for. What brokers act upon or vouch for (expiry, priority, the
/// user) is not taken from headers.
fn known<'a>(name: &[u8], value: &'a str) -> Option<Property<'a>> {
    if name.eq_ignore_ascii_case(TIMESTAMP.as_bytes()) {
        return value.parse().ok().map(Property::Timestamp);
    }
    let is_named = |text: &TextProperty| name.eq_ignore_ascii_case(text_header(*text).as_bytes());
    let text = TextProperty::ALL.into_iter().find(is_named)?;
    (!text.is_brokers()).then_some(Property::Text(text, value))
}

/// Properties in [NATS's format](crate::format::NATS) as the broker has changed them since they were
/// published.
pub(crate) fn amended(raw: &[u8], annotations: &Annotations) -> Vec<u8> {
    let (reply, block) = split(raw);
    let withdrawn = withdrawn(annotations);
    let rest = without(block, |name| withdrawn.iter().any(|gone| gone.as_bytes() == name));
    let mut properties = Vec::with_capacity(raw.len());
    put_properties(&mut properties, reply, &rest);
    properties
}

/// The reply subject and header block that NATS clients get for properties of any format.
pub(super) fn shown(format: Format, properties: &[u8]) -> (Cow<'_, [u8]>, Cow<'_, [u8]>) {
    match format {
        crate::format::NATS => {
            let (reply, headers) = split(properties);
            (Cow::Borrowed(reply), Cow::Borrowed(headers))
        }
        _ => translated(format, properties),
    }
}

#[cold]
fn translated<'a>(format: Format, properties: &[u8]) -> (Cow<'a, [u8]>, Cow<'a, [u8]>) {
    let mut reply = Vec::new();
    let mut block = Vec::new();
    let mut writer = HeadersWriter::new(&mut block);
    visit(format, properties, &mut |property| {
        match property {
            Property::ReplySubject(subject) => reply = subject.as_bytes().to_vec(),
            Property::ReplyTo(address) => match reply_subject(address) {
                Some(subject) => reply = subject.into_bytes(),
                None => writer.put(REPLY_TO_HEADER.as_bytes(), address.as_bytes()),
            },
            Property::Text(text, value) => {
                writer.put(text_header(text).as_bytes(), value.as_bytes());
            }
            Property::Priority(priority) => {
                writer.put(PRIORITY.as_bytes(), priority.to_string().as_bytes());
            }
            Property::Timestamp(seconds) => {
                writer.put(TIMESTAMP.as_bytes(), seconds.to_string().as_bytes());
            }
            Property::Header(name, _) if name.eq_ignore_ascii_case(MISSED) => {}
            Property::Header(name, value) => {
                value.texts(&mut |text| writer.put(name.as_bytes(), text.as_bytes()));
            }
        }
        true
    });
    writer.end();
    (Cow::Owned(reply), Cow::Owned(block))
}

/// The subject by which an answer finds its way to an address of the default exchange: inboxes, of NATS's
/// libraries too, are subjects themselves, queues have a prefix. `None`: none can be published to.
fn reply_subject(address: &str) -> Option<String> {
    let can_be_one = !address.bytes().any(is_blank) && subject::is_literal(address.as_bytes());
    let is_inbox = NAMES.is_answer_address(address);
    match (can_be_one, is_inbox) {
        (false, _) => None,
        (true, true) => Some(address.to_owned()),
        (true, false) => Some(format!("{QUEUE_SUBJECT_PREFIX}{address}")),
    }
}

/// The subject as NATS clients can be told of it: a routing key may have blanks, and what is behind a
/// line's end would be read as the broker's next word. Other control characters are as a NATS client wrote
/// them, and AMQP's are blanks like all others.
pub(super) fn shown_subject<'a>(message: &MessageView<'a>) -> Cow<'a, str> {
    let key = message.routing_key;
    let is_odd = match message.format {
        crate::format::NATS => is_separator,
        _ => is_blank,
    };
    if key.is_empty() {
        Cow::Borrowed("_")
    } else if key.bytes().any(is_odd) {
        Cow::Owned(key.replace(|letter| u8::try_from(letter).is_ok_and(is_odd), "_"))
    } else {
        Cow::Borrowed(key)
    }
}

/// Whether the subject of a message from NATS, or the key that its dead letter has instead, can stand in a
/// control line as it is.
#[inline]
pub(super) fn is_one_word(key: &str) -> bool {
    // Without an early end: several bytes are looked at in one instruction.
    !key.is_empty() && !key.bytes().fold(false, |any, byte| any | is_separator(byte))
}

/// What parts the words of a control line.
#[inline]
fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn is_blank(byte: u8) -> bool {
    byte <= b' '
}

/// A header block with one more header in it.
#[cold]
pub(super) fn with_missed(block: &[u8], missed: u64) -> Vec<u8> {
    let mut longer = match block.strip_suffix(b"\r\n") {
        Some(lines) => lines.to_vec(),
        None => b"NATS/1.0\r\n".to_vec(),
    };
    longer.extend_from_slice(format!("{MISSED}: {missed}\r\n\r\n").as_bytes());
    longer
}

/// What a subscription says about its client's slowness, and the subject that is meant. `None`: it
/// asks for what there is not.
pub(super) fn with_policy(subject: &str) -> Option<(Option<SlowConsumerPolicy>, &str)> {
    let Some(rest) = subject.strip_prefix(SLOW_CONSUMER_PREFIX) else {
        return Some((None, subject));
    };
    let (policy, subject) =
        rest.split_once('.').filter(|(_, it)| !it.starts_with(SLOW_CONSUMER_PREFIX))?;
    Some((Some(SlowConsumerPolicy::named(policy)?), subject))
}

/// The subject by which a client asked for that, as [`with_policy`] reads it.
pub(super) fn asked_subject<'a>(subscribe: &Subscribe<'a>) -> Cow<'a, str> {
    match subscribe.slow_consumer_policy {
        Some(policy) => {
            format!("{SLOW_CONSUMER_PREFIX}{}.{}", policy.name(), subscribe.subject).into()
        }
        None => subscribe.subject.into(),
    }
}

/// What a refused login is called.
pub(super) fn login_refused(refusal: &Refusal) -> &'static str {
    match refusal.kind {
        RefusalKind::LimitExceeded => fault::TOO_MANY_CONNECTIONS,
        _ => fault::AUTHORIZATION_VIOLATION,
    }
}

/// What a refused subscription is called.
pub(super) fn subscription_refused(refusal: &Refusal, violation: impl Fn() -> String) -> String {
    match refusal.kind {
        RefusalKind::AccessRefused | RefusalKind::NotAllowed => violation(),
        RefusalKind::LimitExceeded => fault::TOO_MANY_SUBSCRIPTIONS.to_owned(),
        RefusalKind::MemoryShort => fault::TOO_MUCH_MEMORY.to_owned(),
        _ => fault::INVALID_SUBJECT.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_may_say_what_becomes_of_slow_clients() {
        for (subject, expected) in [
            ("a.b", Some((None, "a.b"))),
            ("$SLOW_CONSUMER", Some((None, "$SLOW_CONSUMER"))),
            ("$SLOW_CONSUMER.spool.a.>", Some((Some(SlowConsumerPolicy::Spool), "a.>"))),
            ("$SLOW_CONSUMER.drop-oldest.a", Some((Some(SlowConsumerPolicy::DropOldest), "a"))),
            ("$SLOW_CONSUMER.drop-new.$SYS.x", Some((Some(SlowConsumerPolicy::DropNew), "$SYS.x"))),
            ("$SLOW_CONSUMER.disconnect.*", Some((Some(SlowConsumerPolicy::Disconnect), "*"))),
            ("$SLOW_CONSUMER.spool", None),
            ("$SLOW_CONSUMER.never.a", None),
            ("$SLOW_CONSUMER.*.a", None),
            ("$SLOW_CONSUMER.>", None),
        ] {
            assert_eq!(with_policy(subject), expected, "{subject}");
        }
    }
}
