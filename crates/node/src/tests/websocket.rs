//! Clients that come by WebSocket, or of which the first bytes say what they speak: the same conversations as
//! over a plain transport, cut everywhere.

use super::broker::Broker;
use angarium_engine::SlowConsumerPolicy;
use angarium_protocol::websocket::Incoming;
use angarium_protocol::{Peer, Protocol};
use std::time::Duration;

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;

const STOMP_CONNECT: &[u8] = b"CONNECT\naccept-version:1.2\nlogin:user\npasscode:secret\n\n\0";
const MQTT_CONNECT: &[u8] =
    b"\x10\x19\x00\x04MQTT\x04\xc2\x00\x00\x00\x01c\x00\x04user\x00\x04pass";
const AMQP10_HEADER: &[u8] = b"AMQP\x03\x01\x00\x00";
const AMQP091_HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";
const NATS_CONNECT: &[u8] =
    b"CONNECT {\"verbose\":false,\"user\":\"user\",\"pass\":\"secret\"}\r\nPING\r\n";

/// The request of a client.
fn request(path: &str, headers: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{headers}\r\n"
    )
    .into_bytes()
}

/// A client's frame, masked.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 0xf4];
    let mut bytes = vec![first];
    match payload.len() {
        len @ 0..=125 => bytes.push(0x80 | len as u8),
        len => {
            bytes.push(0x80 | 126);
            bytes.extend((len as u16).to_be_bytes());
        }
    }
    bytes.extend(mask);
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// What a client reads: the answer to its request, the payload of text, of binary frames and of pongs, and
/// the code of a close frame.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    answer: String,
    text: Vec<u8>,
    binary: Vec<u8>,
    pongs: Vec<u8>,
    closed: Option<u16>,
}

impl Heard {
    fn of(bytes: &[u8]) -> Heard {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let (answer, mut frames) = bytes.split_at(end.map_or(bytes.len(), |at| at + 4));
        let answer = String::from_utf8(answer.to_vec()).unwrap();
        let mut heard = Heard { answer, ..Heard::default() };
        if !heard.answer.starts_with("HTTP/1.1 101 ") {
            heard.answer.push_str(str::from_utf8(frames).unwrap());
            return heard;
        }
        while let [first, short, rest @ ..] = frames {
            let (length, rest) = match short {
                126 => (usize::from(u16::from_be_bytes([rest[0], rest[1]])), &rest[2..]),
                127 => (u64::from_be_bytes(rest[..8].try_into().unwrap()) as usize, &rest[8..]),
                short => (usize::from(*short), rest),
            };
            let (payload, rest) = rest.split_at(length);
            match *first {
                TEXT => heard.text.extend(payload),
                BINARY => heard.binary.extend(payload),
                0x8a => heard.pongs.extend(payload),
                CLOSE => heard.closed = Some(u16::from_be_bytes(payload.try_into().unwrap())),
                other => panic!("a frame that begins with {other:x}"),
            }
            frames = rest;
        }
        assert_eq!(frames, b"", "half a frame");
        heard
    }
}

/// What a client hears that sends `parts`, each of them once nothing happens any more, and whether it is
/// connected then.
fn converse<'a>(
    broker: &mut Broker,
    listener: Protocol,
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<u8>, bool) {
    broker.accept("c", 0, listener);
    for part in parts {
        if broker.is_connected("c") {
            broker.say_bytes("c", part);
        }
    }
    let is_connected = broker.is_connected("c");
    if is_connected {
        broker.disconnect("c");
    }
    (broker.heard_bytes("c"), is_connected)
}

