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
    /// Filters of the session from now on, and those that are gone.
    pub(super) put: Vec<(Bytes, Bytes)>,
    pub(super) remove: Vec<Bytes>,
}
