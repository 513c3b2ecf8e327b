//! Sessions against the real engine: transcripts, fragmentation, hostile input, other protocols.
//!
//! A transcript has lines that clients send (`>`) and lines that they must get (`<`), with `\r\n` at
//! the end of a line understood and `|` for one inside. A letter in front names the connection,
//! without one it is `a`. In upper case it speaks AMQP 0-9-1, on channel 1.

mod bridge;
mod errors;
mod features;
mod fragmentation;
mod fuzz;
mod login;

use super::Settings;
use super::codec::ServerOp;
use crate::Peer;
use crate::amqp091::{self, frame::PROTOCOL_HEADER, tests::script};
use crate::tests::host::Host;
use std::collections::BTreeMap;
use std::time::Duration;

/// What clients of libraries say first.
const CONNECT: &str = "CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":true,\"headers\":true,\
                       \"no_responders\":true,\"protocol\":1,\"lang\":\"test\"}";

/// An AMQP 0-9-1 handshake, and a first channel.
const AMQP_HELLO: &[&str] = &[
    "0 connection.start-ok mechanism=PLAIN response=\\0guest\\0guest locale=en_US",
    "0 connection.tune-ok channel_max=2047 frame_max=131072",
    "0 connection.open virtual_host=/",
    "1 channel.open",
];

/// A transcript that is being played.
struct Play {
    host: Host,
    numbers: BTreeMap<char, usize>,
    /// NATS connections begin with [`CONNECT`].
    greeted: bool,
}

impl Play {
    fn new(settings: Settings, greeted: bool) -> Play {
        let host = Host::of(amqp091::Settings::default(), settings);
        Play { host, numbers: BTreeMap::new(), greeted }
    }

    fn number(&mut self, name: char) -> usize {
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        let peer = Peer { local: true, address: "127.0.0.1:9".to_owned(), ..Peer::default() };
        let number = if name.is_ascii_uppercase() {
            self.open_amqp(peer)
        } else {
            let number = self.host.accept_nats(peer);
            if self.greeted {
                self.host.receive(number, CONNECT.as_bytes());
                self.host.receive(number, b"\r\n");
                self.host.output(number);
            }
            number
        };
        self.numbers.insert(name, number);
        number
    }

    fn open_amqp(&mut self, peer: Peer) -> usize {
        let number = self.host.accept(peer);
        self.host.receive(number, &PROTOCOL_HEADER);
        for line in AMQP_HELLO {
            self.host.receive(number, &script::encode(line, 0));
            self.host.turn_ends();
        }
        self.host.output(number);
        number
    }

    fn send(&mut self, name: char, line: &str) {
        let number = self.number(name);
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "nothing" => {}
            "wait" => self.host.wait(Duration::from_millis(rest.parse().unwrap())),
            "cut" => self.host.cut(number),
            "shutdown" => self.host.shut_down(number, rest),
            _ if name.is_ascii_uppercase() => {
                self.host.receive(number, &script::encode(line, 131_072));
            }
            _ => {
                let nonce = self.host.nonce(number);
                let bytes = format!("{}\r\n", line.replace('|', "\r\n").replace("NONCE", &nonce));
                self.host.receive(number, bytes.as_bytes());
            }
        }
        self.host.turn_ends();
    }

    /// What all connections got since the last call.
    fn got(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, number) in self.numbers.clone() {
            let prefix = if name == 'a' { String::new() } else { name.to_string() };
            let output = self.host.output(number);
            let decoded = if name.is_ascii_uppercase() {
                script::decode(&output, 131_072)
            } else {
                decode(&output)
            };
            lines.extend(decoded.into_iter().map(|line| format!("{prefix}< {line}")));
            if let Some(reason) = self.host.closed(number) {
                lines.push(format!("{prefix}< closed: {reason}"));
            }
        }
        lines
    }
}

/// All operations in a server's output, one a line; INFO shortened to what is not always the same.
fn decode(mut bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    while !bytes.is_empty() {
        let (op, used) = ServerOp::decode(bytes, usize::MAX).unwrap().expect("whole operations");
        lines.push(match op {
            ServerOp::Info(json) => info_text(json),
            _ => {
                let text = String::from_utf8_lossy(&bytes[..used]);
                text.strip_suffix("\r\n").unwrap().replace("\r\n", "|")
            }
        });
        bytes = &bytes[used..];
    }
    lines
}

fn info_text(json: &[u8]) -> String {
    let info = super::codec::Info::decode(json).unwrap();
    let mut text = "INFO".to_owned();
    for (flag, name) in [
        (info.connect_info, "connect_info"),
        (info.ldm, "ldm"),
        (info.tls_required, "tls_required"),
        (info.tls_available, "tls_available"),
        (info.jetstream, "jetstream"),
        (!info.headers, "no headers"),
        (!info.auth_required, "no auth_required"),
        (info.nonce.len() != 22, "no nonce"),
    ] {
        if flag {
            text = format!("{text} {name}");
        }
    }
    if !info.remote_account.is_empty() {
        text = format!("{text} account={}", info.remote_account);
    }
    text
}

fn play(transcript: &str, greeted: bool, settings: Settings) {
    let mut play = Play::new(settings, greeted);
    let mut seen = Vec::new();
    for line in transcript.lines().map(str::trim) {
        if let Some((name, sent)) = line.split_once("> ")
            && name.len() <= 1
        {
            seen.push(line.to_owned());
            play.send(name.chars().next().unwrap_or('a'), sent);
            seen.extend(play.got());
        }
    }
    let expected: Vec<_> =
        transcript.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(seen.join("\n"), expected.join("\n"));
}

/// Plays a transcript with connections that have sent [`CONNECT`].
fn check(transcript: &str) {
    play(transcript, true, Settings::default());
}

/// Plays a transcript with connections that have just been accepted.
fn check_raw(transcript: &str) {
    play(transcript, false, Settings::default());
}