/// Checks that a conversation is the same wherever its input is cut, and what the client has heard then.
#[track_caller]
fn check(what: &str, listener: Protocol, input: &[u8], judge: impl Fn(&Heard, bool)) {
    let mut broker = Broker::new(1);
    let (bytes, is_connected) = converse(&mut broker, listener, [input]);
    judge(&Heard::of(&bytes), is_connected);
    for at in 1..input.len() {
        let (head, tail) = input.split_at(at);
        let (bytes, is_connected) = converse(&mut broker, listener, [head, tail]);
        let heard = Heard::of(&bytes);
        judge(&heard, is_connected);
        assert!(heard.answer.starts_with("HTTP/1.1 101 "), "{what}, cut at {at}: {heard:?}");
    }
    let (bytes, is_connected) = converse(&mut broker, listener, input.chunks(1));
    judge(&Heard::of(&bytes), is_connected);
}

#[test]
fn every_protocol_is_spoken_inside_and_may_be_cut_everywhere() {
    type Shows = fn(&Heard) -> bool;
    let of_mqtt: Shows = |heard| heard.binary == b"\x20\x02\x00\x00";
    let of_stomp: Shows =
        |heard| heard.text.starts_with(b"CONNECTED\n") && heard.text.ends_with(b"\0");
    let of_stomp_bytes: Shows = |heard| heard.binary.starts_with(b"CONNECTED\n");
    let of_amqp10: Shows = |heard| heard.binary.starts_with(AMQP10_HEADER);
    let of_amqp091: Shows = |heard| heard.binary.starts_with(b"\x01\x00\x00");
    let of_nats: Shows =
        |heard| heard.binary.starts_with(b"INFO {") && heard.binary.ends_with(b"\r\nPONG\r\n");
    let by_bytes_nats: Shows = |heard| heard.binary.ends_with(b"\r\nPONG\r\n");
    for (what, path, headers, kind, sent, shows) in [
        ("mqtt by path", "/mqtt", "", BINARY, MQTT_CONNECT, of_mqtt),
        ("mqtt by name", "/", "Sec-WebSocket-Protocol: mqtt\r\n", BINARY, MQTT_CONNECT, of_mqtt),
        ("mqtt by bytes", "/ws", "", BINARY, MQTT_CONNECT, of_mqtt),
        ("stomp by path", "/stomp", "", TEXT, STOMP_CONNECT, of_stomp),
        ("stomp by bytes", "/ws", "", TEXT, STOMP_CONNECT, of_stomp),
        ("stomp in binary", "/stomp", "", BINARY, STOMP_CONNECT, of_stomp_bytes),
        ("amqp 1.0 by path", "/amqp", "", BINARY, AMQP10_HEADER, of_amqp10),
        ("amqp 1.0 by bytes", "/", "", BINARY, AMQP10_HEADER, of_amqp10),
        ("amqp 0-9-1 by path", "/amqp", "", BINARY, AMQP091_HEADER, of_amqp091),
        ("nats by path", "/nats", "", BINARY, NATS_CONNECT, of_nats),
        ("nats by bytes", "/ws", "", BINARY, NATS_CONNECT, by_bytes_nats),
    ] {
        let listener = if kind == TEXT { Protocol::Any } else { Protocol::WebSocket };
        let mut input = request(path, headers);
        input.extend(frame(PING, b"?"));
        let (head, tail) = sent.split_at(3);
        input.extend(frame(kind & 0x7f, head));
        input.extend(frame(0x80, tail));
        check(what, listener, &input, |heard, is_connected| {
            assert!(is_connected && shows(heard), "{what}: {heard:?}");
            assert_eq!((heard.pongs.as_slice(), heard.closed), (&b"?"[..], None), "{what}");
        });
    }
}

#[test]
fn the_first_bytes_of_a_shared_port_say_what_is_spoken() {
    let mut broker = Broker::new(1);
    for (sent, begins) in [
        (MQTT_CONNECT, &b"\x20\x02"[..]),
        (STOMP_CONNECT, b"CONNECTED\n"),
        (AMQP10_HEADER, AMQP10_HEADER),
        (AMQP091_HEADER, b"\x01\x00\x00"),
        (NATS_CONNECT, b"INFO {"),
    ] {
        for at in 0..sent.len() {
            let (head, tail) = sent.split_at(at);
            let (heard, is_connected) = converse(&mut broker, Protocol::Any, [head, tail]);
            let shown = heard.escape_ascii();
            assert!(is_connected && heard.starts_with(begins), "cut at {at}: {shown}");
        }
    }
    for unknown in [&b"\x00"[..], b"HELO x\r\n", b"POST / HTTP/1.1\r\n"] {
        assert_eq!(converse(&mut broker, Protocol::Any, [unknown]), (vec![], false));
    }
}

