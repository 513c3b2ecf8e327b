//! NATS's operations as text: a step is a line, or a line and payloads behind ` | `, each with a line end.
//!
//! Options: `none` sends no CONNECT; `connect {...}` sends that one. Without options CONNECT has
//! `verbose: false`, `headers: true`, `no_responders: true`. The first INFO is not compared.

use super::connection::{Encoded, Wire};
use super::text::{Cursor, escape};
use std::io::{Read, Write};
use std::net::TcpStream;

/// The scenarios, by file.
pub(super) const SCENARIOS: &[(&str, &str)] =
    &[("subjects", include_str!("subjects.txt")), ("operations", include_str!("operations.txt"))];

const CONNECT: &str = r#"{"verbose":false,"headers":true,"no_responders":true,"pedantic":false}"#;

/// A connection's lines.
#[derive(Debug, Default)]
pub(super) struct Lines;

impl Wire for Lines {
    /// All clients share one space of subjects, and some subscribe to all of it.
    const AT_ONCE: usize = 1;

    fn open(stream: &mut TcpStream, options: &[String]) -> Result<Lines, String> {
        let text = |error: std::io::Error| format!("while the connection was opened: {error}");
        let mut byte = [0];
        while byte != *b"\n" {
            stream.read_exact(&mut byte).map_err(text)?;
        }
        let connect =
            match options.first().map(|option| option.split_once(' ').unwrap_or((option, ""))) {
                None => CONNECT,
                Some(("none", _)) => return Ok(Lines),
                Some(("connect", options)) => options,
                Some((other, _)) => return Err(format!("'{other}' is no option")),
            };
        stream.write_all(format!("CONNECT {connect}\r\n").as_bytes()).map_err(text)?;
        Ok(Lines)
    }

    fn encode(&self, step: &str) -> Result<Encoded, String> {
        let mut bytes = Vec::new();
        if let Some(raw) = step.strip_prefix("raw ") {
            bytes = Cursor(raw).bytes()?;
        } else {
            for line in step.split(" | ") {
                bytes.extend(Cursor(&format!("\"{line}\"")).bytes()?);
                bytes.extend(b"\r\n");
            }
        }
        Ok(Encoded { is_answered: step == "PING", bytes })
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
            if head == "PING" {
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
