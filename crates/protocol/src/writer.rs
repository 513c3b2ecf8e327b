//! What is written to a connection: its output, and the writer of its protocol, a closed set.

use crate::{Protocol, SharedBody, amqp091, nats};
use angarium_engine::{
    ChannelId, Confirm, Delivery, DirectMessage, GetAnswer, MessageView, SlowConsumerPolicy,
    Subscribe,
};

/// Unsent output of one connection, the same for every protocol.
#[derive(Debug, Default)]
pub struct Output {
    /// Bytes to be sent. The host sends and clears them.
    pub bytes: Vec<u8>,
    /// What comes after those: the body of the message that was written last, where that is large and
    /// shared. The host takes it before anything else is written.
    pub shared_body: Option<Box<SharedBody>>,
    /// Messages written so far.
    pub messages: u64,
    /// What becomes of direct messages for which the client is too slow, where it says so itself.
    pub slow_consumer_policy: Option<SlowConsumerPolicy>,
}

/// How a protocol writes what the engine sends to one connection. Implemented once per protocol, by the
/// state that it needs for that; what a protocol has no words for, its implementation leaves out.
pub(crate) trait ProtocolWriter {
    /// Writes a queued message for a consumer.
    fn deliver(&mut self, out: &mut Output, delivery: &Delivery<'_>);
    /// Writes the message that answers a get.
    fn answer_get(&mut self, out: &mut Output, answer: &GetAnswer<'_>);
    /// Writes a direct message.
    fn send_direct(&mut self, out: &mut Output, message: &DirectMessage<'_>);
    /// Writes direct messages with these payloads and without properties, which have everything else in
    /// common with `message`.
    fn send_direct_batch(
        &mut self,
        out: &mut Output,
        message: &DirectMessage<'_>,
        bodies: &[&[u8]],
    );
    /// Whether a batch for equally named subscriptions is the same bytes for both connections.
    fn writes_batches_like(&self, other: &Self) -> bool;
    /// Writes the outcome of publishes.
    fn confirm(&mut self, out: &mut Output, channel: ChannelId, confirm: Confirm);
    /// Writes a mandatory message that no queue took.
    fn return_unroutable(
        &mut self,
        out: &mut Output,
        channel: ChannelId,
        message: &MessageView<'_>,
    );
    /// Writes that the broker has ended a consumer.
    fn consumer_cancelled(&mut self, out: &mut Output, channel: ChannelId, consumer: &str);
    /// Writes that a subscription has ended because its user has lost the right to it.
    fn subscription_revoked(&mut self, out: &mut Output, subscribed: &Subscribe<'_>);
    /// Whether clients subscribe to direct messages: their output may fill with those up to the
    /// slow-consumer limit, and they are still read from.
    fn has_subscribers(&self) -> bool;
}

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

impl Output {
    /// Copies a shared body behind the bytes before it, for a host that does not send it in parts.
    pub fn copy_shared_body(&mut self) {
        if let Some(body) = self.shared_body.take() {
            body.parts().for_each(|part| self.bytes.extend_from_slice(part));
        }
    }
}
