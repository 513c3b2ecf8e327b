//! Frames: what every byte on an AMQP 0-9-1 connection belongs to. Independent of what they carry.
//!
//! ```text
//! 0      1         3             7                  size+7 size+8
//! +------+---------+-------------+  +------------+  +-----------+
//! | type | channel |    size     |  |  payload   |  | frame-end |
//! +------+---------+-------------+  +------------+  +-----------+
//!  octet    short        long        size octets        0xCE
//! ```
//! Specification 4.2.3.

/// A method, spec 4.2.4.
pub const METHOD: u8 = 1;
/// A content header, spec 4.2.6.1.
pub const HEADER: u8 = 2;
/// Part of a content body, spec 4.2.6.2.
pub const BODY: u8 = 3;
/// A sign of life, spec 4.2.7.
pub const HEARTBEAT: u8 = 8;
/// The octet that ends every frame.
pub const END: u8 = 0xCE;
/// Octets before the payload.
pub const HEAD_BYTES: usize = 7;
/// Octets that a frame has beyond its payload.
pub const OVERHEAD_BYTES: usize = HEAD_BYTES + 1;
/// The smallest largest frame: every peer takes frames of this size, and before the connection is
/// tuned none larger (spec, `frame-min-size`).
pub const MIN_MAX_BYTES: u32 = 4096;
/// What a client sends first (spec 4.2.2).
pub const PROTOCOL_HEADER: [u8; 8] = *b"AMQP\0\0\x09\x01";

/// The first seven octets of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What kind of frame it is.
    pub kind: u8,
    /// The channel it belongs to; 0: the connection as a whole.
    pub channel: u16,
    /// Octets of payload.
    pub size: u32,
}

/// A whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What kind of frame it is.
    pub kind: u8,
    /// The channel it belongs to.
    pub channel: u16,
    /// What it carries.
    pub payload: &'a [u8],
}

/// Bytes that are no frame, or none that we take; nothing after them can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// No such kind of frame.
    UnknownKind(u8),
    /// Larger than agreed; both sizes include the frame's head and end.
    TooLarge {
        /// What it has.
        bytes: u64,
        /// What was agreed.
        max: u32,
    },
    /// It does not end with [`END`].
    BadEnd(u8),
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FrameError::UnknownKind(kind) => write!(f, "unknown frame type {kind}"),
            FrameError::TooLarge { bytes, max } => {
                write!(f, "frame of {bytes} bytes is larger than the agreed maximum of {max}")
            }
            FrameError::BadEnd(end) => {
                write!(f, "frame ends with octet {end:#04x} instead of {END:#04x}")
            }
        }
    }
}

/// The head of the frame that `input` begins with; `None`: not all of it is there.
#[inline]
#[must_use]
pub fn head(input: &[u8]) -> Option<Head> {
    let &[kind, c0, c1, s0, s1, s2, s3] = input.first_chunk::<HEAD_BYTES>()?;
    Some(Head {
        kind,
        channel: u16::from_be_bytes([c0, c1]),
        size: u32::from_be_bytes([s0, s1, s2, s3]),
    })
}

/// The frame that `input` begins with and how many octets it takes, where frames have at most `max` octets
/// (0: no limit); `None`: not all of it is there. Some clients leave head and end out when they count, so a
/// payload may have `max` octets by itself, as with RabbitMQ.
#[inline]
pub fn read(input: &[u8], max: u32) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some(Head { kind, channel, size }) = head(input) else { return Ok(None) };
    if !matches!(kind, METHOD | HEADER | BODY | HEARTBEAT) {
        return Err(FrameError::UnknownKind(kind));
    }
    if max != 0 && size > max {
        let bytes = u64::from(size) + OVERHEAD_BYTES as u64;
        return Err(FrameError::TooLarge { bytes, max });
    }
    let end = HEAD_BYTES + size as usize;
    match input.get(end) {
        None => Ok(None),
        Some(&END) => {
            Ok(Some((Frame { kind, channel, payload: &input[HEAD_BYTES..end] }, end + 1)))
        }
        Some(&other) => Err(FrameError::BadEnd(other)),
    }
}

/// Appends the head of a frame and returns where it begins; [`end`] completes it.
#[inline]
pub fn begin(out: &mut Vec<u8>, kind: u8, channel: u16) -> usize {
    let at = out.len();
    let [c0, c1] = channel.to_be_bytes();
    out.extend_from_slice(&[kind, c0, c1, 0, 0, 0, 0]);
    at
}

/// Completes the frame that begins at `at`: sets its size, appends its end.
#[inline]
pub fn end(out: &mut Vec<u8>, at: usize) {
    let size = u32::try_from(out.len() - at - HEAD_BYTES).expect("a frame we write is below 4 GiB");
    out[at + 3..at + HEAD_BYTES].copy_from_slice(&size.to_be_bytes());
    out.push(END);
}

/// Appends a heartbeat.
pub fn write_heartbeat(out: &mut Vec<u8>) {
    out.extend_from_slice(&[HEARTBEAT, 0, 0, 0, 0, 0, 0, END]);
}

/// Most octets of payload in frames of at most `max` octets (0: no limit).
pub(crate) fn payload_max(max: u32) -> usize {
    if max == 0 { u32::MAX as usize } else { max as usize - OVERHEAD_BYTES }
}

/// Appends a body as frames of at most `max` octets each (0: no limit).
#[inline]
pub fn write_body(out: &mut Vec<u8>, channel: u16, body: &[u8], max: u32) {
    let [c0, c1] = channel.to_be_bytes();
    for piece in body.chunks(payload_max(max)) {
        let [s0, s1, s2, s3] = (piece.len() as u32).to_be_bytes();
        out.extend_from_slice(&[BODY, c0, c1, s0, s1, s2, s3]);
        out.extend_from_slice(piece);
        out.push(END);
    }
}
