//! Control packets to and from bytes, as far as a load needs them. Section numbers are those of MQTT 5;
//! 3.1.1 has the same packets without properties.

use crate::client::target::Login;
use crate::client::{Encoded, Target};

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// MQTT 3.1.1.
    V3,
    /// MQTT 5.
    V5,
}

impl From<&Target> for Version {
    fn from(target: &Target) -> Version {
        if target.scheme() == "mqtt5" { Version::V5 } else { Version::V3 }
    }
}

/// Types of control packets (2.1.2), in the upper half of the first octet.
pub(super) const CONNACK: u8 = 2;
pub(super) const PUBLISH: u8 = 3;
pub(super) const PUBACK: u8 = 4;
pub(super) const PUBREC: u8 = 5;
pub(super) const PUBREL: u8 = 6;
pub(super) const PUBCOMP: u8 = 7;
pub(super) const SUBACK: u8 = 9;
pub(super) const UNSUBACK: u8 = 11;
pub(super) const PINGRESP: u8 = 13;
pub(super) const DISCONNECT: u8 = 14;
/// PINGREQ and DISCONNECT as whole packets.
pub(super) const PINGREQ_PACKET: [u8; 2] = [0xC0, 0];
pub(super) const DISCONNECT_PACKET: [u8; 2] = [0xE0, 0];
/// The largest remaining length (1.5.5).
pub(super) const REMAINING_MAX: usize = 268_435_455;

/// The fixed header of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// Bytes of the fixed header.
    pub(super) octets: usize,
    /// Bytes that follow the fixed header.
    pub(super) remaining: usize,
}

impl Head {
    /// `Ok(None)` if more bytes are needed.
    #[inline]
    pub(super) fn decode(bytes: &[u8]) -> Result<Option<Head>, &'static str> {
        let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
        let Some((remaining, used)) = variable_integer(rest)? else { return Ok(None) };
        Ok(Some(Head { kind: first >> 4, flags: first & 0xF, octets: 1 + used, remaining }))
    }
}

/// Decodes a variable byte integer (1.5.5). Returns the value and its length.
#[inline]
pub(super) fn variable_integer(bytes: &[u8]) -> Result<Option<(usize, usize)>, &'static str> {
    let mut value = 0;
    for (index, octet) in bytes.iter().take(4).enumerate() {
        value |= usize::from(octet & 0x7F) << (7 * index);
        if octet & 0x80 == 0 {
            return Ok(Some((value, index + 1)));
        }
    }
    if bytes.len() >= 4 { Err("a remaining length of more than four octets") } else { Ok(None) }
}

