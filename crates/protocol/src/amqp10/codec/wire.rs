//! Format codes (part 1, 1.6), and reading octets from borrowed bytes.
//!
//! The high half of a code says how wide what follows is: so values of any type can be skipped.

use super::malformed::{Malformed, malformed};

macro_rules! codes {
    ($($name:ident = $code:literal,)*) => {
        $(#[doc = concat!("The format code ", stringify!($code), ".")] pub const $name: u8 = $code;)*
        /// Whether a type has this format code.
        pub(super) fn is_known(code: u8) -> bool {
            matches!(code, $($code)|*)
        }
    };
}

codes! {
    NULL = 0x40,
    TRUE = 0x41,
    FALSE = 0x42,
    UINT0 = 0x43,
    ULONG0 = 0x44,
    LIST0 = 0x45,
    UBYTE = 0x50,
    BYTE = 0x51,
    SMALL_UINT = 0x52,
    SMALL_ULONG = 0x53,
    SMALL_INT = 0x54,
    SMALL_LONG = 0x55,
    BOOLEAN = 0x56,
    USHORT = 0x60,
    SHORT = 0x61,
    UINT = 0x70,
    INT = 0x71,
    FLOAT = 0x72,
    CHAR = 0x73,
    DECIMAL32 = 0x74,
    ULONG = 0x80,
    LONG = 0x81,
    DOUBLE = 0x82,
    TIMESTAMP = 0x83,
    DECIMAL64 = 0x84,
    DECIMAL128 = 0x94,
    UUID = 0x98,
    BINARY8 = 0xa0,
    STRING8 = 0xa1,
    SYMBOL8 = 0xa3,
    BINARY32 = 0xb0,
    STRING32 = 0xb1,
    SYMBOL32 = 0xb3,
    LIST8 = 0xc0,
    MAP8 = 0xc1,
    LIST32 = 0xd0,
    MAP32 = 0xd1,
    ARRAY8 = 0xe0,
    ARRAY32 = 0xf0,
}

/// In place of a format code: a descriptor follows, and then the format code or another descriptor.
pub const DESCRIBED: u8 = 0x00;

const SHORT_OF_BYTES: Malformed = malformed!("ends in the middle of a value");
pub(super) const UNKNOWN_CODE: Malformed = malformed!("has a format code that no type has");

/// How wide what follows a format code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// This number of octets.
    Fixed(usize),
    /// A size of one octet, and what it counts.
    Size8,
    /// A size of four octets, and what it counts.
    Size32,
}

/// How wide what follows `code` is.
#[inline]
pub(super) fn width(code: u8) -> Result<Width, Malformed> {
    Ok(match code >> 4 {
        0x4 => Width::Fixed(0),
        0x5 => Width::Fixed(1),
        0x6 => Width::Fixed(2),
        0x7 => Width::Fixed(4),
        0x8 => Width::Fixed(8),
        0x9 => Width::Fixed(16),
        0xa | 0xc | 0xe => Width::Size8,
        0xb | 0xd | 0xf => Width::Size32,
        _ => return Err(UNKNOWN_CODE),
    })
}

/// Reads octets one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
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
    /// The next `count` octets.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(SHORT_OF_BYTES)?;
        self.rest = rest;
        Ok(taken)
    }
    /// The next `N` octets.
    #[inline]
    pub(super) fn chunk<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(SHORT_OF_BYTES)?;
        self.rest = rest;
        Ok(*taken)
    }
    /// The next octet.
    #[inline]
    pub fn octet(&mut self) -> Result<u8, Malformed> {
        let (&octet, rest) = self.rest.split_first().ok_or(SHORT_OF_BYTES)?;
        self.rest = rest;
        Ok(octet)
    }
    /// Four octets as a number.
    #[inline]
    pub(super) fn word(&mut self) -> Result<u32, Malformed> {
        self.chunk().map(u32::from_be_bytes)
    }
    /// What a size of one octet counts.
    #[inline]
    pub(super) fn sized8(&mut self) -> Result<&'a [u8], Malformed> {
        let size = self.octet()?;
        self.take(size.into())
    }
    /// What a size of four octets counts.
    #[inline]
    pub(super) fn sized32(&mut self) -> Result<&'a [u8], Malformed> {
        let size = self.word()?;
        self.take(size as usize)
    }
    /// What follows `code`, sizes included, without a look at it.
    #[inline]
    pub(super) fn take_width(&mut self, code: u8) -> Result<&'a [u8], Malformed> {
        let before = self.rest;
        match width(code)? {
            Width::Fixed(bytes) => self.take(bytes)?,
            Width::Size8 => self.sized8()?,
            Width::Size32 => self.sized32()?,
        };
        Ok(&before[..before.len() - self.rest.len()])
    }
    /// Whether the next octet is this one.
    #[inline]
    pub(super) fn next_is(&self, octet: u8) -> bool {
        self.rest.first() == Some(&octet)
    }
    /// Skips the next octet if it is this one, and returns whether it was.
    #[inline]
    pub(super) fn passed(&mut self, octet: u8) -> bool {
        let is_next = self.next_is(octet);
        self.rest = &self.rest[usize::from(is_next)..];
        is_next
    }
}
