//! Operations there and back, cut anywhere, and what is no operation.

use super::client::{RepeatedPublish, write_ping, write_pong, write_subscribe, write_unsubscribe};
use super::headers::{HeadersWriter, without};
use super::server::{RepeatedMessage, write_error, write_ok};
use super::*;

const LIMITS: Limits =
    Limits { control_line_bytes_max: 64, payload_bytes_max: 1000, takes_headers: true };

/// What a client's bytes are, as text.
fn client(input: &[u8]) -> Result<Option<(String, usize)>, Malformed> {
    let decoded = ClientOp::decode(input, &LIMITS)?;
    Ok(decoded.map(|(op, used)| (client_text(&op), used)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}

fn client_text(op: &ClientOp<'_>) -> String {
    match op {
        ClientOp::Connect(json) => format!("connect {}", text(json)),
        ClientOp::Publish(Publish { subject, reply, headers, body }) => {
            let [subject, reply, headers, body] = [subject, reply, headers, body].map(|b| text(b));
            format!("publish {subject} [{reply}] [{headers}] [{body}]")
        }
        ClientOp::Subscribe { subject, group, sid } => {
            format!("subscribe {} [{}] {}", text(subject), text(group), text(sid))
        }
        ClientOp::Unsubscribe { sid, max } => format!("unsubscribe {} {max:?}", text(sid)),
        ClientOp::Ping => "ping".into(),
        ClientOp::Pong => "pong".into(),
        ClientOp::Ignored => "ignored".into(),
        ClientOp::Error(why) => format!("error {}", text(why)),
    }
}

/// The operation, and the same when its bytes arrive one by one.
#[track_caller]
fn check(input: &str, expected: &str) {
    let (op, used) = client(input.as_bytes()).unwrap().expect("it is whole");
    assert_eq!((op.as_str(), used), (expected, input.len()), "{input:?}");
    for cut in 0..input.len() {
        assert_eq!(client(&input.as_bytes()[..cut]), Ok(None), "{input:?} cut at {cut}");
    }
    let followed = format!("{input}PING\r\n");
    assert_eq!(client(followed.as_bytes()).unwrap().unwrap(), (op, used));
}

/// The payloads of the PUBs to `a` that the input begins with, and what follows them.
#[track_caller]
fn check_row(input: &str, payloads: &[&str], rest: &str) {
    let (mut repeated, mut used) = (RepeatedPublish::default(), 0);
    let mut found = Vec::new();
    while let Some((payload, bytes)) = repeated.next(&input.as_bytes()[used..], b"a", &LIMITS) {
        // Each is what it is by itself, too.
        let alone = client(&input.as_bytes()[used..]).unwrap().expect("it is whole");
        assert_eq!(alone, (format!("publish a [] [] [{}]", text(payload)), bytes), "{input:?}");
        found.push(text(payload));
        used += bytes;
    }
    assert_eq!(found, payloads, "{input:?}");
    assert_eq!(&input[used..], rest, "{input:?}");
}

#[test]
fn publishes_in_a_row_are_read() {
    check_row("", &[], "");
    check_row("PUB a 1\r\nx\r\n", &["x"], "");
    check_row("PUB a 1\r\nx\r\nPUB a 1\r\ny\r\nPUB a 1\r\nz\r\n", &["x", "y", "z"], "");
    // Of other sizes, and the first one's again.
    check_row("PUB a 1\r\nx\r\nPUB a 2\r\nyy\r\nPUB a 1\r\nz\r\n", &["x", "yy", "z"], "");
    check_row("PUB a 1\r\nx\r\nPUB a 11\r\n12345678901\r\n", &["x", "12345678901"], "");
    check_row("PUB a 0\r\n\r\nPUB a 0\r\n\r\n", &["", ""], "");
    check_row("PUB a 01\r\nx\r\nPUB a 1\r\ny\r\n", &["x", "y"], "");
    // What ends the repetition: another subject, operation or spelling, a reply, a wrong end, half a message.
    for rest in [
        "PUB ab 1\r\ny\r\n",
        "PUB b 1\r\ny\r\n",
        "PUB a r 1\r\ny\r\n",
        "pub a 1\r\ny\r\n",
        "PUB a  1\r\ny\r\n",
        "PUB a 1\ny\r\n",
        "PING\r\n",
        "PUB a 1\r\nyy\r\n",
        "PUB a 1001\r\n",
        "PUB a 1\r\ny\r",
        "PUB a 1\r\n",
        "PUB a 1\r",
        "PUB",
    ] {
        check_row(&format!("PUB a 1\r\nx\r\n{rest}"), &["x"], rest);
        check_row(rest, &[], rest);
    }
}

#[test]
fn messages_in_a_row_are_what_each_is_alone() {
    let operations = [
        "MSG a 1 2\r\nxy\r\n",
        "MSG a 1 2\r\nyz\r\n",
        "MSG a 1 3\r\nxyz\r\n",
        "MSG a 11 2\r\nxy\r\n",
        "MSG a.b 11 2\r\nxy\r\n",
        "MSG a.b 11 2\r\nxy\r\n",
        "MSG a.b 11 r 2\r\nxy\r\n",
        "MSG a.b 11 r 2\r\nxz\r\n",
        "msg a 1 2\r\nxy\r\n",
        "MSG \t a\t1 2\r\nxy\r\n",
        "MSG \t a\t1 2\r\nxz\r\n",
        "MSG a 1 0\r\n\r\n",
        "MSG a 1 0\r\n\r\n",
        "HMSG a 1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
        "HMSG a 1 12 14\r\nNATS/1.0\r\n\r\nho\r\n",
        "PING\r\n",
        "MSG a 1 2\r\nyz\r\n",
    ];
    // Whatever came before.
    for first in operations {
        for second in operations {
            let (mut repeated, both) = (RepeatedMessage::default(), [first, second].concat());
            repeated.decode(first.as_bytes(), 1000).expect("it is one");
            let alone = ServerOp::decode(second.as_bytes(), 1000);
            assert_eq!(repeated.decode(second.as_bytes(), 1000), alone, "{both:?}");
            for cut in 0..second.len() {
                let mut repeated = RepeatedMessage::default();
                repeated.decode(first.as_bytes(), 1000).expect("it is one");
                let part = repeated.decode(&second.as_bytes()[..cut], 1000);
                assert_eq!(part, Ok(None), "{both:?}, cut at {cut}");
            }
        }
    }
    let mut repeated = RepeatedMessage::default();
    repeated.decode(b"MSG a 1 2\r\nxy\r\n", 1000).expect("it is one");
    assert!(repeated.decode(b"MSG a 1 2\r\nxyz\r\n", 1000).is_err(), "it ends where it should not");
}

#[test]
fn client_operations_are_read() {
    for (input, expected) in [
        ("PUB a 5\r\nhello\r\n", "publish a [] [] [hello]"),
        ("PUB a 0\r\n\r\n", "publish a [] [] []"),
        ("pub a.b _INBOX.x 2\r\n\r\n\r\n", "publish a.b [_INBOX.x] [] [\\r\\n]"),
        ("pUb \t a\t\tb  1 \nx\r\n", "publish a [b] [] [x]"),
        ("PUB\ta 1\r\nx\r\n", "publish a [] [] [x]"),
        ("HPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n", "publish a [] [NATS/1.0\\r\\n\\r\\n] [hi]"),
        ("hpub a r 12 12\r\nNATS/1.0\r\n\r\n\r\n", "publish a [r] [NATS/1.0\\r\\n\\r\\n] []"),
        ("HPUB a 0 1\r\nx\r\n", "publish a [] [] [x]"),
        ("SUB a.> 1\r\n", "subscribe a.> [] 1"),
        ("sub a workers 22\n", "subscribe a [workers] 22"),
        ("UNSUB 1\r\n", "unsubscribe 1 None"),
        ("unsub 1 5\r\n", "unsubscribe 1 Some(5)"),
        ("UNSUB 1 0\r\n", "unsubscribe 1 None"),
        ("UNSUB 1 x\r\n", "unsubscribe 1 None"),
        ("PING\r\n", "ping"),
        ("ping  \n", "ping"),
        ("PONG\r\n", "pong"),
        ("CONNECT {\"a\":1}\r\n", "connect {\\\"a\\\":1}"),
        ("connect\t{}\n", "connect {}"),
        ("CONNECT{}\r\n", "connect {}"),
        ("+OK\r\n", "ignored"),
        ("INFO {}\r\n", "ignored"),
        ("-ERR x\r\n", "error x"),
    ] {
        check(input, expected);
    }
}

#[test]
fn what_is_wrong_is_told_as_soon_as_it_can_be_seen() {
    use Malformed::{Arguments, LineTooLong, PayloadTooLarge, UnknownOperation};
    let long = format!("SUB {} 1\r\n", "x".repeat(70));
    for (input, expected) in [
        ("X", UnknownOperation),
        ("\r\n", UnknownOperation),
        ("PUX", UnknownOperation),
        ("PUBX", UnknownOperation),
        ("SUB\r\n", UnknownOperation),
        ("GET / HTTP/1.1\r\n", UnknownOperation),
        ("MSG a 1 1\r\n", UnknownOperation),
        ("PUB \r\n", Arguments),
        ("PUB a\r\n", Arguments),
        ("PUB a b c 1\r\n", Arguments),
        ("PUB a x\r\n", Arguments),
        ("PUB a -1\r\n", Arguments),
        ("PUB a 1000000000\r\n", Arguments),
        ("HPUB a 1\r\n", Arguments),
        ("HPUB a 5 4\r\n", Arguments),
        ("HPUB a b c 4 4\r\n", Arguments),
        ("SUB a\r\n", Arguments),
        ("SUB a b c d\r\n", Arguments),
        ("UNSUB \r\n", Arguments),
        ("UNSUB 1 2 3\r\n", Arguments),
        ("PUB a 1001\r\n", PayloadTooLarge),
        ("HPUB a 1 1001\r\n", PayloadTooLarge),
        ("PUB a 1\r\nxy", UnknownOperation),
        ("PUB a 1\r\nx\ry", UnknownOperation),
        (&long, LineTooLong),
        (&long[..71], LineTooLong),
        (&"CONNECT ".repeat(10), LineTooLong),
    ] {
        assert_eq!(client(input.as_bytes()), Err(expected), "{input:?}");
    }
}

#[test]
fn what_clients_write_is_what_servers_read() {
    let mut out = Vec::new();
    let block = b"NATS/1.0\r\nA: b\r\n\r\n";
    Publish { subject: b"a.b", reply: b"", headers: b"", body: b"hello" }.write(&mut out);
    Publish { subject: b"a.b", reply: b"r", headers: b"", body: b"" }.write(&mut out);
    Publish { subject: b"a.b", reply: b"", headers: block, body: b"hi" }.write(&mut out);
    Publish { subject: b"a.b", reply: b"r", headers: block, body: b"" }.write(&mut out);
    write_subscribe(&mut out, b"a.>", b"", b"7");
    write_subscribe(&mut out, b"a.>", b"g", b"7");
    write_unsubscribe(&mut out, b"7", None);
    write_unsubscribe(&mut out, b"7", Some(12));
    write_ping(&mut out);
    write_pong(&mut out);
    let mut rest = &out[..];
    let mut seen = Vec::new();
    while let Some((op, used)) = client(rest).unwrap() {
        seen.push(op);
        rest = &rest[used..];
    }
    assert!(rest.is_empty());
    let block = "[NATS/1.0\\r\\nA: b\\r\\n\\r\\n]";
    assert_eq!(
        seen,
        [
            "publish a.b [] [] [hello]",
            "publish a.b [r] [] []",
            &format!("publish a.b [] {block} [hi]"),
            &format!("publish a.b [r] {block} []"),
            "subscribe a.> [] 7",
            "subscribe a.> [g] 7",
            "unsubscribe 7 None",
            "unsubscribe 7 Some(12)",
            "ping",
            "pong",
        ]
    );
}

#[test]
fn what_servers_write_is_what_clients_read() {
    let block: &[u8] = b"NATS/1.0 503\r\n\r\n";
    let message = Message { subject: b"a.b", sid: b"7", body: b"hello", ..Message::default() };
    let messages = [
        message,
        Message { reply: b"r", ..message },
        Message { headers: block, ..message },
        Message { headers: block, reply: b"r", body: b"", ..message },
    ];
    for message in messages {
        let mut out = Vec::new();
        message.write(&mut out);
        let decoded = ServerOp::decode(&out, 1000);
        assert_eq!(decoded, Ok(Some((ServerOp::Message(message), out.len()))));
        for cut in 0..out.len() {
            assert_eq!(ServerOp::decode(&out[..cut], 1000), Ok(None), "cut at {cut}");
        }
    }
    let mut out = Vec::new();
    write_ok(&mut out);
    write_error(&mut out, "Invalid\r\nSubject");
    out.extend_from_slice(b"PING\r\nPONG\r\nINFO {}\r\n");
    let mut rest = &out[..];
    for expected in [
        ServerOp::Ok,
        ServerOp::Error(b"Invalid  Subject"),
        ServerOp::Ping,
        ServerOp::Pong,
        ServerOp::Info(b"{}"),
    ] {
        let (op, used) = ServerOp::decode(rest, 1000).unwrap().unwrap();
        assert_eq!(op, expected);
        rest = &rest[used..];
    }
    for wrong in
        ["PUB a 1\r\n", "MSG a 1\r\n", "MSG a 1 x\r\n", "HMSG a 1 5 4\r\n", "MSG a 1 0\r\nxx"]
    {
        assert!(ServerOp::decode(wrong.as_bytes(), 1000).is_err(), "{wrong:?}");
    }
    let large = ServerOp::decode(b"MSG a 1 1001\r\n", 1000);
    assert_eq!(large, Err(Malformed::PayloadTooLarge));
}

#[test]
fn connect_and_info_go_there_and_back() {
    let connect = Connect {
        verbose: false,
        user: Some("ada".into()),
        pass: Some("\"secret\"".into()),
        nkey: Some("UABC".into()),
        name: Some("tëst".into()),
        protocol: 1,
        headers: true,
        no_responders: true,
        echo: false,
        ..Connect::default()
    };
    let mut out = Vec::new();
    connect.write(&mut out);
    let Ok(Some((ClientOp::Connect(json), used))) =
        ClientOp::decode(&out, &Limits { control_line_bytes_max: 4096, ..LIMITS })
    else {
        panic!("{}", text(&out));
    };
    assert_eq!(
        (Connect::decode(json, &Connect::default()).as_ref(), used),
        (Ok(&connect), out.len())
    );
    assert!(!format!("{connect:?}").contains("secret"));
    let latin = Connect::decode(b"{\"name\":\"t\xebst\"}", &Connect::default())
        .expect("JSON but for one byte");
    assert_eq!(latin.name.as_deref(), Some("t\u{fffd}st"));
    let info = Info {
        server_id: "N".into(),
        version: "2.12.0".into(),
        proto: 1,
        port: 4222,
        headers: true,
        max_payload: 1 << 20,
        nonce: "abc".into(),
        ldm: true,
        auth_required: true,
        connect_urls: vec!["a:1".into(), "b:2".into()],
        ..Info::default()
    };
    let mut out = Vec::new();
    info.write(&mut out);
    let Ok(Some((ServerOp::Info(json), _))) = ServerOp::decode(&out, 0) else {
        panic!("{}", text(&out));
    };
    for needed in ["server_id", "version", "go", "host", "port", "headers", "max_payload"] {
        assert!(text(json).contains(&format!("\\\"{needed}\\\":")), "nats-core needs {needed}");
    }
    assert_eq!(Info::decode(json), Ok(info));
    assert!(text(json).contains("\"connect_urls\\\":[\\\"a:1\\\",\\\"b:2\\\"]"), "{}", text(json));
}

#[test]
fn connect_has_the_defaults_of_nats_server_and_checks_types() {
    let plain = Connect::decode(b"{}", &Connect::default()).unwrap();
    assert!(plain.verbose && plain.pedantic && plain.echo && !plain.headers);
    assert!(
        Connect::decode(b"{\"verbose\":null,\"unknown\":[1]}", &Connect::default())
            .unwrap()
            .verbose
    );
    assert_eq!(Connect::decode(b"{\"user\":\"\"}", &Connect::default()).unwrap().user, None);
    let named = b"{\"VERBOSE\":false,\"No_Responders\":true}";
    let named = Connect::decode(named, &plain).unwrap();
    assert!(!named.verbose && named.no_responders && named.echo);
    let then = Connect::decode(b"{\"echo\":false}", &named).unwrap();
    assert!(!then.verbose && then.no_responders && !then.echo);
    let twice = b"{\"user\":\"a\",\"user\":\"b\"}";
    assert_eq!(Connect::decode(twice, &Connect::default()).unwrap().user.as_deref(), Some("b"));
    for wrong in ["{\"verbose\":1}", "{\"user\":7}", "{\"protocol\":\"1\"}", "{", "[]", ""] {
        assert!(Connect::decode(wrong.as_bytes(), &Connect::default()).is_err(), "{wrong}");
    }
}

#[test]
fn header_blocks_are_read_leniently_and_written_strictly() {
    let read = |block: &str| -> (String, Vec<String>) {
        let headers = Headers::read(block.as_bytes());
        let status = headers.status().map(|(code, why)| format!("{}|{}", text(code), text(why)));
        let entries = headers.entries().map(|(name, value)| text(name) + "=" + &text(&value));
        (status.unwrap_or_default(), entries.collect())
    };
    for (block, status, entries) in [
        ("", "", &[][..]),
        ("NATS/1.0\r\n\r\n", "", &[]),
        ("NATS/1.0\r\nA: b\r\nA:c\r\na:  d : e \r\n\r\n", "", &["A=b", "A=c", "a=d : e"]),
        ("NATS/1.0 503\r\n\r\n", "503|", &[]),
        ("NATS/1.0 408 Request Timeout\r\nX: y\r\n\r\n", "408|Request Timeout", &["X=y"]),
        ("NATS/1.0\nno colon\n: no name\nEmpty:\n\n", "", &["Empty="]),
        ("HTTP/1.1\r\nA: b\r\n\r\n", "", &[]),
        ("NATS/1.0\r\nA: cut", "", &["A=cut"]),
        ("NATS/1.0\r\nA: b\r\n c: d\r\n\te \r\nF: g\r\n\r\n", "", &["A=b c: d e", "F=g"]),
        ("NATS/1.0\nA:\n b\n \nno colon\n C: d\nE: f\n g", "", &["A=b", "E=f g"]),
    ] {
        let (found_status, found) = read(block);
        assert_eq!(found_status, status, "{block:?}");
        assert_eq!(found, entries, "{block:?}");
    }
    for (block, kept) in [
        ("NATS/1.0|A: b|C:d|a: e||", "NATS/1.0|C:d|a: e||"),
        ("NATS/1.0|A:| b|A : c|C: d|\te||", "NATS/1.0|C: d|\te||"),
        ("NATS/1.0|A: b||", ""),
        ("NATS/1.0 503|A: b||", "NATS/1.0 503||"),
        ("NATS/1.0|no colon|A: cut", "NATS/1.0|no colon|"),
        ("HTTP/1.1|A: b||", "HTTP/1.1|A: b||"),
        ("", ""),
    ] {
        let rest = without(block.replace('|', "\r\n").as_bytes(), |name| name == b"A");
        assert_eq!(str::from_utf8(&rest), Ok(kept.replace('|', "\r\n").as_str()), "{block}");
    }
    let mut out = Vec::new();
    let mut writer = HeadersWriter::new(&mut out);
    writer.put(b"Content-Type", b"text/plain");
    writer.put(b"a b:c\r", b"x\r\ny");
    writer.put("größe".as_bytes(), "groß".as_bytes());
    writer.put(b"", b"empty");
    writer.end();
    let lines = "NATS/1.0|Content-Type: text/plain|a_b_c_: x  y|gr____e: groß|_: empty||";
    assert_eq!(str::from_utf8(&out), Ok(lines.replace('|', "\r\n").as_str()));
    assert_eq!(Headers::read(&out).get("Content-Type").as_deref(), Some(&b"text/plain"[..]));
    let mut out = Vec::new();
    HeadersWriter::new(&mut out).end();
    assert!(out.is_empty());
}
