//! Bytes to and from MQTT's control packets, for brokers and for clients. Names no engine type.
//!
//! What differs between the versions of the protocol is asked of [`Version`].

pub mod ack;
pub mod connect;
pub mod packet;
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
pub use packet::Packet;
pub use property::{Properties, PropertiesWriter, PropertyId, PropertyValue};
pub use publish::Publish;
pub use reason::Reason;
pub use subscribe::{FilterOptions, RetainHandling, Suback, Subscribe, Unsubscribe};
pub use topic::Filter;

use super::frame::BadHeader;

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

    /// The code by which a subscription is granted it.
    #[must_use]
    pub fn granted(self) -> Reason {
        match self {
            Qos::AtMostOnce => Reason::Success,
            Qos::AtLeastOnce => Reason::GrantedQos1,
            Qos::ExactlyOnce => Reason::GrantedQos2,
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
