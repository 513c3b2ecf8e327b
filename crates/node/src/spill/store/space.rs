//! The disk space of stored chunks, counted while a log keeps them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A stored chunk as its log has it; its file counts until this is dropped.
#[derive(Debug)]
pub(in crate::spill) struct Stored {
    /// Unique among all chunks that are or were stored.
    pub(in crate::spill) number: u64,
    /// Bytes of its file.
    pub(in crate::spill) file_bytes: u64,
    all: Arc<AtomicU64>,
}

impl Stored {
    /// Counts a chunk's file in `all`.
    pub(super) fn new(number: u64, file_bytes: u64, all: &Arc<AtomicU64>) -> Stored {
        all.fetch_add(file_bytes, Ordering::Relaxed);
        Stored { number, file_bytes, all: Arc::clone(all) }
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.all.fetch_sub(self.file_bytes, Ordering::Relaxed);
    }
}
