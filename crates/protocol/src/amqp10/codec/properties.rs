//! The sections of a message that are composites: header and properties (part 3, 3.2.1 and 3.2.4).

use super::composite::composites;
use super::field::Field;
use super::malformed::{Malformed, malformed};
use super::value::{self, Symbol, Timestamp, Uuid, Value};
use super::wire::Reader;

/// What identifies a message. Ids of different types are different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MessageId<'a> {
    ULong(u64),
    Uuid(Uuid),
    Binary(&'a [u8]),
    String(&'a str),
}

impl<'a> Field<'a> for MessageId<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        match value::read(reader)? {
            Value::ULong(id) => Ok(MessageId::ULong(id)),
            Value::Uuid(id) => Ok(MessageId::Uuid(id)),
            Value::Binary(id) => Ok(MessageId::Binary(id)),
            Value::String(id) => Ok(MessageId::String(id)),
            _ => Err(malformed!("is not of type ulong, uuid, binary or string")),
        }
    }
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            MessageId::ULong(id) => id.write(out),
            MessageId::Uuid(id) => id.write(out),
            MessageId::Binary(id) => id.write(out),
            MessageId::String(id) => id.write(out),
        }
    }
}

composites! {
    /// How a message is to be transferred; may change on its way.
    0x70 "amqp:header:list" "header" Header {
        "durable" durable: bool, default false;
        "priority" priority: u8, default 4;
        "ttl" ttl: u32, optional;
        "first-acquirer" first_acquirer: bool, default false;
        "delivery-count" delivery_count: u32, default 0;
    }
    /// What a message is; stays as it is on its way.
    0x73 "amqp:properties:list" "properties" Properties<'a> {
        "message-id" message_id: MessageId<'a>, optional;
        "user-id" user_id: &'a [u8], optional;
        "to" to: &'a str, optional;
        "subject" subject: &'a str, optional;
        "reply-to" reply_to: &'a str, optional;
        "correlation-id" correlation_id: MessageId<'a>, optional;
        "content-type" content_type: Symbol<'a>, optional;
        "content-encoding" content_encoding: Symbol<'a>, optional;
        "absolute-expiry-time" absolute_expiry_time: Timestamp, optional;
        "creation-time" creation_time: Timestamp, optional;
        "group-id" group_id: &'a str, optional;
        "group-sequence" group_sequence: u32, optional;
        "reply-to-group-id" reply_to_group_id: &'a str, optional;
    }
}
