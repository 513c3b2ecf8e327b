//! Properties and bodies of messages of any format, for any receiver: each format's protocol reads its own.

use crate::properties::{HeaderValue, Property, is_plain};
use crate::{amqp10, amqp091, format, mqtt, nats, stomp};
use angarium_engine::{Format, MessageView, Value};
use std::borrow::Cow;

/// A message's properties as the broker has changed them since they were published, in the same format:
/// without what it has taken away, and without headers in place of which it has something to say itself.
#[must_use]
pub fn amended<'a>(message: &MessageView<'a>) -> Cow<'a, [u8]> {
    let MessageView { properties, annotations, .. } = *message;
    if is_plain(annotations) {
        return Cow::Borrowed(properties);
    }
    Cow::Owned(match message.format {
        format::AMQP091 => amqp091::amended(properties, annotations, Vec::new()),
        format::NATS => nats::amended(properties, annotations),
        format::AMQP10 => amqp10::amended(properties, annotations),
        format::MQTT => mqtt::amended(properties, annotations),
        format::STOMP => stomp::amended(properties, annotations),
        _ => Vec::new(),
    })
}

/// A message as clients of other protocols than its publisher's get it: with a body of octets. `body` is a
/// place for that where it has to be translated.
pub(crate) fn with_payload<'a>(
    message: &MessageView<'a>,
    body: &'a mut Cow<'a, [u8]>,
) -> MessageView<'a> {
    if message.format != format::AMQP10 {
        return *message;
    }
    *body = amqp10::payload(message);
    let is_kept = body.len() == message.body.len();
    MessageView { body, shared: message.shared.filter(|_| is_kept), ..*message }
}

/// Takes properties apart. `see` answers whether it has a place for a property: one without comes again as
/// the header that it was, if it was one. What is malformed was refused when the message was taken, and
/// is passed over here, and so is an unknown format.
pub(crate) fn visit(format: Format, raw: &[u8], see: &mut dyn FnMut(Property<'_>) -> bool) {
    match format {
        format::AMQP091 => amqp091::visit_properties(raw, see),
        format::NATS => nats::visit_properties(raw, see),
        format::AMQP10 => amqp10::visit_properties(raw, see),
        format::MQTT => mqtt::visit_properties(raw, see),
        format::STOMP => stomp::visit_properties(raw, see),
        _ => {}
    }
}

/// Visits the headers in properties of any format: what [`crate::CONVENTIONS`]
/// gives the engine.
pub fn read_headers(format: Format, raw: &[u8], see: &mut dyn FnMut(&str, Value)) {
    match format {
        format::AMQP091 => amqp091::read_amqp_headers(raw, see),
        format::AMQP10 => amqp10::read_headers(raw, see),
        format::NATS | format::MQTT | format::STOMP => visit(format, raw, &mut |property| {
            match property {
                Property::Header(name, HeaderValue::Text(text)) => {
                    see(name, Value::Text(text.to_owned()));
                }
                Property::Header(name, HeaderValue::Other(value)) => see(name, value),
                _ => {}
            }
            true
        }),
        _ => {}
    }
}
