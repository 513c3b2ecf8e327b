//! Properties of messages of any format, as MQTT's clients get them.

use super::codec::property::put;
use super::codec::{PropertyId, PropertyValue, topic};
use super::mapping;
use super::stored::Stored;
use super::translate::amended;
use crate::names::NAMES;
use crate::properties::{Property, REPLY_TO_HEADER, TextProperty, is_plain};
use crate::translation::{self, visit};
use angarium_engine::{Format, MessageView, QUEUE_SUBJECT_PREFIX};
use std::borrow::Cow;

/// User properties for what there is no property for.
const PRIORITY: &str = "priority";
const TIMESTAMP: &str = "timestamp";
/// Most octets of properties that are made of another protocol's.
const BYTES_MAX: usize = 64 << 10;
/// Octets of a user property beside its name and value.
const USER_PROPERTY_OCTETS: usize = 5;

/// The user property that stands for a text; `None`: there is a property for it, or the broker speaks of it.
fn user_property(text: TextProperty) -> Option<&'static str> {
    Some(match text {
        TextProperty::ContentEncoding => "content-encoding",
        TextProperty::MessageId => "message-id",
        TextProperty::Type => "type",
        TextProperty::AppId => "app-id",
        TextProperty::UserId => "user-id",
        TextProperty::ContentType | TextProperty::CorrelationId | TextProperty::Expiration => {
            return None;
        }
    })
}

/// The properties that clients get for a message of any format, without those of its delivery.
pub(super) fn shown<'a>(message: &MessageView<'a>) -> Cow<'a, [u8]> {
    if message.format != crate::format::MQTT {
        return Cow::Owned(translated(message.format, &translation::amended(message)));
    }
    if is_plain(message.annotations) {
        return Cow::Borrowed(Stored::read(message.properties).properties.raw());
    }
    let amended = amended(message.properties, message.annotations);
    Cow::Owned(Stored::read(&amended).properties.raw().to_vec())
}

#[cold]
fn translated(format: Format, properties: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    visit(format, properties, &mut |property| {
        match property {
            Property::ReplySubject(subject) => match topic_of(subject) {
                Some(topic) => {
                    put(&mut out, PropertyId::ResponseTopic, PropertyValue::Text(&topic))
                }
                None => put_user(&mut out, REPLY_TO_HEADER, subject),
            },
            Property::ReplyTo(address) => match response_topic(address) {
                Some(topic) => {
                    put(&mut out, PropertyId::ResponseTopic, PropertyValue::Text(&topic))
                }
                None => put_user(&mut out, REPLY_TO_HEADER, address),
            },
            Property::Text(TextProperty::ContentType, value) => {
                put(&mut out, PropertyId::ContentType, PropertyValue::Text(value));
            }
            Property::Text(TextProperty::CorrelationId, value) => {
                let value = PropertyValue::Binary(value.as_bytes());
                put(&mut out, PropertyId::CorrelationData, value);
            }
            Property::Text(text, value) => {
                if let Some(name) = user_property(text) {
                    put_user(&mut out, name, value);
                }
            }
            Property::Priority(priority) => put_user(&mut out, PRIORITY, &priority.to_string()),
            Property::Timestamp(seconds) => put_user(&mut out, TIMESTAMP, &seconds.to_string()),
            Property::Header(name, value) => {
                value.texts(&mut |text| put_user(&mut out, name, text));
            }
        }
        true
    });
    out
}

/// Adds a user property, if there is room for it and both are strings as MQTT has them.
fn put_user(out: &mut Vec<u8>, name: &str, value: &str) {
    let octets = name.len() + value.len() + USER_PROPERTY_OCTETS;
    let is_string = |text: &str| text.len() <= usize::from(u16::MAX) && !text.contains('\0');
    if out.len() + octets <= BYTES_MAX && is_string(name) && is_string(value) {
        put(out, PropertyId::UserProperty, PropertyValue::Pair(name, value));
    }
}

/// The topic by which an answer finds its way to an address of the default exchange: inboxes are subjects
/// themselves, queues have a prefix. `None`: none can be published to.
fn response_topic(address: &str) -> Option<String> {
    match NAMES.is_answer_address(address) {
        true => topic_of(address),
        false if address.is_empty() => None,
        false => topic_of(&format!("{QUEUE_SUBJECT_PREFIX}{address}")),
    }
}

/// The topic that a subject is, if it can be a topic name.
fn topic_of(subject: &str) -> Option<String> {
    let topic = mapping::subject_of(subject);
    topic::name(topic.as_bytes()).is_ok().then_some(topic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_find_their_way() {
        for (address, topic) in [
            ("orders", Some("$QUEUE/orders")),
            ("orders.eu", Some("$QUEUE/orders/eu")),
            ("amq.rabbitmq.reply-to.x", Some("amq/rabbitmq/reply-to/x")),
            ("_INBOX.7", Some("_INBOX/7")),
            ("a#", None),
            ("", None),
        ] {
            assert_eq!(response_topic(address).as_deref(), topic, "{address}");
        }
    }
}
