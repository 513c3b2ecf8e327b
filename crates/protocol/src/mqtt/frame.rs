//! Fixed headers: what every control packet begins with. Independent of what packets mean.
//!
//! ```text
//! type (4 bits) flags (4 bits) | remaining length (1 to 4 octets) | remaining length octets
//! ```
//!
//! The same in all versions (3.1.1: 2.2, 5: 2.1).

/// The largest remaining length that four octets can say.
pub const REMAINING_MAX: usize = 268_435_455;
/// Most octets of a fixed header.
pub const HEADER_OCTETS_MAX: usize = 5;
/// Octets of the largest packet.
pub const PACKET_BYTES_MAX: usize = HEADER_OCTETS_MAX + REMAINING_MAX;

/// A type of control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // They are the specification's names.
pub enum PacketType {
    Connect = 1,
    Connack = 2,
    Publish = 3,
    Puback = 4,
    Pubrec = 5,
    Pubrel = 6,
    Pubcomp = 7,
    Subscribe = 8,
    Suback = 9,
    Unsubscribe = 10,
    Unsuback = 11,
    Pingreq = 12,
    Pingresp = 13,
    Disconnect = 14,
    Auth = 15,
}

impl PacketType {
    const ALL: [PacketType; 15] = [
        PacketType::Connect,
        PacketType::Connack,
        PacketType::Publish,
        PacketType::Puback,
        PacketType::Pubrec,
        PacketType::Pubrel,
        PacketType::Pubcomp,
        PacketType::Subscribe,
        PacketType::Suback,
        PacketType::Unsubscribe,
        PacketType::Unsuback,
        PacketType::Pingreq,
        PacketType::Pingresp,
        PacketType::Disconnect,
        PacketType::Auth,
    ];

    /// The first octet of a packet of this type with these flags.
    #[must_use]
    pub const fn first_octet(self, flags: u8) -> u8 {
        (self as u8) << 4 | flags
    }

    /// The flags that a packet of this type must have; PUBLISH has flags of its own.
    #[must_use]
    pub const fn flags(self) -> u8 {
        match self {
            PacketType::Pubrel | PacketType::Subscribe | PacketType::Unsubscribe => 2,
            _ => 0,
        }
    }
}

/// Why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHeader {
    /// The type is 0, which is reserved.
    Type,
    /// The flags are others than those of the type.
    Flags,
    /// The remaining length has more than four octets.
    Length,
    /// The packet is larger than allowed.
    TooLarge,
}

/// A packet without its fixed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its type.
    pub packet_type: PacketType,
    /// The flags in its first octet.
    pub flags: u8,
    /// What follows its fixed header.
    pub body: &'a [u8],
}

/// The fixed header of a packet that may not all be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The packet's type.
    pub packet_type: PacketType,
    /// The flags in its first octet.
    pub flags: u8,
    /// Octets of the header itself.
    pub octets: usize,
    /// Octets that follow it.
    pub remaining: usize,
}

impl Header {
    /// Reads a fixed header; `None`: it has not arrived. `bytes_max` bounds the whole packet.
    #[inline]
    pub fn read(input: &[u8], bytes_max: usize) -> Result<Option<Header>, BadHeader> {
        let Some((&first, rest)) = input.split_first() else { return Ok(None) };
        let index = usize::from(first >> 4).checked_sub(1).ok_or(BadHeader::Type)?;
        let (packet_type, flags) = (PacketType::ALL[index], first & 0xF);
        if packet_type != PacketType::Publish && flags != packet_type.flags() {
            return Err(BadHeader::Flags);
        }
        let Some((remaining, octets)) = variable_integer(rest)? else {
            return Ok(None);
        };
        let (remaining, octets) = (remaining as usize, octets + 1);
        if octets + remaining > bytes_max {
            return Err(BadHeader::TooLarge);
        }
        Ok(Some(Header { packet_type, flags, octets, remaining }))
    }

    /// Octets of the whole packet.
    #[must_use]
    pub fn packet_octets(&self) -> usize {
        self.octets + self.remaining
    }
}

impl<'a> Frame<'a> {
    /// The packet that the input begins with, and how many octets it has; `None`: it has not all arrived.
    #[inline]
    pub fn read(
        input: &'a [u8],
        bytes_max: usize,
    ) -> Result<Option<(Frame<'a>, usize)>, BadHeader> {
        let Some(header) = Header::read(input, bytes_max)? else { return Ok(None) };
        let Header { packet_type, flags, octets, .. } = header;
        let end = header.packet_octets();
        let Some(body) = input.get(octets..end) else { return Ok(None) };
        Ok(Some((Frame { packet_type, flags, body }, end)))
    }
}

