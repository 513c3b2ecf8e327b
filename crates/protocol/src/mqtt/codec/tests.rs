//! Packets as bytes and as values, what is refused and with which code, and hostile bytes.

use super::*;
use crate::mqtt::frame::{Frame, HEADER_OCTETS_MAX, PacketType};
use crate::tests::random::Random;

/// The one packet that the bytes are.
fn decode(bytes: &[u8], version: Version) -> Result<Packet<'_>, Malformed> {
    let (frame, used) = Frame::read(bytes, 1 << 20)?.expect("the packet is whole");
    assert_eq!(used, bytes.len());
    Packet::decode(&frame, version)
}

/// The bytes are the packet, and the packet the bytes.
fn same(version: Version, bytes: &[u8], packet: &Packet<'_>) {
    let mut written = Vec::new();
    packet.write(version, &mut written);
    assert_eq!(written, bytes, "{packet:?}");
    assert_eq!(decode(bytes, version).as_ref(), Ok(packet));
    for end in 0..bytes.len() {
        assert_eq!(Frame::read(&bytes[..end], 1 << 20), Ok(None), "{packet:?} cut at {end}");
    }
}

fn connect() -> Connect<'static> {
    Connect {
        version: Version::V311,
        clean_start: true,
        keep_alive: 60,
        properties: Properties::default(),
        client_id: "c",
        will: None,
        user_name: None,
        password: None,
    }
}

const PLAIN: Properties<'static> = Properties::NONE;

#[test]
fn connects_go_there_and_back() {
    let plain = Packet::Connect(Box::new(connect()));
    same(Version::V311, b"\x10\x0d\0\x04MQTT\x04\x02\0\x3c\0\x01c", &plain);
    let old = Connect { version: Version::V31, clean_start: false, ..connect() };
    same(Version::V31, b"\x10\x0f\0\x06MQIsdp\x03\0\0\x3c\0\x01c", &Packet::Connect(old.into()));
    let will = Will {
        qos: Qos::ExactlyOnce,
        retain: true,
        properties: PLAIN,
        topic: "w",
        payload: b"gone",
    };
    let (user_name, password) = (Some("u"), Some(&b"\0p"[..]));
    let full = Connect { will: Some(will), user_name, password, ..connect() };
    same(
        Version::V311,
        b"\x10\x1d\0\x04MQTT\x04\xf6\0\x3c\0\x01c\0\x01w\0\x04gone\0\x01u\0\x02\0p",
        &Packet::Connect(full.clone().into()),
    );
    let will = Will { properties: Properties::of(b"\x18\0\0\0\x05\x26\0\x01a\0\x01b"), ..will };
    let properties = Properties::of(b"\x11\0\0\x0e\x10\x21\0\x0a");
    let five = Connect { version: Version::V5, properties, will: Some(will), ..full };
    same(
        Version::V5,
        b"\x10\x33\0\x04MQTT\x05\xf6\0\x3c\x08\x11\0\0\x0e\x10\x21\0\x0a\0\x01c\
          \x0c\x18\0\0\0\x05\x26\0\x01a\0\x01b\0\x01w\0\x04gone\0\x01u\0\x02\0p",
        &Packet::Connect(five.clone().into()),
    );
    assert_eq!(five.properties.number(PropertyId::SessionExpiryInterval), Some(3600));
    assert_eq!(five.properties.number(PropertyId::ReceiveMaximum), Some(10));
    assert_eq!(five.will.unwrap().properties.user_properties().next(), Some(("a", "b")));
    // A password without a name is one of version 5.
    let alone = Connect { user_name: None, will: None, ..five };
    let mut bytes = Vec::new();
    alone.write(&mut bytes);
    assert_eq!(decode(&bytes, Version::V311), Ok(Packet::Connect(alone.into())));
}

