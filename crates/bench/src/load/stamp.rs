//! The first bytes of every body, which identify the message.
//!
//! `producer(4) checksum(4) sequence(8) sent_ns(8)`, little-endian. Messages too short for the first 16
//! bytes are only counted.

/// Bytes needed to identify messages.
pub(super) const IDENTITY_BYTES: usize = 16;
/// Bytes needed to know when a message was sent.
pub(super) const TIMED_BYTES: usize = 24;

/// The stamp of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The producer's number.
    pub producer: u32,
    /// See [`checksum`]; 0 if the plan has none.
    pub checksum: u32,
    /// The message's number among those of its producer, from 0.
    pub sequence: u64,
    /// When it was sent, in nanoseconds of the run; 0 if the plan has no latencies.
    pub sent_ns: u64,
}

impl Stamp {
    /// The stamp of a message without checksum and time.
    pub(crate) fn of(producer: u32, sequence: u64) -> Stamp {
        Stamp { producer, checksum: 0, sequence, sent_ns: 0 }
    }

    /// Reads a stamp from the start of a body; `None` if the body is too short for one.
    #[inline]
    pub fn read(body: &[u8]) -> Option<Stamp> {
        let identity = body.first_chunk::<IDENTITY_BYTES>()?;
        let long = |at: usize| -> u64 {
            u64::from_le_bytes(identity[at..at + 8].try_into().expect("8 octets of 16"))
        };
        let head = long(0);
        let sent = body.get(IDENTITY_BYTES..TIMED_BYTES).and_then(|octets| octets.try_into().ok());
        Some(Stamp {
            producer: head as u32,
            checksum: (head >> 32) as u32,
            sequence: long(8),
            sent_ns: sent.map_or(0, u64::from_le_bytes),
        })
    }

    /// Writes as much of the stamp as `body` has room for.
    #[inline]
    pub fn write(&self, body: &mut [u8]) {
        let Some(identity) = body.first_chunk_mut::<IDENTITY_BYTES>() else { return };
        let head = u64::from(self.producer) | u64::from(self.checksum) << 32;
        identity[..8].copy_from_slice(&head.to_le_bytes());
        identity[8..].copy_from_slice(&self.sequence.to_le_bytes());
        if let Some(sent) = body.get_mut(IDENTITY_BYTES..TIMED_BYTES) {
            sent.copy_from_slice(&self.sent_ns.to_le_bytes());
        }
    }
}

/// The checksum over the stamp and over `rest`, the checksum of the constant body after the stamp.
pub(super) fn checksum(stamp: &Stamp, rest: u32) -> u32 {
    // Cheaper than a CRC over these few bytes, which would dominate the cost of a message. Each step is
    // invertible, so stamps that differ in one field never yield the same 64 bits.
    let mut mixed = stamp.sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ stamp.sent_ns ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed = (mixed ^ u64::from(stamp.producer) ^ mixed >> 32).wrapping_mul(0xA076_1D64_78BD_642F);
    (mixed ^ mixed >> 32) as u32 ^ rest
}
