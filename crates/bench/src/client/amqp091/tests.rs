//! Frames to and from bytes, and broker addresses.

use super::Argument;
use super::delivery::{Content, next_frame};
use super::message::{write_ack, write_arguments, write_publish};
use crate::client::tests::Kept;
use crate::client::{ReceiveBuffer, Route, Target};
use angarium_protocol::amqp091::codec::content::Tagged;
use angarium_protocol::amqp091::codec::{FieldValue, Method, table};
use angarium_protocol::amqp091::frame::{self, Frame};
use std::io::{self, Read};

/// Splits bytes into frames; they must hold nothing but whole ones.
fn frames(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (frame, used) = frame::read(bytes, 0).expect("well-formed").expect("whole");
        frames.push(frame);
        bytes = &bytes[used..];
    }
    frames
}

#[test]
fn a_publish_is_a_method_a_header_and_a_body() {
    let route = Route { exchange: "ex", key: "key", persistent: true };
    let mut bytes = Vec::new();
    let body_at = write_publish(&mut bytes, &route, b"hello", 4096).body_at;
    assert_eq!(&bytes[body_at..body_at + 5], b"hello");
    let frames = frames(&bytes);
    let kinds: Vec<u8> = frames.iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [frame::METHOD, frame::HEADER, frame::BODY]);
    assert!(frames.iter().all(|frame| frame.channel == 1));
    assert_eq!(frames[0].payload, b"\x00\x3c\x00\x28\x00\x00\x02ex\x03key\x00");
    assert_eq!(frames[1].payload, b"\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x10\x00\x02");
    assert_eq!(frames[2].payload, b"hello");
}

#[test]
fn a_body_is_split_at_the_largest_frame() {
    let route = Route { exchange: "", key: "k", persistent: false };
    for (size, chunks) in [(0, 0), (1, 1), (92, 1), (93, 2), (184, 2), (185, 3)] {
        let mut bytes = Vec::new();
        let body = vec![b'x'; size];
        write_publish(&mut bytes, &route, &body, 100);
        let frames = frames(&bytes);
        assert_eq!(frames.len(), 2 + chunks, "{size}");
        let payload: Vec<u8> =
            frames[2..].iter().flat_map(|frame| frame.payload).copied().collect();
        assert_eq!(payload, body);
        assert!(frames.iter().all(|frame| frame.payload.len() + frame::OVERHEAD_BYTES <= 100));
    }
}

#[test]
fn arguments_become_a_table() {
    let mut bytes = Vec::new();
    let arguments = [
        ("t".to_owned(), Argument::Text("v".to_owned())),
        ("n".to_owned(), Argument::Integer(-2)),
        ("b".to_owned(), Argument::Boolean(true)),
    ];
    write_arguments(&mut bytes, &arguments);
    let table = table::checked(&bytes[4..]).expect("well-formed");
    assert_eq!(table.text("t"), Some("v"));
    assert_eq!(table.get("n"), Some(FieldValue::Int(-2)));
    assert_eq!(table.get("b"), Some(FieldValue::Bool(true)));
}

#[test]
fn arguments_of_queues_have_types() {
    assert_eq!(Argument::from_text("12"), Argument::Integer(12));
    assert_eq!(Argument::from_text("true"), Argument::Boolean(true));
    assert_eq!(Argument::from_text("quorum"), Argument::Text("quorum".to_owned()));
}

/// A source that returns at most this many bytes per read.
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
        write_ack(&mut bytes, tag, false);
    }
    for step in [1, 2, 7, 20, 21, 22, 1000, bytes.len()] {
        let (mut source, mut incoming) = (Dribble(&bytes, step), ReceiveBuffer::default());
        let mut tags = Vec::new();
        while incoming.fill(&mut source).expect("it does not fail") > 0 {
            while let Some(frame) = next_frame(&mut incoming).expect("well-formed") {
                let ack = Tagged::decode(&frame.payload[4..]).expect("well-formed");
                tags.push(ack.delivery_tag);
            }
        }
        assert_eq!(tags, (0..50).collect::<Vec<_>>(), "{step}");
    }
}

#[test]
fn addresses_are_read_with_their_defaults() {
    let check = |text: &str, user: &str, password: &str, host: &str, port: u16, vhost: &str| {
        let target: Target = text.parse().expect("it is an address");
        let login = target.login_or_guest();
        let parts = (login.user.as_str(), login.password(), target.host(), target.port());
        assert_eq!((parts, target.virtual_host.as_str()), ((user, password, host, port), vhost));
    };
    check("amqp://localhost", "guest", "guest", "localhost", 5672, "/");
    check("amqp://127.0.0.1:99/%2f", "guest", "guest", "127.0.0.1", 99, "/");
    check("amqp://a:b%40c@h:1/v", "a", "b@c", "h", 1, "v");
    check("amqp://h/", "guest", "guest", "h", 5672, "/");
    for wrong in ["http://h", "amqp://", "amqp://h:port", "amqp://h/%zz", "amqp://h/%2"] {
        assert!(wrong.parse::<Target>().is_err(), "{wrong}");
    }
}

#[test]
fn a_fake_broker_says_what_a_client_takes() {
    let fake_broker = super::fake_broker();
    for answer in &fake_broker.answers {
        let [frame] = frames(&answer.reply)[..] else { panic!("one frame: {answer:?}") };
        assert!(frame.kind == frame::METHOD && Method::decode(frame.payload).is_ok(), "{answer:?}");
    }
    for body in [&b""[..], b"hello"] {
        let (mut out, mut kept, mut content) = (vec![7], Kept::default(), Content::default());
        let body_at = fake_broker.deliver("a", body, &mut out).body_at;
        for frame in frames(&out[1..]) {
            content.frame(&frame, &mut kept).expect("well-formed");
        }
        assert_eq!((kept.bodies.as_slice(), kept.complete), (&[body.to_vec()][..], 1));
        assert!(body.is_empty() || out[body_at..].starts_with(body));
    }
}
