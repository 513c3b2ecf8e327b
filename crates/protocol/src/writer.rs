//! The writer of a connection, one of a closed set of protocols.

use crate::output::{Output, ProtocolWriter, written};
use crate::peer::Protocol;
use crate::{amqp10, amqp091, mqtt, nats, stomp};
use angarium_engine::{
    CancelReason, ChannelId, Confirm, Delivery, DirectMessage, GetAnswer, MessageView, Subscribe,
};

/// The writer of some protocol.
#[derive(Debug)]
pub enum AnyWriter {
    /// AMQP 0-9-1.
    Amqp091(amqp091::Writer),
    /// AMQP 1.0.
    Amqp10(Box<amqp10::Writer>),
    /// MQTT.
    Mqtt(Box<mqtt::Writer>),
    /// NATS.
    Nats(nats::Writer),
    /// STOMP.
    Stomp(Box<stomp::Writer>),
}

/// Calls the protocol's writer.
macro_rules! each {
    ($any:expr, $writer:ident => $result:expr) => {
        match $any {
            AnyWriter::Amqp091($writer) => $result,
            AnyWriter::Amqp10($writer) => $result,
            AnyWriter::Mqtt($writer) => $result,
            AnyWriter::Nats($writer) => $result,
            AnyWriter::Stomp($writer) => $result,
        }
    };
}

/// Where everything for one connection is written.
#[derive(Debug)]
pub struct Writer {
    /// What is written and not sent.
    pub output: Output,
    /// How the protocol writes it. A handler replaces it as soon as it has agreed with its client on how to
    /// be written to.
    pub protocol: AnyWriter,
}

impl Default for Writer {
    fn default() -> Writer {
        Writer::new(Protocol::default())
    }
}

impl Writer {
    /// The writer of a new connection.
    #[must_use]
    pub fn new(protocol: Protocol) -> Writer {
        let protocol = match protocol {
            // Until it is known what is spoken, nothing is written by it.
            Protocol::Amqp | Protocol::WebSocket | Protocol::Any => {
                AnyWriter::Amqp091(amqp091::Writer::default())
            }
            Protocol::Mqtt => AnyWriter::Mqtt(Box::default()),
            Protocol::Nats => AnyWriter::Nats(nats::Writer::default()),
            Protocol::Stomp => AnyWriter::Stomp(Box::default()),
        };
        Writer { output: Output::default(), protocol }
    }

    /// Whether a batch for equally named subscriptions is the same bytes for both connections.
    #[inline]
    #[must_use]
    pub fn writes_batches_like(&self, other: &Writer) -> bool {
        match (&self.protocol, &other.protocol) {
            (AnyWriter::Amqp091(one), AnyWriter::Amqp091(other)) => one.writes_batches_like(other),
            (AnyWriter::Mqtt(one), AnyWriter::Mqtt(other)) => one.writes_batches_like(other),
            (AnyWriter::Nats(one), AnyWriter::Nats(other)) => one.writes_batches_like(other),
            _ => false,
        }
    }

    /// The writer of AMQP 1.0, which it becomes where it was another, and the output.
    #[inline]
    pub(crate) fn amqp10(&mut self) -> (&mut amqp10::Writer, &mut Output) {
        if !matches!(self.protocol, AnyWriter::Amqp10(_)) {
            self.protocol = AnyWriter::Amqp10(Box::default());
        }
        match &mut self.protocol {
            AnyWriter::Amqp10(writer) => (writer, &mut self.output),
            _ => unreachable!("it was made that just now"),
        }
    }

    /// The writer of MQTT, which it becomes where it was another, and the output.
    #[inline]
    pub(crate) fn mqtt(&mut self) -> (&mut mqtt::Writer, &mut Output) {
        if !matches!(self.protocol, AnyWriter::Mqtt(_)) {
            self.protocol = AnyWriter::Mqtt(Box::default());
        }
        match &mut self.protocol {
            AnyWriter::Mqtt(writer) => (writer, &mut self.output),
            _ => unreachable!("it was made that just now"),
        }
    }

    /// The writer of STOMP, which it becomes where it was another, and the output.
    #[inline]
    pub(crate) fn stomp(&mut self) -> (&mut stomp::Writer, &mut Output) {
        if !matches!(self.protocol, AnyWriter::Stomp(_)) {
            self.protocol = AnyWriter::Stomp(Box::default());
        }
        match &mut self.protocol {
            AnyWriter::Stomp(writer) => (writer, &mut self.output),
            _ => unreachable!("it was made that just now"),
        }
    }

    /// Bytes that the writer takes, about, where that depends on the client.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        each!(&self.protocol, writer => writer.held_bytes())
    }

    /// Whether clients of the protocol subscribe to direct messages: their output may fill with those up to
    /// the slow-consumer limit, and they are still read from.
    #[must_use]
    pub fn has_subscribers(&self) -> bool {
        each!(&self.protocol, writer => writer.has_subscribers())
    }
}

/// Declares functions of [`Writer`] that call the protocol's writer.
macro_rules! forward {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($argument:ident: $type:ty),*) $(adding $messages:expr)?;
    )*) => {
        impl Writer {$(
            $(#[$doc])*
            #[inline]
            pub fn $name(&mut self, $($argument: $type),*) {
                let out = &mut self.output;
                $(out.messages += $messages;)?
                each!(&mut self.protocol, writer => writer.$name(out, $($argument),*));
            }
        )*}
    };
}

written!(forward);
