//! RFC 6455's rules as data: what a client may send, what becomes of it, and what is said back.

use super::handshake::{Opening, open};
use super::header::{Code, Fault};
use super::incoming::{End, Incoming};
use super::outgoing::Outgoing;
use super::settings::Settings;
use crate::peer::Protocol;

/// Opcodes, with the bit that says that a frame is the last of its message.
const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
/// Those that are not the last.
const TEXT_BEGINS: u8 = 0x01;
const BINARY_BEGINS: u8 = 0x02;
const CONTINUES: u8 = 0x00;
const ENDS: u8 = 0x80;

/// A client's frame, masked.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    let mut bytes = vec![first];
    match payload.len() {
        len @ 0..=125 => bytes.push(0x80 | len as u8),
        len @ 126..=0xffff => {
            bytes.push(0x80 | 126);
            bytes.extend((len as u16).to_be_bytes());
        }
        len => {
            bytes.push(0x80 | 127);
            bytes.extend((len as u64).to_be_bytes());
        }
    }
    bytes.extend(mask);
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// What came of some input: its payload, the pings in it, and how it ended.
type Outcome = (Vec<u8>, Vec<Vec<u8>>, Option<End>);

fn take<'a>(parts: impl IntoIterator<Item = &'a [u8]>, refuses_text: bool) -> Outcome {
    let mut incoming = Incoming::default();
    if refuses_text {
        incoming.refuse_text();
    }
    let (mut payload, mut pings, mut end) = (Vec::new(), Vec::new(), None);
    for part in parts {
        let received = incoming.receive(part, &mut payload);
        pings.extend(received.ping);
        end = end.or(received.end);
        assert_eq!(incoming.is_closed(), end.is_some());
    }
    (payload, pings, end)
}

fn failed(code: Code, text: &'static str) -> Option<End> {
    Some(End::Failed(Fault { code, text }))
}

/// Checks that `input` comes to that, however it is cut; of several pings in one part only the last one is
/// asked to be answered.
#[track_caller]
fn check(what: &str, input: &[u8], payload: &[u8], pings: &[&[u8]], end: Option<End>) {
    let bytewise = take(input.chunks(1), false);
    assert_eq!(
        bytewise,
        (payload.to_vec(), pings.iter().map(|it| it.to_vec()).collect(), end),
        "{what}"
    );
    for at in 0..=input.len() {
        let (head, tail) = input.split_at(at);
        let (got, answered, ended) = take([head, tail], false);
        assert_eq!((got.as_slice(), ended), (payload, end), "{what}, cut at {at}");
        assert_eq!(
            answered.last().map(Vec::as_slice),
            pings.last().copied(),
            "{what}, cut at {at}"
        );
    }
}

#[test]
fn payload_comes_out_as_it_went_in() {
    let long: Vec<u8> = (0..70_000_u32).map(|at| (at % 251) as u8).collect();
    for (what, frames, payload, pings) in [
        ("nothing", vec![], &b""[..], &[][..]),
        ("text", vec![(TEXT, &b"Hello"[..])], b"Hello", &[]),
        ("binary", vec![(BINARY, b"\x00\xff")], b"\x00\xff", &[]),
        ("an empty message", vec![(BINARY, b""), (BINARY, b"x")], b"x", &[]),
        ("fragments", vec![(TEXT_BEGINS, b"Hel"), (CONTINUES, b""), (ENDS, b"lo")], b"Hello", &[]),
        (
            "a character in two fragments",
            vec![(TEXT_BEGINS, b"\xe2\x82"), (ENDS, b"\xac")],
            "€".as_bytes(),
            &[],
        ),
        (
            "control frames between fragments",
            vec![(BINARY_BEGINS, b"a"), (PING, b"1"), (PONG, b"?"), (ENDS, b"b"), (PING, b"")],
            b"ab",
            &[&b"1"[..], b""],
        ),
        (
            "text of several messages",
            vec![(TEXT, b"a"), (BINARY, b"\xff"), (TEXT, b"b")],
            b"a\xffb",
            &[],
        ),
        ("a length of two bytes", vec![(BINARY, &long[..126])], &long[..126], &[]),
    ] {
        let input: Vec<u8> =
            frames.iter().flat_map(|(first, bytes)| frame(*first, bytes)).collect();
        check(what, &input, payload, pings, None);
    }
    // The longest ones are not cut everywhere.
    for length in [125, 127, 0xffff, 0x1_0000, 70_000] {
        let bytes = frame(BINARY, &long[..length]);
        for at in [0, 1, 2, 9, 13, 14, 15, 1_000.min(length), length] {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(
                take([head, tail], false),
                (long[..length].to_vec(), vec![], None),
                "{length}"
            );
        }
    }
}