#[test]
fn answers_to_connects_go_there_and_back() {
    let connack = |session_present, reason| {
        Packet::Connack(Connack { session_present, reason, properties: PLAIN })
    };
    same(Version::V311, b"\x20\x02\x01\0", &connack(true, Reason::Success));
    same(Version::V311, b"\x20\x02\0\x04", &connack(false, Reason::BadUserNameOrPassword));
    same(Version::V5, b"\x20\x03\0\x86\0", &connack(false, Reason::BadUserNameOrPassword));
    let properties = Properties::of(b"\x12\0\x03abc\x13\0\x3c\x25\x01");
    let full = Connack { session_present: false, reason: Reason::Success, properties };
    same(Version::V5, b"\x20\x0e\0\0\x0b\x12\0\x03abc\x13\0\x3c\x25\x01", &Packet::Connack(full));
    let mut out = Vec::new();
    connack(true, Reason::Success).write(Version::V31, &mut out);
    assert_eq!(out, b"\x20\x02\0\0", "level 3 does not tell of sessions");
    out.clear();
    connack(false, Reason::MalformedPacket).write(Version::V311, &mut out);
    assert!(out.is_empty(), "there is no code for it");
}

#[test]
fn messages_go_there_and_back() {
    let plain = Publish {
        dup: false,
        qos: Qos::AtMostOnce,
        retain: false,
        topic: b"a/b",
        packet_id: 0,
        properties: PLAIN,
        payload: b"hi",
    };
    same(Version::V311, b"\x30\x07\0\x03a/bhi", &Packet::Publish(plain));
    same(Version::V5, b"\x30\x08\0\x03a/b\0hi", &Packet::Publish(plain));
    let twice = Publish {
        dup: true,
        qos: Qos::ExactlyOnce,
        retain: true,
        packet_id: 0x0102,
        payload: b"",
        ..plain
    };
    same(Version::V311, b"\x3d\x07\0\x03a/b\x01\x02", &Packet::Publish(twice));
    let properties = Properties::of(b"\x01\x01\x02\0\0\0\x07\x08\0\x01r\x09\0\x02\0\x01\x23\0\x05");
    let full = Publish { properties, ..twice };
    let bytes = b"\x3d\x1b\0\x03a/b\x01\x02\x13\
                  \x01\x01\x02\0\0\0\x07\x08\0\x01r\x09\0\x02\0\x01\x23\0\x05";
    same(Version::V5, bytes, &Packet::Publish(full));
    assert_eq!(full.octets(Version::V5), bytes.len());
    assert_eq!(full.properties.text(PropertyId::ResponseTopic), Some("r"));
    assert_eq!(full.properties.binary(PropertyId::CorrelationData), Some(&b"\0\x01"[..]));
    let large = Publish { payload: &[7; 20_000], ..full };
    let mut out = Vec::new();
    large.write(Version::V5, &mut out);
    assert_eq!(out.len(), large.octets(Version::V5));
    // A message to several subscriptions has the identifier of each.
    let properties = Properties::of(b"\x0b\x01\x0b\x80\x01");
    let several = Publish { properties, ..plain };
    same(Version::V5, b"\x30\x0d\0\x03a/b\x05\x0b\x01\x0b\x80\x01hi", &Packet::Publish(several));
}

#[test]
fn acknowledgements_go_there_and_back() {
    for (packet_type, first) in [
        (PacketType::Puback, 0x40),
        (PacketType::Pubrec, 0x50),
        (PacketType::Pubrel, 0x62),
        (PacketType::Pubcomp, 0x70),
    ] {
        let plain = Ack::plain(packet_type, 0x0A0B);
        for version in [Version::V311, Version::V5] {
            same(version, &[first, 2, 0x0A, 0x0B], &Packet::Ack(plain));
        }
    }
    let refused = Ack { reason: Reason::QuotaExceeded, ..Ack::plain(PacketType::Puback, 1) };
    same(Version::V5, b"\x40\x03\0\x01\x97", &Packet::Ack(refused));
    let explained = Ack { properties: Properties::of(b"\x1f\0\x04full"), ..refused };
    same(Version::V5, b"\x40\x0b\0\x01\x97\x07\x1f\0\x04full", &Packet::Ack(explained));
    // A length of properties that are not there may be there.
    let read = decode(b"\x40\x04\0\x01\x97\0", Version::V5);
    assert_eq!(read, Ok(Packet::Ack(refused)));
}

