//! Properties of packets (5: 2.2.2): what each is, where it may be, and which values it may have.

use super::wire::{Reader, put_binary, put_text};
use super::{Malformed, Reason, topic, wire};
use crate::mqtt::frame::{PacketType, put_variable_integer};

/// Declares the properties: the identifier, the type, and where it may be.
macro_rules! properties {
    ($($name:ident = $id:literal $kind:ident $rule:ident [$($place:ident)+],)+) => {
        /// The identifier of a property.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        #[allow(missing_docs)] // They are the specification's names.
        pub enum PropertyId {
            $($name = $id,)+
        }

        impl PropertyId {
            /// All of them.
            pub const ALL: &[PropertyId] = &[$(PropertyId::$name,)+];

            fn of(id: u32) -> Option<PropertyId> {
                match id {
                    $($id => Some(PropertyId::$name),)+
                    _ => None,
                }
            }

            fn kind(self) -> Kind {
                match self {
                    $(PropertyId::$name => Kind::$kind,)+
                }
            }

            fn rule(self) -> Rule {
                match self {
                    $(PropertyId::$name => Rule::$rule,)+
                }
            }

            /// Whether it may be in that place.
            #[must_use]
            pub fn may_be_in(self, place: Place) -> bool {
                match self {
                    $(PropertyId::$name => matches!(place, $(Place::$place)|+),)+
                }
            }
        }
    };
}

/// What has properties: a packet, or the will in CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // They are the specification's names.
pub enum Place {
    Will,
    Connect,
    Connack,
    Publish,
    Puback,
    Pubrec,
    Pubrel,
    Pubcomp,
    Subscribe,
    Suback,
    Unsubscribe,
    Unsuback,
    Disconnect,
    Auth,
}

impl Place {
    /// That of a type of packet.
    #[must_use]
    pub fn of(packet_type: PacketType) -> Option<Place> {
        Some(match packet_type {
            PacketType::Connect => Place::Connect,
            PacketType::Connack => Place::Connack,
            PacketType::Publish => Place::Publish,
            PacketType::Puback => Place::Puback,
            PacketType::Pubrec => Place::Pubrec,
            PacketType::Pubrel => Place::Pubrel,
            PacketType::Pubcomp => Place::Pubcomp,
            PacketType::Subscribe => Place::Subscribe,
            PacketType::Suback => Place::Suback,
            PacketType::Unsubscribe => Place::Unsubscribe,
            PacketType::Unsuback => Place::Unsuback,
            PacketType::Disconnect => Place::Disconnect,
            PacketType::Auth => Place::Auth,
            PacketType::Pingreq | PacketType::Pingresp => return None,
        })
    }
}

/// The type of a property's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Byte,
    Two,
    Four,
    Variable,
    Text,
    Binary,
    Pair,
}

/// What the values of a property have to be beside their type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Anything.
    Any,
    /// 0 or 1.
    Flag,
    /// Not 0.
    Positive,
    /// A number of a topic alias: not 0, which has a code of its own.
    Alias,
    /// A topic name.
    Topic,
}

properties! {
    PayloadFormatIndicator = 0x01 Byte Flag [Publish Will],
    MessageExpiryInterval = 0x02 Four Any [Publish Will],
    ContentType = 0x03 Text Any [Publish Will],
    ResponseTopic = 0x08 Text Topic [Publish Will],
    CorrelationData = 0x09 Binary Any [Publish Will],
    SubscriptionIdentifier = 0x0B Variable Positive [Publish Subscribe],
    SessionExpiryInterval = 0x11 Four Any [Connect Connack Disconnect],
    AssignedClientIdentifier = 0x12 Text Any [Connack],
    ServerKeepAlive = 0x13 Two Any [Connack],
    AuthenticationMethod = 0x15 Text Any [Connect Connack Auth],
    AuthenticationData = 0x16 Binary Any [Connect Connack Auth],
    RequestProblemInformation = 0x17 Byte Flag [Connect],
    WillDelayInterval = 0x18 Four Any [Will],
    RequestResponseInformation = 0x19 Byte Flag [Connect],
    ResponseInformation = 0x1A Text Any [Connack],
    ServerReference = 0x1C Text Any [Connack Disconnect],
    ReasonString = 0x1F Text Any
        [Connack Puback Pubrec Pubrel Pubcomp Suback Unsuback Disconnect Auth],
    ReceiveMaximum = 0x21 Two Positive [Connect Connack],
    TopicAliasMaximum = 0x22 Two Any [Connect Connack],
    TopicAlias = 0x23 Two Alias [Publish],
    MaximumQos = 0x24 Byte Flag [Connack],
    RetainAvailable = 0x25 Byte Flag [Connack],
    UserProperty = 0x26 Pair Any
        [Will Connect Connack Publish Puback Pubrec Pubrel Pubcomp Subscribe Suback Unsubscribe
         Unsuback Disconnect Auth],
    MaximumPacketSize = 0x27 Four Positive [Connect Connack],
    WildcardSubscriptionAvailable = 0x28 Byte Flag [Connack],
    SubscriptionIdentifierAvailable = 0x29 Byte Flag [Connack],
    SharedSubscriptionAvailable = 0x2A Byte Flag [Connack],
}

