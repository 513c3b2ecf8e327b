//! The formats of properties: each protocol that carries messages adds its own.

use angarium_engine::Format;

/// The property flags and property list of an AMQP 0-9-1 content header (spec 4.2.6.1).
pub const AMQP091: Format = Format(1);

/// Of a NATS message: the length of the reply subject in two bytes, most significant first, the reply
/// subject, and the header block as it is sent (from `NATS/1.0` to the empty line) or nothing. No bytes at
/// all: neither reply subject nor headers.
pub const NATS: Format = Format(2);

/// Of an AMQP 1.0 message: what its header says, and its annotations and properties as published
/// (`amqp10/stored.rs`).
pub const AMQP10: Format = Format(3);

/// Of an MQTT message: its QoS and its retain flag, and its properties as published (`mqtt/stored.rs`).
pub const MQTT: Format = Format(4);

/// Of a STOMP message: the header lines of its frame that say something of the message, `name:value` and LF
/// each, escaped as in STOMP 1.2.
pub const STOMP: Format = Format(5);
