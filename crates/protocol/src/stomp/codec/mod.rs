//! Bytes to and from whole frames, for brokers and for clients. Names no engine type.

#[cfg(test)]
mod tests;

pub use super::frame::{Head, Limits, Malformed, Version};

use super::frame::{lines, put_name, put_value, unescaped};
use std::borrow::Cow;
use std::io::Write as _;

/// The headers of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    lines: &'a [u8],
    version: Version,
}

impl<'a> Headers<'a> {
    /// The headers in these lines, escaped as in this version.
    #[must_use]
    pub fn new(lines: &'a [u8], version: Version) -> Headers<'a> {
        Headers { lines, version }
    }

    /// The first header of that name, which has nothing in it that would be escaped.
    pub fn get(&self, name: &str) -> Result<Option<Cow<'a, str>>, Malformed> {
        let mut all = self.raw();
        let found = all.find(|(own, _)| *own == name.as_bytes());
        found.map(|(_, value)| unescaped(value, self.version)).transpose()
    }

    /// All headers as they are on the wire.
    pub fn raw(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        lines(self.lines)
    }

    /// How their names and values are escaped.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The command.
    pub command: &'a [u8],
    /// The headers.
    pub headers: Headers<'a>,
    /// The body.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads the frame that `input` begins with, and how many bytes it has; `None`: it has not all arrived.
    pub fn decode(
        input: &'a [u8],
        version: Version,
        limits: &Limits,
    ) -> Result<Option<(Frame<'a>, usize)>, Malformed> {
        let Some(head) = Head::read(input, limits)? else { return Ok(None) };
        let Some(body) = body_of(&head, &input[head.bytes..], limits)? else { return Ok(None) };
        let frame =
            Frame { command: head.command, headers: Headers::new(head.lines, version), body };
        Ok(Some((frame, head.bytes + body.len() + 1)))
    }
}

/// The body that `rest`, what comes behind a head, begins with; `None`: it has not all arrived with its NUL.
pub fn body_of<'a>(
    head: &Head<'_>,
    rest: &'a [u8],
    limits: &Limits,
) -> Result<Option<&'a [u8]>, Malformed> {
    let most = limits.body_bytes_max;
    let Some(length) = head.content_length else {
        let end = memchr::memchr(0, rest);
        if end.unwrap_or(rest.len()) as u64 > most {
            return Err(Malformed::BodyTooLong(most));
        }
        return Ok(end.map(|end| &rest[..end]));
    };
    let length = usize::try_from(length).ok().filter(|length| *length as u64 <= most);
    let length = length.ok_or(Malformed::BodyTooLong(most))?;
    match rest.get(length) {
        Some(0) => Ok(Some(&rest[..length])),
        Some(_) => Err(Malformed::NoNul),
        None => Ok(None),
    }
}

/// Appends a frame, header by header.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    out: &'a mut Vec<u8>,
    version: Version,
}

impl<'a> FrameWriter<'a> {
    /// Begins a frame.
    pub fn new(out: &'a mut Vec<u8>, command: &str, version: Version) -> FrameWriter<'a> {
        out.extend_from_slice(command.as_bytes());
        out.push(b'\n');
        FrameWriter { out, version }
    }

    /// Appends a header.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> FrameWriter<'a> {
        put_header(self.out, name, value, self.version);
        self
    }

    /// Appends a header whose value is a number.
    #[must_use]
    pub fn number(self, name: &str, value: u64) -> FrameWriter<'a> {
        put_name(self.out, name, self.version);
        writeln!(self.out, ":{value}").expect("a vector takes every byte");
        self
    }

    /// Ends a frame without a body.
    pub fn end(self) {
        self.out.extend_from_slice(b"\n\0");
    }

    /// Ends a frame with a body.
    pub fn body(self, body: &[u8]) {
        let this = self.number("content-length", body.len() as u64);
        this.out.push(b'\n');
        this.out.extend_from_slice(body);
        this.out.push(0);
    }
}

/// Appends a header line.
pub fn put_header(out: &mut Vec<u8>, name: &str, value: &str, version: Version) {
    put_name(out, name, version);
    out.push(b':');
    put_value(out, value, version);
    out.push(b'\n');
}