impl PropertyId {
    /// Whether it may be several times in that place.
    #[must_use]
    pub fn may_repeat_in(self, place: Place) -> bool {
        match self {
            PropertyId::UserProperty => true,
            // A message goes to all overlapping subscriptions of a client once.
            PropertyId::SubscriptionIdentifier => place == Place::Publish,
            _ => false,
        }
    }
}

/// The value of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyValue<'a> {
    /// An octet.
    Byte(u8),
    /// A two byte integer.
    Two(u16),
    /// A four byte integer.
    Four(u32),
    /// A variable byte integer.
    Variable(u32),
    /// A string.
    Text(&'a str),
    /// Binary data.
    Binary(&'a [u8]),
    /// Two strings, the first of which is a name.
    Pair(&'a str, &'a str),
}

impl PropertyValue<'_> {
    fn number(self) -> Option<u32> {
        match self {
            PropertyValue::Byte(value) => Some(value.into()),
            PropertyValue::Two(value) => Some(value.into()),
            PropertyValue::Four(value) | PropertyValue::Variable(value) => Some(value),
            _ => None,
        }
    }
}

/// The properties of a packet, checked, as they are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties<'a> {
    raw: &'a [u8],
}

impl<'a> Properties<'a> {
    /// No properties.
    pub const NONE: Properties<'a> = Properties { raw: &[] };

