//! Frames to and from bytes, and addresses.

use super::frame::{FrameHead, Noted, number, write, write_send};
use crate::client::{Route, Target};

#[test]
fn a_send_is_a_frame_with_a_receipt_and_a_body() {
    let mut out = Vec::new();
    let route = Route { exchange: "", key: "/queue/a", persistent: true };
    let encoded = write_send(&mut out, &route, true, b"hello");
    let body_at = encoded.body_at;
    assert_eq!(&out[body_at..], b"hello\0");
    encoded.write_tag(&mut out, 42);
    let head = FrameHead::decode(&out).expect("well-formed").expect("whole");
    assert_eq!((head.command, head.octets), (&b"SEND"[..], body_at));
    assert_eq!(head.header(b"destination"), Some(&b"/queue/a"[..]));
    assert_eq!(head.header(b"persistent"), Some(&b"true"[..]));
    assert_eq!(head.header(b"receipt").and_then(number), Some(42));
    assert_eq!(head.content_length(), Some(5));
    assert_eq!(head.header(b"content"), None);
    for cut in 0..body_at {
        assert_eq!(FrameHead::decode(&out[..cut]), Ok(None), "{cut}");
    }
    let mut plain = Vec::new();
    let route = Route { persistent: false, ..route };
    write_send(&mut plain, &route, false, b"").write_tag(&mut plain, 42);
    assert_eq!(plain, b"SEND\ndestination:/queue/a\ncontent-length:0\n\n\0");
}

#[test]
fn line_ends_may_be_either_and_beats_are_skipped() {
    let bytes = b"\n\r\nRECEIPT\r\nreceipt-id:7\r\n\r\n\0";
    let head = FrameHead::decode(bytes).expect("well-formed").expect("whole");
    assert_eq!((head.command, head.octets), (&b"RECEIPT"[..], bytes.len() - 1));
    assert_eq!(head.header(b"receipt-id"), Some(&b"7"[..]));
    assert!(FrameHead::decode(&[b'x'; 40_000]).is_err());
}

#[test]
fn values_are_escaped() {
    let mut out = Vec::new();
    write(&mut out, "SUBSCRIBE", &[("id", "a:b\\c\nd")]);
    assert_eq!(out, b"SUBSCRIBE\nid:a\\cb\\\\c\\nd\n\n\0");
}

#[test]
fn numbers_are_digits() {
    for (text, value) in
        [("0", Some(0)), ("0012", Some(12)), ("", None), ("1x", None), ("-1", None)]
    {
        assert_eq!(number(text.as_bytes()), value, "{text}");
    }
    assert_eq!(number(b"99999999999999999999999"), None);
}

#[test]
fn addresses_are_read() {
    let target: Target = "stomp://h".parse().expect("it is one");
    assert_eq!((target.port(), target.virtual_host.as_str()), (61_613, "/"));
    assert_eq!(target.login_or_guest().user, "guest");
    let target: Target = "stomp://u:p@h:5/v".parse().expect("it is one");
    assert_eq!((target.port(), target.virtual_host.as_str()), (5, "v"));
    assert_eq!(target.login_or_guest().user, "u");
    assert_eq!(target.to_string(), "stomp://h:5/v");
}

/// The noted headers of a frame, and the bytes after its head.
fn noted(bytes: &[u8]) -> (Noted<'_>, usize) {
    let mut noted = Noted::default();
    let head =
        FrameHead::scan(bytes, |line| noted.note(line)).expect("well-formed").expect("whole");
    let all = (noted.length, noted.redelivered, noted.ack);
    let found = (head.header(b"content-length"), head.header(b"redelivered"), head.header(b"ack"));
    assert_eq!(all, found);
    (noted, bytes.len() - head.octets)
}

#[test]
fn lines_end_wherever_they_do() {
    // Bytes that differ from a line end by one bit or more, at any position.
    for octet in [b'a', 0x0B, 0x8A, 0x00, 0xFF, 0x09] {
        for at in 0..16 {
            let mut bytes = b"X\nack:0123456789012345\ncontent-length:5\n\n".to_vec();
            bytes[6 + at] = octet;
            let (noted, left) = noted(&bytes);
            assert_eq!((noted.ack, noted.length, left), (Some(&bytes[6..22]), Some(&b"5"[..]), 0));
        }
    }
    for octets in 0..20 {
        let name = "n".repeat(octets);
        let bytes = format!("X\n{name}:\r\nack:1\r\nack:2\nredelivered:true\n\r\nack:3\n\n");
        let (noted, left) = noted(bytes.as_bytes());
        assert_eq!(
            (noted.ack, noted.redelivered),
            (Some(&b"1"[..]), Some(&b"true"[..])),
            "{octets}"
        );
        assert_eq!((noted.length, left), (None, 7), "{octets}");
    }
    assert_eq!(noted(b"X\n\nack:1\n\n"), (Noted::default(), 7));
}

#[test]
fn a_fake_broker_says_what_a_client_takes() {
    let fake_broker = super::fake_broker();
    let decoded = |bytes| FrameHead::decode(bytes).expect("well-formed").expect("whole");
    for (answer, id) in fake_broker.answers.iter().zip([None, Some("subscribed"), Some("end")]) {
        let head = decoded(&answer.reply);
        assert_eq!(head.header(b"receipt-id"), id.map(str::as_bytes));
        assert_eq!(&answer.reply[head.octets..], b"\0");
    }
    let mut out = b"\n".to_vec();
    let body_at = fake_broker.deliver("/queue/a", b"hello", &mut out).body_at;
    let head = decoded(&out);
    assert_eq!((head.command, head.octets), (&b"MESSAGE"[..], body_at));
    assert_eq!((head.content_length(), &out[body_at..]), (Some(5), &b"hello\0"[..]));
}
