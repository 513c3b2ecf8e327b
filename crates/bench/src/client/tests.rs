//! What links parse from bytes, however they arrive.

use super::{Confirm, Error, Head, Link, Receiver, Route, Target};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

/// Records everything; expects cumulative confirms.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) bodies: Vec<Vec<u8>>,
    sizes: Vec<u64>,
    pub(super) tags: Vec<u64>,
    pub(super) complete: usize,
    pub(super) confirmed: u64,
    pub(super) ends: usize,
    pub(super) commits: usize,
}

impl Receiver for Kept {
    fn begin(&mut self, head: Head) {
        self.sizes.push(head.size);
        self.tags.push(head.tag);
        self.bodies.push(Vec::new());
    }

    fn body(&mut self, octets: &[u8]) {
        self.bodies.last_mut().expect("it began").extend_from_slice(octets);
    }

    fn complete(&mut self) {
        self.complete += 1;
    }

    fn confirm(&mut self, confirm: Confirm) -> Result<(), Error> {
        assert!(confirm.multiple && !confirm.refused);
        self.confirmed = confirm.tag;
        Ok(())
    }

    fn committed(&mut self) {
        self.commits += 1;
    }

    fn ended(&mut self) {
        self.ends += 1;
    }
}

/// A broker that greets a client, sends the script that `greet` returns in pieces of `step` bytes, and
/// hangs up. Returns its port, and a thread that returns what it received after the greeting.
pub(super) fn broker(
    step: usize,
    greet: impl FnOnce(&mut TcpStream) -> Vec<u8> + Send + 'static,
) -> (u16, JoinHandle<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
    let port = listener.local_addr().expect("it is bound").port();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it connects");
        stream.set_nodelay(true).expect("a socket");
        let script = greet(&mut stream);
        script.chunks(step).for_each(|piece| stream.write_all(piece).expect("it reads"));
        stream.shutdown(Shutdown::Write).expect("it is open");
        let mut said = Vec::new();
        // Reads until the client closes.
        drop(stream.read_to_end(&mut said));
        String::from_utf8_lossy(&said).into_owned()
    });
    (port, serving)
}

/// Reads up to `end`, answers, and returns what was read.
pub(super) fn answer_to(end: &str, stream: &mut TcpStream, answer: &[u8]) -> String {
    let mut said = Vec::new();
    while !said.ends_with(end.as_bytes()) {
        let mut octet = [0];
        stream.read_exact(&mut octet).expect("it says so");
        said.push(octet[0]);
    }
    stream.write_all(answer).expect("it reads");
    String::from_utf8_lossy(&said).into_owned()
}

/// Answers the CONNECT of a NATS client.
pub(super) fn greet_nats(stream: &mut TcpStream) {
    stream.write_all(b"INFO {\"max_payload\":1048576}\r\n").expect("it reads");
    answer_to("PING\r\n", stream, b"PONG\r\n");
}

/// Receives over a link until the broker hangs up or an error.
pub(super) fn receive(mut link: Link) -> (Kept, Result<(), Error>) {
    let mut kept = Kept::default();
    let outcome = take_all(&mut link, &mut kept, |_, _| {});
    (kept, outcome)
}

/// Receives until the broker hangs up, acknowledging everything before each read.
pub(super) fn receive_acknowledging(mut link: Link) -> Kept {
    let mut kept = Kept::default();
    let outcome = take_all(&mut link, &mut kept, |link, kept| {
        let mut out = Vec::new();
        link.encode_ack(&mut out, kept.tags.last().copied().unwrap_or(0), true);
        link.write(&out).expect("it reads");
    });
    outcome.expect("well-formed");
    kept
}

fn take_all(
    link: &mut Link,
    kept: &mut Kept,
    mut each: impl FnMut(&mut Link, &Kept),
) -> Result<(), Error> {
    loop {
        link.parse(kept)?;
        each(link, kept);
        if link.fill().expect("it hangs up in order") == 0 {
            return Ok(());
        }
    }
}

/// Connects to a NATS broker with this script.
fn nats(script: &'static [u8], step: usize) -> Link {
    let (port, _) = broker(step, move |stream| {
        greet_nats(stream);
        script.to_vec()
    });
    let target = format!("nats://127.0.0.1:{port}").parse().expect("it is an address");
    Link::open(&target).expect("the broker answers")
}

