//! Unsent output of a connection, and what a protocol implements to write it.

use crate::shared_body::SharedBody;
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

impl Output {
    /// Copies a shared body behind the bytes before it, for a host that does not send it in parts.
    pub fn copy_shared_body(&mut self) {
        if let Some(body) = self.shared_body.take() {
            body.parts().for_each(|part| self.bytes.extend_from_slice(part));
        }
    }
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
