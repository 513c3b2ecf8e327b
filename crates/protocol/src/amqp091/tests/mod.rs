//! Sessions against the real engine: transcripts, fragmentation, hostile input.
//!
//! The lines of [`transcript`] are frames as `script` writes them; besides, `header` is the protocol
//! header, and `bytes` what its hexadecimal digits say.

mod errors;
mod features;
mod fragmentation;
mod fuzz;
mod handshake;
pub(crate) mod script;

use super::Settings;
use super::frame::PROTOCOL_HEADER;
use crate::Peer;
use crate::tests::host::TestHost;
use crate::tests::transcript::{self, Play};

/// A handshake as clients have it, and a first channel.
const HELLO: &[&str] = &[
    "0 connection.start-ok mechanism=PLAIN response=\\0guest\\0guest locale=en_US \
     client_properties={product:test,capabilities:{consumer_cancel_notify:true,\
     connection.blocked:true,authentication_failure_close:true}}",
    "0 connection.tune-ok channel_max=2047 frame_max=131072",
    "0 connection.open virtual_host=/",
    "1 channel.open",
];

fn accept(host: &mut TestHost) -> usize {
    let address = "127.0.0.1:9".to_owned();
    host.accept(Peer { local: true, address, ..Peer::default() })
}

/// A connection that has shaken hands and has channel 1.
fn open(host: &mut TestHost) -> usize {
    let number = accept(host);
    host.receive(number, &PROTOCOL_HEADER);
    for line in HELLO {
        host.receive(number, &script::encode(line, 0));
        host.turn_ends();
    }
    host.output(number);
    number
}

/// What AMQP 0-9-1 makes of the lines of a transcript.
pub(crate) struct Speech {
    /// Connections begin with [`HELLO`].
    pub(crate) greeted: bool,
    pub(crate) frame_max: u32,
}

impl transcript::Speech for Speech {
    fn connect(&self, host: &mut TestHost, _: char) -> usize {
        if self.greeted { open(host) } else { accept(host) }
    }

    fn send(&self, host: &mut TestHost, _: char, number: usize, line: &str) {
        let bytes = match line.split_once(' ') {
            None if line == "header" => PROTOCOL_HEADER.to_vec(),
            Some(("bytes", digits)) => hex(digits),
            _ => script::encode(line, self.frame_max),
        };
        host.receive(number, &bytes);
    }

    fn lines(&self, _: char, output: &[u8]) -> Vec<String> {
        script::decode(output, self.frame_max)
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn play(transcript: &str, greeted: bool, settings: Settings) {
    let speech = Speech { greeted, frame_max: settings.frame_bytes_max };
    transcript::check(transcript, Play::new(TestHost::new(settings), speech));
}

/// Plays a transcript with connections that are open, with channel 1.
fn check(transcript: &str) {
    play(transcript, true, Settings::default());
}

/// Plays a transcript with connections that have just been accepted.
fn check_raw(transcript: &str) {
    play(transcript, false, Settings::default());
}
