//! What lines of transcripts stand for in MQTT: packets by name, with what matters of them.
//!
//! A packet's name is followed by its words and options: `publish a/b hello qos=1 id=7 retain`. Properties
//! are options with their names as in the specification, in lower case with hyphens.

use crate::mqtt::Settings;
use crate::mqtt::codec::{
    Ack, Connect, Disconnect, FilterOptions, Packet, Properties, PropertiesWriter, PropertyId,
    PropertyValue, Publish, Qos, Reason, RetainHandling, Subscribe, Unsubscribe, Version, Will,
};
use crate::mqtt::frame::{Frame, PacketType};
use crate::tests::host::TestHost;
use crate::tests::transcript::Speech;
use crate::{Peer, amqp091, nats};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Clients whose connections have these settings.
#[derive(Debug, Default)]
pub(super) struct Mqtt {
    pub(super) settings: Settings,
    versions: RefCell<BTreeMap<char, Version>>,
}

/// Plays a transcript.
pub(super) fn check(transcript: &str) {
    check_with(Settings::default(), transcript);
}

pub(super) fn check_with(settings: Settings, transcript: &str) {
    let host = TestHost::of(amqp091::Settings::default(), nats::Settings::default());
    let speech = Mqtt { settings, ..Mqtt::default() };
    crate::tests::transcript::check(transcript, crate::tests::transcript::Play::new(host, speech));
}

impl Speech for Mqtt {
    fn connect(&self, host: &mut TestHost, _: char) -> usize {
        let peer = Peer { local: true, address: "here:1".to_owned(), ..Peer::default() };
        host.accept_mqtt(peer, self.settings.clone())
    }

    fn send(&self, host: &mut TestHost, name: char, number: usize, line: &str) {
        let mut versions = self.versions.borrow_mut();
        if line.starts_with("connect") {
            let version = if line.contains(" v5") { Version::V5 } else { Version::V311 };
            versions.insert(name, version);
        }
        let version = versions.get(&name).copied().unwrap_or_default();
        host.receive(number, &packet(line, version));
    }

    fn lines(&self, name: char, output: &[u8]) -> Vec<String> {
        show(output, self.versions.borrow().get(&name).copied().unwrap_or_default())
    }
}

/// The words of a line, and its options.
struct Words<'a> {
    words: Vec<&'a str>,
    options: BTreeMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Words<'a> {
        let mut words = Words { words: Vec::new(), options: BTreeMap::new() };
        for word in line.split(' ').skip(1) {
            match word.split_once('=') {
                Some((name, value)) => drop(words.options.insert(name, value)),
                None => words.words.push(word),
            }
        }
        words
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn number(&self, name: &str) -> u32 {
        self.options.get(name).map_or(0, |value| value.parse().unwrap())
    }

    fn retain_handling(&self) -> RetainHandling {
        match self.number("retain-handling") {
            0 => RetainHandling::Always,
            1 => RetainHandling::IfNew,
            _ => RetainHandling::Never,
        }
    }

    fn properties(&self) -> PropertiesWriter {
        let mut writer = PropertiesWriter::new();
        for (id, name) in NAMES {
            let Some(value) = self.options.get(name) else { continue };
            match id {
                PropertyId::ContentType
                | PropertyId::ResponseTopic
                | PropertyId::AuthenticationMethod => writer.put_text(*id, value),
                PropertyId::CorrelationData => {
                    writer.put(*id, PropertyValue::Binary(value.as_bytes()));
                }
                PropertyId::UserProperty => {
                    let (name, value) = value.split_once(':').unwrap();
                    writer.put(*id, PropertyValue::Pair(name, value));
                }
                _ => writer.put_number(*id, value.parse().unwrap()),
            }
        }
        writer
    }
}

/// Properties and what transcripts call them.
const NAMES: &[(PropertyId, &str)] = &[
    (PropertyId::SessionExpiryInterval, "session-expiry"),
    (PropertyId::ReceiveMaximum, "receive-maximum"),
    (PropertyId::MaximumPacketSize, "maximum-packet-size"),
    (PropertyId::TopicAliasMaximum, "topic-alias-maximum"),
    (PropertyId::TopicAlias, "topic-alias"),
    (PropertyId::RequestProblemInformation, "request-problem-information"),
    (PropertyId::RequestResponseInformation, "request-response-information"),
    (PropertyId::PayloadFormatIndicator, "payload-format"),
    (PropertyId::MessageExpiryInterval, "message-expiry"),
    (PropertyId::ContentType, "content-type"),
    (PropertyId::ResponseTopic, "response-topic"),
    (PropertyId::CorrelationData, "correlation-data"),
    (PropertyId::SubscriptionIdentifier, "identifier"),
    (PropertyId::AuthenticationMethod, "authentication-method"),
    (PropertyId::WillDelayInterval, "will-delay"),
    (PropertyId::UserProperty, "user-property"),
];