/// A variable byte integer (5: 1.5.5) and its octets; `None`: it has not all arrived. Refused: it has more
/// than four octets.
#[inline]
pub fn variable_integer(bytes: &[u8]) -> Result<Option<(u32, usize)>, BadHeader> {
    let mut value = 0;
    for (index, octet) in bytes.iter().take(4).enumerate() {
        value |= u32::from(octet & 0x7F) << (7 * index);
        if octet & 0x80 == 0 {
            return Ok(Some((value, index + 1)));
        }
    }
    if bytes.len() >= 4 { Err(BadHeader::Length) } else { Ok(None) }
}

/// Octets of a variable byte integer.
#[inline]
#[must_use]
pub const fn variable_integer_octets(value: usize) -> usize {
    match value {
        0..128 => 1,
        128..16_384 => 2,
        16_384..2_097_152 => 3,
        _ => 4,
    }
}

/// Appends a variable byte integer, of at most [`REMAINING_MAX`].
#[inline]
pub fn put_variable_integer(out: &mut Vec<u8>, mut value: usize) {
    debug_assert!(value <= REMAINING_MAX, "callers bound what they send");
    loop {
        let low = (value & 0x7F) as u8;
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// Appends a packet: its fixed header, and what `write` appends behind it.
pub fn put_packet(out: &mut Vec<u8>, first_octet: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(first_octet);
    let begin = out.len();
    write(out);
    let remaining = out.len() - begin;
    // One octet is the usual length: room for it, and for more where needed, is made behind.
    let octets = variable_integer_octets(remaining);
    out.resize(out.len() + octets, 0);
    out.copy_within(begin..begin + remaining, begin + octets);
    let mut value = remaining;
    for (index, octet) in out[begin..begin + octets].iter_mut().enumerate() {
        let more = if index + 1 < octets { 0x80 } else { 0 };
        *octet = (value & 0x7F) as u8 | more;
        value >>= 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_integers_go_there_and_back() {
        for (value, octets) in [
            (0, &[0][..]),
            (127, &[0x7F]),
            (128, &[0x80, 1]),
            (16_383, &[0xFF, 0x7F]),
            (16_384, &[0x80, 0x80, 1]),
            (2_097_151, &[0xFF, 0xFF, 0x7F]),
            (2_097_152, &[0x80, 0x80, 0x80, 1]),
            (REMAINING_MAX, &[0xFF, 0xFF, 0xFF, 0x7F]),
        ] {
            let mut out = Vec::new();
            put_variable_integer(&mut out, value);
            assert_eq!(out, octets);
            assert_eq!(variable_integer_octets(value), octets.len());
            assert_eq!(variable_integer(octets), Ok(Some((value as u32, octets.len()))));
            let cut = &octets[..octets.len() - 1];
            assert_eq!(variable_integer(cut), Ok(None));
        }
        assert_eq!(variable_integer(&[0x80, 0x80, 0x80, 0x80]), Err(BadHeader::Length));
        assert_eq!(variable_integer(&[0xFF, 0xFF, 0xFF, 0xFF, 1]), Err(BadHeader::Length));
    }

    #[test]
    fn packets_are_cut_at_their_length() {
        for body in [0, 1, 127, 128, 20_000, 3_000_000] {
            let body = vec![7; body];
            let mut out = Vec::new();
            put_packet(&mut out, PacketType::Publish.first_octet(3), |out| out.extend(&body));
            out.push(0xE0);
            let (frame, used) = Frame::read(&out, usize::MAX).unwrap().unwrap();
            assert_eq!(used, out.len() - 1);
            assert_eq!((frame.packet_type, frame.flags), (PacketType::Publish, 3));
            assert!(frame.body == body);
            assert_eq!(Frame::read(&out[..used - 1], usize::MAX), Ok(None));
            assert_eq!(Frame::read(&out, used - 1), Err(BadHeader::TooLarge));
        }
    }

    #[test]
    fn headers_that_are_none_are_refused() {
        for (bytes, expected) in [
            (&[0x00, 0][..], BadHeader::Type),
            (&[0x11, 0], BadHeader::Flags),
            (&[0x60, 2, 0, 1], BadHeader::Flags),
            (&[0x80, 2, 0, 1], BadHeader::Flags),
            (&[0xA0, 2, 0, 1], BadHeader::Flags),
            (&[0xC2, 0], BadHeader::Flags),
            (&[0xF1, 0], BadHeader::Flags),
            (&[0x30, 0x80, 0x80, 0x80, 0x80], BadHeader::Length),
            (&[0x30, 0xFF, 0xFF, 0xFF, 0x7F], BadHeader::TooLarge),
        ] {
            assert_eq!(Frame::read(bytes, 1 << 20), Err(expected), "{bytes:02x?}");
        }
    }
}
