//! The data types of packets (5: 1.5): integers, strings, binary data.

use super::{Malformed, Reason};
use crate::mqtt::frame::{self, variable_integer_octets};

/// Reads what a packet is made of, one value after the other.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

const SHORT: Malformed = Malformed::new(Reason::MalformedPacket, "the packet ends too early");

impl<'a> Reader<'a> {
    /// Reads these bytes.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// What has not been read.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// That many bytes.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(SHORT)?;
        self.rest = rest;
        Ok(taken)
    }

    /// One octet.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    /// A two byte integer.
    #[inline]
    pub fn two(&mut self) -> Result<u16, Malformed> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A four byte integer.
    pub fn four(&mut self) -> Result<u32, Malformed> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A variable byte integer.
    #[inline]
    pub fn variable(&mut self) -> Result<u32, Malformed> {
        let text = "a variable byte integer has more than four octets";
        let read = frame::variable_integer(self.rest)
            .map_err(|_| Malformed::new(Reason::MalformedPacket, text))?;
        let (value, octets) = read.ok_or(SHORT)?;
        self.rest = &self.rest[octets..];
        Ok(value)
    }

    /// Binary data: a length in two octets, and as many octets.
    #[inline]
    pub fn binary(&mut self) -> Result<&'a [u8], Malformed> {
        let bytes = self.two()?;
        self.take(bytes.into())
    }

    /// A packet identifier, which is not 0.
    #[inline]
    pub fn packet_id(&mut self) -> Result<u16, Malformed> {
        let text = "a packet identifier is 0";
        match self.two()? {
            0 => Err(Malformed::new(Reason::ProtocolError, text)),
            id => Ok(id),
        }
    }

    /// A UTF-8 encoded string.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        text(self.binary()?)
    }
}

/// Bytes as a UTF-8 encoded string. Refused: what is not UTF-8, and what has the character U+0000.
#[inline]
pub fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    let malformed = |text| Malformed::new(Reason::MalformedPacket, text);
    let text = str::from_utf8(bytes).map_err(|_| malformed("a string is not UTF-8"))?;
    if bytes.contains(&0) {
        return Err(malformed("a string has the character U+0000"));
    }
    Ok(text)
}

/// Appends binary data, of which no more is taken than its length can say.
pub fn put_binary(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&bytes[..length.into()]);
}

/// Appends a string, cut where its length could not say it.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(u16::MAX.into());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    put_binary(out, &text.as_bytes()[..end]);
}

/// Octets of a block with its length before it, as a variable byte integer.
#[inline]
#[must_use]
pub fn prefixed_octets(bytes: usize) -> usize {
    variable_integer_octets(bytes) + bytes
}