#[test]
fn subscriptions_go_there_and_back() {
    let options = FilterOptions { qos: Qos::AtLeastOnce, ..FilterOptions::default() };
    let filters = vec![("a/#", FilterOptions::default()), ("+", options)];
    let plain = Subscribe { packet_id: 1, properties: PLAIN, filters };
    let bytes = b"\x82\x0c\0\x01\0\x03a/#\0\0\x01+\x01";
    same(Version::V311, bytes, &Packet::Subscribe(plain.clone()));
    let options = FilterOptions {
        qos: Qos::ExactlyOnce,
        no_local: true,
        retain_as_published: true,
        retain_handling: RetainHandling::Never,
    };
    let properties = Properties::of(b"\x0b\x80\x01");
    let full = Subscribe { properties, filters: vec![("a", options)], ..plain };
    let bytes = b"\x82\x0a\0\x01\x03\x0b\x80\x01\0\x01a\x2e";
    same(Version::V5, bytes, &Packet::Subscribe(full));
    let unsubscribe = Unsubscribe { packet_id: 2, properties: PLAIN, filters: vec!["a", "b"] };
    let bytes = b"\xa2\x08\0\x02\0\x01a\0\x01b";
    same(Version::V311, bytes, &Packet::Unsubscribe(unsubscribe.clone()));
    let bytes = b"\xa2\x09\0\x02\0\0\x01a\0\x01b";
    same(Version::V5, bytes, &Packet::Unsubscribe(unsubscribe));
    let reasons = vec![Reason::GrantedQos2, Reason::UnspecifiedError];
    let suback = Suback { packet_id: 1, properties: PLAIN, reasons };
    same(Version::V311, b"\x90\x04\0\x01\x02\x80", &Packet::Suback(suback.clone()));
    same(Version::V5, b"\x90\x05\0\x01\0\x02\x80", &Packet::Suback(suback));
    let refused = Suback { packet_id: 1, properties: PLAIN, reasons: vec![Reason::NotAuthorized] };
    let mut out = Vec::new();
    refused.write(PacketType::Suback, Version::V311, &mut out);
    assert_eq!(out, b"\x90\x03\0\x01\x80", "3.1.1 has one code for it");
    let unsuback = Packet::Unsuback(Suback { reasons: vec![], ..refused });
    same(Version::V311, b"\xb0\x02\0\x01", &unsuback);
    let reasons = vec![Reason::Success, Reason::NoSubscriptionExisted];
    let unsuback = Packet::Unsuback(Suback { packet_id: 1, properties: PLAIN, reasons });
    same(Version::V5, b"\xb0\x05\0\x01\0\0\x11", &unsuback);
}

#[test]
fn the_rest_goes_there_and_back() {
    same(Version::V311, b"\xc0\0", &Packet::Pingreq);
    same(Version::V311, b"\xd0\0", &Packet::Pingresp);
    let well = Disconnect { reason: Reason::Success, properties: PLAIN };
    same(Version::V311, b"\xe0\0", &Packet::Disconnect(well));
    same(Version::V5, b"\xe0\0", &Packet::Disconnect(well));
    let taken = Disconnect { reason: Reason::SessionTakenOver, properties: PLAIN };
    same(Version::V5, b"\xe0\x01\x8e", &Packet::Disconnect(taken));
    let properties = Properties::of(b"\x11\0\0\0\0");
    let full = Disconnect { reason: Reason::Success, properties };
    same(Version::V5, b"\xe0\x07\0\x05\x11\0\0\0\0", &Packet::Disconnect(full));
    let properties = Properties::of(b"\x15\0\x01S\x16\0\x01d");
    let auth = Auth { reason: Reason::ContinueAuthentication, properties };
    same(Version::V5, b"\xf0\x0a\x18\x08\x15\0\x01S\x16\0\x01d", &Packet::Auth(auth));
}