#[test]
fn what_breaks_a_rule_ends_the_connection_with_its_code() {
    let unmasked = [BINARY, 1, b'x'];
    let mut in_message = frame(BINARY_BEGINS, b"a");
    in_message.extend(frame(TEXT, b"b"));
    let ended_amid = frame(TEXT, b"ok \xe2\x82");
    let mut fragments = frame(TEXT_BEGINS, b"\xe2\x82");
    fragments.extend(frame(ENDS, b""));
    let protocol = Code::PROTOCOL;
    for (what, input, payload, end) in [
        ("no mask", &unmasked[..], &b""[..], failed(protocol, "a client's frame is not masked")),
        (
            "a reserved bit",
            &frame(0xc2, b"x"),
            b"",
            failed(protocol, "a frame has reserved bits, and no extension was agreed on"),
        ),
        ("opcode 3", &frame(0x83, b""), b"", failed(protocol, "a frame has a reserved opcode")),
        ("opcode 11", &frame(0x8b, b""), b"", failed(protocol, "a frame has a reserved opcode")),
        (
            "a ping in fragments",
            &frame(0x09, b""),
            b"",
            failed(protocol, "a control frame is fragmented"),
        ),
        (
            "a long ping",
            &frame(PING, &[0; 126]),
            b"",
            failed(protocol, "a control frame is longer than 125 bytes"),
        ),
        (
            "a continuation of nothing",
            &frame(ENDS, b"x"),
            b"",
            failed(protocol, "a frame continues a message that has not begun"),
        ),
        (
            "a message in a message",
            &in_message,
            b"a",
            failed(protocol, "a message begins within another one"),
        ),
        (
            "half a character",
            &ended_amid,
            b"ok \xe2\x82",
            failed(Code::INVALID, "text is not UTF-8"),
        ),
        (
            "the same, in fragments",
            &fragments,
            b"\xe2\x82",
            failed(Code::INVALID, "text is not UTF-8"),
        ),
    ] {
        check(what, input, payload, &[], end);
    }
}

#[test]
fn a_length_has_a_limit_and_takes_as_few_bytes_as_it_can() {
    let longer = failed(Code::PROTOCOL, "a frame's length takes more bytes than it needs");
    let highest = failed(Code::PROTOCOL, "a frame's length has its highest bit set");
    for (what, input, end) in [
        (
            "1 GiB and a byte",
            &[0x82, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 1][..],
            failed(Code::TOO_BIG, "a frame is longer than 1 GiB"),
        ),
        ("63 bits", &[0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0], highest),
        ("two bytes for 125", &[0x82, 0xfe, 0, 125], longer),
        ("eight bytes for 65535", &[0x82, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff], longer),
    ] {
        check(what, input, b"", &[], end);
    }
}

#[test]
fn text_that_is_not_utf8_is_refused_before_it_ends() {
    let bytes = frame(TEXT_BEGINS, b"\xf8 and more");
    let (_, _, end) = take([&bytes[..7]], false);
    assert_eq!(end, failed(Code::INVALID, "text is not UTF-8"));
}

#[test]
fn text_is_refused_where_the_protocol_is_binary() {
    let text = "the client sends text, and its protocol is binary";
    let got = take([&frame(TEXT, b"x")[..]], true);
    assert_eq!(got, (vec![], vec![], failed(Code::UNSUPPORTED, text)));
    assert_eq!(take([&frame(BINARY, b"x")[..]], true), (b"x".to_vec(), vec![], None));
}

