//! Frames to and from bytes (STOMP 1.2, "STOMP Frames"). Independent of sockets.

use crate::client::{Encoded, Route};

/// Limit on the bytes of a frame's command and headers.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Digits of a receipt number.
const RECEIPT_DIGITS: usize = 12;

/// A command and its headers, and their length including the empty line after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHead<'a> {
    pub(super) command: &'a [u8],
    headers: &'a [u8],
    pub(super) octets: usize,
}

impl<'a> FrameHead<'a> {
    /// `Ok(None)` if more bytes are needed. Line ends before a frame are heart-beats and are consumed
    /// with it.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Option<FrameHead<'a>>, &'static str> {
        FrameHead::scan(bytes, |_| {})
    }

    /// Decodes and calls `each` for every header line. Lines may end with a carriage return; the lines
    /// of an incomplete frame are passed, too.
    #[inline(always)]
    pub(super) fn scan(
        bytes: &'a [u8],
        mut each: impl FnMut(&'a [u8]),
    ) -> Result<Option<FrameHead<'a>>, &'static str> {
        let beats = bytes.iter().take_while(|octet| matches!(octet, b'\n' | b'\r')).count();
        let frame = &bytes[beats..];
        let frame = &frame[..frame.len().min(HEAD_BYTES_MAX)];
        let mut ends = LineEnds { bytes: frame, at: 0, hits: 0 };
        if let Some(command_end) = ends.next() {
            let mut at = command_end + 1;
            for end in ends {
                let line = &frame[at..end];
                if matches!(line, [] | [b'\r']) {
                    let (command, headers) =
                        (trim(&frame[..command_end]), &frame[command_end + 1..at]);
                    return Ok(Some(FrameHead { command, headers, octets: beats + end + 1 }));
                }
                each(line);
                at = end + 1;
            }
        }
        if frame.len() == HEAD_BYTES_MAX { Err("headers without an end") } else { Ok(None) }
    }

    /// The first header of this name, undecoded.
    pub(super) fn header(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.headers.split(|octet| *octet == b'\n').find_map(|line| {
            let (head, value) = line.split_at_checked(name.len())?;
            (head == name && value.first() == Some(&b':')).then(|| trim(&value[1..]))
        })
    }

    /// The body's length, if the header is present.
    pub(super) fn content_length(&self) -> Option<usize> {
        number(self.header(b"content-length")?).map(|value| value as usize)
    }
}

/// The headers of deliveries that are used, the first of each name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Noted<'a> {
    pub(super) length: Option<&'a [u8]>,
    pub(super) redelivered: Option<&'a [u8]>,
    pub(super) ack: Option<&'a [u8]>,
}

impl<'a> Noted<'a> {
    /// Keeps the value if the line is one of these headers.
    #[inline(always)]
    pub(super) fn note(&mut self, line: &'a [u8]) {
        let (kept, value) = match line.first() {
            Some(b'c') => (&mut self.length, line.strip_prefix(b"content-length:")),
            Some(b'r') => (&mut self.redelivered, line.strip_prefix(b"redelivered:")),
            Some(b'a') => (&mut self.ack, line.strip_prefix(b"ack:")),
            _ => return,
        };
        if let (None, Some(value)) = (&kept, value) {
            *kept = Some(trim(value));
        }
    }
}

/// Finds line ends, eight bytes at a time.
struct LineEnds<'a> {
    bytes: &'a [u8],
    /// Offset of the next search.
    at: usize,
    /// Top bits of the bytes before `at` that are line ends and not returned yet.
    hits: u64,
}

impl Iterator for LineEnds<'_> {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        const LOW: u64 = u64::from_ne_bytes([0x7F; 8]);
        while self.hits == 0 {
            let Some(octets) = self.bytes[self.at..].first_chunk::<8>() else {
                let rest = self.bytes[self.at..].iter().position(|octet| *octet == b'\n');
                let end = self.at + rest?;
                self.at = end + 1;
                return Some(end);
            };
            // A byte is 0 if neither its top bit nor its low bits, which carry into the top bit, are
            // set.
            let word = u64::from_le_bytes(*octets) ^ u64::from_ne_bytes([b'\n'; 8]);
            self.hits = !(((word & LOW) + LOW) | word | LOW);
            self.at += 8;
        }
        let end = self.at - 8 + self.hits.trailing_zeros() as usize / 8;
        self.hits &= self.hits - 1;
        Some(end)
    }
}

#[inline]
fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Parses decimal digits.
#[inline]
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    let add = |value: u64, digit: &u8| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    };
    (!digits.is_empty()).then_some(())?;
    digits.iter().try_fold(0, add)
}

/// Appends a frame without a body. Values are escaped.
pub(super) fn write(out: &mut Vec<u8>, command: &str, headers: &[(&str, &str)]) {
    out.extend_from_slice(command.as_bytes());
    out.push(b'\n');
    for (name, value) in headers {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        for octet in value.bytes() {
            match octet {
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b':' if !matches!(command, "CONNECT") => out.extend_from_slice(b"\\c"),
                b'\\' => out.extend_from_slice(b"\\\\"),
                octet => out.push(octet),
            }
        }
        out.push(b'\n');
    }
    out.extend_from_slice(b"\n\0");
}

/// Appends SEND; the digits of its receipt, if asked for, are the tag.
pub(super) fn write_send(
    out: &mut Vec<u8>,
    route: &Route<'_>,
    receipt: bool,
    body: &[u8],
) -> Encoded {
    out.extend_from_slice(format!("SEND\ndestination:{}\n", route.key).as_bytes());
    if route.persistent {
        out.extend_from_slice(b"persistent:true\n");
    }
    let receipt_at = receipt.then(|| {
        out.extend_from_slice(b"receipt:");
        let at = out.len();
        out.extend_from_slice(&[b'0'; RECEIPT_DIGITS]);
        out.push(b'\n');
        at
    });
    out.extend_from_slice(format!("content-length:{}\n\n", body.len()).as_bytes());
    let encoded = Encoded::body_at(out.len()).with_digits(receipt_at, RECEIPT_DIGITS);
    out.extend_from_slice(body);
    out.push(0);
    encoded
}