#[test]
fn what_is_wrong_is_refused_with_its_code() {
    use Reason::{MalformedPacket as Bad, ProtocolError as Rule};
    let (three, five) = (Version::V311, Version::V5);
    for (version, bytes, expected) in [
        // CONNECT: another protocol, level, reserved flag, will flags, a password alone, octets behind.
        (three, &b"\x10\x0d\0\x04MQTS\x04\x02\0\0\0\x01c"[..], Reason::UnsupportedProtocolVersion),
        (three, b"\x10\x0d\0\x04MQTT\x06\x02\0\0\0\x01c", Reason::UnsupportedProtocolVersion),
        (three, b"\x10\x0d\0\x04MQTT\x03\x02\0\0\0\x01c", Reason::UnsupportedProtocolVersion),
        (three, b"\x10\x0d\0\x04MQTT\x04\x03\0\0\0\x01c", Bad),
        (three, b"\x10\x0d\0\x04MQTT\x04\x0a\0\0\0\x01c", Bad),
        (three, b"\x10\x0d\0\x04MQTT\x04\x22\0\0\0\x01c", Bad),
        (three, b"\x10\x12\0\x04MQTT\x04\x1e\0\0\0\x01c\0\x01w\0\0", Bad),
        (three, b"\x10\x10\0\x04MQTT\x04\x42\0\0\0\x01c\0\x01p", Bad),
        (three, b"\x10\x0e\0\x04MQTT\x04\x02\0\0\0\x01cx", Bad),
        (three, b"\x10\x0c\0\x04MQTT\x04\x02\0\0\0\x01", Bad),
        (three, b"\x10\x12\0\x04MQTT\x04\x06\0\0\0\x01c\0\x01#\0\0", Reason::TopicNameInvalid),
        // CONNECT's properties.
        (five, b"\x10\x11\0\x04MQTT\x05\x02\0\0\x03\x21\0\0\0\x01c", Rule),
        (five, b"\x10\x13\0\x04MQTT\x05\x02\0\0\x05\x27\0\0\0\0\0\x01c", Rule),
        (five, b"\x10\x10\0\x04MQTT\x05\x02\0\0\x02\x17\x02\0\x01c", Rule),
        (five, b"\x10\x12\0\x04MQTT\x05\x02\0\0\x04\x17\0\x17\0\0\x01c", Rule),
        (five, b"\x10\x10\0\x04MQTT\x05\x02\0\0\x02\x01\0\0\x01c", Bad),
        (five, b"\x10\x10\0\x04MQTT\x05\x02\0\0\x02\x7e\0\0\x01c", Bad),
        (five, b"\x10\x0f\0\x04MQTT\x05\x02\0\0\x04\x17\0\0\x01", Bad),
        // PUBLISH: QoS 3, sent again with QoS 0, identifier 0, too short.
        (three, b"\x36\x07\0\x03a/b\0\x01", Bad),
        (three, b"\x38\x05\0\x03a/b", Bad),
        (three, b"\x32\x07\0\x03a/b\0\0", Rule),
        (three, b"\x32\x05\0\x03a/b", Bad),
        (three, b"\x30\x04\0\x03a/", Bad),
        (five, b"\x30\x08\0\x01a\x03\x23\0\0x", Reason::TopicAliasInvalid),
        (five, b"\x30\x07\0\x01a\x02\x01\x02x", Rule),
        (five, b"\x30\x07\0\x01a\x02\x0b\0x", Rule),
        (five, b"\x30\x09\0\x01a\x04\x08\0\x01#x", Reason::TopicNameInvalid),
        (five, b"\x30\x0b\0\x01a\x06\x03\0\x03\xed\xa0\x80x", Bad),
        (five, b"\x30\x09\0\x01a\x05\x11\0\0\0\0", Bad),
        // SUBSCRIBE and UNSUBSCRIBE: no filter, identifier 0, QoS 3, reserved options, two identifiers.
        (three, b"\x82\x02\0\x01", Rule),
        (three, b"\x82\x06\0\0\0\x01a\0", Rule),
        (three, b"\x82\x06\0\x01\0\x01a\x03", Bad),
        (three, b"\x82\x06\0\x01\0\x01a\x04", Bad),
        (three, b"\x82\x05\0\x01\0\x01a", Bad),
        (three, b"\x82\x06\0\x01\0\x01\0\0", Bad),
        (five, b"\x82\x07\0\x01\0\0\x01a\x40", Bad),
        (five, b"\x82\x07\0\x01\0\0\x01a\x30", Rule),
        (five, b"\x82\x0b\0\x01\x04\x0b\x01\x0b\x02\0\x01a\0", Rule),
        (five, b"\x82\x09\0\x01\x02\x0b\0\0\x01a\0", Rule),
        (five, b"\x82\x10\0\x01\0\0\x0a$share/g/a\x04", Rule),
        (three, b"\xa2\x02\0\x01", Rule),
        // The others.
        (three, b"\x40\x03\0\x01\0", Bad),
        (three, b"\x40\x01\0", Bad),
        (five, b"\x40\x03\0\x01\x8e", Bad),
        (five, b"\x62\x03\0\x01\x10", Bad),
        (five, b"\x40\x06\0\x01\0\x01\x1f\0", Bad),
        (three, b"\xc0\x01\0", Bad),
        (three, b"\xe0\x01\0", Bad),
        (five, b"\xe0\x01\x01", Bad),
        (five, b"\xe0\x01\x86", Bad),
        (three, b"\xf0\0", Bad),
        (five, b"\xf0\x01\x80", Bad),
    ] {
        let found = decode(bytes, version).map_err(|malformed| malformed.reason);
        assert_eq!(found.err(), Some(expected), "{bytes:02x?}");
    }
}

