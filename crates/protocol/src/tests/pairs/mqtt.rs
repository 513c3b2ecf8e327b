//! A client of MQTT 5. Lines are `qos=1`, properties as `name=value`, user properties as `name:value`,
//! and the payload in quotes, with ` | ` between them; octets that are no text are `hex:` and their digits.

use super::clients::{Client, Place, word};
use crate::mqtt::codec::{
    Connect, FilterOptions, Packet, Properties, PropertiesWriter, PropertyId, PropertyValue,
    Publish, Qos, RetainHandling, Subscribe, Version,
};
use crate::mqtt::frame::Frame;
use crate::tests::host::TestHost;

/// Properties and what lines call them.
const NAMES: &[(PropertyId, &str)] = &[
    (PropertyId::PayloadFormatIndicator, "payload-format"),
    (PropertyId::MessageExpiryInterval, "message-expiry"),
    (PropertyId::ContentType, "content-type"),
    (PropertyId::ResponseTopic, "response-topic"),
    (PropertyId::CorrelationData, "correlation-data"),
];

pub(super) struct Mqtt {
    pub(super) number: usize,
    pub(super) packets: u16,
}

impl Mqtt {
    pub(super) fn log_in(&mut self, host: &mut TestHost) {
        let client_id = format!("client{}", self.number);
        let connect = Connect {
            version: Version::V5,
            clean_start: true,
            keep_alive: 0,
            properties: Properties::NONE,
            client_id: &client_id,
            will: None,
            user_name: None,
            password: None,
        };
        self.send(host, &Packet::Connect(Box::new(connect)));
    }

    fn send(&mut self, host: &mut TestHost, packet: &Packet<'_>) {
        let mut bytes = Vec::new();
        packet.write(Version::V5, &mut bytes);
        host.receive(self.number, &bytes);
        host.turn_ends();
    }

    fn next_id(&mut self) -> u16 {
        self.packets += 1;
        self.packets
    }

    fn subscribe_with(&mut self, host: &mut TestHost, filter: &str, qos: Qos) {
        let options = FilterOptions {
            qos,
            no_local: false,
            retain_as_published: false,
            retain_handling: RetainHandling::Always,
        };
        let (packet_id, properties) = (self.next_id(), Properties::NONE);
        let filters = vec![(filter, options)];
        self.send(host, &Packet::Subscribe(Subscribe { packet_id, properties, filters }));
    }

    fn publish_to(&mut self, host: &mut TestHost, topic: &str, line: &str) {
        let mut parts: Vec<_> = line.split(" | ").collect();
        let payload = parts.pop().expect("a payload").trim_matches('"').as_bytes();
        let (mut qos, mut properties) = (Qos::AtMostOnce, PropertiesWriter::new());
        for part in parts {
            let at = part.find([':', '=']).expect("a name and a value");
            let (name, value) = (&part[..at], &part[at + 1..]);
            if name == "qos" {
                qos = Qos::of(value.parse().unwrap()).unwrap();
            } else if part[at..].starts_with(':') {
                properties.put(PropertyId::UserProperty, PropertyValue::Pair(name, value));
            } else {
                let (id, _) = NAMES.iter().find(|(_, own)| *own == name).expect(name);
                match id {
                    PropertyId::CorrelationData => {
                        properties.put(*id, PropertyValue::Binary(&octets(value)));
                    }
                    PropertyId::ContentType | PropertyId::ResponseTopic => {
                        properties.put_text(*id, value);
                    }
                    _ => properties.put_number(*id, value.parse().unwrap()),
                }
            }
        }
        let packet_id = if qos == Qos::AtMostOnce { 0 } else { self.next_id() };
        let properties = properties.properties();
        let (topic, dup, retain) = (topic.as_bytes(), false, false);
        let publish = Publish { dup, qos, retain, topic, packet_id, properties, payload };
        self.send(host, &Packet::Publish(publish));
    }
}

/// Octets as lines have them.
fn octets(value: &str) -> Vec<u8> {
    let Some(digits) = value.strip_prefix("hex:") else { return value.as_bytes().to_vec() };
    let pairs = digits.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn shown(octets: &[u8]) -> String {
    match str::from_utf8(octets) {
        Ok(text) => text.to_owned(),
        Err(_) => octets.iter().fold("hex:".to_owned(), |all, it| all + &format!("{it:02x}")),
    }
}

fn topic(place: Place<'_>) -> String {
    match place {
        Place::Topic(subject) => subject.replace('.', "/"),
        Place::Queue(name) => format!("$QUEUE/{name}"),
    }
}

fn line(publish: &Publish<'_>) -> String {
    let mut parts = Vec::new();
    if publish.qos != Qos::AtMostOnce {
        parts.push(format!("qos={}", publish.qos as u8));
    }
    for (id, value) in publish.properties.iter() {
        let name = NAMES.iter().find(|(own, _)| *own == id).map_or("", |(_, name)| name);
        parts.push(match value {
            PropertyValue::Pair(name, value) => format!("{name}:{value}"),
            PropertyValue::Text(text) => format!("{name}={text}"),
            PropertyValue::Binary(bytes) => format!("{name}={}", shown(bytes)),
            PropertyValue::Byte(number) => format!("{name}={number}"),
            PropertyValue::Two(number) => format!("{name}={number}"),
            PropertyValue::Four(number) | PropertyValue::Variable(number) => {
                format!("{name}={number}")
            }
        });
    }
    parts.push(format!("\"{}\"", String::from_utf8_lossy(publish.payload)));
    parts.join(" | ")
}

impl Client for Mqtt {
    fn number(&self) -> usize {
        self.number
    }

    fn subscribe(&mut self, host: &mut TestHost, place: Place<'_>) -> bool {
        let is_topic = matches!(place, Place::Topic(_));
        if is_topic {
            self.subscribe_with(host, &topic(place), Qos::ExactlyOnce);
        }
        is_topic
    }

    fn publish(&mut self, host: &mut TestHost, place: Place<'_>, line: &str) {
        self.publish_to(host, &topic(place), line);
    }

    fn messages(&self, mut output: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        while !output.is_empty() {
            let (frame, used) = Frame::read(output, usize::MAX).unwrap().expect("whole packets");
            let packet = Packet::decode(&frame, Version::V5).expect("packets that clients know");
            if let Packet::Publish(publish) = packet {
                lines.push(line(&publish));
            }
            output = &output[used..];
        }
        lines
    }

    fn ask(&mut self, host: &mut TestHost, _by: &str) -> String {
        // What goes through the default exchange reaches no queue, and so no subscription with more.
        self.subscribe_with(host, "answers/mine", Qos::AtMostOnce);
        "response-topic=answers/mine | \"?\"".to_owned()
    }

    fn answer(&mut self, host: &mut TestHost, request: &str, line: &str) {
        let topic = word(request, "response-topic").to_owned();
        self.publish_to(host, &topic, line);
    }
}
