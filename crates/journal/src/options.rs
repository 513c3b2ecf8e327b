//! Sizes and thresholds of a journal, with their defaults.

use crate::format::{BLOCK_ALIGN, align};

/// Bytes of a block unless one group of records is larger; bounds the memory that recovery needs.
const BLOCK_BYTES_MAX: usize = 1 << 20;
/// Default bytes of a store's first segment.
const FIRST_SEGMENT_BYTES: u32 = 1 << 20;
/// Bytes of the smallest segment; only tests use segments that small.
const SEGMENT_BYTES_MIN: u32 = 4 * BLOCK_ALIGN as u32;
/// Most free segments that are kept for reuse.
const FREE_SEGMENTS_MAX: u64 = 4;

/// Sizes and thresholds.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of a segment; a larger record or group gets a segment of its own.
    pub segment_bytes: u32,
    /// Bytes of a store's first segment; each later one is twice as large as the one before, up to
    /// `segment_bytes`. An empty store starts fast and takes little.
    pub first_segment_bytes: u32,
    /// Appended bytes after which a checkpoint is due.
    pub checkpoint_bytes: u64,
    /// Appended and not yet written bytes beyond which the journal is congested.
    pub backlog_bytes_max: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            segment_bytes: 64 << 20,
            first_segment_bytes: FIRST_SEGMENT_BYTES,
            checkpoint_bytes: 128 << 20,
            backlog_bytes_max: 32 << 20,
        }
    }
}

impl Options {
    /// These options with a segment size within its bounds.
    pub(crate) fn rounded(mut self) -> Options {
        let bytes = self.segment_bytes.clamp(SEGMENT_BYTES_MIN, 1 << 30);
        self.segment_bytes = align(bytes as usize) as u32;
        let first = self.first_segment_bytes.clamp(SEGMENT_BYTES_MIN, self.segment_bytes);
        self.first_segment_bytes = align(first as usize) as u32;
        self
    }
    pub(crate) fn block_bytes_max(&self) -> usize {
        align((self.segment_bytes as usize / 4).clamp(BLOCK_ALIGN, BLOCK_BYTES_MAX))
    }
    /// A checkpoint frees about what was filled since the one before. Twice as much is kept, so that a
    /// steady stream reuses the same files.
    pub(crate) fn free_segments_max(&self) -> usize {
        (2 * self.checkpoint_bytes / u64::from(self.segment_bytes)).clamp(1, FREE_SEGMENTS_MAX)
            as usize
    }
}
