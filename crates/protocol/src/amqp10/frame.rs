//! Frames and protocol headers: what every byte on an AMQP 1.0 connection belongs to (part 2, 2.2 and 2.3).
//!
//! ```text
//! 0      4      5      6         8          4 * doff          size
//! +------+------+------+---------+-----------------+  +------+
//! | size | doff | type | channel | extended header |  | body |
//! +------+------+------+---------+-----------------+  +------+
//! ```
//! The size counts all octets of the frame. Nothing uses the extended header: it is skipped. A frame without
//! a body is a sign of life.

/// A frame that carries a performative, and for a transfer a payload behind it.
pub const AMQP: u8 = 0;
/// A frame of the SASL layer (part 5, 5.3.1); its channel is ignored.
pub const SASL: u8 = 1;
/// Octets before the body, where there is no extended header.
pub const HEAD_BYTES: usize = 8;
/// The smallest `doff`: four-octet words before the body.
pub const DOFF_MIN: u8 = 2;
/// The smallest largest frame: every peer takes frames of this size (2.8.1, `MIN-MAX-FRAME-SIZE`). Frames
/// of the SASL layer are never larger.
pub const MIN_MAX_BYTES: u32 = 512;
/// Octets of a protocol header.
pub const PROTOCOL_HEADER_BYTES: usize = 8;

/// What follows on the connection, as a protocol header says (2.2, 5.2, 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolHeader {
    /// AMQP 1.0 frames.
    Amqp,
    /// A TLS handshake.
    Tls,
    /// The SASL layer.
    Sasl,
}

impl ProtocolHeader {
    /// Its octets.
    #[must_use]
    pub fn bytes(self) -> [u8; PROTOCOL_HEADER_BYTES] {
        match self {
            ProtocolHeader::Amqp => *b"AMQP\x00\x01\x00\x00",
            ProtocolHeader::Tls => *b"AMQP\x02\x01\x00\x00",
            ProtocolHeader::Sasl => *b"AMQP\x03\x01\x00\x00",
        }
    }
    /// The header that `input` begins with; `None`: not all of it is there, and it may still be one.
    pub fn read(input: &[u8]) -> Result<Option<ProtocolHeader>, FrameError> {
        let seen = &input[..input.len().min(PROTOCOL_HEADER_BYTES)];
        let all = [ProtocolHeader::Amqp, ProtocolHeader::Tls, ProtocolHeader::Sasl];
        let Some(header) = all.into_iter().find(|header| header.bytes().starts_with(seen)) else {
            return Err(FrameError::ProtocolHeader);
        };
        Ok((seen.len() == PROTOCOL_HEADER_BYTES).then_some(header))
    }
}

/// A whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What kind of frame it is: [`AMQP`] or [`SASL`].
    pub kind: u8,
    /// The channel it belongs to.
    pub channel: u16,
    /// What it carries; empty: nothing.
    pub body: &'a [u8],
}

/// Bytes that are no frame, or none that is taken; nothing after them can be understood. The condition of the
/// error to the peer is `amqp:connection:framing-error`; a protocol header is answered with the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The bytes are no protocol header of AMQP 1.0.
    ProtocolHeader,
    /// No such kind of frame.
    UnknownKind(u8),
    /// Larger than agreed.
    TooLarge {
        /// Octets that it has.
        bytes: u32,
        /// Octets that were agreed.
        max: u32,
    },
    /// Its size is below that of its own head.
    TooSmall(u32),
    /// Its body begins inside of its head or behind its end.
    DataOffset {
        /// Its data offset, in words of four octets.
        doff: u8,
        /// Octets that it has.
        bytes: u32,
    },
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FrameError::ProtocolHeader => {
                write!(f, "the connection does not begin with a protocol header of AMQP 1.0")
            }
            FrameError::UnknownKind(kind) => write!(f, "unknown frame type {kind}"),
            FrameError::TooLarge { bytes, max } => {
                write!(f, "frame of {bytes} bytes is larger than the agreed maximum of {max}")
            }
            FrameError::TooSmall(bytes) => {
                write!(f, "frame of {bytes} bytes is smaller than its own head of {HEAD_BYTES}")
            }
            FrameError::DataOffset { doff, bytes } => write!(
                f,
                "frame of {bytes} bytes has a data offset of {doff} words, which is not within it or \
                 below {DOFF_MIN}"
            ),
        }
    }
}

/// The frame that `input` begins with and how many octets it takes, where frames have at most `max` octets;
/// `None`: not all of it is there. Bytes that can be no frame are refused as soon as its head is there.
#[inline]
pub fn read(input: &[u8], max: u32) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some(&[s0, s1, s2, s3, doff, kind, c0, c1]) = input.first_chunk::<HEAD_BYTES>() else {
        return Ok(None);
    };
    let bytes = u32::from_be_bytes([s0, s1, s2, s3]);
    if (bytes as usize) < HEAD_BYTES {
        return Err(FrameError::TooSmall(bytes));
    }
    if bytes > max {
        return Err(FrameError::TooLarge { bytes, max });
    }
    let start = usize::from(doff) * 4;
    if doff < DOFF_MIN || start > bytes as usize {
        return Err(FrameError::DataOffset { doff, bytes });
    }
    if !matches!(kind, AMQP | SASL) {
        return Err(FrameError::UnknownKind(kind));
    }
    let Some(frame) = input.get(..bytes as usize) else { return Ok(None) };
    let channel = u16::from_be_bytes([c0, c1]);
    Ok(Some((Frame { kind, channel, body: &frame[start..] }, bytes as usize)))
}

/// Appends the head of a frame and returns where it begins; [`end`] completes it.
#[inline]
pub fn begin(out: &mut Vec<u8>, kind: u8, channel: u16) -> usize {
    let at = out.len();
    let [c0, c1] = channel.to_be_bytes();
    out.extend_from_slice(&[0, 0, 0, 0, DOFF_MIN, kind, c0, c1]);
    at
}

/// Completes the frame that begins at `at`: sets its size.
#[inline]
pub fn end(out: &mut [u8], at: usize) {
    let size = u32::try_from(out.len() - at).expect("a frame we write is below 4 GiB");
    out[at..at + 4].copy_from_slice(&size.to_be_bytes());
}

/// Appends a frame without a body, a sign of life (2.4.5).
pub fn write_empty(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0, 0, HEAD_BYTES as u8, DOFF_MIN, AMQP, 0, 0]);
}
