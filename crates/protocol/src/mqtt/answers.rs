//! Answers to SUBSCRIBE and UNSUBSCRIBE, which wait until all shards know of what they answer.

use super::codec::{Properties, Reason, Suback, Version};
use super::frame::PacketType;
use super::subscriptions::Subscription;
use angarium_engine::Bytes;

/// SUBACK or UNSUBACK.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) packet_type: PacketType,
    pub(super) packet_id: u16,
    pub(super) reasons: Vec<Reason>,
}

impl Answer {
    pub(super) fn write(self, version: Version, out: &mut Vec<u8>) {
        let Answer { packet_type, packet_id, reasons } = self;
        let answer = Suback { packet_id, properties: Properties::NONE, reasons };
        answer.write(packet_type, version, out);
    }
}

/// A SUBSCRIBE or UNSUBSCRIBE that is being carried out.
#[derive(Debug)]
pub(super) struct Subscribing {
    pub(super) answer: Answer,
    /// Filters that are subscribed to, with their place in the packet.
    pub(super) wanted: Vec<(usize, Box<str>, Subscription)>,
    /// Filters that are in force unless the engine refuses them, with their place in the packet.
    pub(super) begun: Vec<(usize, Box<str>)>,
    /// Places in the packet, and filters, whose retained messages are replayed once the answer is sent.
    pub(super) replays: Vec<(usize, Box<str>)>,
    /// Filters of the session from now on, and those that are gone.
    pub(super) put: Vec<(Bytes, Bytes)>,
    pub(super) remove: Vec<Bytes>,
}

impl Subscribing {
    /// One that is answered so.
    pub(super) fn new(answer: Answer) -> Subscribing {
        let (wanted, begun, replays) = (Vec::new(), Vec::new(), Vec::new());
        Subscribing { answer, wanted, begun, replays, put: Vec::new(), remove: Vec::new() }
    }

    /// Bytes that it takes, about.
    pub(super) fn held_bytes(&self) -> usize {
        let wanted = self.wanted.iter().map(|(_, text, it)| text.len() + size_of_val(it));
        let begun = self
            .begun
            .iter()
            .chain(&self.replays)
            .map(|(_, text)| text.len() + size_of::<Box<str>>());
        self.answer.reasons.len() + wanted.chain(begun).sum::<usize>()
    }
}
