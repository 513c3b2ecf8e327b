//! Elementary wire types (spec 4.2.5): reading them from borrowed bytes, writing them to a buffer.

/// Why bytes are not what the grammar asks for: a phrase for the error text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

const SHORT_OF_BYTES: Malformed = Malformed("ends in the middle of a field");

/// Reads fields one after the other. Consecutive bits share octets (spec 4.2.5.2).
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    bits: u8,
    bits_left: u8,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, bits: 0, bits_left: 0 }
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
        self.bits_left = 0;
        Ok(taken)
    }
    #[inline]
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (chunk, rest) = self.rest.split_first_chunk::<N>().ok_or(SHORT_OF_BYTES)?;
        self.rest = rest;
        self.bits_left = 0;
        Ok(*chunk)
    }
    /// An octet.
    #[inline]
    pub fn octet(&mut self) -> Result<u8, Malformed> {
        self.chunk::<1>().map(|[octet]| octet)
    }
    /// A short: 16 bits.
    #[inline]
    pub fn short(&mut self) -> Result<u16, Malformed> {
        self.chunk().map(u16::from_be_bytes)
    }
    /// A long: 32 bits.
    #[inline]
    pub fn long(&mut self) -> Result<u32, Malformed> {
        self.chunk().map(u32::from_be_bytes)
    }
    /// A longlong: 64 bits.
    #[inline]
    pub fn longlong(&mut self) -> Result<u64, Malformed> {
        self.chunk().map(u64::from_be_bytes)
    }
    /// A bit.
    #[inline]
    pub fn bit(&mut self) -> Result<bool, Malformed> {
        if self.bits_left == 0 {
            self.bits = self.octet()?;
            self.bits_left = 8;
        }
        let bit = self.bits & 1 == 1;
        self.bits >>= 1;
        self.bits_left -= 1;
        Ok(bit)
    }
    /// The octets of a short string.
    #[inline]
    pub fn short_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.octet()?;
        self.take(length.into())
    }
    /// A short string; must be UTF-8 (spec 4.2.5.3).
    #[inline]
    pub fn short_str(&mut self) -> Result<&'a str, Malformed> {
        str::from_utf8(self.short_bytes()?)
            .map_err(|_| Malformed("short string is not valid UTF-8"))
    }
    /// A long string: any octets.
    #[inline]
    pub fn long_str(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.long()?;
        self.take(length as usize)
    }
    /// Makes sure that nothing is left.
    pub fn finish(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed("has octets beyond its last field"))
        }
    }
}

/// Writes fields one after the other.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
    next_bit: u8,
}

impl<'o> Writer<'o> {
    /// Appends to `out`.
    pub fn new(out: &'o mut Vec<u8>) -> Writer<'o> {
        Writer { out, next_bit: 0 }
    }
    fn put(&mut self, bytes: &[u8]) {
        self.next_bit = 0;
        self.out.extend_from_slice(bytes);
    }
    pub(super) fn long_str(&mut self, bytes: &[u8]) {
        self.next_bit = 0;
        put_long_str(self.out, bytes);
    }
    fn bit(&mut self, bit: bool) {
        if self.next_bit == 0 {
            self.out.push(0);
        }
        if let Some(last) = self.out.last_mut() {
            *last |= u8::from(bit) << self.next_bit;
        }
        self.next_bit = (self.next_bit + 1) % 8;
    }
}

/// Appends a short string; what is beyond 255 octets is cut off at a character boundary.
pub fn put_short_str(out: &mut Vec<u8>, text: &str) {
    let text = truncated(text);
    out.push(text.len() as u8);
    out.extend_from_slice(text.as_bytes());
}

/// As much of `text` as a short string holds.
#[must_use]
#[inline]
pub fn truncated(text: &str) -> &str {
    let mut end = text.len().min(255);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Appends a long string.
pub fn put_long_str(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a string we write is below 4 GiB");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// A type that method fields can have.
pub(super) trait Field<'a>: Sized {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed>;
    fn write(&self, writer: &mut Writer<'_>);
}

macro_rules! field {
    ($($type:ty, $read:ident, |$writer:ident, $value:ident| $write:expr;)*) => {$(
        impl<'a> Field<'a> for $type {
            #[inline]
            fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
                reader.$read()
            }
            fn write(&self, $writer: &mut Writer<'_>) {
                let $value = self;
                $write
            }
        }
    )*};
}

field! {
    u8, octet, |writer, value| writer.put(&[*value]);
    u16, short, |writer, value| writer.put(&value.to_be_bytes());
    u32, long, |writer, value| writer.put(&value.to_be_bytes());
    u64, longlong, |writer, value| writer.put(&value.to_be_bytes());
    bool, bit, |writer, value| writer.bit(*value);
    &'a str, short_str, |writer, value| {
        writer.next_bit = 0;
        put_short_str(writer.out, value);
    };
    &'a [u8], long_str, |writer, value| writer.long_str(value);
}
