//! PUBACK, PUBREC, PUBREL, PUBCOMP, DISCONNECT and AUTH (5: 3.4 to 3.7, 3.14, 3.15): packets of a reason
//! code and properties, which may be left out.

use super::property::Place;
use super::wire::Reader;
use super::{Malformed, Properties, Reason, Version};
use crate::mqtt::frame::{PacketType, put_packet};

/// A step in the delivery of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// PUBACK, PUBREC, PUBREL or PUBCOMP.
    pub packet_type: PacketType,
    /// The packet identifier of the message.
    pub packet_id: u16,
    /// What became of it.
    pub reason: Reason,
    /// Its properties.
    pub properties: Properties<'a>,
}

impl<'a> Ack<'a> {
    /// That all is well.
    #[must_use]
    pub fn plain(packet_type: PacketType, packet_id: u16) -> Ack<'a> {
        let properties = Properties::default();
        Ack { packet_type, packet_id, reason: Reason::Success, properties }
    }

    /// Reads what follows the fixed header.
    #[inline]
    pub fn decode(
        packet_type: PacketType,
        body: &'a [u8],
        version: Version,
    ) -> Result<Ack<'a>, Malformed> {
        let reader = &mut Reader::new(body);
        let packet_id = reader.packet_id()?;
        if reader.is_empty() {
            return Ok(Ack::plain(packet_type, packet_id));
        }
        let place = Place::of(packet_type).unwrap_or(Place::Puback);
        let (reason, properties) = outcome(reader, version, place)?;
        Ok(Ack { packet_type, packet_id, reason, properties })
    }

    /// Appends it. Versions before 5 only have that all is well.
    #[inline]
    pub fn write(&self, version: Version, out: &mut Vec<u8>) {
        let [high, low] = self.packet_id.to_be_bytes();
        let first = self.packet_type.first_octet(self.packet_type.flags());
        if !version.has_properties()
            || (self.reason == Reason::Success && self.properties.is_empty())
        {
            return out.extend_from_slice(&[first, 2, high, low]);
        }
        put_packet(out, first, |out| {
            out.extend_from_slice(&[high, low]);
            put_outcome(out, self.reason, self.properties);
        });
    }
}

/// The connection ends in good order, or for a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnect<'a> {
    /// Why.
    pub reason: Reason,
    /// Its properties.
    pub properties: Properties<'a>,
}

impl<'a> Disconnect<'a> {
    /// Reads what follows the fixed header.
    pub fn decode(body: &'a [u8], version: Version) -> Result<Disconnect<'a>, Malformed> {
        let (reason, properties) = outcome(&mut Reader::new(body), version, Place::Disconnect)?;
        Ok(Disconnect { reason, properties })
    }

    /// Appends it; the reason only where the version has some.
    pub fn write(&self, version: Version, out: &mut Vec<u8>) {
        put_packet(out, PacketType::Disconnect.first_octet(0), |out| {
            if version.has_properties() {
                put_outcome(out, self.reason, self.properties);
            }
        });
    }
}

/// A step of an authentication that takes several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auth<'a> {
    /// Which step.
    pub reason: Reason,
    /// Its properties.
    pub properties: Properties<'a>,
}

impl<'a> Auth<'a> {
    /// Reads what follows the fixed header.
    pub fn decode(body: &'a [u8], version: Version) -> Result<Auth<'a>, Malformed> {
        if !version.has_properties() {
            let text = "AUTH is a packet of version 5";
            return Err(Malformed::new(Reason::MalformedPacket, text));
        }
        let (reason, properties) = outcome(&mut Reader::new(body), version, Place::Auth)?;
        Ok(Auth { reason, properties })
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_packet(out, PacketType::Auth.first_octet(0), |out| {
            put_outcome(out, self.reason, self.properties);
        });
    }
}

/// A reason and properties, either of which may be left out.
fn outcome<'a>(
    reader: &mut Reader<'a>,
    version: Version,
    place: Place,
) -> Result<(Reason, Properties<'a>), Malformed> {
    let malformed = |text| Malformed::new(Reason::MalformedPacket, text);
    if reader.is_empty() {
        return Ok((Reason::Success, Properties::default()));
    }
    if !version.has_properties() {
        return Err(malformed("a packet has octets behind its end"));
    }
    let reason = Reason::of(reader.byte()?).filter(|reason| may_be_said(*reason, place));
    let reason = reason.ok_or(malformed("a packet has a reason code that it may not have"))?;
    let properties = match reader.is_empty() {
        true => Properties::default(),
        false => Properties::read(reader, place)?,
    };
    if !reader.is_empty() {
        return Err(malformed("a packet has octets behind its end"));
    }
    Ok((reason, properties))
}

fn put_outcome(out: &mut Vec<u8>, reason: Reason, properties: Properties<'_>) {
    if properties.is_empty() {
        if reason != Reason::Success {
            out.push(reason as u8);
        }
        return;
    }
    out.push(reason as u8);
    properties.write(out);
}

/// Whether a packet may have that reason code (5: 2.4).
fn may_be_said(reason: Reason, place: Place) -> bool {
    use Reason::{
        ContinueAuthentication, DisconnectWithWill, ImplementationSpecificError,
        NoMatchingSubscribers, NotAuthorized, PacketIdentifierInUse, PacketIdentifierNotFound,
        PayloadFormatInvalid, QuotaExceeded, ReAuthenticate, Success, TopicNameInvalid,
        UnspecifiedError,
    };
    match place {
        Place::Puback | Place::Pubrec => matches!(
            reason,
            Success
                | NoMatchingSubscribers
                | UnspecifiedError
                | ImplementationSpecificError
                | NotAuthorized
                | TopicNameInvalid
                | PacketIdentifierInUse
                | QuotaExceeded
                | PayloadFormatInvalid
        ),
        Place::Pubrel | Place::Pubcomp => matches!(reason, Success | PacketIdentifierNotFound),
        Place::Auth => matches!(reason, Success | ContinueAuthentication | ReAuthenticate),
        Place::Disconnect => {
            let is_of_connack_or_ack = matches!(
                reason,
                Reason::UnsupportedProtocolVersion
                    | Reason::ClientIdentifierNotValid
                    | Reason::BadUserNameOrPassword
                    | Reason::ServerUnavailable
                    | Reason::Banned
                    | PacketIdentifierInUse
                    | PacketIdentifierNotFound
            );
            matches!(reason, Success | DisconnectWithWill)
                || (reason.is_error() && !is_of_connack_or_ack)
        }
        _ => true,
    }
}
