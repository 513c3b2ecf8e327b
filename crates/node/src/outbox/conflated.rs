//! The last direct message of each subject that waits for a slow consumer (policy `conflate`): a new one
//! takes the place of the one before it.
//!
//! Independent of what a message looks like in a protocol, and of when it is written.

use angarium_engine::{ChannelId, DirectMessage, Lost, OwnedMessage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a message takes beside its content and its names, about.
const MESSAGE_BYTES: usize = 256;

/// One subscription's messages of one subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    channel: ChannelId,
    tag: u64,
    subject: Arc<str>,
}

/// Messages that wait, one for each subscription and subject.
#[derive(Debug, Default)]
pub(crate) struct Conflated {
    /// In the order in which their subjects began to wait.
    waiting: BTreeMap<u64, KeptMessage>,
    places: BTreeMap<Key, u64>,
    next: u64,
    bytes: usize,
}

/// A message that is kept until it can be written.
#[derive(Debug)]
pub(crate) struct KeptMessage {
    key: Key,
    subscription: Box<str>,
    missed: u64,
    emission: u64,
    message: OwnedMessage,
}

impl KeptMessage {
    fn of(message: &DirectMessage<'_>) -> KeptMessage {
        let kept = OwnedMessage::of(&message.message, message.message.shared.cloned());
        let subject = Arc::clone(kept.routing_key());
        KeptMessage {
            key: Key { channel: message.channel, tag: message.tag, subject },
            subscription: message.subscription.into(),
            missed: message.missed,
            emission: message.emission,
            message: kept,
        }
    }

    fn bytes(&self) -> usize {
        self.message.bytes() + self.subscription.len() + MESSAGE_BYTES
    }

    /// As it is written to its subscriber.
    pub(crate) fn message(&self) -> DirectMessage<'_> {
        DirectMessage {
            channel: self.key.channel,
            subscription: &self.subscription,
            tag: self.key.tag,
            missed: self.missed,
            slow_consumer_policy: None,
            emission: self.emission,
            route: 0,
            message: self.message.view(),
        }
    }

    /// Whose it is, and what is lost with it: the message, and those that it would have told of.
    fn lost(&self) -> ((ChannelId, u64), Lost) {
        ((self.key.channel, self.key.tag), Lost::one(self.missed))
    }
}

impl Conflated {
    /// Bytes of memory that they take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Keeps a message; says whether it took the place of another, of which it tells.
    pub(crate) fn keep(&mut self, message: &DirectMessage<'_>) -> bool {
        let mut kept = KeptMessage::of(message);
        let place = self.places.get(&kept.key).copied();
        if let Some(before) = place.and_then(|place| self.waiting.get_mut(&place)) {
            kept.missed += before.missed + 1;
            self.bytes = self.bytes + kept.bytes() - before.bytes();
            *before = kept;
            return true;
        }
        self.bytes += kept.bytes();
        self.places.insert(kept.key.clone(), self.next);
        self.waiting.insert(self.next, kept);
        self.next += 1;
        false
    }

    /// Takes the first one out.
    pub(crate) fn take_first(&mut self) -> Option<KeptMessage> {
        let (_, kept) = self.waiting.pop_first()?;
        self.places.remove(&kept.key);
        self.bytes -= kept.bytes();
        Some(kept)
    }

    /// Drops the first one; says whose it was, and what is lost with it.
    pub(crate) fn drop_first(&mut self) -> Option<((ChannelId, u64), Lost)> {
        self.take_first().map(|kept| kept.lost())
    }
}
