//! Sessions against the real engine: transcripts, fragmentation, hostile input, other protocols.
//!
//! A line of a [`transcript`] is a frame: its command, headers and body with `|` for LF, and a NUL at its
//! end understood; `^` is CR and `~` NUL. Of what the broker sends, `S` and `amq.gen:QUEUE` stand for what is
//! random; what is the same in all frames of a kind is left out, and so is why a connection ended if ERROR
//! says it. A connection whose name is in upper case speaks AMQP 0-9-1, on channel 1.

mod destinations;
mod errors;
mod fragmentation;
mod fuzz;
mod login;
mod subscriptions;
mod transactions;

use super::Settings;
use super::codec::{Frame, Limits, Version};
use crate::tests::host::TestHost;
use crate::tests::transcript::{self, Play};
use crate::{Peer, amqp091};
use std::cell::RefCell;

const LIMITS: Limits = Limits { head_bytes_max: 1 << 20, body_bytes_max: 1 << 30 };

/// What STOMP makes of the lines of a transcript, and AMQP 0-9-1 of those in upper case.
struct Speech {
    /// The version that connections are logged in with beforehand; `None`: they are not.
    version: Option<Version>,
    amqp091: amqp091::tests::Speech,
    /// The last ERROR, as the log has it.
    told: RefCell<String>,
}

impl transcript::Speech for Speech {
    fn connect(&self, host: &mut TestHost, name: char) -> usize {
        if name.is_ascii_uppercase() {
            return self.amqp091.connect(host, name);
        }
        let address = "127.0.0.1:9".to_owned();
        let peer = Peer { local: true, address, ..Peer::default() };
        let number = host.accept_stomp(peer, settings());
        if let Some(version) = self.version {
            host.receive(number, connect(version).as_bytes());
            host.turn_ends();
            host.output(number);
        }
        number
    }

    fn send(&self, host: &mut TestHost, name: char, number: usize, line: &str) {
        if name.is_ascii_uppercase() {
            return self.amqp091.send(host, name, number, line);
        }
        let session = host.stomp_session(number);
        host.receive(number, &bytes(&line.replace("S@@", &format!("{session}@@"))));
    }

    fn lines(&self, name: char, output: &[u8]) -> Vec<String> {
        if name.is_ascii_uppercase() {
            return self.amqp091.lines(name, output);
        }
        let lines = decode(output);
        if let Some(error) = lines.iter().find_map(|line| line.strip_prefix("ERROR|message:")) {
            let (message, text) = error.split_once("||").unwrap_or_default();
            let message = message.split('|').next().unwrap_or_default();
            *self.told.borrow_mut() = format!("closed: {message}: {text}");
        }
        lines
    }

    fn shown(&self, line: String) -> String {
        let line = without_session(&line);
        if *self.told.borrow() == line { "closed".to_owned() } else { line }
    }
}

/// Small limits, so that tests reach them.
fn settings() -> Settings {
    Settings {
        server: "Angarium/0".to_owned(),
        head_bytes_max: 2_000,
        body_bytes_max: 1 << 20,
        subscriptions_max: 3,
        ..Settings::default()
    }
}

fn connect(version: Version) -> String {
    format!("CONNECT\naccept-version:{}\nhost:/\nlogin:guest\npasscode:guest\n\n\0", version.name())
}

/// The frame that a line stands for.
pub(crate) fn bytes(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for letter in line.chars() {
        match letter {
            '|' => bytes.push(b'\n'),
            '^' => bytes.push(b'\r'),
            '~' => bytes.push(0),
            char::REPLACEMENT_CHARACTER => bytes.push(0xff),
            _ => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    if bytes != b"\n" {
        bytes.push(0);
    }
    bytes
}

/// All frames in a server's output, one a line, without what is random.
fn decode(output: &[u8]) -> Vec<String> {
    frames(output).iter().map(|line| without_session(line)).collect()
}

/// All frames in a server's output, one a line; heart-beats are lines of their own.
pub(crate) fn frames(mut rest: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    while !rest.is_empty() {
        if rest[0] == b'\n' {
            lines.push("|".to_owned());
            rest = &rest[1..];
            continue;
        }
        let (_, used) = Frame::decode(rest, Version::V1_2, &LIMITS).unwrap().expect("whole frames");
        let text = String::from_utf8_lossy(&rest[..used - 1]).replace('\n', "|").replace('\0', "~");
        let text = [
            "|content-type:text/plain|version:1.0,1.1,1.2",
            "|redelivered:false",
            "|server:Angarium/0",
        ]
        .iter()
        .fold(text, |text, same| text.replacen(same, "", 1));
        let text = match text.split_once("|content-length:") {
            Some((head, rest)) => format!("{head}{}", rest.trim_start_matches(char::is_numeric)),
            None => text,
        };
        let text = text.strip_suffix('|').filter(|_| text.starts_with("ERROR|")).unwrap_or(&text);
        let text = text.replacen("|session:session-", "|session-", 1);
        lines.push(text);
        rest = &rest[used..];
    }
    lines
}

/// What is random becomes `S` or `amq.gen:QUEUE`.
fn without_session(text: &str) -> String {
    let mut text = text.to_owned();
    for (before, shown) in [("session-", "S"), ("amq.gen-", "amq.gen:QUEUE")] {
        while let Some(at) = text.find(before) {
            text.replace_range(at..end_of_name(&text, at + before.len()), shown);
        }
    }
    text
}

/// Where a name that the engine has made up ends.
fn end_of_name(text: &str, begin: usize) -> usize {
    let behind = &text[begin..];
    let is_end = |letter: char| !letter.is_ascii_alphanumeric() && !"-_".contains(letter);
    behind.find(is_end).map_or(text.len(), |end| begin + end)
}

/// Plays a transcript with connections that have logged in with a version.
#[track_caller]
fn check_with(version: Option<Version>, transcript: &str) {
    let amqp091 = amqp091::tests::Speech { greeted: true, frame_max: 131_072 };
    let speech = Speech { version, amqp091, told: RefCell::default() };
    let host = TestHost::new(amqp091::Settings::default());
    transcript::check(transcript, Play::new(host, speech));
}

/// The same with 1.2.
#[track_caller]
fn check(transcript: &str) {
    check_with(Some(Version::V1_2), transcript);
}
