//! SUBSCRIBE, SUBACK, UNSUBSCRIBE and UNSUBACK (5: 3.8 to 3.11).

use super::property::Place;
use super::wire::{Reader, put_text};
use super::{Malformed, Properties, Qos, Reason, Version};
use crate::mqtt::frame::{PacketType, put_packet};

/// Whether a new subscription gets retained messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum RetainHandling {
    /// Yes.
    #[default]
    Always = 0,
    /// Only if it was not there before.
    IfNew = 1,
    /// No.
    Never = 2,
}

/// How messages of a filter are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterOptions {
    /// The most that they are delivered with.
    pub qos: Qos,
    /// Not those that the client has published itself.
    pub no_local: bool,
    /// They keep the retain flag that they were published with.
    pub retain_as_published: bool,
    /// Whether there are retained messages.
    pub retain_handling: RetainHandling,
}

const NO_LOCAL: u8 = 4;
const RETAIN_AS_PUBLISHED: u8 = 8;

impl FilterOptions {
    /// Reads the octet behind a filter.
    pub fn of(bits: u8, version: Version) -> Result<FilterOptions, Malformed> {
        let malformed = |text| Malformed::new(Reason::MalformedPacket, text);
        let reserved = if version.has_properties() { 0xC0 } else { 0xFC };
        if bits & reserved != 0 {
            return Err(malformed("the reserved options of a subscription are set"));
        }
        let qos = Qos::of(bits & 3).ok_or(malformed("the QoS of a subscription is 3"))?;
        let retain_handling = match bits >> 4 & 3 {
            0 => RetainHandling::Always,
            1 => RetainHandling::IfNew,
            2 => RetainHandling::Never,
            _ => {
                let text = "the retain handling of a subscription is 3";
                return Err(Malformed::new(Reason::ProtocolError, text));
            }
        };
        Ok(FilterOptions {
            qos,
            no_local: bits & NO_LOCAL != 0,
            retain_as_published: bits & RETAIN_AS_PUBLISHED != 0,
            retain_handling,
        })
    }

    /// The octet that they are.
    #[must_use]
    pub fn bits(self) -> u8 {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        self.qos as u8
            | flag(self.no_local, NO_LOCAL)
            | flag(self.retain_as_published, RETAIN_AS_PUBLISHED)
            | (self.retain_handling as u8) << 4
    }
}

/// Filters that a SUBSCRIBE or UNSUBSCRIBE may have.
pub const FILTERS_MAX: usize = 1_000;

/// A client subscribes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// Its packet identifier.
    pub packet_id: u16,
    /// Its properties.
    pub properties: Properties<'a>,
    /// Filters, as they came: [`super::Filter::read`] says whether they are some.
    pub filters: Vec<(&'a str, FilterOptions)>,
}

impl<'a> Subscribe<'a> {
    /// Reads what follows the fixed header.
    pub fn decode(body: &'a [u8], version: Version) -> Result<Subscribe<'a>, Malformed> {
        let reader = &mut Reader::new(body);
        let (packet_id, properties) = head(reader, version, Place::Subscribe)?;
        let mut filters = Vec::new();
        while !reader.is_empty() {
            check_count(filters.len())?;
            filters.push((reader.text()?, FilterOptions::of(reader.byte()?, version)?));
        }
        if filters.is_empty() {
            let text = "a SUBSCRIBE has no filter";
            return Err(Malformed::new(Reason::ProtocolError, text));
        }
        let is_shared = |filter: &str| filter.starts_with("$share/");
        if filters.iter().any(|(filter, options)| options.no_local && is_shared(filter)) {
            let text = "a shared subscription asks for no local messages";
            return Err(Malformed::new(Reason::ProtocolError, text));
        }
        Ok(Subscribe { packet_id, properties, filters })
    }

    /// Appends it.
    pub fn write(&self, version: Version, out: &mut Vec<u8>) {
        put_packet(out, PacketType::Subscribe.first_octet(2), |out| {
            put_head(out, version, self.packet_id, self.properties);
            for (filter, options) in &self.filters {
                put_text(out, filter);
                out.push(options.bits());
            }
        });
    }
}

/// A client unsubscribes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    /// Its packet identifier.
    pub packet_id: u16,
    /// Its properties.
    pub properties: Properties<'a>,
    /// The filters.
    pub filters: Vec<&'a str>,
}

