//! CONNECT and CONNACK (5: 3.1, 3.2).

use super::property::Place;
use super::wire::{Reader, put_binary, put_text};
use super::{Malformed, Properties, Qos, Reason, Version, topic};
use crate::mqtt::frame::{PacketType, put_packet};

const CLEAN_START: u8 = 0x02;
const WILL: u8 = 0x04;
const WILL_RETAIN: u8 = 0x20;
const PASSWORD: u8 = 0x40;
const USER_NAME: u8 = 0x80;
/// The bit of the level by which another broker says that it is one (a bridge, as Mosquitto has it).
const BRIDGE: u8 = 0x80;

/// A client begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect<'a> {
    /// The version that it speaks.
    pub version: Version,
    /// Whether a session that is there ends.
    pub clean_start: bool,
    /// Seconds within which it sends something; 0: it need not.
    pub keep_alive: u16,
    /// Its properties.
    pub properties: Properties<'a>,
    /// How it calls itself; empty: it is to be given a name.
    pub client_id: &'a str,
    /// What is published once it is gone.
    pub will: Option<Will<'a>>,
    /// Who it is.
    pub user_name: Option<&'a str>,
    /// Its proof.
    pub password: Option<&'a [u8]>,
}

/// What is published once a client is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Will<'a> {
    /// How often it is to arrive.
    pub qos: Qos,
    /// Whether it is retained.
    pub retain: bool,
    /// Its properties.
    pub properties: Properties<'a>,
    /// Its topic.
    pub topic: &'a str,
    /// Its payload.
    pub payload: &'a [u8],
}

impl<'a> Connect<'a> {
    /// Reads what follows the fixed header.
    pub fn decode(body: &'a [u8]) -> Result<Connect<'a>, Malformed> {
        let malformed = |text| Malformed::new(Reason::MalformedPacket, text);
        let reader = &mut Reader::new(body);
        let version = version(reader.binary()?, reader)?;
        let flags = reader.byte()?;
        if flags & 1 != 0 {
            return Err(malformed("the reserved flag of CONNECT is set"));
        }
        let keep_alive = reader.two()?;
        let none = Properties::default();
        let properties = match version.has_properties() {
            true => Properties::read(reader, Place::Connect)?,
            false => none,
        };
        let client_id = reader.text()?;
        let will = will(flags, version, reader)?;
        let user_name = (flags & USER_NAME != 0).then(|| reader.text()).transpose()?;
        if flags & PASSWORD != 0 && user_name.is_none() && !version.has_properties() {
            return Err(malformed("there is a password and no user name"));
        }
        // Level 3 has flags whose fields may be missing, if the packet ends before them.
        let has_password = flags & PASSWORD != 0 && !(version == Version::V31 && reader.is_empty());
        let password = has_password.then(|| reader.binary()).transpose()?;
        if !reader.is_empty() {
            return Err(malformed("CONNECT has octets behind its end"));
        }
        let clean_start = flags & CLEAN_START != 0;
        Ok(Connect {
            version,
            clean_start,
            keep_alive,
            properties,
            client_id,
            will,
            user_name,
            password,
        })
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let will = self
            .will
            .map_or(0, |will| WILL | (will.qos as u8) << 3 | flag(will.retain, WILL_RETAIN));
        let flags = flag(self.clean_start, CLEAN_START)
            | will
            | flag(self.password.is_some(), PASSWORD)
            | flag(self.user_name.is_some(), USER_NAME);
        let has_properties = self.version.has_properties();
        put_packet(out, PacketType::Connect.first_octet(0), |out| {
            put_text(out, self.version.protocol_name());
            out.extend_from_slice(&[self.version.level(), flags]);
            out.extend_from_slice(&self.keep_alive.to_be_bytes());
            if has_properties {
                self.properties.write(out);
            }
            put_text(out, self.client_id);
            if let Some(will) = &self.will {
                if has_properties {
                    will.properties.write(out);
                }
                put_text(out, will.topic);
                put_binary(out, will.payload);
            }
            self.user_name.inspect(|name| put_text(out, name));
            self.password.inspect(|password| put_binary(out, password));
        });
    }
}

fn version(name: &[u8], reader: &mut Reader<'_>) -> Result<Version, Malformed> {
    let unsupported = |text| Malformed::new(Reason::UnsupportedProtocolVersion, text);
    let level = reader.byte()? & !BRIDGE;
    let all = [Version::V31, Version::V311, Version::V5];
    if !all.iter().any(|version| version.protocol_name().as_bytes() == name) {
        return Err(unsupported("CONNECT names another protocol than MQTT"));
    }
    let is_meant =
        |version: &Version| version.level() == level && version.protocol_name().as_bytes() == name;
    let found = all.into_iter().find(is_meant);
    found.ok_or(unsupported("the protocol level is none of 3, 4 and 5"))
}

fn will<'a>(
    flags: u8,
    version: Version,
    reader: &mut Reader<'a>,
) -> Result<Option<Will<'a>>, Malformed> {
    let malformed = |text| Malformed::new(Reason::MalformedPacket, text);
    let (qos, retain) = (flags >> 3 & 3, flags & WILL_RETAIN != 0);
    if flags & WILL == 0 {
        let text = "there is a QoS or a retain flag of a will, and no will";
        return if qos == 0 && !retain { Ok(None) } else { Err(malformed(text)) };
    }
    let qos = Qos::of(qos).ok_or(malformed("the QoS of the will is 3"))?;
    let properties = match version.has_properties() {
        true => Properties::read(reader, Place::Will)?,
        false => Properties::default(),
    };
    let topic = topic::name(reader.binary()?)?;
    let payload = reader.binary()?;
    Ok(Some(Will { qos, retain, properties, topic, payload }))
}

/// The answer to CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connack<'a> {
    /// There was a session, and it goes on.
    pub session_present: bool,
    /// Whether the client may go on.
    pub reason: Reason,
    /// Its properties.
    pub properties: Properties<'a>,
}

impl<'a> Connack<'a> {
    /// Reads what follows the fixed header.
    pub fn decode(body: &'a [u8], version: Version) -> Result<Connack<'a>, Malformed> {
        let malformed = |text| Malformed::new(Reason::MalformedPacket, text);
        let reader = &mut Reader::new(body);
        let flags = reader.byte()?;
        if flags > 1 {
            return Err(malformed("the reserved flags of CONNACK are set"));
        }
        let code = reader.byte()?;
        let (reason, properties) = if version.has_properties() {
            (Reason::of(code), Properties::read(reader, Place::Connack)?)
        } else {
            let is_meant = |reason: &&Reason| reason.connack_return_code() == Some(code);
            (Reason::ALL.iter().find(is_meant).copied(), Properties::default())
        };
        let reason = reason.ok_or(malformed("CONNACK has an unknown code"))?;
        Ok(Connack { session_present: flags == 1, reason, properties })
    }

    /// Appends it; nothing where earlier versions have no code for it.
    pub fn write(&self, version: Version, out: &mut Vec<u8>) {
        // Level 3 has no such flag.
        let flags = u8::from(self.session_present && version > Version::V31);
        let first = PacketType::Connack.first_octet(0);
        if version.has_properties() {
            put_packet(out, first, |out| {
                out.extend_from_slice(&[flags, self.reason as u8]);
                self.properties.write(out);
            });
        } else if let Some(code) = self.reason.connack_return_code() {
            put_packet(out, first, |out| out.extend_from_slice(&[flags, code]));
        }
    }
}
