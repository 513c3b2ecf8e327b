//! What every message carries in its first octets, so that a consumer can tell what became of it.
//!
//! `producer(4) checksum(4) sequence(8) sent_ns(8)`, least significant octet first. Messages too
//! short for the first 16 octets are only counted.

/// Octets needed to tell messages apart.
pub(super) const IDENTITY_BYTES: usize = 16;
/// Octets needed to tell when a message was sent.
pub(super) const TIMED_BYTES: usize = 24;

/// The stamp of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Which producer sent it.
    pub producer: u32,
    /// See [`checksum`]; 0 when the plan asks for none.
    pub checksum: u32,
    /// How many this producer had sent before it.
    pub sequence: u64,
    /// When it was sent, in nanoseconds since the run began; 0 when the plan asks for no latencies.
    pub sent_ns: u64,
}

impl Stamp {
    /// Reads a stamp off the start of a body; `None` if the body is too short for one.
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

/// The checksum over the part of a body that changes from message to message (all of the stamp but
/// the checksum itself) and `rest`, the checksum of what follows the stamp, which never changes.
pub(super) fn checksum(stamp: &Stamp, rest: u32) -> u32 {
    // A cyclic checksum over so few octets takes longer than all else that is done to a message. Each of
    // these steps can be undone, so stamps that differ in one field never come to the same 64 bits.
    let mut mixed = stamp.sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ stamp.sent_ns ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed = (mixed ^ u64::from(stamp.producer) ^ mixed >> 32).wrapping_mul(0xA076_1D64_78BD_642F);
    (mixed ^ mixed >> 32) as u32 ^ rest
}
