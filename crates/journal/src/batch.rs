//! Records on their way to the disk. A batch becomes one block, written from the buffer that the records
//! were copied into; large parts are copied into it by the thread that writes it.

use std::io;
use std::ops::{Deref, DerefMut};

use bytes::Bytes;

use crate::Position;
use crate::format::{BLOCK_ALIGN, HEADER_BYTES, RECORD_HEADER_BYTES};

/// Capacity in bytes above which a buffer is freed as soon as it is written.
const LARGE_BUFFER_BYTES: usize = 4 << 20;

/// Bytes that begin at a multiple of 4 KiB in memory as long as they fit the capacity, as writes past the
/// page cache need them.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    /// Where in `bytes` the aligned ones begin.
    lead: usize,
}

impl Buffer {
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn with_capacity(capacity: usize) -> io::Result<Buffer> {
        let mut bytes = Vec::<u8>::new();
        bytes.try_reserve_exact(capacity + BLOCK_ALIGN)?;
        let lead = bytes.as_ptr().align_offset(BLOCK_ALIGN).min(BLOCK_ALIGN);
        bytes.resize(lead, 0);
        Ok(Buffer { bytes, lead })
    }
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity() - self.lead
    }
    pub(crate) fn resize(&mut self, length: usize) {
        self.bytes.resize(self.lead + length, 0);
    }
}

impl Deref for Buffer {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.lead..]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.lead..]
    }
}

/// A record with a large part, which is copied only when the record is written.
#[derive(Clone, Copy, Debug)]
pub struct SharedRecord<'a> {
    /// Its bytes before that part.
    pub before: &'a [&'a [u8]],
    /// The large part.
    pub shared: &'a Bytes,
    /// Its bytes after that part.
    pub after: &'a [u8],
}

impl SharedRecord<'_> {
    /// Bytes of the whole record.
    pub(crate) fn len(&self) -> usize {
        let before: usize = self.before.iter().map(|part| part.len()).sum();
        before + self.shared.len() + self.after.len()
    }
}

/// Bytes of a record that are not in its batch's buffer yet.
#[derive(Debug)]
struct Shared {
    /// Where they go in the buffer.
    at: usize,
    bytes: Bytes,
}

/// A block that takes records.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Where the block will lie.
    pub(crate) start: Position,
    /// Bytes of the segment there.
    pub(crate) segment_bytes: u32,
    /// Room for the header, then records whose checksums are still zero.
    pub(crate) bytes: Buffer,
    /// Large parts that are not copied into `bytes` yet, in order.
    shared: Vec<Shared>,
    /// Bytes of the block that `bytes` does not hold: not copied yet, or freed after the write.
    absent_bytes: usize,
    /// Bytes of the block before padding.
    pub(crate) filled: usize,
    pub(crate) records: u32,
    /// Whether a record in it needs a flush.
    pub(crate) durable: bool,
}

impl Batch {
    pub(crate) fn new(start: Position, segment_bytes: u32, mut bytes: Buffer) -> Batch {
        bytes.resize(0);
        bytes.resize(HEADER_BYTES);
        Batch {
            start,
            segment_bytes,
            bytes,
            shared: Vec::new(),
            absent_bytes: 0,
            filled: 0,
            records: 0,
            durable: false,
        }
    }

    /// Gives an empty batch a buffer with capacity for a block of `bytes`.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn fit(&mut self, bytes: usize) -> io::Result<()> {
        debug_assert!(self.is_empty());
        if self.bytes.capacity() < bytes {
            self.bytes = Buffer::with_capacity(bytes)?;
            self.bytes.resize(HEADER_BYTES);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn push(&mut self, length: usize, parts: &[&[u8]], durable: bool) -> Position {
        let position = self.end();
        // The thread that writes the block fills in the checksum behind the length.
        let header = (length as u64).to_le_bytes();
        debug_assert_eq!(header.len(), RECORD_HEADER_BYTES);
        self.bytes.bytes.extend_from_slice(&header);
        for part in parts {
            self.bytes.bytes.extend_from_slice(part);
        }
        self.records += 1;
        self.durable |= durable;
        position
    }

    pub(crate) fn push_shared(&mut self, record: SharedRecord<'_>, durable: bool) -> Position {
        let position = self.push(record.len(), record.before, durable);
        self.shared.push(Shared { at: self.bytes.len(), bytes: record.shared.clone() });
        self.absent_bytes += record.shared.len();
        self.bytes.bytes.extend_from_slice(record.after);
        position
    }

    /// Bytes of the block so far.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.absent_bytes
    }

    /// Copies the large parts to their places: in the buffer if it has room, the last one first, so that each
    /// byte behind one moves once; else into a new one.
    ///
    /// # Errors
    /// There is no memory for them.
    pub(crate) fn assemble(&mut self) -> io::Result<()> {
        if self.shared.is_empty() {
            return Ok(());
        }
        let (mut from, mut to) = (self.bytes.len(), self.len());
        if self.bytes.capacity() < to {
            return self.assemble_anew(to);
        }
        self.bytes.resize(to);
        self.absent_bytes = 0;
        while let Some(Shared { at, bytes }) = self.shared.pop() {
            to -= from - at;
            self.bytes.copy_within(at..from, to);
            from = at;
            to -= bytes.len();
            self.bytes[to..to + bytes.len()].copy_from_slice(&bytes);
        }
        debug_assert_eq!(from, to);
        Ok(())
    }

    fn assemble_anew(&mut self, length: usize) -> io::Result<()> {
        let mut whole = Buffer::with_capacity(length)?;
        let mut from = 0;
        for Shared { at, bytes } in self.shared.drain(..) {
            whole.bytes.extend_from_slice(&self.bytes[from..at]);
            whole.bytes.extend_from_slice(&bytes);
            from = at;
        }
        whole.bytes.extend_from_slice(&self.bytes[from..]);
        debug_assert_eq!(whole.len(), length);
        self.bytes = whole;
        self.absent_bytes = 0;
        Ok(())
    }

    /// Frees a large buffer once it is written: that takes long, and happens on the thread that writes.
    /// Buffers of ordinary blocks are used again.
    pub(crate) fn written(&mut self) {
        if self.bytes.capacity() > LARGE_BUFFER_BYTES {
            self.absent_bytes = self.len();
            self.bytes = Buffer::default();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Ends the block: pads it. Returns where the next one begins.
    pub(crate) fn seal(&mut self) -> Position {
        self.filled = self.len();
        let padding = self.filled.next_multiple_of(BLOCK_ALIGN) - self.filled;
        self.bytes.resize(self.bytes.len() + padding);
        self.end()
    }

    /// Where the block ends so far.
    #[inline]
    pub(crate) fn end(&self) -> Position {
        Position(self.start.0 + self.len() as u64)
    }
}
