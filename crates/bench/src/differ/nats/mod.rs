//! NATS's operations as text: a step is a line, or a line and payloads behind ` | `, each with a line end;
//! `raw "..."` is bytes as they are, `sized subject "headers" "payload"` an HPUB with its sizes. `<x*5>`
//! stands for `xxxxx`.
//!
//! Options: `none` sends no CONNECT; `connect {...}` sends that one; `silent` leaves PINGs unanswered and
//! compares them. Without options CONNECT has `verbose: false`, `headers: true`, `no_responders: true`. The
//! first INFO is not compared.

use super::connection::{Encoded, Wire, read_exact};
use super::release::Release;
use super::text::{Cursor, escape, repeated};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The scenarios of brokers that ask for no credentials, by file.
pub(super) const SCENARIOS: &[(&str, &str)] = &[
    ("subjects", include_str!("subjects.txt")),
    ("operations", include_str!("operations.txt")),
    ("messages", include_str!("messages.txt")),
    ("connections", include_str!("connections.txt")),
];

/// The scenarios of brokers with users and short times, by file.
pub(super) const WITH_USERS: &[(&str, &str)] = &[("access", include_str!("access.txt"))];

/// How nats-server is configured for [`WITH_USERS`].
pub(super) const THEIR_USERS: &str = include_str!("users.conf");

/// How ours is started for them.
pub(super) const OUR_FLAGS: &[&str] = &[
    "--nats-ping-interval",
    "1s",
    "--nats-pings-out-max",
    "2",
    "--nats-login-timeout",
    "1s",
    "--nats-payload-bytes-max",
    "1KiB",
    "--nats-control-line-bytes-max",
    "512",
];

/// The commands that give it the same users; `narrow` may publish and subscribe to some subjects alone.
pub(super) const OUR_USERS: &str = include_str!("users.txt");

const CONNECT: &str = r#"{"verbose":false,"headers":true,"no_responders":true,"pedantic":false}"#;

/// A connection's lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// PINGs are not answered but written down.
    is_silent: bool,
}

impl Wire for Lines {
    const COMPARED: Release = Release { name: "nats-server", version: "2.15.3" };
    /// All clients share one space of subjects, and some subscribe to all of it.
    const AT_ONCE: usize = 1;
    const SILENCE: Duration = Duration::from_millis(80);

    fn open(stream: &mut TcpStream, options: &[String]) -> Result<Lines, String> {
        let text = |error: std::io::Error| format!("while the connection was opened: {error}");
        Lines::greeting(stream)?;
        let mut byte = [0];
        let (mut lines, mut connect) = (Lines::default(), Some(CONNECT));
        for option in options {
            match option.split_once(' ').unwrap_or((option, "")) {
                ("none", _) => connect = None,
                ("connect", options) => connect = Some(options),
                ("silent", _) => lines.is_silent = true,
                (other, _) => return Err(format!("'{other}' is no option")),
            }
        }
        if let Some(connect) = connect {
            stream.write_all(format!("CONNECT {connect}\r\n").as_bytes()).map_err(text)?;
            // Passwords take their time.
            if connect.contains("\"user\"") {
                stream.write_all(b"PING\r\n").map_err(text)?;
                let mut answer = Vec::new();
                while !answer.ends_with(b"PONG\r\n") {
                    stream.read_exact(&mut byte).map_err(text)?;
                    answer.extend(byte);
                }
            }
        }
        Ok(lines)
    }

    fn greeting(stream: &mut TcpStream) -> Result<String, String> {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            line.extend(read_exact(stream, 1)?);
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    fn encode(&mut self, step: &str) -> Result<Encoded, String> {
        let mut bytes = Vec::new();
        let step = &repeated(step);
        if let Some(message) = step.strip_prefix("sized ") {
            let mut cursor = Cursor(message);
            let (subject, headers) = (cursor.bytes()?, cursor.bytes()?);
            let payload = [&headers[..], &cursor.bytes()?].concat();
            bytes = [b"HPUB ", &subject[..]].concat();
            bytes.extend(format!(" {} {}\r\n", headers.len(), payload.len()).bytes());
            bytes.extend([&payload[..], b"\r\n"].concat());
        } else if let Some(raw) = step.strip_prefix("raw ") {
            bytes = Cursor(raw).bytes()?;
        } else {
            for line in step.split(" | ") {
                bytes.extend(Cursor(&format!("\"{}\"", line.replace('"', "\\\""))).bytes()?);
                bytes.extend(b"\r\n");
            }
        }
        // Credentials are checked first.
        Ok(Encoded { is_answered: step == "PING" || step.contains("CONNECT"), bytes })
    }

    fn decode(&mut self, input: &mut Vec<u8>, lines: &mut Vec<String>) -> Vec<u8> {
        let mut reply = Vec::new();
        while let Some(end) = input.windows(2).position(|pair| pair == b"\r\n") {
            let head = escape(&input[..end]);
            let payload = payload_of(&head);
            let whole = end + 2 + payload.map_or(0, |length| length + 2);
            if input.len() < whole {
                break;
            }
            if head == "PING" && !self.is_silent {
                reply.extend(b"PONG\r\n");
            } else if let Some(length) = payload {
                lines.push(format!("{head} | {}", escape(&input[end + 2..end + 2 + length])));
            } else {
                lines.push(head);
            }
            input.drain(..whole);
        }
        reply
    }

    fn normalize(line: &str) -> String {
        if line.starts_with("INFO ") { "INFO *".to_owned() } else { line.to_owned() }
    }
}

/// How many bytes of payload follow this line.
fn payload_of(head: &str) -> Option<usize> {
    if !head.starts_with("MSG ") && !head.starts_with("HMSG ") {
        return None;
    }
    head.rsplit(' ').next()?.parse().ok()
}