#[test]
fn properties_are_where_the_specification_has_them() {
    // The table of 2.2.2.2, in the order of the identifiers.
    let found: Vec<String> = PropertyId::ALL
        .iter()
        .map(|id| {
            let places = PLACES.iter().filter(|(place, _)| id.may_be_in(*place));
            format!("{:02x} {}", *id as u8, places.map(|(_, letter)| letter).collect::<String>())
        })
        .collect();
    assert_eq!(
        found,
        [
            "01 wP",
            "02 wP",
            "03 wP",
            "08 wP",
            "09 wP",
            "0b Ps",
            "11 cCD",
            "12 C",
            "13 C",
            "15 cCA",
            "16 cCA",
            "17 c",
            "18 w",
            "19 c",
            "1a C",
            "1c CD",
            "1f C1234SUDA",
            "21 cC",
            "22 cC",
            "23 P",
            "24 C",
            "25 C",
            "26 wcCP1234sSuUDA",
            "27 cC",
            "28 C",
            "29 C",
            "2a C",
        ]
    );
}

/// Places and a letter for each.
const PLACES: [(property::Place, char); 14] = {
    use property::Place;
    [
        (Place::Will, 'w'),
        (Place::Connect, 'c'),
        (Place::Connack, 'C'),
        (Place::Publish, 'P'),
        (Place::Puback, '1'),
        (Place::Pubrec, '2'),
        (Place::Pubrel, '3'),
        (Place::Pubcomp, '4'),
        (Place::Subscribe, 's'),
        (Place::Suback, 'S'),
        (Place::Unsubscribe, 'u'),
        (Place::Unsuback, 'U'),
        (Place::Disconnect, 'D'),
        (Place::Auth, 'A'),
    ]
};