#[test]
fn a_close_frame_is_judged_and_ends_everything() {
    let with = |code: u16, reason: &[u8]| [&code.to_be_bytes(), reason].concat();
    let closed = |code| Some(End::Closed(Code(code)));
    let unsendable = failed(Code::PROTOCOL, "a close frame has a code that is not sent");
    for (said, end) in [
        (vec![], closed(1000)),
        (vec![3], failed(Code::PROTOCOL, "a close frame has half a code")),
        (with(1000, b""), closed(1000)),
        (with(1001, "bye €".as_bytes()), closed(1001)),
        (with(1014, b""), closed(1014)),
        (with(3000, b""), closed(3000)),
        (with(4999, b""), closed(4999)),
        (with(0, b""), unsendable),
        (with(999, b""), unsendable),
        (with(1004, b""), unsendable),
        (with(1005, b""), unsendable),
        (with(1006, b""), unsendable),
        (with(1015, b""), unsendable),
        (with(2999, b""), unsendable),
        (with(5000, b""), unsendable),
        (with(1000, b"\xff"), failed(Code::INVALID, "the reason of a close frame is not UTF-8")),
    ] {
        let mut input = frame(BINARY, b"before");
        input.extend(frame(CLOSE, &said));
        input.extend(frame(BINARY, b"after"));
        check(&format!("{said:?}"), &input, b"before", &[], end);
    }
}

/// What a client reads of all that is written in `turns`, which is cut at `cut` bytes.
fn sent(outgoing: &mut Outgoing, turns: &[&[u8]], cut: usize) -> Vec<u8> {
    let (mut wire, mut waiting) = (Vec::new(), Vec::new());
    for turn in turns.iter().chain([&&b""[..]; 3]) {
        waiting.extend_from_slice(turn);
        while outgoing.begin(|| std::iter::once(waiting.as_slice())) {
            let all = [outgoing.head(), &waiting[..outgoing.payload_left()]].concat();
            let some = &all[..all.len().min(cut)];
            wire.extend_from_slice(some);
            let of_payload = outgoing.sent(some.len());
            waiting.drain(..of_payload);
        }
    }
    wire
}

#[test]
fn output_is_a_frame_each_time_and_the_close_frame_comes_last() {
    let long = vec![7; 70_000];
    let long_frame = [&[0x82, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70][..], &long].concat();
    for (what, is_text, turns, expected) in [
        ("nothing", false, &[][..], &b"HTTP"[..]),
        ("binary", false, &[&b"ab"[..], b"c"], b"HTTP\x82\x02ab\x82\x01c"),
        ("text", true, &[b"ab", "€".as_bytes()], b"HTTP\x81\x02ab\x81\x03\xe2\x82\xac"),
        (
            "text and other bytes",
            true,
            &[b"ab", b"\xff", b"c"],
            b"HTTP\x81\x02ab\x82\x01\xff\x81\x01c",
        ),
        ("much", false, &[&long], &[b"HTTP", long_frame.as_slice()].concat()),
    ] {
        for cut in [1, 2, 3, 5, 100_000] {
            let mut outgoing = Outgoing::new(b"HTTP".to_vec());
            if is_text {
                outgoing.speak_text();
            }
            let wire = sent(&mut outgoing, turns, cut);
            assert_eq!(wire, expected, "{what}, cut after {cut}");
            assert!(!outgoing.is_done());
            outgoing.close(Code::GOING_AWAY);
            outgoing.close(Code::NORMAL);
            let wire = sent(&mut outgoing, &[b"last"], cut);
            let opcode = if is_text { b"\x81" } else { b"\x82" };
            let expected = [opcode, &b"\x04last\x88\x02\x03\xe9"[..]].concat();
            assert_eq!(wire, expected, "{what}, cut after {cut}");
            assert!(outgoing.is_done());
            assert_eq!(sent(&mut outgoing, &[b"more"], cut), b"", "{what}, cut after {cut}");
        }
    }
}

