//! What a load sends, as bytes: messages, acknowledgements, queue arguments. Independent of sockets.

use angarium_protocol::amqp091::codec::content::{self, PublishMethod, Tagged};
use angarium_protocol::amqp091::codec::{Properties, put_table};
use angarium_protocol::amqp091::frame;
use serde::{Deserialize, Serialize};

/// Where a message goes and how it is stored: everything its frames carry besides the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The channel it is published on.
    pub channel: u16,
    /// The exchange; empty for the default one.
    pub exchange: &'a str,
    /// The routing key.
    pub key: &'a str,
    /// Delivery mode 2 rather than 1.
    pub persistent: bool,
}

impl Envelope<'_> {
    /// Appends the message in frames of at most `frame_bytes_max`. Returns the offset of the body's
    /// first byte.
    pub fn write(&self, out: &mut Vec<u8>, body: &[u8], frame_bytes_max: u32) -> usize {
        let publish = PublishMethod {
            exchange: self.exchange,
            routing_key: self.key,
            mandatory: false,
            immediate: false,
        };
        publish.write_frame(self.channel, out);
        let mode = if self.persistent { 2 } else { 1 };
        let mut properties = Vec::new();
        Properties { delivery_mode: Some(mode), ..Properties::default() }.encode(&mut properties);
        content::write_header(out, self.channel, body.len() as u64, &properties);
        let body_at = out.len() + frame::HEAD_BYTES;
        frame::write_body(out, self.channel, body, frame_bytes_max);
        body_at
    }
}

/// Appends `basic.ack`.
#[inline]
pub fn write_ack(out: &mut Vec<u8>, channel: u16, delivery_tag: u64, multiple: bool) {
    let bits = u8::from(multiple);
    Tagged { delivery_tag, bits }.write_frame(content::ACK, channel, out);
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
pub fn write_arguments(out: &mut Vec<u8>, arguments: &[(String, Argument)]) {
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
