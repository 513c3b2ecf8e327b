//! Sessions against the real engine: transcripts, fragmentation, hostile input, other protocols.
//!
//! The lines of a [`transcript`] are operations, with `\r\n` at the end understood and `|` for one
//! inside; U+FFFD is a byte that is no UTF-8. A connection whose name is in upper case speaks AMQP
//! 0-9-1, on channel 1.

mod bridge;
mod errors;
mod features;
mod fragmentation;
mod fuzz;
mod login;

use super::Settings;
use super::codec::ServerOp;
use crate::tests::host::TestHost;
use crate::tests::transcript::{self, Play};
use crate::{Peer, amqp091};

/// What clients of libraries say first.
pub(crate) const CONNECT: &str = "CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":true,\
                       \"headers\":true,\
                       \"no_responders\":true,\"protocol\":1,\"lang\":\"test\"}";

/// What NATS makes of the lines of a transcript, and AMQP 0-9-1 of those in upper case.
struct Speech {
    /// NATS connections begin with [`CONNECT`].
    greeted: bool,
    amqp091: amqp091::tests::Speech,
}

impl transcript::Speech for Speech {
    fn connect(&self, host: &mut TestHost, name: char) -> usize {
        if name.is_ascii_uppercase() {
            return self.amqp091.connect(host, name);
        }
        let address = "127.0.0.1:9".to_owned();
        let number = host.accept_nats(Peer { local: true, address, ..Peer::default() });
        if self.greeted {
            host.receive(number, CONNECT.as_bytes());
            host.receive(number, b"\r\n");
            host.output(number);
        }
        number
    }

    fn send(&self, host: &mut TestHost, name: char, number: usize, line: &str) {
        if name.is_ascii_uppercase() {
            return self.amqp091.send(host, name, number, line);
        }
        let nonce = host.nonce(number);
        host.receive(number, &bytes(&format!("{}|", line.replace("NONCE", &nonce))));
    }

    fn lines(&self, name: char, output: &[u8]) -> Vec<String> {
        if name.is_ascii_uppercase() {
            return self.amqp091.lines(name, output);
        }
        decode(output)
    }
}

/// What a line stands for.
pub(crate) fn bytes(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for letter in line.chars() {
        match letter {
            '|' => bytes.extend_from_slice(b"\r\n"),
            char::REPLACEMENT_CHARACTER => bytes.push(0xff),
            _ => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
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
        (info.tls_verify, "tls_verify"),
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

fn begin(greeted: bool, settings: Settings) -> Play<Speech> {
    let amqp091 = amqp091::tests::Speech { greeted: true, frame_max: 131_072 };
    let host = TestHost::of(amqp091::Settings::default(), settings);
    Play::new(host, Speech { greeted, amqp091 })
}

fn play(transcript: &str, greeted: bool, settings: Settings) {
    transcript::check(transcript, begin(greeted, settings));
}

/// Plays a transcript with connections that have sent [`CONNECT`].
fn check(transcript: &str) {
    play(transcript, true, Settings::default());
}

/// Plays a transcript with connections that have just been accepted.
fn check_raw(transcript: &str) {
    play(transcript, false, Settings::default());
}