#[test]
fn a_client_that_waits_is_greeted_as_nats_greets_after_a_silence() {
    let silence = Duration::from_millis(100);
    for (what, listener, first) in [
        ("a shared port", Protocol::Any, vec![]),
        ("a WebSocket", Protocol::WebSocket, request("/", "")),
        ("a WebSocket on a shared port", Protocol::Any, request("/ws", "")),
    ] {
        let mut broker = Broker::new(2);
        broker.accept("c", 1, listener);
        if !first.is_empty() {
            broker.say_bytes("c", &first);
        }
        broker.pass(silence / 2);
        let before = broker.heard_bytes("c");
        assert!(!before.escape_ascii().to_string().contains("INFO"), "{what}");
        broker.pass(silence / 2);
        let greeting = broker.heard_bytes("c");
        let info = greeting.windows(6).position(|six| six == b"INFO {");
        assert!(info.is_some_and(|at| at <= 4), "{what}: {}", greeting.escape_ascii());
        let login = match first.is_empty() {
            true => NATS_CONNECT.to_vec(),
            false => frame(BINARY, NATS_CONNECT),
        };
        broker.say_bytes("c", &login);
        assert!(broker.heard_bytes("c").ends_with(b"PONG\r\n"), "{what}");
    }
    // One that has begun does not wait, and one that says nothing is not kept for ever.
    let mut broker = Broker::new(1);
    for (name, listener, first) in [
        ("a", Protocol::Any, &b"CONN"[..]),
        ("b", Protocol::WebSocket, b""),
        ("c", Protocol::WebSocket, b"GET"),
    ] {
        broker.accept(name, 0, listener);
        if !first.is_empty() {
            broker.say_bytes(name, first);
        }
        broker.pass(Duration::from_secs(5));
        assert!(broker.is_connected(name), "{name}");
        broker.pass(Duration::from_secs(6));
        assert_eq!(
            (broker.heard_bytes(name), broker.is_connected(name)),
            (vec![], false),
            "{name}"
        );
    }
}

#[test]
fn what_breaks_rules_is_told_the_code() {
    let unmasked = [0x82, 1, b'x'];
    for (what, path, frames, code) in [
        ("no mask", "/mqtt", unmasked.to_vec(), 1002),
        ("text to MQTT", "/mqtt", frame(TEXT, MQTT_CONNECT), 1003),
        ("text to MQTT by its bytes", "/ws", frame(TEXT, MQTT_CONNECT), 1003),
        ("text that is none", "/stomp", frame(TEXT, b"CONN\xff"), 1007),
        ("a long frame", "/mqtt", vec![0x82, 0xff, 1, 0, 0, 0, 0, 0, 0, 0], 1009),
        ("bytes of nothing", "/ws", frame(BINARY, b"HELO\r\n"), 1000),
        ("a goodbye", "/stomp", frame(CLOSE, b"\x03\xe9bye"), 1001),
        ("a goodbye without a code", "/ws", frame(CLOSE, b""), 1000),
    ] {
        let mut input = request(path, "");
        input.extend(frames);
        check(what, Protocol::WebSocket, &input, |heard, is_connected| {
            assert_eq!((heard.closed, is_connected), (Some(code), false), "{what}");
        });
    }
}

