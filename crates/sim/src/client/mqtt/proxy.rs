//! Rules of MQTT broken on purpose, on the way between a client and the node.

use crate::canary::{Canary, PERCENT};
use crate::random::Random;
use angarium_protocol::mqtt::codec::{Properties, Publish, Qos};
use std::collections::BTreeSet;

/// Sits between a client and its connection.
#[derive(Debug)]
pub(super) struct Proxy {
    canary: Canary,
    random: Random,
    /// A retained message that comes later.
    delayed: Option<Message>,
}

/// A message that stays for a while.
#[derive(Clone, Debug)]
pub(super) struct Message {
    dup: bool,
    qos: Qos,
    retain: bool,
    topic: Vec<u8>,
    packet_id: u16,
    payload: Vec<u8>,
}

impl Message {
    pub(super) fn of(publish: &Publish<'_>) -> Message {
        let Publish { dup, qos, retain, topic, packet_id, payload, .. } = *publish;
        let (topic, payload) = (topic.to_vec(), payload.to_vec());
        Message { dup, qos, retain, topic, packet_id, payload }
    }

    pub(super) fn as_packet(&self) -> Publish<'_> {
        let Message { dup, qos, retain, packet_id, .. } = *self;
        let (topic, payload) = (&self.topic[..], &self.payload[..]);
        Publish { dup, qos, retain, topic, packet_id, properties: Properties::NONE, payload }
    }
}

impl Proxy {
    pub(super) fn new(canary: Canary, random: Random) -> Proxy {
        Proxy { canary, random, delayed: None }
    }

    fn breaks(&mut self, canary: Canary) -> bool {
        self.canary == canary && self.random.percent(PERCENT)
    }

    /// The messages that come in place of one. `received`: identifiers that the client has messages of.
    pub(super) fn altered(
        &mut self,
        publish: &Publish<'_>,
        received: &mut BTreeSet<u16>,
    ) -> Vec<Message> {
        let mut message = Message::of(publish);
        let is_new = message.qos == Qos::ExactlyOnce && !received.contains(&message.packet_id);
        if is_new && self.breaks(Canary::PacketIdsReused) {
            // It has had another message of this identifier: it takes this one for the same.
            message.dup = true;
            received.insert(message.packet_id);
        }
        if self.canary != Canary::RetainedLate {
            return vec![message];
        }
        match self.delayed.take() {
            None if message.retain && message.qos == Qos::AtMostOnce => {
                self.delayed = Some(message);
                Vec::new()
            }
            // It comes behind a newer one of its topic.
            Some(delayed) if delayed.topic == message.topic => vec![message, delayed],
            delayed => {
                self.delayed = delayed;
                vec![message]
            }
        }
    }

    /// Whether the client takes a message for completed, though the broker does not know that it is released.
    pub(super) fn completes_early(&mut self) -> bool {
        self.breaks(Canary::CompletedEarly)
    }
}