#[test]
fn nats_messages_arrive_whole_however_the_bytes_come() {
    let script = b"MSG a 1 5\r\nhello\r\nPING\r\nHMSG a 1 r 12 15\r\nNATS/1.0\r\n\r\n\r\nx\r\n\
                   MSG a 1 0\r\n\r\n+OK\r\nPONG\r\n";
    for step in [1, 2, 3, 7, 11, 12, 13, script.len()] {
        let (kept, outcome) = receive(nats(script, step));
        assert!(outcome.is_ok(), "{step}: {outcome:?}");
        assert_eq!(kept.bodies, [&b"hello"[..], b"\r\nx", b""], "{step}");
        assert_eq!((kept.sizes, kept.complete, kept.ends), (vec![5, 3, 0], 3, 1), "{step}");
    }
}

#[test]
fn a_nats_refusal_is_an_error_with_its_text() {
    let (kept, outcome) = receive(nats(b"MSG a 1 1\r\nx\r\n-ERR 'Slow Consumer'\r\n", 5));
    assert_eq!(kept.complete, 1);
    let error = outcome.expect_err("it was refused").to_string();
    assert_eq!(error, "the broker closed it: Slow Consumer");
}

#[test]
fn a_nats_body_without_its_end_is_invalid() {
    let outcome = receive(nats(b"MSG a 1 1\r\nxyz\r\n", 100)).1;
    assert!(matches!(outcome, Err(Error::Invalid(_))));
}

#[test]
fn a_nats_message_is_encoded_with_its_body_where_the_link_says() {
    let link = nats(b"", 1);
    let mut out = b"before".to_vec();
    let route = Route { exchange: "", key: "a.b", persistent: false };
    let body_at = link.encode(&route, b"hello", &mut out);
    assert_eq!(String::from_utf8_lossy(&out), "beforePUB a.b 5\r\nhello\r\n");
    assert_eq!(&out[body_at.body_at..body_at.body_at + 5], b"hello");
}

#[test]
fn a_scheme_names_the_protocol() {
    let nats: Target = "nats://h".parse().expect("it is an address");
    assert_eq!((nats.host(), nats.port(), nats.to_string().as_str()), ("h", 4222, "nats://h:4222"));
    let amqp: Target = "amqp://h".parse().expect("it is an address");
    assert_eq!((amqp.host(), amqp.port(), amqp.to_string().as_str()), ("h", 5672, "amqp://h:5672"));
    assert!("http://h".parse::<Target>().is_err() && "h".parse::<Target>().is_err());
}

#[test]
fn an_error_in_an_address_does_not_name_the_password() {
    for text in ["nats://u:secret@h/v", "amqp://u:secret@", "amqp://u:secret@h:x"] {
        let why = text.parse::<Target>().expect_err("it is wrong");
        assert!(!why.contains("secret"), "{why}");
    }
}

#[test]
fn a_password_that_is_given_elsewhere_is_that_of_the_user_who_is_named() {
    for (address, whole) in [
        ("amqp://u@h:1", "amqp://u:p%40@h:1"),
        ("nats://u@h:1", "nats://u:p%40@h:1"),
        ("nats://@h:1", "nats://p%40@h:1"),
        ("redis://@h:1", "redis://:p%40@h:1"),
        ("amqp://h:1", "amqp://h:1"),
    ] {
        let mut target: Target = address.parse().expect("it is one");
        target.add_password(Some("p@".to_owned()));
        assert_eq!(String::from(target), whole);
    }
}

#[test]
fn an_address_for_others_has_its_password_and_one_for_reports_has_not() {
    for text in [
        "amqp://u:p%40%2F@h:1/v",
        "stomp://u:p@h:1/v",
        "mqtt5://u:p@h:1",
        "nats://t@h:1",
        "nats://u:a/b@c@h:1",
        "nats://h:1",
        "redis://u:p%40@h:1",
        "redis://:p@h:1",
    ] {
        let target: Target = text.parse().expect("it is one");
        let whole = String::from(target.clone());
        assert_eq!(whole.parse::<Target>().expect("it is one"), target, "{whole}");
        assert!(!target.to_string().contains('@'));
    }
}
