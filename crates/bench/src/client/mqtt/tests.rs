//! Packets to and from bytes, identifiers and tags.

use super::Connection;
use super::connection::tag_of;
use super::packet::{self, Head, PublishHead, Version};
use crate::client::encoded::packet_id_of;
use crate::client::target::Login;
use crate::client::{Confirm, Error, Receiver, Source, Target};
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn a_publish_comes_back_as_it_was() {
    for version in [Version::V3, Version::V5] {
        for (qos, size) in [(0, 0), (1, 0), (0, 100), (2, 100), (1, 20_000), (0, 3_000_000)] {
            let (mut out, body) = (vec![0xAA; 3], vec![b'x'; size]);
            let encoded = packet::publish(version, "a/b", qos, &body, &mut out);
            let body_at = encoded.body_at;
            assert_eq!(&out[body_at..], body);
            encoded.write_tag(&mut out, 777);
            let bytes = &out[3..];
            let head = Head::decode(bytes).expect("well-formed").expect("whole");
            assert_eq!((head.kind, head.octets + head.remaining), (packet::PUBLISH, bytes.len()));
            let publish =
                PublishHead::decode(bytes, &head, version).expect("well-formed").expect("whole");
            assert_eq!((publish.body, publish.octets + 3), (size, body_at));
            assert_eq!((publish.id, publish.qos), (if qos > 0 { 777 } else { 0 }, qos));
            assert!(!publish.duplicate);
            for cut in 0..publish.octets {
                let bytes = &bytes[..cut];
                let head = Head::decode(bytes).expect("well-formed so far");
                let whole = head.map(|head| PublishHead::decode(bytes, &head, version));
                assert!(matches!(whole, None | Some(Ok(None))), "{cut}");
            }
        }
    }
}

#[test]
fn what_lies_about_its_length_is_refused() {
    assert!(Head::decode(&[0x30, 0xFF, 0xFF, 0xFF, 0xFF]).is_err());
    // A topic longer than the packet.
    let bytes = [0x30, 4, 0, 9, b'a', b'b', 0, 0, 0, 0, 0, 0, 0, 0];
    let head = Head::decode(&bytes).expect("well-formed").expect("whole");
    assert!(PublishHead::decode(&bytes, &head, Version::V3).is_err());
}

#[test]
fn connects_say_what_is_asked_for() {
    let plain = packet::connect(Version::V3, "id", None, true);
    assert_eq!(plain, b"\x10\x0e\x00\x04MQTT\x04\x02\xff\xff\x00\x02id");
    let login = Login { user: "u".to_owned(), password: Some("p".to_owned()) };
    let kept = packet::connect(Version::V5, "id", Some(&login), false);
    assert_eq!(
        kept,
        b"\x10\x1a\x00\x04MQTT\x05\xc0\xff\xff\x05\x11\xff\xff\xff\xff\x00\x02id\x00\x01u\x00\x01p"
    );
    let subscribe = packet::subscribe(Version::V3, 1, &["a/#".to_owned()], 1);
    assert_eq!(subscribe, b"\x82\x08\x00\x01\x00\x03a/#\x01");
}

#[test]
fn identifiers_wrap_and_stand_for_the_nearest_tag() {
    for tag in [1, 2, 1_000, 65_534, 65_535, 65_536, 65_537, 131_070, 131_071, 10_000_000] {
        let id = packet_id_of(tag);
        assert_ne!(id, 0);
        for behind in [0, 1, 500, 20_000] {
            assert_eq!(tag_of(id, tag.saturating_sub(behind + 1)), Some(tag), "{tag} {behind}");
            assert_eq!(tag_of(id, tag + behind), Some(tag), "{tag} {behind} ahead");
        }
    }
    assert_eq!(tag_of(0, 5), None);
}

#[test]
fn addresses_name_the_version() {
    let target: Target = "mqtt://h".parse().expect("it is one");
    assert_eq!((Version::from(&target), target.port()), (Version::V3, 1_883));
    assert_eq!(target.login, None);
    let target: Target = "mqtt5://u:p%40@h:1/".parse().expect("it is one");
    assert_eq!((Version::from(&target), target.port()), (Version::V5, 1));
    let login = Login { user: "u".to_owned(), password: Some("p@".to_owned()) };
    assert_eq!(target.login, Some(login));
    assert_eq!(target.to_string(), "mqtt5://h:1");
    assert!("mqtt://h/path".parse::<Target>().is_err());
}

/// Counts deliveries, and what is confirmed.
#[derive(Default)]
struct Count(usize, Vec<u64>);

impl Receiver for Count {
    fn body(&mut self, _: &[u8]) {}

    fn complete(&mut self) {
        self.0 += 1;
    }

    fn confirm(&mut self, confirm: Confirm) -> Result<(), Error> {
        self.1.push(confirm.tag);
        Ok(())
    }
}