impl<'a> Unsubscribe<'a> {
    /// Reads what follows the fixed header.
    pub fn decode(body: &'a [u8], version: Version) -> Result<Unsubscribe<'a>, Malformed> {
        let reader = &mut Reader::new(body);
        let (packet_id, properties) = head(reader, version, Place::Unsubscribe)?;
        let mut filters = Vec::new();
        while !reader.is_empty() {
            check_count(filters.len())?;
            filters.push(reader.text()?);
        }
        if filters.is_empty() {
            let text = "an UNSUBSCRIBE has no filter";
            return Err(Malformed::new(Reason::ProtocolError, text));
        }
        Ok(Unsubscribe { packet_id, properties, filters })
    }

    /// Appends it.
    pub fn write(&self, version: Version, out: &mut Vec<u8>) {
        put_packet(out, PacketType::Unsubscribe.first_octet(2), |out| {
            put_head(out, version, self.packet_id, self.properties);
            self.filters.iter().for_each(|filter| put_text(out, filter));
        });
    }
}

/// The answer to SUBSCRIBE, or to UNSUBSCRIBE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suback<'a> {
    /// The packet identifier of what it answers.
    pub packet_id: u16,
    /// Its properties.
    pub properties: Properties<'a>,
    /// What became of each filter. An UNSUBACK of a version before 5 has none.
    pub reasons: Vec<Reason>,
}

impl<'a> Suback<'a> {
    /// Reads what follows the fixed header.
    pub fn decode(
        packet_type: PacketType,
        body: &'a [u8],
        version: Version,
    ) -> Result<Suback<'a>, Malformed> {
        let place = Place::of(packet_type).unwrap_or(Place::Suback);
        let reader = &mut Reader::new(body);
        let (packet_id, properties) = head(reader, version, place)?;
        let text = "an answer to a subscription has a code that it may not have";
        let unknown = Malformed::new(Reason::MalformedPacket, text);
        let may_be_said = |reason: &Reason| {
            version.has_properties()
                || packet_type == PacketType::Suback && matches!(*reason as u8, 0..=2 | 0x80)
        };
        let read = |code: &u8| Reason::of(*code).filter(may_be_said).ok_or(unknown);
        let reasons = reader.rest().iter().map(read).collect::<Result<_, _>>()?;
        Ok(Suback { packet_id, properties, reasons })
    }

    /// Appends it. Versions before 5 have one code for all that was refused.
    pub fn write(&self, packet_type: PacketType, version: Version, out: &mut Vec<u8>) {
        put_packet(out, packet_type.first_octet(0), |out| {
            put_head(out, version, self.packet_id, self.properties);
            let has_reasons = version.has_properties() || packet_type == PacketType::Suback;
            for reason in self.reasons.iter().filter(|_| has_reasons) {
                let is_coarse = reason.is_error() && !version.has_properties();
                out.push(if is_coarse { Reason::UnspecifiedError as u8 } else { *reason as u8 });
            }
        });
    }
}

fn check_count(filters: usize) -> Result<(), Malformed> {
    let text = "a SUBSCRIBE or UNSUBSCRIBE has more than 1,000 filters";
    if filters < FILTERS_MAX { Ok(()) } else { Err(Malformed::new(Reason::QuotaExceeded, text)) }
}

fn head<'a>(
    reader: &mut Reader<'a>,
    version: Version,
    place: Place,
) -> Result<(u16, Properties<'a>), Malformed> {
    let packet_id = reader.packet_id()?;
    let properties = match version.has_properties() {
        true => Properties::read(reader, place)?,
        false => Properties::default(),
    };
    Ok((packet_id, properties))
}

fn put_head(out: &mut Vec<u8>, version: Version, packet_id: u16, properties: Properties<'_>) {
    out.extend_from_slice(&packet_id.to_be_bytes());
    if version.has_properties() {
        properties.write(out);
    }
}
