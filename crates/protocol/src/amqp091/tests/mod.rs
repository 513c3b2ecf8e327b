//! Sessions against the real engine: transcripts, fragmentation, and what the two need.
//!
//! A transcript has lines that clients send (`>`) and lines that they must get (`<`). A letter in
//! front names the connection; without one it is `a`.

mod errors;
mod features;
mod fragmentation;
mod fuzz;
mod handshake;
pub(crate) mod script;

use super::Settings;
use super::frame::PROTOCOL_HEADER;
use crate::Peer;
use crate::tests::host::Host;
use std::collections::BTreeMap;
use std::time::Duration;

/// A handshake as clients have it, and a first channel.
const HELLO: &[&str] = &[
    "0 connection.start-ok mechanism=PLAIN response=\\0guest\\0guest locale=en_US \
     client_properties={product:test,capabilities:{consumer_cancel_notify:true,\
     connection.blocked:true,authentication_failure_close:true}}",
    "0 connection.tune-ok channel_max=2047 frame_max=131072",
    "0 connection.open virtual_host=/",
    "1 channel.open",
];

/// A connection that has shaken hands and has channel 1.
fn open(host: &mut Host) -> usize {
    let number = host.accept(Peer { local: true, ..Peer::default() });
    host.receive(number, &PROTOCOL_HEADER);
    for line in HELLO {
        host.receive(number, &script::encode(line, 0));
        host.turn_ends();
    }
    host.output(number);
    number
}

/// A transcript that is being played.
struct Play {
    host: Host,
    numbers: BTreeMap<char, usize>,
    /// Connections begin with [`HELLO`].
    greeted: bool,
    frame_max: u32,
}

impl Play {
    fn number(&mut self, name: char) -> usize {
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        let number = if self.greeted {
            open(&mut self.host)
        } else {
            self.host.accept(Peer { local: true, ..Peer::default() })
        };
        self.numbers.insert(name, number);
        number
    }

    fn send(&mut self, name: char, line: &str) {
        let number = self.number(name);
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "header" => self.host.receive(number, &PROTOCOL_HEADER),
            "bytes" => self.host.receive(number, &hex(rest)),
            "wait" => self.host.wait(Duration::from_millis(rest.parse().unwrap())),
            "cut" => self.host.cut(number),
            "blocked" => self.host.blocked(Some(rest)),
            "unblocked" => self.host.blocked(None),
            "shutdown" => self.host.shut_down(number, rest),
            _ => {
                let bytes = script::encode(line, self.frame_max);
                self.host.receive(number, &bytes);
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
            for line in script::decode(&output, self.frame_max) {
                lines.push(format!("{prefix}< {line}"));
            }
            if let Some(reason) = self.host.closed(number) {
                lines.push(format!("{prefix}< closed: {reason}"));
            }
        }
        lines
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn play(transcript: &str, greeted: bool, settings: Settings) {
    let frame_max = settings.frame_bytes_max;
    let host = Host::new(settings);
    let mut play = Play { host, numbers: BTreeMap::new(), greeted, frame_max };
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

/// Plays a transcript with connections that are open, with channel 1.
fn check(transcript: &str) {
    play(transcript, true, Settings::default());
}

/// Plays a transcript with connections that have just been accepted.
fn check_raw(transcript: &str) {
    play(transcript, false, Settings::default());
}
