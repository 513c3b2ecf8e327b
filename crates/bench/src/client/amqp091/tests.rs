//! Frames to and from bytes, and broker addresses.

use super::wire::{self, Envelope, Field, Frame, Malformed, method};
use super::{Incoming, Uri};
use std::io::{self, Read};

/// Splits bytes into frames; they must hold nothing but whole ones.
fn frames(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (frame, used) = wire::parse(bytes).expect("well-formed").expect("whole");
        frames.push(frame);
        bytes = &bytes[used..];
    }
    frames
}

#[test]
fn a_publish_is_a_method_a_header_and_a_body() {
    let envelope = Envelope { channel: 1, exchange: "ex", key: "key", persistent: true };
    let mut bytes = Vec::new();
    let body_at = wire::write_publish(&mut bytes, &envelope, b"hello", 4096);
    assert_eq!(&bytes[body_at..body_at + 5], b"hello");
    let frames = frames(&bytes);
    let kinds: Vec<u8> = frames.iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [wire::METHOD, wire::HEADER, wire::BODY]);
    assert!(frames.iter().all(|frame| frame.channel == 1));
    assert_eq!(frames[0].payload, b"\x00\x3c\x00\x28\x00\x00\x02ex\x03key\x00");
    assert_eq!(frames[1].payload, b"\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x10\x00\x02");
    assert_eq!(frames[2].payload, b"hello");
}

#[test]
fn a_body_is_split_at_the_largest_frame() {
    let envelope = Envelope { channel: 1, exchange: "", key: "k", persistent: false };
    for (size, chunks) in [(0, 0), (1, 1), (92, 1), (93, 2), (184, 2), (185, 3)] {
        let mut bytes = Vec::new();
        let body = vec![b'x'; size];
        wire::write_publish(&mut bytes, &envelope, &body, 100);
        let frames = frames(&bytes);
        assert_eq!(frames.len(), 2 + chunks, "{size}");
        let payload: Vec<u8> =
            frames[2..].iter().flat_map(|frame| frame.payload).copied().collect();
        assert_eq!(payload, body);
        assert!(frames.iter().all(|frame| frame.payload.len() + wire::FRAME_OVERHEAD <= 100));
    }
}

#[test]
fn an_ack_is_as_the_general_encoder_would_have_it() {
    let (mut fast, mut general) = (Vec::new(), Vec::new());
    wire::write_ack(&mut fast, 1, 0x0102_0304_0506_0708, true);
    wire::write_method(&mut general, 1, method::BASIC_ACK, |out| {
        out.extend_from_slice(&0x0102_0304_0506_0708u64.to_be_bytes());
        out.push(1);
    });
    assert_eq!(fast, general);
}

#[test]
fn a_table_holds_its_entries() {
    let mut bytes = Vec::new();
    let entries = [
        ("t".to_owned(), Field::Text("v".to_owned())),
        ("n".to_owned(), Field::Integer(-2)),
        ("b".to_owned(), Field::Boolean(true)),
        ("f".to_owned(), Field::Table(vec![])),
    ];
    wire::write_table(&mut bytes, &entries);
    let expected = b"\x00\x00\x00\x1e\x01tS\x00\x00\x00\x01v\x01nl\xff\xff\xff\xff\xff\xff\xff\xfe\
                     \x01bt\x01\x01fF\x00\x00\x00\x00";
    assert_eq!(bytes, expected);
}

#[test]
fn arguments_of_queues_have_types() {
    assert_eq!(Field::from_argument("12"), Field::Integer(12));
    assert_eq!(Field::from_argument("true"), Field::Boolean(true));
    assert_eq!(Field::from_argument("quorum"), Field::Text("quorum".to_owned()));
}

#[test]
fn a_frame_cut_short_is_awaited_and_a_broken_one_refused() {
    let mut bytes = Vec::new();
    wire::write_ack(&mut bytes, 1, 9, false);
    for cut in 0..bytes.len() {
        assert_eq!(wire::parse(&bytes[..cut]), Ok(None), "{cut}");
    }
    let end = bytes.len() - 1;
    bytes[end] = 0;
    assert!(wire::parse(&bytes).is_err());
    assert!(wire::parse(b"\x01\x00\x01\xff\xff\xff\xff").is_err(), "4 GiB are not awaited");
}

#[test]
fn arguments_cut_short_are_refused() {
    let frame = Frame { kind: wire::METHOD, channel: 1, payload: b"\x00\x3c\x00\x3c\x05ab" };
    assert_eq!(frame.arguments().short_string(), Err(Malformed("a method cut short")));
    let empty = Frame { kind: wire::METHOD, channel: 1, payload: b"" };
    assert_eq!(empty.method(), 0);
    assert!(empty.arguments().long_long().is_err());
}

/// A source that brings so many octets at a time.
struct Dribble<'a>(&'a [u8], usize);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(self.0.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

#[test]
fn frames_arrive_whole_however_the_bytes_come() {
    let mut bytes = Vec::new();
    for tag in 0..50 {
        wire::write_ack(&mut bytes, 1, tag, false);
    }
    for step in [1, 2, 7, 20, 21, 22, 1000, bytes.len()] {
        let (mut source, mut incoming) = (Dribble(&bytes, step), Incoming::default());
        let mut tags = Vec::new();
        while incoming.fill(&mut source).expect("it does not fail") > 0 {
            while let Some(frame) = incoming.next_frame().expect("well-formed") {
                tags.push(frame.arguments().long_long().expect("an ack has a tag"));
            }
        }
        assert_eq!(tags, (0..50).collect::<Vec<_>>(), "{step}");
    }
}

#[test]
fn addresses_are_read_with_their_defaults() {
    let check = |text: &str, user: &str, password: &str, host: &str, port: u16, vhost: &str| {
        let uri: Uri = text.parse().expect("it is an address");
        let parts = (uri.user.as_str(), uri.password.as_str(), uri.host.as_str(), uri.port);
        assert_eq!((parts, uri.virtual_host.as_str()), ((user, password, host, port), vhost));
    };
    check("amqp://localhost", "guest", "guest", "localhost", 5672, "/");
    check("amqp://127.0.0.1:99/%2f", "guest", "guest", "127.0.0.1", 99, "/");
    check("amqp://a:b%40c@h:1/v", "a", "b@c", "h", 1, "v");
    check("amqp://h/", "guest", "guest", "h", 5672, "");
    for wrong in ["http://h", "amqp://", "amqp://h:port", "amqp://h/%zz", "amqp://h/%2"] {
        assert!(wrong.parse::<Uri>().is_err(), "{wrong}");
    }
}
