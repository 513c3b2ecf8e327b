//! The writer of a connection, one of a closed set of protocols.

use crate::output::{Output, ProtocolWriter};
use crate::peer::Protocol;
use crate::{amqp091, nats};
use angarium_engine::{
    ChannelId, Confirm, Delivery, DirectMessage, GetAnswer, MessageView, Subscribe,
};

/// The writer of some protocol.
#[derive(Debug)]
pub enum AnyWriter {
    /// AMQP 0-9-1.
    Amqp091(amqp091::Writer),
    /// NATS.
    Nats(nats::Writer),
}

/// Calls the protocol's writer.
macro_rules! each {
    ($any:expr, $writer:ident => $result:expr) => {
        match $any {
            AnyWriter::Amqp091($writer) => $result,
            AnyWriter::Nats($writer) => $result,
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
            Protocol::Amqp091 => AnyWriter::Amqp091(amqp091::Writer::default()),
            Protocol::Nats => AnyWriter::Nats(nats::Writer::default()),
        };
        Writer { output: Output::default(), protocol }
    }

    /// Writes a queued message for a consumer.
    #[inline]
    pub fn deliver(&mut self, delivery: &Delivery<'_>) {
        self.output.messages += 1;
        each!(&mut self.protocol, writer => writer.deliver(&mut self.output, delivery));
    }

    /// Writes the message that answers a get.
    pub fn answer_get(&mut self, answer: &GetAnswer<'_>) {
        self.output.messages += 1;
        each!(&mut self.protocol, writer => writer.answer_get(&mut self.output, answer));
    }

    /// Writes a direct message.
    #[inline]
    pub fn send_direct(&mut self, message: &DirectMessage<'_>) {
        self.output.messages += 1;
        each!(&mut self.protocol, writer => writer.send_direct(&mut self.output, message));
    }

    /// Writes direct messages with these payloads and without properties, which have everything else in
    /// common with `message`.
    #[inline]
    pub fn send_direct_batch(&mut self, message: &DirectMessage<'_>, bodies: &[&[u8]]) {
        let out = &mut self.output;
        out.messages += bodies.len() as u64;
        each!(&mut self.protocol, writer => writer.send_direct_batch(out, message, bodies));
    }

    /// Whether a batch for equally named subscriptions is the same bytes for both connections.
    #[inline]
    #[must_use]
    pub fn writes_batches_like(&self, other: &Writer) -> bool {
        match (&self.protocol, &other.protocol) {
            (AnyWriter::Amqp091(one), AnyWriter::Amqp091(other)) => one.writes_batches_like(other),
            (AnyWriter::Nats(one), AnyWriter::Nats(other)) => one.writes_batches_like(other),
            _ => false,
        }
    }

    /// Writes the outcome of publishes.
    pub fn confirm(&mut self, channel: ChannelId, confirm: Confirm) {
        each!(&mut self.protocol, writer => writer.confirm(&mut self.output, channel, confirm));
    }

    /// Writes a mandatory message that no queue took.
    pub fn return_unroutable(&mut self, channel: ChannelId, message: &MessageView<'_>) {
        let out = &mut self.output;
        each!(&mut self.protocol, writer => writer.return_unroutable(out, channel, message));
    }

    /// Writes that the broker has ended a consumer.
    pub fn consumer_cancelled(&mut self, channel: ChannelId, consumer: &str) {
        let out = &mut self.output;
        each!(&mut self.protocol, writer => writer.consumer_cancelled(out, channel, consumer));
    }

    /// Writes that a subscription has ended because its user has lost the right to it.
    pub fn subscription_revoked(&mut self, subscribed: &Subscribe<'_>) {
        let out = &mut self.output;
        each!(&mut self.protocol, writer => writer.subscription_revoked(out, subscribed));
    }

    /// Whether clients of the protocol subscribe to direct messages, which may fill their output up to the
    /// slow-consumer limit.
    #[must_use]
    pub fn has_subscribers(&self) -> bool {
        each!(&self.protocol, writer => writer.has_subscribers())
    }
}
