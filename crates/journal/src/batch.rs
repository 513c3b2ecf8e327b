//! Records on their way to the disk: one batch becomes one block, written from the very buffer into
//! which the records were copied.

use crate::Position;
use crate::format::{BLOCK_ALIGN, HEADER_BYTES, RECORD_HEADER_BYTES};

/// Buffers kept for reuse at most.
const SPARE_BUFFERS_MAX: usize = 4;

/// A block in the making.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Where the block will lie.
    pub(crate) start: Position,
    /// Bytes of the segment there.
    pub(crate) segment_bytes: u32,
    /// Room for the header, then records whose checksums are still zero.
    pub(crate) bytes: Vec<u8>,
    /// Bytes of `bytes` before padding.
    pub(crate) filled: usize,
    pub(crate) records: u32,
    /// Whether somebody waits for it to be flushed.
    pub(crate) durable: bool,
}

impl Batch {
    pub(crate) fn new(start: Position, segment_bytes: u32, mut bytes: Vec<u8>) -> Batch {
        bytes.clear();
        bytes.resize(HEADER_BYTES, 0);
        Batch { start, segment_bytes, bytes, filled: 0, records: 0, durable: false }
    }

    #[inline]
    pub(crate) fn push(&mut self, length: usize, parts: &[&[u8]], durable: bool) -> Position {
        let position = Position(self.start.0 + self.bytes.len() as u64);
        // The checksum behind the length is filled in where the block is written: the appender only
        // copies.
        let header = (length as u64).to_le_bytes();
        debug_assert_eq!(header.len(), RECORD_HEADER_BYTES);
        self.bytes.extend_from_slice(&header);
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.records += 1;
        self.durable |= durable;
        position
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Ends the block: pads it. Returns where the next one begins.
    pub(crate) fn seal(&mut self) -> Position {
        self.filled = self.bytes.len();
        self.bytes.resize(self.filled.next_multiple_of(BLOCK_ALIGN), 0);
        self.end()
    }

    /// The end of a sealed batch.
    pub(crate) fn end(&self) -> Position {
        Position(self.start.0 + self.bytes.len() as u64)
    }
}

/// Buffers to use again.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    spare: Vec<Vec<u8>>,
}

impl Buffers {
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }
    /// Keeps a buffer unless it is larger than ordinary blocks are.
    pub(crate) fn give(&mut self, buffer: Vec<u8>, capacity_max: usize) {
        if self.spare.len() < SPARE_BUFFERS_MAX && buffer.capacity() <= capacity_max {
            self.spare.push(buffer);
        }
    }
}
