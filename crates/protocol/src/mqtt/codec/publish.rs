//! PUBLISH (5: 3.3).

use super::property::Place;
use super::wire::{Reader, prefixed_octets};
use super::{Malformed, Properties, Qos, Reason, Version, topic};
use crate::mqtt::frame::{self, PacketType, put_variable_integer};

const DUP: u8 = 8;
const RETAIN: u8 = 1;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// It may have been sent before.
    pub dup: bool,
    /// How often it is to arrive.
    pub qos: Qos,
    /// It is to be retained; on the way to clients: it was.
    pub retain: bool,
    /// Its topic, as it came: [`Publish::topic_name`] says whether it is one. Empty where an alias stands
    /// for it.
    pub topic: &'a [u8],
    /// Its packet identifier; 0 with QoS 0.
    pub packet_id: u16,
    /// Its properties.
    pub properties: Properties<'a>,
    /// Its payload.
    pub payload: &'a [u8],
}

impl<'a> Publish<'a> {
    /// Reads what follows the fixed header with these flags.
    #[inline]
    pub fn decode(flags: u8, body: &'a [u8], version: Version) -> Result<Publish<'a>, Malformed> {
        let reader = &mut Reader::new(body);
        let (dup, qos) = (flags & DUP != 0, flags >> 1 & 3);
        let malformed = |text| Malformed::new(Reason::MalformedPacket, text);
        let qos = Qos::of(qos).ok_or(malformed("the QoS of a message is 3"))?;
        let topic = reader.binary()?;
        let packet_id = match qos {
            Qos::AtMostOnce if dup => {
                let text = "a message with QoS 0 is marked as sent again";
                return Err(malformed(text));
            }
            Qos::AtMostOnce => 0,
            _ => reader.packet_id()?,
        };
        let properties = match version.has_properties() {
            true => Properties::read(reader, Place::Publish)?,
            false => Properties::default(),
        };
        let (retain, payload) = (flags & RETAIN != 0, reader.rest());
        Ok(Publish { dup, qos, retain, topic, packet_id, properties, payload })
    }

    /// The topic, if it is a topic name.
    #[inline]
    pub fn topic_name(&self) -> Result<&'a str, Malformed> {
        topic::name(self.topic)
    }

    /// Octets of the whole packet.
    #[must_use]
    pub fn octets(&self, version: Version) -> usize {
        1 + prefixed_octets(self.remaining(version))
    }

    fn remaining(&self, version: Version) -> usize {
        let id = if self.qos == Qos::AtMostOnce { 0 } else { 2 };
        let properties = match version.has_properties() {
            true => prefixed_octets(self.properties.raw().len()),
            false => 0,
        };
        2 + self.topic.len() + id + properties + self.payload.len()
    }

    /// Appends it. Its topic has no more bytes than a length in two octets can say, and the packet no more
    /// than a remaining length can.
    #[inline]
    pub fn write(&self, version: Version, out: &mut Vec<u8>) {
        self.write_before_payload(version, out);
        out.extend_from_slice(self.payload);
    }

    /// Appends all of it but the payload.
    #[inline]
    pub fn write_before_payload(&self, version: Version, out: &mut Vec<u8>) {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(self.dup, DUP) | (self.qos as u8) << 1 | flag(self.retain, RETAIN);
        out.push(PacketType::Publish.first_octet(flags));
        put_variable_integer(out, self.remaining(version));
        out.extend_from_slice(&(self.topic.len() as u16).to_be_bytes());
        out.extend_from_slice(self.topic);
        if self.qos != Qos::AtMostOnce {
            out.extend_from_slice(&self.packet_id.to_be_bytes());
        }
        if version.has_properties() {
            self.properties.write(out);
        }
    }
}

/// The payload of the message that `input` begins with, and where that ends, if it has QoS 0, this topic, and
/// neither properties nor the retain flag. `None`: something else follows, or not all of it is there.
#[inline]
#[must_use]
pub fn next_plain<'a>(
    input: &'a [u8],
    topic: &[u8],
    version: Version,
    bytes_max: usize,
) -> Option<(&'a [u8], usize)> {
    let rest = input.strip_prefix(&[PacketType::Publish.first_octet(0)])?;
    let (remaining, octets) = frame::variable_integer(rest).ok()??;
    let (begin, end) = (1 + octets, 1 + octets + remaining as usize);
    if end > bytes_max {
        return None;
    }
    let body = input.get(begin..end)?;
    let (length, body) = body.split_first_chunk::<2>()?;
    if usize::from(u16::from_be_bytes(*length)) != topic.len() {
        return None;
    }
    let payload = body.strip_prefix(topic)?;
    match version.has_properties() {
        true => Some((payload.strip_prefix(&[0])?, end)),
        false => Some((payload, end)),
    }
}