#[test]
fn a_frame_of_text_ends_with_a_whole_character() {
    let mut outgoing = Outgoing::default();
    outgoing.speak_text();
    assert_eq!(
        sent(&mut outgoing, &[b"a\xe2\x82", b"\xacb"], 9),
        b"\x81\x01a\x82\x02\xe2\x82\x82\x02\xacb"
    );
    let mut outgoing = Outgoing::default();
    outgoing.speak_text();
    let parts = [&b"a\xe2"[..], b"\x82\xac", b"b\xe2"];
    assert!(outgoing.begin(|| parts.into_iter()));
    assert_eq!((outgoing.head(), outgoing.payload_left()), (&b"\x81\x05"[..], 5));
}

#[test]
fn a_ping_is_answered_between_frames_and_the_last_of_several_alone() {
    let mut outgoing = Outgoing::default();
    assert!(outgoing.begin(|| std::iter::once(&b"abc"[..])));
    assert_eq!(outgoing.sent(3), 1);
    outgoing.answer(b"1".to_vec());
    outgoing.answer(b"2".to_vec());
    assert!(outgoing.begin(|| std::iter::once(&b"bc"[..])), "the frame goes on");
    assert_eq!((outgoing.head(), outgoing.payload_left()), (&b""[..], 2));
    assert_eq!(outgoing.sent(2), 2);
    assert_eq!(sent(&mut outgoing, &[b"d"], 99), b"\x8a\x012\x82\x01d");
}

#[test]
fn nothing_is_sent_once_it_is_discarded() {
    let mut outgoing = Outgoing::new(b"HTTP".to_vec());
    outgoing.close(Code::NORMAL);
    outgoing.discard();
    assert!(outgoing.is_done());
    assert!(!outgoing.begin(|| std::iter::once(&b"x"[..])));
}

// ---- the opening handshake ----

const REQUEST: [&str; 6] = [
    "GET /ws HTTP/1.1",
    "Host: localhost:8083",
    "Upgrade: websocket",
    "Connection: keep-alive, Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
];

/// The request, with these lines in the place of those that begin alike, or behind them.
fn request(changes: &[&str]) -> Vec<u8> {
    let name = |line: &str| line.split([':', ' ']).next().unwrap_or_default().to_owned();
    let mut lines: Vec<&str> = REQUEST.to_vec();
    for change in changes {
        let at = lines.iter().position(|line| name(line) == name(change));
        match at {
            Some(at) if change.ends_with(": -") => drop(lines.remove(at)),
            Some(at) => lines[at] = change,
            None => lines.push(change),
        }
    }
    (lines.join("\r\n") + "\r\n\r\n").into_bytes()
}

fn settings() -> Settings {
    let names = vec!["mq.example.com".to_owned()];
    Settings { names, origins: vec!["https://app.example.com".to_owned()] }
}

/// Checks what is spoken inside, and the subprotocol in the answer.
#[track_caller]
fn check_open(changes: &[&str], expected: Option<Protocol>, subprotocol: Option<&str>) {
    let mut input = request(changes);
    let length = input.len();
    for end in 0..length {
        assert_eq!(open(&input[..end], &settings()), Opening::Incomplete, "{end} bytes");
    }
    input.extend(frame(BINARY, b"early"));
    let Opening::Open { answer, protocol, used } = open(&input, &settings()) else {
        panic!("{changes:?}: {:?}", open(&input, &settings()));
    };
    let told = subprotocol.map(|name| format!("Sec-WebSocket-Protocol: {name}\r\n"));
    let expected_answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n{}\r\n",
        told.unwrap_or_default()
    );
    assert_eq!(String::from_utf8_lossy(&answer), expected_answer, "{changes:?}");
    assert_eq!((protocol, used), (expected, length), "{changes:?}");
}

