//! How clients come to a broker in this process: by Unix sockets, through proxies, on one port for all, by
//! WebSocket.

use super::tests::Running;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const PORT: &str = "127.0.0.1:0";
const CONNECT: &str =
    "CONNECT {\"verbose\":false,\"user\":\"guest\",\"pass\":\"guest\"}\r\nPING\r\n";
const PROXY_V2: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x03\xe8\x16\x28";

/// Where that listener is.
fn place<'a>(running: &'a Running, listener: &str) -> &'a str {
    let mut shown = running.shards.as_ref().unwrap().shown.iter();
    shown.find_map(|shown| shown.strip_prefix(listener)?.strip_prefix(" on ")).unwrap()
}

/// A client there that has sent these parts, one after the other.
fn connect(place: &str, parts: &[&[u8]]) -> TcpStream {
    let mut stream = TcpStream::connect(place).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    for part in parts {
        stream.write_all(part).unwrap();
        // What is sent together may be read together.
        std::thread::sleep(Duration::from_millis(2));
    }
    stream
}

/// What comes until it has that in it, or ends.
fn read_until(stream: &mut impl Read, end: &str) -> String {
    let (mut read, mut block) = (Vec::new(), [0; 4_096]);
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if text.contains(end) {
            return text;
        }
        match stream.read(&mut block) {
            Ok(count @ 1..) => read.extend_from_slice(&block[..count]),
            _ => return text,
        }
    }
}

#[test]
fn a_listener_has_several_places_and_unix_sockets_the_rights_that_are_set() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    // A file that nobody listens to any more.
    drop(std::os::unix::net::UnixListener::bind(&one).unwrap());
    let places = format!("127.0.0.1:0,unix:{},127.0.0.1:0,unix:{}", one.display(), other.display());
    let running = Running::start_with(&[
        ("nats", &places),
        ("unix-socket-mode", "640"),
        ("connections-max", "9"),
    ]);
    for path in [&one, &other] {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o640);
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(CONNECT.as_bytes()).unwrap();
        assert!(read_until(&mut stream, "PONG").contains("PONG"));
    }
    let shown = &running.shards.as_ref().unwrap().shown;
    let ports: Vec<&str> =
        shown.iter().filter_map(|it| it.strip_prefix("nats on 127.0.0.1:")).collect();
    assert_eq!(ports.len(), 2);
    for port in ports {
        let mut stream = connect(&format!("127.0.0.1:{port}"), &[CONNECT.as_bytes()]);
        assert!(read_until(&mut stream, "PONG").contains("PONG"));
    }
    // One that is in use is left alone, and so is what is no socket.
    std::fs::write(folder.path().join("file"), "").unwrap();
    for (path, why) in [(&one, "another program listens there"), (&folder.path().join("file"), "")]
    {
        let mode = crate::settings::FileMode(0o600);
        let error = crate::reactor::listeners::unix(Some("nats"), path, mode).unwrap_err();
        assert!(error.contains(why) && path.exists(), "{error}");
    }
    drop(running);
    assert!(!one.exists() && !other.exists());
}

#[test]
fn a_proxy_says_for_whom_it_connects() {
    let further = [
        ("proxy-protocol-from", "127.0.0.0/8"),
        ("nats-no-auth-user", "off"),
        ("connections-max", "100"),
    ];
    let running = Running::start_with(&further);
    let nats = place(&running, "nats");
    for (header, ip, is_local) in [
        (&b"PROXY TCP4 192.0.2.1 192.0.2.2 1000 4222\r\n"[..], "192.0.2.1", false),
        (PROXY_V2, "192.0.2.1", false),
        (b"PROXY TCP6 2001:db8::1 ::1 1000 4222\r\n", "2001:db8::1", false),
        (b"PROXY TCP4 127.0.0.1 127.0.0.1 1000 4222\r\n", "127.0.0.1", true),
        (b"PROXY UNKNOWN\r\n", "127.0.0.1", false),
    ] {
        for at in [0, 1, 7, header.len() - 1, header.len()] {
            let (head, tail) = header.split_at(at);
            let behind = [tail, CONNECT.as_bytes()].concat();
            let mut stream = connect(nats, &[head, &behind]);
            // The user is one that may log in from this host only.
            let end = if is_local { "PONG" } else { "Authorization Violation" };
            let said = read_until(&mut stream, end);
            assert!(said.contains(end), "{}: {said}", header.escape_ascii());
            assert!(said.contains(&format!("\"client_ip\":\"{ip}\"")), "{said}");
        }
    }
    for wrong in [CONNECT.as_bytes(), b"PROXY TCP4\r\n", b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\0"] {
        let mut stream = connect(nats, &[wrong]);
        assert_eq!(read_until(&mut stream, "INFO"), "", "{}", wrong.escape_ascii());
    }
}

#[test]
fn one_port_takes_clients_of_all_protocols() {
    let running = Running::start_with(&[("any", PORT), ("ws", PORT), ("connections-max", "100")]);
    let any = place(&running, "any");
    let request = "GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    for (sent, expected) in [
        ("AMQP\0\0\x09\x01", "PLAIN"),
        ("CONNECT\naccept-version:1.2\nlogin:guest\npasscode:guest\n\n\0", "CONNECTED"),
        (CONNECT, "PONG"),
        ("", "INFO"),
        (request, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
    ] {
        for at in [0, 1.min(sent.len()), sent.len() / 2, sent.len()] {
            let (head, tail) = sent.split_at(at);
            let mut stream = connect(any, &[head.as_bytes(), tail.as_bytes()]);
            let said = read_until(&mut stream, expected);
            assert!(said.contains(expected), "{sent:?} cut at {at}: {said}");
        }
    }
    let mut stream =
        connect(place(&running, "ws"), &[b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"]);
    assert!(read_until(&mut stream, "http-hosts").contains("421 Misdirected Request"));
}
