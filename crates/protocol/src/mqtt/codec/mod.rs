//! Bytes to and from MQTT's control packets, for brokers and for clients. Names no engine type.
//!
//! What differs between the versions of the protocol is asked of [`Version`].

pub mod ack;
pub mod connect;
pub mod property;
pub mod publish;
pub mod reason;
pub mod subscribe;
#[cfg(test)]
mod tests;
pub mod topic;
pub mod wire;

pub use ack::{Ack, Auth, Disconnect};
pub use connect::{Connack, Connect, Will};
pub use property::{Properties, PropertiesWriter, PropertyId, PropertyValue};
pub use publish::Publish;
pub use reason::Reason;
pub use subscribe::{FilterOptions, RetainHandling, Suback, Subscribe, Unsubscribe};
pub use topic::Filter;

use super::frame::{BadHeader, Frame, PacketType, put_packet};

/// A version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 3.1, which calls itself `MQIsdp`, level 3.
    V31,
    /// 3.1.1, level 4.
    #[default]
    V311,
    /// 5, level 5.
    V5,
}

impl Version {
    /// Whether packets have properties and reason codes.
    #[inline]
    #[must_use]
    pub fn has_properties(self) -> bool {
        self == Version::V5
    }

    /// The name of the protocol in CONNECT.
    #[must_use]
    pub fn protocol_name(self) -> &'static str {
        match self {
            Version::V31 => "MQIsdp",
            Version::V311 | Version::V5 => "MQTT",
        }
    }

    /// The protocol level in CONNECT.
    #[must_use]
    pub fn level(self) -> u8 {
        match self {
            Version::V31 => 3,
            Version::V311 => 4,
            Version::V5 => 5,
        }
    }

    /// Its name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Version::V31 => "MQTT 3.1",
            Version::V311 => "MQTT 3.1.1",
            Version::V5 => "MQTT 5",
        }
    }
}

/// How often a message arrives: at most once, at least once, exactly once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Qos {
    /// 0.
    #[default]
    AtMostOnce = 0,
    /// 1.
    AtLeastOnce = 1,
    /// 2.
    ExactlyOnce = 2,
}

impl Qos {
    /// The one of that number; 3 is none.
    #[inline]
    #[must_use]
    pub fn of(bits: u8) -> Option<Qos> {
        match bits {
            0 => Some(Qos::AtMostOnce),
            1 => Some(Qos::AtLeastOnce),
            2 => Some(Qos::ExactlyOnce),
            _ => None,
        }
    }
}

/// Bytes that are no packet, or none that may come: the reason code for it, and what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The reason code.
    pub reason: Reason,
    /// What is wrong.
    pub text: &'static str,
}

impl Malformed {
    /// What is wrong, and the code for it.
    #[must_use]
    pub const fn new(reason: Reason, text: &'static str) -> Malformed {
        Malformed { reason, text }
    }
}

impl From<BadHeader> for Malformed {
    fn from(bad: BadHeader) -> Malformed {
        let (reason, text) = match bad {
            BadHeader::Type => (Reason::MalformedPacket, "a packet is of the reserved type 0"),
            BadHeader::Flags => (Reason::MalformedPacket, "the flags of a packet are reserved"),
            BadHeader::Length => {
                (Reason::MalformedPacket, "a remaining length has more than four octets")
            }
            BadHeader::TooLarge => (Reason::PacketTooLarge, "a packet is larger than allowed"),
        };
        Malformed { reason, text }
    }
}

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

/// A packet identifier, which is not 0.
fn packet_id(reader: &mut wire::Reader<'_>) -> Result<u16, Malformed> {
    let text = "a packet identifier is 0";
    match reader.two()? {
        0 => Err(Malformed::new(Reason::ProtocolError, text)),
        id => Ok(id),
    }
}
