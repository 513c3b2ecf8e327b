//! Lines to and from bytes, and broker addresses.

use super::uri::{Login, Uri};
use super::wire::{self, Line, read_line};

#[track_caller]
fn check(bytes: &[u8], wanted: Line<'_>) {
    let (line, used) = read_line(bytes).expect("it makes sense").expect("it is whole");
    assert_eq!((line, used), (wanted, bytes.len()));
    for cut in 0..bytes.len() {
        assert!(matches!(read_line(&bytes[..cut]), Ok(None)), "{cut} octets are no line");
    }
}

#[test]
fn lines_are_read() {
    check(b"MSG a.b 1 100\r\n", Line::Message { headers: 0, body: 100 });
    check(b"MSG a.b 1 _INBOX.x 0\r\n", Line::Message { headers: 0, body: 0 });
    check(b"HMSG a.b 1 r 12 112\r\n", Line::Message { headers: 12, body: 100 });
    check(b"PING\r\n", Line::Ping);
    check(b"PONG\r\n", Line::Pong);
    check(b"+OK\r\n", Line::Ok);
    check(b"-ERR 'Slow Consumer'\r\n", Line::Refusal(b"'Slow Consumer'"));
    check(b"INFO {\"a\":1} \r\n", Line::Info(b"{\"a\":1} "));
}

#[test]
fn nonsense_is_refused() {
    for wrong in [
        &b"MSG a 1 x\r\n"[..],
        b"MSG a 1 \r\n",
        b"MSG 5\r\n",
        b"HMSG a 1 12 11\r\n",
        b"MSG a 1 99999999999999999999\r\n",
        b"HELLO\r\n",
        b"\r\n",
    ] {
        assert!(read_line(wrong).is_err(), "{:?}", String::from_utf8_lossy(wrong));
    }
    assert!(read_line(&vec![b'x'; wire::LINE_BYTES_MAX + 1]).is_err());
}

#[test]
fn what_is_written() {
    let mut out = Vec::new();
    assert_eq!(wire::write_publish(&mut out, "a.b", None, b"hello"), 11);
    assert_eq!(wire::write_publish(&mut out, "a", Some("r"), b""), 29);
    wire::write_subscribe(&mut out, "a.*", None, 1);
    wire::write_subscribe(&mut out, "a.>", Some("g"), 2);
    assert_eq!(
        String::from_utf8_lossy(&out),
        "PUB a.b 5\r\nhello\r\nPUB a r 0\r\n\r\nSUB a.* 1\r\nSUB a.> g 2\r\n"
    );
    let mut out = Vec::new();
    wire::write_connect(&mut out, ",\"auth_token\":\"t\"");
    let text = String::from_utf8(out).expect("it is text");
    let json = text.strip_prefix("CONNECT ").expect("it is that").trim_end();
    let value: serde_json::Value = serde_json::from_str(json).expect("it is JSON");
    assert_eq!((&value["auth_token"], &value["verbose"]), (&"t".into(), &false.into()));
}

#[test]
fn addresses_are_read_with_their_defaults() {
    let check = |text: &str, login: Login, host: &str, port: u16| {
        let uri: Uri = text.parse().expect("it is an address");
        assert_eq!(uri, Uri { login, host: host.to_owned(), port });
    };
    check("nats://localhost", Login::None, "localhost", 4222);
    check("nats://127.0.0.1:99/", Login::None, "127.0.0.1", 99);
    check("nats://secret@h", Login::Token("secret".to_owned()), "h", 4222);
    check("nats://a:b%40c@h:1", Login::User("a".to_owned(), "b@c".to_owned()), "h", 1);
    for wrong in ["amqp://h", "nats://", "nats://h:port"] {
        assert!(wrong.parse::<Uri>().is_err(), "{wrong}");
    }
}