    /// Reads properties with the length before them, and checks them.
    #[inline]
    pub fn read(reader: &mut Reader<'a>, place: Place) -> Result<Properties<'a>, Malformed> {
        let bytes = reader.variable()? as usize;
        let raw = reader.take(bytes)?;
        if !raw.is_empty() {
            check(raw, place)?;
        }
        Ok(Properties { raw })
    }

    /// Properties that were checked before, or put together by [`PropertiesWriter`].
    #[must_use]
    pub fn of(raw: &'a [u8]) -> Properties<'a> {
        Properties { raw }
    }

    /// As they are encoded, without their length.
    #[must_use]
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Each of them, in their order. What is no property ends them.
    pub fn iter(&self) -> impl Iterator<Item = (PropertyId, PropertyValue<'a>)> + use<'a> {
        let mut reader = Reader::new(self.raw);
        std::iter::from_fn(move || if reader.is_empty() { None } else { one(&mut reader).ok() })
    }

    /// The first of that identifier.
    #[must_use]
    pub fn get(&self, id: PropertyId) -> Option<PropertyValue<'a>> {
        self.iter().find(|(found, _)| *found == id).map(|(_, value)| value)
    }

    /// A number.
    #[must_use]
    pub fn number(&self, id: PropertyId) -> Option<u32> {
        self.get(id)?.number()
    }

    /// A string.
    #[must_use]
    pub fn text(&self, id: PropertyId) -> Option<&'a str> {
        match self.get(id)? {
            PropertyValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Binary data.
    #[must_use]
    pub fn binary(&self, id: PropertyId) -> Option<&'a [u8]> {
        match self.get(id)? {
            PropertyValue::Binary(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The user properties, names and values.
    pub fn user_properties(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.iter().filter_map(|(_, value)| match value {
            PropertyValue::Pair(name, value) => Some((name, value)),
            _ => None,
        })
    }

    /// Appends them with their length before them.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_variable_integer(out, self.raw.len());
        out.extend_from_slice(self.raw);
    }
}

fn one<'a>(reader: &mut Reader<'a>) -> Result<(PropertyId, PropertyValue<'a>), Malformed> {
    let malformed = |text| Malformed::new(Reason::MalformedPacket, text);
    let id = PropertyId::of(reader.variable()?);
    let id = id.ok_or(malformed("a property has an unknown identifier"))?;
    let value = match id.kind() {
        Kind::Byte => PropertyValue::Byte(reader.byte()?),
        Kind::Two => PropertyValue::Two(reader.two()?),
        Kind::Four => PropertyValue::Four(reader.four()?),
        Kind::Variable => PropertyValue::Variable(reader.variable()?),
        Kind::Text => PropertyValue::Text(reader.text()?),
        Kind::Binary => PropertyValue::Binary(reader.binary()?),
        Kind::Pair => PropertyValue::Pair(reader.text()?, reader.text()?),
    };
    Ok((id, value))
}

fn check(raw: &[u8], place: Place) -> Result<(), Malformed> {
    let mut reader = Reader::new(raw);
    let mut seen = 0u64;
    while !reader.is_empty() {
        let (id, value) = one(&mut reader)?;
        if !id.may_be_in(place) {
            let text = "a property is not one of those that the packet may have";
            return Err(Malformed::new(Reason::MalformedPacket, text));
        }
        let bit = 1 << id as u8;
        if seen & bit != 0 && !id.may_repeat_in(place) {
            let text = "a property that may be there once is there again";
            return Err(Malformed::new(Reason::ProtocolError, text));
        }
        seen |= bit;
        check_value(id, value)?;
    }
    Ok(())
}

fn check_value(id: PropertyId, value: PropertyValue<'_>) -> Result<(), Malformed> {
    let refuse = |reason, text| Err(Malformed::new(reason, text));
    match (id.rule(), value) {
        (Rule::Flag, PropertyValue::Byte(2..)) => {
            refuse(Reason::ProtocolError, "a property that is 0 or 1 has another value")
        }
        (Rule::Positive, value) if value.number() == Some(0) => {
            refuse(Reason::ProtocolError, "a property that may not be 0 is 0")
        }
        (Rule::Alias, value) if value.number() == Some(0) => {
            refuse(Reason::TopicAliasInvalid, "a topic alias is 0")
        }
        (Rule::Topic, PropertyValue::Text(text)) => topic::name(text.as_bytes()).map(drop),
        _ => Ok(()),
    }
}

/// Puts properties together.
#[derive(Debug, Default)]
pub struct PropertiesWriter {
    raw: Vec<u8>,
}

impl PropertiesWriter {
    /// Without any yet.
    #[must_use]
    pub fn new() -> PropertiesWriter {
        PropertiesWriter::default()
    }

    /// Adds one.
    pub fn put(&mut self, id: PropertyId, value: PropertyValue<'_>) {
        put(&mut self.raw, id, value);
    }

    /// Adds a number, in the octets that the property has.
    pub fn put_number(&mut self, id: PropertyId, value: u32) {
        put_number(&mut self.raw, id, value);
    }

    /// Adds a string.
    pub fn put_text(&mut self, id: PropertyId, text: &str) {
        self.put(id, PropertyValue::Text(text));
    }

    /// What was put together.
    #[must_use]
    pub fn properties(&self) -> Properties<'_> {
        Properties { raw: &self.raw }
    }
}

/// Appends a number, in the octets that the property has.
pub fn put_number(out: &mut Vec<u8>, id: PropertyId, value: u32) {
    let value = match id.kind() {
        Kind::Byte => PropertyValue::Byte(u8::try_from(value).unwrap_or(u8::MAX)),
        Kind::Two => PropertyValue::Two(u16::try_from(value).unwrap_or(u16::MAX)),
        Kind::Variable => PropertyValue::Variable(value),
        _ => PropertyValue::Four(value),
    };
    put(out, id, value);
}

/// Appends a property.
pub fn put(out: &mut Vec<u8>, id: PropertyId, value: PropertyValue<'_>) {
    out.push(id as u8);
    match value {
        PropertyValue::Byte(value) => out.push(value),
        PropertyValue::Two(value) => out.extend_from_slice(&value.to_be_bytes()),
        PropertyValue::Four(value) => out.extend_from_slice(&value.to_be_bytes()),
        PropertyValue::Variable(value) => put_variable_integer(out, value as usize),
        PropertyValue::Text(text) => put_text(out, text),
        PropertyValue::Binary(bytes) => put_binary(out, bytes),
        PropertyValue::Pair(name, value) => {
            wire::put_text(out, name);
            wire::put_text(out, value);
        }
    }
}
