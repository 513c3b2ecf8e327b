//! The lines of the NATS protocol that a load needs, both ways. Knows nothing about sockets.

use crate::client::Error;
use std::io::Write;

/// The longest line taken from a broker; `INFO` is the longest there is.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024;

/// What a broker says in one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// `INFO` with its JSON.
    Info(&'a [u8]),
    /// `MSG` or `HMSG`: octets of headers and of the body, which follow.
    Message {
        /// Headers come first.
        headers: u64,
        /// Then the body.
        body: u64,
    },
    /// `PING`
    Ping,
    /// `PONG`
    Pong,
    /// `+OK`
    Ok,
    /// `-ERR` with its text.
    Refusal(&'a [u8]),
}

/// Reads the line at the start of `bytes`, if it is whole; with it, how many octets it took.
#[inline]
pub(super) fn read_line(bytes: &[u8]) -> Result<Option<(Line<'_>, usize)>, Error> {
    let Some(end) = bytes.iter().position(|&octet| octet == b'\n') else {
        if bytes.len() > LINE_BYTES_MAX {
            return Err(Error::Nonsense("a line without an end".to_owned()));
        }
        return Ok(None);
    };
    let line = &bytes[..end];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match parse(line) {
        Some(parsed) => Ok(Some((parsed, end + 1))),
        None => Err(Error::Nonsense(format!("`{}`", String::from_utf8_lossy(line)))),
    }
}

#[inline]
fn parse(line: &[u8]) -> Option<Line<'_>> {
    match line {
        [b'M', b'S', b'G', b' ', rest @ ..] => {
            let (_, body) = last_number(rest)?;
            Some(Line::Message { headers: 0, body })
        }
        [b'H', b'M', b'S', b'G', b' ', rest @ ..] => {
            let (rest, total) = last_number(rest)?;
            let (_, headers) = last_number(rest)?;
            Some(Line::Message { headers, body: total.checked_sub(headers)? })
        }
        b"PING" => Some(Line::Ping),
        b"PONG" => Some(Line::Pong),
        b"+OK" => Some(Line::Ok),
        _ => {
            if let Some(text) = line.strip_prefix(b"-ERR") {
                return Some(Line::Refusal(text.trim_ascii()));
            }
            line.strip_prefix(b"INFO ").map(Line::Info)
        }
    }
}

/// The number after the last space, and what stands before that space.
#[inline]
fn last_number(text: &[u8]) -> Option<(&[u8], u64)> {
    let mut value = 0u64;
    let mut scale = 1u64;
    for (at, &octet) in text.iter().enumerate().rev() {
        if octet == b' ' {
            return (scale > 1).then_some((&text[..at], value));
        }
        let digit = octet.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value += u64::from(digit) * scale;
        scale = scale.checked_mul(10).filter(|_| scale < 1_000_000_000_000)?;
    }
    None
}

/// Appends `CONNECT`. The login is JSON's members, each with a comma before it.
pub(super) fn write_connect(out: &mut Vec<u8>, login: &str) {
    write!(
        out,
        "CONNECT {{\"verbose\":false,\"pedantic\":false,\"lang\":\"rust\",\"version\":\"{}\",\
         \"name\":\"angarium-bench\",\"protocol\":1,\"headers\":true,\"no_responders\":true{login}}}\r\n",
        env!("CARGO_PKG_VERSION")
    )
    .expect("a Vec takes everything");
}

/// Appends `SUB`.
pub(super) fn write_subscribe(out: &mut Vec<u8>, subject: &str, group: Option<&str>, id: u64) {
    let (group, space) = group.map_or(("", ""), |group| (group, " "));
    write!(out, "SUB {subject} {group}{space}{id}\r\n").expect("a Vec takes everything");
}

/// Appends `PUB` with the body. Returns where the body's first octet lies.
pub fn write_publish(out: &mut Vec<u8>, subject: &str, reply: Option<&str>, body: &[u8]) -> usize {
    let (reply, space) = reply.map_or(("", ""), |reply| (reply, " "));
    write!(out, "PUB {subject} {reply}{space}{}\r\n", body.len()).expect("a Vec takes everything");
    let body_at = out.len();
    out.extend_from_slice(body);
    out.extend_from_slice(b"\r\n");
    body_at
}