/// The packet that a line stands for.
pub(super) fn packet(line: &str, version: Version) -> Vec<u8> {
    let words = Words::of(line);
    let writer = words.properties();
    let properties = if version == Version::V5 { writer.properties() } else { Properties::NONE };
    let name = line.split(' ').next().unwrap();
    let packet_id = words.number("id") as u16;
    let qos = Qos::of(words.number("qos") as u8).unwrap();
    let ack = |packet_type| {
        let reason = Reason::of(words.number("reason") as u8).unwrap();
        Packet::Ack(Ack { reason, properties, ..Ack::plain(packet_type, packet_id) })
    };
    let packet = match name {
        "connect" => {
            let will = words.options.get("will").map(|will| {
                let (topic, payload) = will.split_once(':').unwrap();
                let (retain, payload) = (words.has("will-retain"), payload.as_bytes());
                Will { qos, retain, properties: Properties::NONE, topic, payload }
            });
            Packet::Connect(Box::new(Connect {
                version,
                clean_start: !words.has("resume"),
                keep_alive: words.number("keep-alive") as u16,
                properties,
                client_id: words.options.get("client").copied().unwrap_or_default(),
                will,
                user_name: words.options.get("user").copied(),
                password: words.options.get("password").map(|text| text.as_bytes()),
            }))
        }
        "publish" => Packet::Publish(Publish {
            dup: words.has("dup"),
            qos,
            retain: words.has("retain"),
            topic: words.words.first().copied().unwrap_or_default().trim_matches('_').as_bytes(),
            packet_id,
            properties,
            payload: words.words.get(1).map_or("", |word| word.trim_matches('\'')).as_bytes(),
        }),
        "puback" => ack(PacketType::Puback),
        "pubrec" => ack(PacketType::Pubrec),
        "pubrel" => ack(PacketType::Pubrel),
        "pubcomp" => ack(PacketType::Pubcomp),
        "subscribe" => {
            let options = FilterOptions {
                qos,
                no_local: words.has("no-local"),
                retain_as_published: words.has("as-published"),
                retain_handling: words.retain_handling(),
            };
            let is_option = |word: &&&str| matches!(**word, "no-local" | "as-published");
            let filters = words.words.iter().filter(|word| !is_option(word));
            let filters = filters.map(|filter| (*filter, options)).collect();
            Packet::Subscribe(Subscribe { packet_id, properties, filters })
        }
        "unsubscribe" => {
            Packet::Unsubscribe(Unsubscribe { packet_id, properties, filters: words.words })
        }
        "ping" => Packet::Pingreq,
        "disconnect" => {
            let reason = Reason::of(words.number("reason") as u8).unwrap();
            Packet::Disconnect(Disconnect { reason, properties })
        }
        "bytes" => return words.words.iter().flat_map(|word| hex(word)).collect(),
        _ => panic!("no packet '{name}'"),
    };
    let mut out = Vec::new();
    packet.write(version, &mut out);
    out
}

fn hex(word: &str) -> Vec<u8> {
    let digits = word.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

/// What a client got, a line for each packet.
pub(super) fn show(output: &[u8], version: Version) -> Vec<String> {
    let (mut rest, mut lines) = (output, Vec::new());
    while !rest.is_empty() {
        let (frame, used) = Frame::read(rest, usize::MAX).unwrap().expect("whole packets");
        rest = &rest[used..];
        let packet = Packet::decode(&frame, version).expect("packets that clients understand");
        lines.push(show_packet(&packet));
    }
    lines
}

fn show_packet(packet: &Packet<'_>) -> String {
    match packet {
        Packet::Connack(connack) => {
            let present = if connack.session_present { " present" } else { "" };
            format!("connack{present} {:?}{}", connack.reason, properties(connack.properties))
        }
        Packet::Publish(publish) => {
            let flag =
                |is_set: bool, word: &str| if is_set { format!(" {word}") } else { String::new() };
            let id = match publish.qos {
                Qos::AtMostOnce => String::new(),
                qos => format!(" qos={} id={}", qos as u8, publish.packet_id),
            };
            format!(
                "publish {} {}{id}{}{}{}",
                String::from_utf8_lossy(publish.topic),
                String::from_utf8_lossy(publish.payload),
                flag(publish.retain, "retain"),
                flag(publish.dup, "dup"),
                properties(publish.properties)
            )
        }
        Packet::Ack(ack) => {
            let name = format!("{:?}", ack.packet_type).to_lowercase();
            let reason = match ack.reason {
                Reason::Success => String::new(),
                reason => format!(" {reason:?}"),
            };
            format!("{name} {}{reason}{}", ack.packet_id, properties(ack.properties))
        }
        Packet::Suback(suback) => format!("suback {} {:?}", suback.packet_id, suback.reasons),
        Packet::Unsuback(suback) => format!("unsuback {} {:?}", suback.packet_id, suback.reasons),
        Packet::Pingresp => "pong".to_owned(),
        Packet::Disconnect(disconnect) => {
            format!("disconnect {:?}{}", disconnect.reason, properties(disconnect.properties))
        }
        other => format!("{other:?}"),
    }
}

/// Properties but those of which every CONNACK has the same.
fn properties(properties: Properties<'_>) -> String {
    let mut shown = String::new();
    for (id, value) in properties.iter() {
        let is_usual = matches!(
            id,
            PropertyId::ReceiveMaximum
                | PropertyId::MaximumPacketSize
                | PropertyId::TopicAliasMaximum
                | PropertyId::RetainAvailable
        );
        if is_usual {
            continue;
        }
        let value = match value {
            PropertyValue::Byte(value) => value.to_string(),
            PropertyValue::Two(value) => value.to_string(),
            PropertyValue::Four(value) | PropertyValue::Variable(value) => value.to_string(),
            PropertyValue::Text(text) => format!("'{text}'"),
            PropertyValue::Binary(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            PropertyValue::Pair(name, value) => format!("{name}:{value}"),
        };
        shown += &format!(" {id:?}={value}");
    }
    shown
}
