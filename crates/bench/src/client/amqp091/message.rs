//! What a load sends, as bytes: messages, acknowledgements, queue arguments. Independent of sockets.

use crate::client::{Encoded, Route};
use angarium_protocol::amqp091::codec::content::{self, PublishMethod, Tagged};
use angarium_protocol::amqp091::codec::{Properties, put_table};
use angarium_protocol::amqp091::frame;
use serde::{Deserialize, Serialize};

/// The only channel that a load uses.
pub(super) const CHANNEL: u16 = 1;

/// Appends a message in frames of at most `frame_bytes_max`.
pub(super) fn write_publish(
    out: &mut Vec<u8>,
    route: &Route<'_>,
    body: &[u8],
    frame_bytes_max: u32,
) -> Encoded {
    let publish = PublishMethod {
        exchange: route.exchange,
        routing_key: route.key,
        mandatory: false,
        immediate: false,
    };
    publish.write_frame(CHANNEL, out);
    write_content(out, route.persistent, body, frame_bytes_max)
}

/// Appends a content header and its body.
pub(super) fn write_content(
    out: &mut Vec<u8>,
    persistent: bool,
    body: &[u8],
    frame_bytes_max: u32,
) -> Encoded {
    let delivery_mode = Some(if persistent { 2 } else { 1 });
    let mut properties = Vec::new();
    Properties { delivery_mode, ..Properties::default() }.encode(&mut properties);
    content::write_header(out, CHANNEL, body.len() as u64, &properties);
    let body_at = out.len() + frame::HEAD_BYTES;
    frame::write_body(out, CHANNEL, body, frame_bytes_max);
    Encoded::body_at(body_at)
}

/// Appends `basic.ack`.
#[inline]
pub(super) fn write_ack(out: &mut Vec<u8>, delivery_tag: u64, multiple: bool) {
    let bits = u8::from(multiple);
    Tagged { delivery_tag, bits }.write_frame(content::ACK, CHANNEL, out);
}

/// A value of a queue's arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Argument {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A boolean.
    Boolean(bool),
}

impl Argument {
    /// Reads `value` as given on a command line: a number, `true` or `false`, or text.
    pub fn from_text(value: &str) -> Argument {
        if let Ok(number) = value.parse() {
            return Argument::Integer(number);
        }
        match value {
            "true" => Argument::Boolean(true),
            "false" => Argument::Boolean(false),
            text => Argument::Text(text.to_owned()),
        }
    }
}

/// Appends the arguments as a table, preceded by its length.
pub(super) fn write_arguments(out: &mut Vec<u8>, arguments: &[(String, Argument)]) {
    put_table(out, |table| {
        for (name, value) in arguments {
            match value {
                Argument::Text(text) => table.text(name, text),
                Argument::Integer(number) => table.int(name, *number),
                Argument::Boolean(value) => table.bool(name, *value),
            }
        }
    });
}
