//! Every method of AMQP 0-9-1 with RabbitMQ's extensions, as one table; the rest is derived from it.

use super::table::Table;
use super::wire::{Field, Malformed, Reader, Writer};
use crate::amqp091::frame;

/// What the method table says of one method.
#[derive(Clone, Copy, Debug)]
pub struct MethodInfo {
    /// The class's number.
    pub class: u16,
    /// The method's number in its class.
    pub id: u16,
    /// As error texts name it: `queue.declare`.
    pub name: &'static str,
    /// Its fields' names and types, in order. Types are those of the specification: `ShortStr`.
    pub fields: &'static [(&'static str, &'static str)],
}

macro_rules! field_type {
    ($life:lifetime Octet) => { u8 };
    ($life:lifetime Short) => { u16 };
    ($life:lifetime Long) => { u32 };
    ($life:lifetime LongLong) => { u64 };
    ($life:lifetime Bit) => { bool };
    ($life:lifetime ShortStr) => { &$life str };
    ($life:lifetime LongStr) => { &$life [u8] };
    ($life:lifetime Table) => { Table<$life> };
}

macro_rules! methods {
    ($(#[$meta:meta])* enum $enum:ident<$life:lifetime> {$(
        class $class:literal {$(
            $id:literal $name:literal $variant:ident { $($field:ident: $type:ident),* }
        )*}
    )*}) => {
        $(#[$meta])*
        pub enum $enum<$life> {
            $($($variant { $($field: field_type!($life $type)),* },)*)*
        }

        /// The table, in the order of class and method numbers.
        pub const METHODS: &[MethodInfo] = &[$($(MethodInfo {
            class: $class,
            id: $id,
            name: $name,
            fields: &[$((stringify!($field), stringify!($type))),*],
        }),*),*];

        impl<$life> $enum<$life> {
            fn read(class: u16, id: u16, r: &mut Reader<$life>) -> Result<Self, DecodeError> {
                Ok(match (class, id) {
                    $($(($class, $id) => $enum::$variant { $($field: field(r)?),* },)*)*
                    _ => return Err(DecodeError::Unknown { class, id }),
                })
            }
            fn write(&self, _w: &mut Writer<'_>) {
                match self {
                    $($($enum::$variant { $($field),* } => { $(Field::write($field, _w);)* })*)*
                }
            }
            /// Class and method number.
            #[must_use]
            pub fn ids(&self) -> (u16, u16) {
                match self { $($($enum::$variant { .. } => ($class, $id),)*)* }
            }
        }
    };
}

fn field<'a, T: Field<'a>>(reader: &mut Reader<'a>) -> Result<T, DecodeError> {
    T::read(reader).map_err(DecodeError::Malformed)
}

/// Why a method frame's payload is no method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// No method has these numbers.
    Unknown {
        /// The class's number.
        class: u16,
        /// The method's number.
        id: u16,
    },
    /// Its fields are not what the table says.
    Malformed(Malformed),
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DecodeError::Unknown { class, id } => {
                write!(f, "no method has the number {class}.{id}")
            }
            DecodeError::Malformed(why) => why.fmt(f),
        }
    }
}

/// The name of a method, for error texts.
#[must_use]
pub fn name(class: u16, id: u16) -> &'static str {
    METHODS.iter().find(|info| (info.class, info.id) == (class, id)).map_or("?", |info| info.name)
}

impl<'a> Method<'a> {
    /// Decodes the payload of a method frame.
    pub fn decode(payload: &'a [u8]) -> Result<Method<'a>, DecodeError> {
        let mut reader = Reader::new(payload);
        let (class, id) = (field(&mut reader)?, field(&mut reader)?);
        let method = Method::read(class, id, &mut reader)?;
        reader.finish().map_err(DecodeError::Malformed)?;
        Ok(method)
    }
    /// Appends class and method number and fields: the payload of a method frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (class, id) = self.ids();
        out.extend_from_slice(&class.to_be_bytes());
        out.extend_from_slice(&id.to_be_bytes());
        self.write(&mut Writer::new(out));
    }
    /// Appends a whole method frame.
    pub fn write_frame(&self, channel: u16, out: &mut Vec<u8>) {
        let at = frame::begin(out, frame::METHOD, channel);
        self.encode(out);
        frame::end(out, at);
    }
    /// Its name, for error texts.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let (class, id) = self.ids();
        name(class, id)
    }
}

