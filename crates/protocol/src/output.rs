//! Unsent output of a connection, and what a protocol implements to write it.

use crate::shared_body::SharedBody;
use angarium_engine::{
    CancelReason, ChannelId, Confirm, Delivery, DirectMessage, GetAnswer, MessageView,
    SlowConsumerPolicy, Subscribe,
};

/// Unsent output of one connection, the same for every protocol.
#[derive(Debug, Default)]
pub struct Output {
    /// Bytes to be sent. The host sends and clears them.
    pub bytes: Vec<u8>,
    /// What comes after those: the body of the message that was written last, where that is large and
    /// shared. The host takes it before anything else is written.
    pub shared_body: Option<Box<SharedBody>>,
    /// Bytes of messages that are kept until the peer has room for them, or the output has.
    pub held: usize,
    /// What was written leaves something to do for the handler: the host calls
    /// [`ProtocolHandler::written`](crate::ProtocolHandler::written) by the end of the turn.
    pub calls_handler: bool,
    /// Messages written so far.
    pub messages: u64,
    /// What becomes of direct messages for which the client is too slow, where it says so itself.
    pub slow_consumer_policy: Option<SlowConsumerPolicy>,
}

/// Hands another macro the list of what the engine has written, with what each adds to the messages.
macro_rules! written {
    ($declare:ident) => {
        $declare! {
            /// Writes a queued message for a consumer.
            fn deliver(delivery: &Delivery<'_>) adding 1;
            /// Writes the message that answers a get.
            fn answer_get(answer: &GetAnswer<'_>) adding 1;
            /// Writes a direct message.
            fn send_direct(message: &DirectMessage<'_>) adding 1;
            /// Writes direct messages with these payloads and without properties, which have everything
            /// else in common with `message`.
            fn send_direct_batch(message: &DirectMessage<'_>, bodies: &[&[u8]])
                adding bodies.len() as u64;
            /// Writes the outcome of publishes.
            fn confirm(channel: ChannelId, confirm: Confirm<'_>);
            /// What sends to the queue that a publish went into, which has that number, is to pause.
            fn congested(channel: ChannelId, publish: u64, queue: u64);
            /// What sends to the queue of that number goes on.
            fn eased(channel: ChannelId, queue: u64);
            /// Writes a mandatory message that no queue took.
            fn return_unroutable(channel: ChannelId, message: &MessageView<'_>);
            /// Writes that the broker has ended a consumer.
            fn consumer_cancelled(channel: ChannelId, consumer: &str, why: CancelReason);
            /// Writes that there is nothing more to deliver to a consumer, which has had `delivered`
            /// deliveries since it began.
            fn drained(channel: ChannelId, consumer: &str, delivered: u64);
            /// Writes what is kept until there is room for it.
            fn send_held();
            /// Writes that a subscription has ended because its user has lost the right to it.
            fn subscription_revoked(subscribed: &Subscribe<'_>);
        }
    };
}
pub(crate) use written;

macro_rules! protocol_writer {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($argument:ident: $type:ty),*) $(adding $messages:expr)?;
    )*) => {
        /// How a protocol writes what the engine sends to one connection. Implemented once per protocol, by
        /// the state that it needs for that; what a protocol has no words for, its implementation leaves out.
        pub(crate) trait ProtocolWriter {
            $($(#[$doc])*
            fn $name(&mut self, out: &mut Output, $($argument: $type),*) {
                let _ = (out, $($argument),*);
            })*
            /// Whether a batch for equally named subscriptions is the same bytes for both connections.
            fn writes_batches_like(&self, _other: &Self) -> bool {
                false
            }
            /// Whether clients subscribe to direct messages.
            fn has_subscribers(&self) -> bool {
                false
            }
            /// Bytes that it takes, about, where that depends on the client.
            fn held_bytes(&self) -> usize {
                0
            }
        }
    };
}

written!(protocol_writer);