#[test]
fn what_comes_exactly_once_has_both_handshakes() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let port = listener.local_addr().expect("it is bound").port();
    // Its message 7 is released once it is received; so is the client's message 1.
    let said = [[0x50, 2, 0, 1, 0x62, 2, 0, 7], [0x70, 2, 0, 1, 0xD0, 0, 0xD0, 0]];
    let heard: [&[u8]; 2] = [&[0x50, 2, 0, 7, 0xC0, 0], &[0x62, 2, 0, 1, 0x70, 2, 0, 7]];
    let broker = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it connects");
        let mut greeting = vec![packet::CONNACK << 4, 2, 0, 0];
        packet::publish(Version::V3, "a", 2, b"once", &mut greeting);
        let id_at = greeting.len() - 6;
        greeting[id_at..id_at + 2].copy_from_slice(&[0, 7]);
        let connect = packet::connect(Version::V3, "", None, true).len();
        let read = |stream: &mut std::net::TcpStream, count: usize| {
            let mut bytes = vec![0; count];
            stream.read_exact(&mut bytes).expect("it writes");
            bytes
        };
        let name = read(&mut stream, connect)[connect - 1];
        read(&mut stream, usize::from(name));
        stream.write_all(&greeting).expect("it reads");
        for (said, heard) in said.iter().zip(heard) {
            assert_eq!(read(&mut stream, heard.len()), heard);
            stream.write_all(said).expect("it reads");
        }
    });
    let target = format!("mqtt://127.0.0.1:{port}").parse().expect("it is an address");
    let mut connection = Connection::open(&target).expect("it is accepted");
    connection.select_exactly_once();
    let (mut count, mut acks) = (Count::default(), Vec::new());
    let mut until = |connection: &mut Connection, done: fn(&Count) -> bool| {
        connection.parse(&mut count).expect("well-formed");
        while !done(&count) {
            assert_ne!(connection.fill().expect("it is open"), 0);
            connection.parse(&mut count).expect("well-formed");
        }
    };
    until(&mut connection, |count| count.0 == 1);
    connection.encode_ack(&mut acks, 1, true);
    acks.extend(packet::PINGREQ_PACKET);
    connection.wire.send(&acks).expect("it is open");
    until(&mut connection, |count| count.1 == [1]);
    connection.close().expect("it is open");
    broker.join().expect("it heard what it should");
}

#[test]
fn what_a_session_kept_is_taken_before_the_answer_to_the_subscription() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
    let port = listener.local_addr().expect("it is bound").port();
    let broker = std::thread::spawn(move || {
        // The second connection is the session's; this broker has the session and does not say so.
        let mut said = vec![packet::CONNACK << 4, 2, 0, 0];
        let first = listener.accept().expect("it connects").0.write_all(&said);
        let (mut stream, _) = listener.accept().expect("it connects");
        packet::publish(Version::V3, "a", 0, b"kept", &mut said);
        said.extend([packet::SUBACK << 4, 3, 0, 1, 1]);
        stream.write_all(&said).and(first).expect("it reads");
        drop(stream.read_to_end(&mut Vec::new()));
    });
    let target = format!("mqtt://127.0.0.1:{port}").parse().expect("it is an address");
    let mut connection = Connection::open(&target).expect("it is accepted");
    let source = Source { session: Some("session"), auto_ack: false, ..Source::plain("a") };
    connection.subscribe(&source, 0).expect("it is accepted");
    let mut count = Count::default();
    connection.parse(&mut count).expect("well-formed");
    while count.0 == 0 {
        assert_ne!(connection.wire.fill().expect("it is open"), 0);
        connection.parse(&mut count).expect("well-formed");
    }
    drop(connection);
    broker.join().expect("it does not panic");
}

#[test]
fn a_fake_broker_says_what_a_client_takes() {
    for version in [Version::V3, Version::V5] {
        let fake_broker = super::fake_broker(version);
        let kinds = [packet::CONNACK, packet::SUBACK, packet::UNSUBACK, packet::PINGRESP];
        for (answer, kind) in fake_broker.answers.iter().zip(kinds) {
            let head = Head::decode(&answer.reply).expect("well-formed").expect("whole");
            let whole = head.octets + head.remaining;
            assert_eq!((head.kind, whole), (kind, answer.reply.len()), "{version:?}");
        }
        let mut out = vec![7];
        let body_at = fake_broker.deliver("a/b", b"hello", &mut out).body_at;
        let head = Head::decode(&out[1..]).expect("well-formed").expect("whole");
        let publish = PublishHead::decode(&out[1..], &head, version).expect("well-formed");
        let publish = publish.expect("whole");
        assert_eq!((publish.body, publish.octets + 1, publish.id), (5, body_at, 0));
        assert_eq!(&out[body_at..], b"hello");
    }
}
