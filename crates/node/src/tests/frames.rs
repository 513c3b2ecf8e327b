//! Frames that clients send.

use angarium_protocol::amqp091::codec::{Properties, content};
use angarium_protocol::amqp091::frame;

pub(super) const FRAME_MAX: u32 = 131_072;

/// The frames that publish a message to a queue, on channel 1.
pub(super) fn message(queue: &str, body: &[u8], persistent: bool) -> Vec<u8> {
    message_to("", queue, body, persistent)
}

/// Those that publish one to an exchange.
pub(super) fn message_to(
    exchange: &str,
    routing_key: &str,
    body: &[u8],
    persistent: bool,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let method =
        content::PublishMethod { exchange, routing_key, mandatory: false, immediate: false };
    method.write_frame(1, &mut bytes);
    let mode = if persistent { 2 } else { 1 };
    let mut properties = Vec::new();
    Properties { delivery_mode: Some(mode), ..Properties::default() }.encode(&mut properties);
    content::write_header(&mut bytes, 1, body.len() as u64, &properties);
    frame::write_body(&mut bytes, 1, body, FRAME_MAX);
    bytes
}
