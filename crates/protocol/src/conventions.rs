//! What an engine that serves these protocols is made with: names, and readers of encoded properties.

use crate::format::AMQP10;
use crate::mqtt;
use crate::names::NAMES;
use crate::properties::{
    FURTHER_KEYS_HEADER, GROUP_HEADER, HeaderValue, Property, SEQUENCE_HEADER,
};
use crate::selection::read_property;
use crate::translation::visit;
use crate::{format, read_headers};
use angarium_engine::limits::NAME_BYTES_MAX;
use angarium_engine::{Content, Conventions, MessageGroup, Value};

/// What an engine that serves these protocols is made with.
pub static CONVENTIONS: Conventions = Conventions {
    names: NAMES,
    read_headers,
    read_property,
    read_further_keys,
    read_group,
    // As RabbitMQ's clients know it, a delayed message is as good as sent when its delay ends.
    lives_from_sending: |format| format == AMQP10,
    is_exactly_once,
};

/// Whether a message was published with MQTT's QoS 2.
fn is_exactly_once(content: &Content<'_>) -> bool {
    content.format == format::MQTT && mqtt::is_exactly_once(content.properties)
}

/// The routing keys in the header for further ones.
fn read_further_keys(content: &Content<'_>) -> Vec<String> {
    let mut keys = Vec::new();
    read_headers(content.format, content.properties, &mut |name, value| {
        if let (FURTHER_KEYS_HEADER, Value::List(further)) = (name, value) {
            keys.extend(further.iter().filter_map(routing_key));
        }
    });
    keys
}

/// The group that a message is of, as JMS clients say it in any protocol.
fn read_group(content: &Content<'_>) -> Option<MessageGroup> {
    let (mut group, mut sequence) = (None, None);
    visit(content.format, content.properties, &mut |property| {
        match property {
            Property::Header(GROUP_HEADER, HeaderValue::Text(name)) => {
                group = Some(name.to_owned());
            }
            Property::Header(SEQUENCE_HEADER, HeaderValue::Other(number)) => {
                sequence = number.as_int();
            }
            Property::Header(SEQUENCE_HEADER, HeaderValue::Text(number)) => {
                sequence = number.parse().ok();
            }
            _ => {}
        }
        true
    });
    Some(MessageGroup::new(&group?, sequence))
}

fn routing_key(key: &Value) -> Option<String> {
    match key {
        Value::Text(key) if key.len() <= NAME_BYTES_MAX => Some(key.clone()),
        _ => None,
    }
}