#[test]
fn a_request_that_is_refused_is_answered_and_the_connection_ends() {
    let mut broker = Broker::new(1);
    let mut input = request("/nowhere", "");
    let (heard, is_connected) = converse(&mut broker, Protocol::WebSocket, [input.as_slice()]);
    assert!(heard.starts_with(b"HTTP/1.1 404 ") && !is_connected);
    input.truncate(input.len() - 1);
    let (heard, is_connected) = converse(&mut broker, Protocol::WebSocket, [input.as_slice()]);
    assert!(heard.is_empty() && is_connected, "it has not come whole");
}

#[test]
fn what_came_before_the_close_frame_is_processed() {
    let mut broker = Broker::new(2);
    broker.connect("n", 0);
    broker.say("n", "SUB t 1\r\n");
    for at in [0, 40, 4_000] {
        broker.accept("c", 1, Protocol::WebSocket);
        let mut input = request("/stomp", "");
        input.extend(frame(TEXT, STOMP_CONNECT));
        let send = format!("SEND\ndestination:/topic/t\nx:{}\n\nnews\0", "y".repeat(at));
        input.extend(frame(TEXT, send.as_bytes()));
        input.extend(frame(CLOSE, b"\x03\xe8"));
        input.extend(frame(TEXT, b"SEND\ndestination:/topic/t\n\nafter\0"));
        // All of it is there before the login is answered.
        broker.say_bytes("c", &input);
        assert_eq!(Heard::of(&broker.heard_bytes("c")).closed, Some(1000));
        assert!(!broker.is_connected("c"));
        let heard = broker.heard("n");
        assert!(heard.contains("news") && !heard.contains("after"), "{heard}");
    }
}

#[test]
fn a_broker_that_stops_says_so() {
    let mut broker = Broker::new(1);
    broker.accept("c", 0, Protocol::WebSocket);
    let mut input = request("/stomp", "");
    input.extend(frame(TEXT, STOMP_CONNECT));
    broker.say_bytes("c", &input);
    broker.accept("d", 0, Protocol::WebSocket);
    broker.shut_down("maintenance");
    broker.pass(Duration::from_secs(6));
    assert_eq!(Heard::of(&broker.heard_bytes("c")).closed, Some(1001));
    assert!(!broker.is_connected("c") && !broker.is_connected("d"));
}

#[test]
fn frames_of_a_slow_consumer_stay_whole_when_its_oldest_messages_are_dropped() {
    let mut broker = Broker::new(1);
    let slow_consumer_policy = Some(SlowConsumerPolicy::DropOldest);
    let peer = Peer { protocol: Protocol::WebSocket, slow_consumer_policy, ..Peer::default() };
    broker.accept_as("c", 0, peer);
    let mut input = request("/nats", "");
    let subscribe = b"SUB t 1\r\nPING\r\n";
    input.extend(frame(BINARY, NATS_CONNECT));
    input.extend(frame(BINARY, subscribe));
    broker.say_bytes("c", &input);
    broker.heard_bytes("c");
    broker.connect("p", 0);
    broker.set_deaf("c", true);
    let message = |number: u32| format!("PUB t 1000\r\n{number:01000}\r\n");
    for number in 0..2_000 {
        broker.say("p", &message(number));
        if number == 3 {
            broker.hear_some("c", 3);
        }
    }
    broker.set_deaf("c", false);
    let mut bytes = b"HTTP/1.1 101 \r\n\r\n".to_vec();
    bytes.extend(broker.heard_bytes("c"));
    let heard = Heard::of(&bytes);
    let text = String::from_utf8(heard.binary).unwrap();
    let numbers: Vec<u32> =
        text.lines().filter(|line| line.len() == 1_000).map(|line| line.parse().unwrap()).collect();
    assert!(numbers.is_sorted() && numbers.len() < 1_500, "{}", numbers.len());
    assert_eq!(numbers.last(), Some(&1_999));
    assert_eq!(text.matches("MSG t 1 1000").count(), numbers.len(), "messages stay whole");
}

#[test]
fn a_decoder_keeps_little_of_an_idle_client() {
    assert!(size_of::<Incoming>() <= 128, "{}", size_of::<Incoming>());
}
