//! A control packet of any type.

use super::{
    Ack, Auth, Connack, Connect, Disconnect, Malformed, Publish, Reason, Suback, Subscribe,
    Unsubscribe, Version,
};
use crate::mqtt::frame::{Frame, PacketType, put_packet};

/// A control packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // They are the specification's names.
pub enum Packet<'a> {
    Connect(Box<Connect<'a>>),
    Connack(Connack<'a>),
    Publish(Publish<'a>),
    /// PUBACK, PUBREC, PUBREL or PUBCOMP.
    Ack(Ack<'a>),
    Subscribe(Subscribe<'a>),
    Suback(Suback<'a>),
    Unsubscribe(Unsubscribe<'a>),
    Unsuback(Suback<'a>),
    Pingreq,
    Pingresp,
    Disconnect(Disconnect<'a>),
    Auth(Auth<'a>),
}

impl<'a> Packet<'a> {
    /// Reads a packet of a connection of that version; CONNECT says its version itself.
    #[inline]
    pub fn decode(frame: &Frame<'a>, version: Version) -> Result<Packet<'a>, Malformed> {
        if frame.packet_type == PacketType::Publish {
            return Publish::decode(frame.flags, frame.body, version).map(Packet::Publish);
        }
        Packet::decode_rare(frame, version)
    }

    fn decode_rare(frame: &Frame<'a>, version: Version) -> Result<Packet<'a>, Malformed> {
        let body = frame.body;
        Ok(match frame.packet_type {
            PacketType::Connect => Packet::Connect(Box::new(Connect::decode(body)?)),
            PacketType::Connack => Packet::Connack(Connack::decode(body, version)?),
            PacketType::Publish => unreachable!("the caller has looked"),
            PacketType::Puback | PacketType::Pubrec | PacketType::Pubrel | PacketType::Pubcomp => {
                Packet::Ack(Ack::decode(frame.packet_type, body, version)?)
            }
            PacketType::Subscribe => Packet::Subscribe(Subscribe::decode(body, version)?),
            PacketType::Suback => {
                Packet::Suback(Suback::decode(PacketType::Suback, body, version)?)
            }
            PacketType::Unsubscribe => Packet::Unsubscribe(Unsubscribe::decode(body, version)?),
            PacketType::Unsuback => {
                Packet::Unsuback(Suback::decode(PacketType::Unsuback, body, version)?)
            }
            PacketType::Pingreq => empty(body, Packet::Pingreq)?,
            PacketType::Pingresp => empty(body, Packet::Pingresp)?,
            PacketType::Disconnect => Packet::Disconnect(Disconnect::decode(body, version)?),
            PacketType::Auth => Packet::Auth(Auth::decode(body, version)?),
        })
    }

    /// Appends it as a connection of that version has it.
    pub fn write(&self, version: Version, out: &mut Vec<u8>) {
        match self {
            Packet::Connect(connect) => connect.write(out),
            Packet::Connack(connack) => connack.write(version, out),
            Packet::Publish(publish) => publish.write(version, out),
            Packet::Ack(ack) => ack.write(version, out),
            Packet::Subscribe(subscribe) => subscribe.write(version, out),
            Packet::Suback(suback) => suback.write(PacketType::Suback, version, out),
            Packet::Unsubscribe(unsubscribe) => unsubscribe.write(version, out),
            Packet::Unsuback(suback) => suback.write(PacketType::Unsuback, version, out),
            Packet::Pingreq => put_packet(out, PacketType::Pingreq.first_octet(0), |_| {}),
            Packet::Pingresp => put_packet(out, PacketType::Pingresp.first_octet(0), |_| {}),
            Packet::Disconnect(disconnect) => disconnect.write(version, out),
            Packet::Auth(auth) => auth.write(out),
        }
    }
}

fn empty<'a>(body: &[u8], packet: Packet<'a>) -> Result<Packet<'a>, Malformed> {
    let text = "a packet has octets behind its end";
    if body.is_empty() { Ok(packet) } else { Err(Malformed::new(Reason::MalformedPacket, text)) }
}