#[test]
fn the_subprotocol_or_else_the_path_says_what_is_spoken() {
    let (amqp, mqtt) = (Some(Protocol::Amqp), Some(Protocol::Mqtt));
    let (nats, stomp) = (Some(Protocol::Nats), Some(Protocol::Stomp));
    for (path, expected) in [
        ("/", None),
        ("/ws", None),
        ("/ws?x=/mqtt", None),
        ("http://localhost", None),
        ("/mqtt", mqtt),
        ("/stomp?token=1", stomp),
        ("/amqp", amqp),
        ("http://localhost:8083/nats", nats),
    ] {
        check_open(&[&format!("GET {path} HTTP/1.1")], expected, None);
    }
    for (asked, expected, told) in [
        ("mqtt", mqtt, Some("mqtt")),
        ("mqttv3.1", mqtt, Some("mqttv3.1")),
        ("v12.stomp, v11.stomp, v10.stomp", stomp, Some("v12.stomp")),
        ("v10.stomp,v11.stomp", stomp, Some("v10.stomp")),
        ("binary, AMQPWSB10, amqp", amqp, Some("amqp")),
        ("nats", nats, Some("nats")),
        ("chat", None, None),
    ] {
        check_open(&[&format!("Sec-WebSocket-Protocol: {asked}")], expected, told);
    }
    // Any path will do with a subprotocol, which counts.
    check_open(&["GET /x HTTP/1.1", "Sec-WebSocket-Protocol: mqtt"], mqtt, Some("mqtt"));
    check_open(&["GET /amqp HTTP/1.1", "Sec-WebSocket-Protocol: mqtt"], mqtt, Some("mqtt"));
}

#[test]
fn the_broker_is_addressed_by_its_names_and_by_its_own_pages() {
    for changes in [
        &["Host: 127.0.0.1"][..],
        &["Host: [::1]:8083"],
        &["Host: mq.example.com:443"],
        &["Origin: http://localhost:8083"],
        &["Origin: https://localhost:8083"],
        &["Origin: https://app.example.com"],
        &["upgrade: WebSocket", "Upgrade: -"],
        &["Connection: UPGRADE"],
        &["Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"],
    ] {
        check_open(changes, None, None);
    }
}

#[test]
fn a_request_that_is_refused_is_told_why() {
    let long = format!("X: {}", "x".repeat(8 << 10));
    let many: Vec<String> = (0..65).map(|at| format!("X{at}: x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (changes, status, why) in [
        (&["GET /ws HTTP/1.0"][..], "505", "HTTP/1.1"),
        (&["Host: evil.example"], "421", "'evil.example' is no name of this broker"),
        (&["GET http://evil.example/ws HTTP/1.1"], "421", "no name of this broker"),
        (&["Host: -"], "400", "the Host header is missing"),
        (&["host: a"], "400", "more than one Host header"),
        (&["Origin: http://evil.example"], "403", "setting ws-origins"),
        (&["Origin: null"], "403", "pages of null may not connect here"),
        (&["Origin: http://localhost"], "403", "pages of http://localhost may not"),
        (&["Upgrade: -"], "426", "no 'Upgrade: websocket'"),
        (&["Upgrade: h2c"], "426", "no 'Upgrade: websocket'"),
        (&["Connection: close"], "400", "the Connection header does not say"),
        (&["Sec-WebSocket-Version: 8"], "426", "version 13"),
        (&["Sec-WebSocket-Version: -"], "426", "version 13"),
        (&["Sec-WebSocket-Key: -"], "400", "Sec-WebSocket-Key is not 16 bytes"),
        (&["Sec-WebSocket-Key: dGhl"], "400", "Sec-WebSocket-Key is not 16 bytes"),
        (&["sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="], "400", "more than one"),
        (&["GET /chat HTTP/1.1"], "404", "nothing is at '/chat': the paths are / /ws /mqtt"),
        (&[&long], "431", "longer than 8192 bytes"),
        (&many, "431", "more than 64 headers"),
    ] {
        check_refused(&request(changes), status, why);
    }
    check_refused(b"POST /ws HTTP/1.1\r\nHost: localhost\r\n\r\n", "405", "begins with GET");
    check_refused(b"\x10\x0c\x00\x04MQTT\x04", "400", "this is no HTTP request");
    check_refused(b"CONNECT {\"verbose\":false}\r\n", "400", "this is no HTTP request");
    check_refused(&[b'G'; 8 << 10], "431", "longer than 8192 bytes");
}

#[track_caller]
fn check_refused(input: &[u8], status: &str, text: &str) {
    let Opening::Refused { answer, why } = open(input, &settings()) else {
        panic!("{}: {:?}", input.escape_ascii(), open(input, &settings()));
    };
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    assert!(why.contains(text) && body == format!("{why}\n"), "{why:?} {body:?}");
    assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
}