fn put_variable_integer(out: &mut Vec<u8>, mut value: usize) {
    debug_assert!(value <= REMAINING_MAX, "callers bound what they send");
    loop {
        let low = (value & 0x7F) as u8;
        value >>= 7;
        out.push(if value > 0 { low | 0x80 } else { low });
        if value == 0 {
            return;
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    let length = text.len().min(usize::from(u16::MAX));
    out.extend_from_slice(&(length as u16).to_be_bytes());
    out.extend_from_slice(&text[..length]);
}

fn packet(first: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    put_variable_integer(&mut out, content.len());
    out.extend_from_slice(content);
    out
}

/// A packet identifier, and no properties.
fn identified(version: Version, id: u16) -> Vec<u8> {
    let mut content = id.to_be_bytes().to_vec();
    if version == Version::V5 {
        content.push(0);
    }
    content
}

/// Seconds without a packet after which a broker may end the connection (3.1.2.10): the longest, since
/// rumqttd refuses 0.
const KEEP_ALIVE: [u8; 2] = [0xFF, 0xFF];

/// CONNECT (3.1): no will.
pub(super) fn connect(
    version: Version,
    client_id: &str,
    login: Option<&Login>,
    clean: bool,
) -> Vec<u8> {
    let mut content = Vec::new();
    put_text(&mut content, b"MQTT");
    content.push(if version == Version::V5 { 5 } else { 4 });
    let credentials = if login.is_some() { 0xC0 } else { 0 };
    content.push(credentials | if clean { 2 } else { 0 });
    content.extend_from_slice(&KEEP_ALIVE);
    if version == Version::V5 {
        // Session expiry (3.1.2.11.2): never, except for a clean session.
        let properties: &[u8] = if clean { &[0] } else { &[5, 0x11, 0xFF, 0xFF, 0xFF, 0xFF] };
        content.extend_from_slice(properties);
    }
    put_text(&mut content, client_id.as_bytes());
    if let Some(login) = login {
        put_text(&mut content, login.user.as_bytes());
        put_text(&mut content, login.password().as_bytes());
    }
    packet(0x10, &content)
}

/// SUBSCRIBE (3.8) to several filters.
pub(super) fn subscribe(version: Version, id: u16, filters: &[String], qos: u8) -> Vec<u8> {
    let mut content = identified(version, id);
    for filter in filters {
        put_text(&mut content, filter.as_bytes());
        content.push(qos);
    }
    packet(0x82, &content)
}

/// UNSUBSCRIBE (3.10) from one filter.
pub(super) fn unsubscribe(version: Version, id: u16, filter: &str) -> Vec<u8> {
    let mut content = identified(version, id);
    put_text(&mut content, filter.as_bytes());
    packet(0xA2, &content)
}

/// Appends PUBLISH (3.3); with QoS 1 and 2 its packet identifier is the tag.
pub(super) fn publish(
    version: Version,
    topic: &str,
    qos: u8,
    body: &[u8],
    out: &mut Vec<u8>,
) -> Encoded {
    let properties = usize::from(version == Version::V5);
    let id = if qos > 0 { 2 } else { 0 };
    out.push(0x30 | qos << 1);
    put_variable_integer(out, 2 + topic.len() + id + properties + body.len());
    put_text(out, topic.as_bytes());
    let id_at = (qos > 0).then_some(out.len());
    if qos > 0 {
        out.extend_from_slice(&[0, 1]);
    }
    if version == Version::V5 {
        out.push(0);
    }
    let encoded = Encoded::body_at(out.len()).with_packet_id(id_at);
    out.extend_from_slice(body);
    encoded
}

/// Appends PUBACK, PUBREC, PUBREL or PUBCOMP (3.4 to 3.7).
#[inline]
pub(super) fn answer(kind: u8, id: u16, out: &mut Vec<u8>) {
    let flags = if kind == PUBREL { 2 } else { 0 };
    let [high, low] = id.to_be_bytes();
    out.extend_from_slice(&[kind << 4 | flags, 2, high, low]);
}

/// Everything of a PUBLISH before its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PublishHead {
    /// Offset of the body in the packet.
    pub(super) octets: usize,
    /// Bytes of the body.
    pub(super) body: usize,
    /// The quality of service.
    pub(super) qos: u8,
    /// The packet identifier; 0 for QoS 0.
    pub(super) id: u16,
    /// The DUP flag.
    pub(super) duplicate: bool,
}

impl PublishHead {
    /// `Ok(None)` if more bytes are needed.
    #[inline]
    pub(super) fn decode(
        bytes: &[u8],
        head: &Head,
        version: Version,
    ) -> Result<Option<PublishHead>, &'static str> {
        let qos = head.flags >> 1 & 3;
        let mut at = head.octets;
        let Some(length) = bytes.get(at..at + 2) else { return Ok(None) };
        at += 2 + usize::from(u16::from_be_bytes([length[0], length[1]]));
        let mut id = 0;
        if qos > 0 {
            let Some(octets) = bytes.get(at..at + 2) else { return Ok(None) };
            id = u16::from_be_bytes([octets[0], octets[1]]);
            at += 2;
        }
        if version == Version::V5 {
            let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) else {
                return Ok(None);
            };
            let Some((length, used)) = variable_integer(rest)? else { return Ok(None) };
            at += used + length;
        }
        let end = head.octets + head.remaining;
        let body = end.checked_sub(at).ok_or("a PUBLISH shorter than its topic")?;
        Ok((bytes.len() >= at).then_some(PublishHead {
            octets: at,
            body,
            qos,
            id,
            duplicate: head.flags & 8 != 0,
        }))
    }
}
