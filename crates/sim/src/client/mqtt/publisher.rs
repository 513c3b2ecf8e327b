//! What a client publishes, and how far each message has come: kept over connections.

use crate::history::MessageId;
use crate::payload;
use angarium_protocol::mqtt::codec::{Ack, Properties, Publish, Qos, Version};
use angarium_protocol::mqtt::frame::PacketType;

/// A message on its way to the broker.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    packet_id: u16,
    message: MessageId,
    length: usize,
    qos: Qos,
    is_retained: bool,
    /// PUBREC has come.
    is_released: bool,
}

/// All of them, in the order in which they were published.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    topic: String,
    outgoing: Vec<Outgoing>,
}

/// What an acknowledgement says of a message.
pub(super) struct Acknowledged {
    pub(super) message: MessageId,
    pub(super) is_accepted: bool,
    /// PUBREL is to be sent.
    pub(super) is_released: bool,
}

impl Publisher {
    pub(super) fn new(topic: String) -> Publisher {
        Publisher { topic, outgoing: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.outgoing.len()
    }

    /// Publishes a message. Of packet identifiers that are free it takes the lowest, so that they are soon
    /// used again.
    pub(super) fn publish(
        &mut self,
        message: MessageId,
        length: usize,
        qos: Qos,
        is_retained: bool,
        out: &mut Vec<u8>,
    ) {
        let is_free = |id: &u16| self.outgoing.iter().all(|it| it.packet_id != *id);
        let packet_id = (1..).find(is_free).expect("the window is smaller");
        let outgoing =
            Outgoing { packet_id, message, length, qos, is_retained, is_released: false };
        self.write(&outgoing, false, out);
        self.outgoing.push(outgoing);
    }

    /// Sends everything again on a new connection.
    pub(super) fn resume(&self, out: &mut Vec<u8>) {
        self.outgoing.iter().for_each(|it| self.write(it, true, out));
    }

    fn write(&self, outgoing: &Outgoing, dup: bool, out: &mut Vec<u8>) {
        let Outgoing { packet_id, message, length, qos, is_retained, is_released } = *outgoing;
        if is_released {
            return Ack::plain(PacketType::Pubrel, packet_id).write(Version::V5, out);
        }
        let publish = Publish {
            dup,
            qos,
            retain: is_retained,
            topic: self.topic.as_bytes(),
            packet_id,
            properties: Properties::NONE,
            payload: &payload::make(message, length),
        };
        publish.write(Version::V5, out);
    }

    /// PUBACK or PUBREC has come; `None`: it says nothing new.
    pub(super) fn acknowledged(&mut self, ack: &Ack<'_>) -> Option<Acknowledged> {
        let at = self.outgoing.iter().position(|it| it.packet_id == ack.packet_id)?;
        let (is_accepted, message) = (!ack.reason.is_error(), self.outgoing[at].message);
        let is_released = ack.packet_type == PacketType::Pubrec && is_accepted;
        match is_released {
            true if self.outgoing[at].is_released => return None,
            true => self.outgoing[at].is_released = true,
            false => drop(self.outgoing.remove(at)),
        }
        Some(Acknowledged { message, is_accepted, is_released })
    }

    /// PUBCOMP has come.
    pub(super) fn completed(&mut self, packet_id: u16) {
        self.outgoing.retain(|it| it.packet_id != packet_id || !it.is_released);
    }
}