methods! {
    /// A method. Names of fields are those of the specification; strings and tables are borrowed.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[allow(missing_docs)]
    enum Method<'a> {
        class 10 {
            10 "connection.start" ConnectionStart {
                version_major: Octet, version_minor: Octet, server_properties: Table,
                mechanisms: LongStr, locales: LongStr
            }
            11 "connection.start-ok" ConnectionStartOk {
                client_properties: Table, mechanism: ShortStr, response: LongStr, locale: ShortStr
            }
            20 "connection.secure" ConnectionSecure { challenge: LongStr }
            21 "connection.secure-ok" ConnectionSecureOk { response: LongStr }
            30 "connection.tune" ConnectionTune {
                channel_max: Short, frame_max: Long, heartbeat: Short
            }
            31 "connection.tune-ok" ConnectionTuneOk {
                channel_max: Short, frame_max: Long, heartbeat: Short
            }
            40 "connection.open" ConnectionOpen {
                virtual_host: ShortStr, capabilities: ShortStr, insist: Bit
            }
            41 "connection.open-ok" ConnectionOpenOk { known_hosts: ShortStr }
            50 "connection.close" ConnectionClose {
                reply_code: Short, reply_text: ShortStr, class_id: Short, method_id: Short
            }
            51 "connection.close-ok" ConnectionCloseOk {}
            60 "connection.blocked" ConnectionBlocked { reason: ShortStr }
            61 "connection.unblocked" ConnectionUnblocked {}
            70 "connection.update-secret" ConnectionUpdateSecret {
                new_secret: LongStr, reason: ShortStr
            }
            71 "connection.update-secret-ok" ConnectionUpdateSecretOk {}
        }
        class 20 {
            10 "channel.open" ChannelOpen { out_of_band: ShortStr }
            11 "channel.open-ok" ChannelOpenOk { channel_id: LongStr }
            20 "channel.flow" ChannelFlow { active: Bit }
            21 "channel.flow-ok" ChannelFlowOk { active: Bit }
            40 "channel.close" ChannelClose {
                reply_code: Short, reply_text: ShortStr, class_id: Short, method_id: Short
            }
            41 "channel.close-ok" ChannelCloseOk {}
        }
        class 30 {
            10 "access.request" AccessRequest {
                realm: ShortStr, exclusive: Bit, passive: Bit, active: Bit, write: Bit, read: Bit
            }
            11 "access.request-ok" AccessRequestOk { ticket: Short }
        }
        class 40 {
            10 "exchange.declare" ExchangeDeclare {
                ticket: Short, exchange: ShortStr, kind: ShortStr, passive: Bit, durable: Bit,
                auto_delete: Bit, internal: Bit, no_wait: Bit, arguments: Table
            }
            11 "exchange.declare-ok" ExchangeDeclareOk {}
            20 "exchange.delete" ExchangeDelete {
                ticket: Short, exchange: ShortStr, if_unused: Bit, no_wait: Bit
            }
            21 "exchange.delete-ok" ExchangeDeleteOk {}
            30 "exchange.bind" ExchangeBind {
                ticket: Short, destination: ShortStr, source: ShortStr, routing_key: ShortStr,
                no_wait: Bit, arguments: Table
            }
            31 "exchange.bind-ok" ExchangeBindOk {}
            40 "exchange.unbind" ExchangeUnbind {
                ticket: Short, destination: ShortStr, source: ShortStr, routing_key: ShortStr,
                no_wait: Bit, arguments: Table
            }
            51 "exchange.unbind-ok" ExchangeUnbindOk {}
        }
        class 50 {
            10 "queue.declare" QueueDeclare {
                ticket: Short, queue: ShortStr, passive: Bit, durable: Bit, exclusive: Bit,
                auto_delete: Bit, no_wait: Bit, arguments: Table
            }
            11 "queue.declare-ok" QueueDeclareOk {
                queue: ShortStr, message_count: Long, consumer_count: Long
            }
            20 "queue.bind" QueueBind {
                ticket: Short, queue: ShortStr, exchange: ShortStr, routing_key: ShortStr,
                no_wait: Bit, arguments: Table
            }
            21 "queue.bind-ok" QueueBindOk {}
            30 "queue.purge" QueuePurge { ticket: Short, queue: ShortStr, no_wait: Bit }
            31 "queue.purge-ok" QueuePurgeOk { message_count: Long }
            40 "queue.delete" QueueDelete {
                ticket: Short, queue: ShortStr, if_unused: Bit, if_empty: Bit, no_wait: Bit
            }
            41 "queue.delete-ok" QueueDeleteOk { message_count: Long }
            50 "queue.unbind" QueueUnbind {
                ticket: Short, queue: ShortStr, exchange: ShortStr, routing_key: ShortStr,
                arguments: Table
            }
            51 "queue.unbind-ok" QueueUnbindOk {}
        }
        class 60 {
            10 "basic.qos" BasicQos {
                prefetch_size: Long, prefetch_count: Short, global: Bit
            }
            11 "basic.qos-ok" BasicQosOk {}
            20 "basic.consume" BasicConsume {
                ticket: Short, queue: ShortStr, consumer_tag: ShortStr, no_local: Bit, no_ack: Bit,
                exclusive: Bit, no_wait: Bit, arguments: Table
            }
            21 "basic.consume-ok" BasicConsumeOk { consumer_tag: ShortStr }
            30 "basic.cancel" BasicCancel { consumer_tag: ShortStr, no_wait: Bit }
            31 "basic.cancel-ok" BasicCancelOk { consumer_tag: ShortStr }
            40 "basic.publish" BasicPublish {
                ticket: Short, exchange: ShortStr, routing_key: ShortStr, mandatory: Bit,
                immediate: Bit
            }
            50 "basic.return" BasicReturn {
                reply_code: Short, reply_text: ShortStr, exchange: ShortStr, routing_key: ShortStr
            }
            60 "basic.deliver" BasicDeliver {
                consumer_tag: ShortStr, delivery_tag: LongLong, redelivered: Bit,
                exchange: ShortStr, routing_key: ShortStr
            }
            70 "basic.get" BasicGet { ticket: Short, queue: ShortStr, no_ack: Bit }
            71 "basic.get-ok" BasicGetOk {
                delivery_tag: LongLong, redelivered: Bit, exchange: ShortStr,
                routing_key: ShortStr, message_count: Long
            }
            72 "basic.get-empty" BasicGetEmpty { cluster_id: ShortStr }
            80 "basic.ack" BasicAck { delivery_tag: LongLong, multiple: Bit }
            90 "basic.reject" BasicReject { delivery_tag: LongLong, requeue: Bit }
            100 "basic.recover-async" BasicRecoverAsync { requeue: Bit }
            110 "basic.recover" BasicRecover { requeue: Bit }
            111 "basic.recover-ok" BasicRecoverOk {}
            120 "basic.nack" BasicNack {
                delivery_tag: LongLong, multiple: Bit, requeue: Bit
            }
        }
        class 85 {
            10 "confirm.select" ConfirmSelect { no_wait: Bit }
            11 "confirm.select-ok" ConfirmSelectOk {}
        }
        class 90 {
            10 "tx.select" TxSelect {}
            11 "tx.select-ok" TxSelectOk {}
            20 "tx.commit" TxCommit {}
            21 "tx.commit-ok" TxCommitOk {}
            30 "tx.rollback" TxRollback {}
            31 "tx.rollback-ok" TxRollbackOk {}
        }
    }
}