#[test]
fn reasons_have_their_codes() {
    for reason in Reason::ALL {
        assert_eq!(Reason::of(*reason as u8), Some(*reason));
        assert!(!reason.words().is_empty());
    }
    assert_eq!(Reason::of(0x03), None);
    assert_eq!(Reason::of(0xA3), None);
}

/// Whole packets of each type, for both versions.
fn samples() -> Vec<(Version, Vec<u8>)> {
    let filters = vec![("a/#", FilterOptions::default()), ("$share/g/+", FilterOptions::default())];
    let publish = Publish {
        dup: false,
        qos: Qos::AtLeastOnce,
        retain: true,
        topic: b"a/b",
        packet_id: 7,
        properties: Properties::of(b"\x01\x01\x08\0\x01r\x26\0\x01a\0\x01b"),
        payload: b"payload",
    };
    let mut samples = Vec::new();
    for version in [Version::V311, Version::V5] {
        let packets = [
            Packet::Connect(Connect { version, user_name: Some("u"), ..connect() }.into()),
            Packet::Publish(publish),
            Packet::Ack(Ack::plain(PacketType::Pubrel, 7)),
            Packet::Subscribe(Subscribe {
                packet_id: 8,
                properties: Properties::of(b"\x0b\x05"),
                filters: filters.clone(),
            }),
            Packet::Unsubscribe(Unsubscribe {
                packet_id: 9,
                properties: PLAIN,
                filters: vec!["a/#", "b"],
            }),
            Packet::Pingreq,
            Packet::Disconnect(Disconnect {
                reason: Reason::DisconnectWithWill,
                properties: Properties::of(b"\x11\0\0\0\x05\x1f\0\x01x"),
            }),
        ];
        for packet in packets {
            let mut bytes = Vec::new();
            packet.write(version, &mut bytes);
            samples.push((version, bytes));
        }
    }
    samples
}

/// Changes a packet, on purpose or not as peers do.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF, b'#', b'+'][random.below(7)],
        2 => bytes.truncate(at.max(1)),
        3 => bytes.insert(at, random.next() as u8),
        4 => bytes[0] = random.next() as u8,
        _ => {
            let piece = bytes[at..].to_vec();
            bytes.extend_from_slice(&piece);
        }
    }
}

fn fuzz(seeds: std::ops::Range<u64>) {
    let samples = samples();
    for seed in seeds {
        let mut random = Random(seed);
        let (version, mut bytes) = samples[random.below(samples.len())].clone();
        for _ in 0..1 + random.below(4) {
            mutate(&mut bytes, &mut random);
        }
        // The length is made to fit mostly, so that what is inside is looked at.
        if random.below(4) > 0 && bytes.len() >= 2 && bytes.len() < 130 {
            bytes[1] = (bytes.len() - 2) as u8;
        }
        let Ok(Some((frame, used))) = Frame::read(&bytes, 1 << 20) else { continue };
        assert!(used <= bytes.len() && used - frame.body.len() <= HEADER_OCTETS_MAX);
        let Ok(packet) = Packet::decode(&frame, version) else { continue };
        // What is understood means the same once it is written again.
        let mut written = Vec::new();
        packet.write(version, &mut written);
        let Ok(Some((again, _))) = Frame::read(&written, 1 << 20) else {
            // A refusal that 3.1.1 has no code for.
            assert!(written.is_empty(), "{packet:?}");
            continue;
        };
        assert_eq!(Packet::decode(&again, version), Ok(packet), "{bytes:02x?}");
    }
}

#[test]
fn changed_packets_do_no_harm() {
    fuzz(0..50_000);
}

#[test]
#[ignore = "runs for minutes; cargo test --release -- --ignored fuzz_long"]
fn fuzz_long() {
    fuzz(0..200_000_000);
}
