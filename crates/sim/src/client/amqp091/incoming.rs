//! What arrives at an AMQP 0-9-1 client: methods and whole messages.

use crate::history::MessageId;

/// Prefix of the tags of direct reply-to consumers.
pub(super) const INBOX_TAG: &str = "inbox.";

/// What arrived, as a client sees it.
#[derive(Clone, Debug)]
pub(super) enum Incoming {
    /// connection.start.
    Start,
    /// connection.tune with frame-max and heartbeat.
    Tune { frame_max: u32, heartbeat: u16 },
    /// connection.open-ok.
    Opened,
    /// The answer to the oldest request on the channel, with the count that some answers have.
    Answer { messages: u32 },
    /// A whole message.
    Message(Message),
    /// basic.ack or basic.nack.
    Confirm { tag: u64, multiple: bool, accepted: bool },
    /// basic.cancel: the broker ended a consumer.
    Cancelled,
    /// channel.close.
    ChannelClosed { code: u16, text: String },
    /// connection.close.
    ConnectionClosed { code: u16, text: String },
    /// connection.close-ok.
    Goodbye,
    /// A heartbeat, or a notice that changes nothing for these clients (connection.blocked).
    Notice,
}

/// How a message arrived.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// basic.deliver.
    Delivered { consumer: String },
    /// basic.get-ok.
    Got,
    /// basic.return.
    Returned,
}

/// A message with all its frames.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// How it arrived.
    pub(super) way: Way,
    pub(super) tag: u64,
    pub(super) redelivered: bool,
    /// The message that its body names, if the body is intact.
    pub(super) id: Option<MessageId>,
    /// Bytes of its body.
    pub(super) bytes: u64,
    /// The header `x-delivery-count`, 0 where there is none.
    pub(super) requeues: u64,
    /// The reply-to property, and the correlation id as the requester's number.
    pub(super) reply_to: Option<(String, u32)>,
}
