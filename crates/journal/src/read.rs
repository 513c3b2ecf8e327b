//! Reads records back, on any thread.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::Arc;
use std::thread;

use crate::batch::Buffer;
use crate::files;
use crate::format::{self, BLOCK_ALIGN, RECORD_HEADER_BYTES};
use crate::{Position, Storage};

/// Most bytes of one read where the wanted records lie close together: 512 KiB of messages with the framing
/// of their records.
const WINDOW_BYTES: u64 = 1 << 20;
/// Largest distance from one wanted record to the next within a read. What lies between is one large
/// record, or is read in vain to save a second request to the disk.
const GAP_BYTES: u64 = 256 << 10;
/// Bytes read from where the last wanted record begins, since its length is not known: a page of 1024
/// places has some 10 KiB.
const LAST_BYTES: u64 = 16 << 10;
/// Bytes of records after which the reading thread yields, so that others on its processor do not wait for
/// hundreds of microseconds.
const STINT_BYTES: usize = 32 << 10;
/// Bytes of the largest buffer that is kept for further reads.
const BUFFER_BYTES_MAX: usize = 2 * WINDOW_BYTES as usize;

/// Memory that reads reuse, one after the other.
#[derive(Debug, Default)]
pub struct ReadBuffer(Buffer);

/// A read of records, to be run on another thread than the shard's.
#[derive(Debug)]
pub struct Read {
    pub(crate) positions: Vec<Position>,
    /// Bypasses the page cache: slower, with a tenth of the processor time (decision 0013).
    pub(crate) past_cache: bool,
    /// Keeps segments from being reused while this read is under way.
    pub(crate) _readers: Arc<()>,
}

/// A piece of a segment in memory, from one multiple of 4 KiB to another.
#[derive(Default)]
struct Window {
    segment: u32,
    start: u64,
    /// May be longer than `length`, so that it is not zeroed for each read.
    bytes: Buffer,
    length: usize,
    past_cache: bool,
}

impl Read {
    /// Reads the records, in the order of the positions. An unreadable one is an error that names it; one
    /// that a repair gave up has no bytes.
    /// `buffer` may have been used for other reads.
    pub fn run(
        self,
        storage: &dyn Storage,
        buffer: &mut ReadBuffer,
    ) -> Result<Vec<Arc<[u8]>>, String> {
        let bytes = std::mem::take(&mut buffer.0);
        let mut window = Window { bytes, past_cache: self.past_cache, ..Window::default() };
        let records = self.run_in(storage, &mut window);
        if window.bytes.len() <= BUFFER_BYTES_MAX {
            buffer.0 = window.bytes;
        }
        records
    }

    fn run_in(self, storage: &dyn Storage, window: &mut Window) -> Result<Vec<Arc<[u8]>>, String> {
        let mut sizes = BTreeMap::new();
        let mut records = Vec::with_capacity(self.positions.len());
        let mut copied = 0;
        for (at, &position) in self.positions.iter().enumerate() {
            let record = read_one(storage, &mut sizes, window, &self.positions[at..])
                .map_err(|error| format!("cannot read the record in {position}: {error}"))?;
            copied += record.len();
            records.push(record);
            if copied >= STINT_BYTES {
                copied = 0;
                thread::yield_now();
            }
        }
        Ok(records)
    }
}

/// Reads the record at the first of `positions`, and ahead if the following ones are near.
fn read_one(
    storage: &dyn Storage,
    sizes: &mut BTreeMap<u32, u64>,
    window: &mut Window,
    positions: &[Position],
) -> io::Result<Arc<[u8]>> {
    let position = positions[0];
    let offset = u64::from(position.offset());
    let size = match sizes.entry(position.segment()) {
        Entry::Occupied(known) => *known.get(),
        Entry::Vacant(unknown) => {
            let size = storage.size(&files::segment_name(*unknown.key()))?;
            *unknown.insert(size)
        }
    };
    let corrupt = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    if offset + RECORD_HEADER_BYTES as u64 > size {
        return Err(corrupt("it lies beyond the end"));
    }
    if window.slice(position, RECORD_HEADER_BYTES).is_none() {
        window.fill(storage, position, ahead(positions), size)?;
    }
    let header = window.slice(position, RECORD_HEADER_BYTES).expect("the window begins here");
    if format::is_gap(header) {
        return Ok(Arc::from([]));
    }
    let length = format::record_bytes(header);
    if offset + length as u64 > size {
        return Err(corrupt("its length is impossible"));
    }
    if window.slice(position, length).is_none() {
        window.fill(storage, position, (length as u64).max(ahead(positions)), size)?;
    }
    let record = window.slice(position, length).expect("the window was made to hold it");
    let payload = format::verify_record(record, position);
    let payload = payload.ok_or_else(|| corrupt("its checksum is wrong"))?;
    expect_memory(payload.len())?;
    Ok(payload.into())
}

/// An error if there is no memory for a large record. Its copy for the engine is made in a way that knows no
/// refusal.
fn expect_memory(bytes: usize) -> io::Result<()> {
    if bytes as u64 > WINDOW_BYTES {
        let mut room = Vec::<u8>::new();
        room.try_reserve_exact(bytes)?;
        std::hint::black_box(&room);
    }
    Ok(())
}

/// How many bytes to read from the first position: a little more than to the last of those that lie close
/// to each other within a window.
fn ahead(positions: &[Position]) -> u64 {
    let first = positions[0];
    let follows = |pair: &[Position]| {
        pair[1].segment() == first.segment()
            && pair[1].0.checked_sub(pair[0].0).is_some_and(|gap| gap < GAP_BYTES)
            && pair[1].0 - first.0 < WINDOW_BYTES
    };
    let last = 1 + positions.windows(2).take_while(|pair| follows(pair)).count();
    positions[last - 1].0 - first.0 + LAST_BYTES
}

impl Window {
    fn slice(&self, position: Position, length: usize) -> Option<&[u8]> {
        if position.segment() != self.segment {
            return None;
        }
        let from = u64::from(position.offset()).checked_sub(self.start)? as usize;
        self.bytes[..self.length].get(from..from.checked_add(length)?)
    }

    /// Reads at least `length` bytes from `position` on, or to the end of the segment of `size` bytes.
    fn fill(
        &mut self,
        storage: &dyn Storage,
        position: Position,
        length: u64,
        size: u64,
    ) -> io::Result<()> {
        let (align, offset) = (BLOCK_ALIGN as u64, u64::from(position.offset()));
        self.segment = position.segment();
        self.start = offset - offset % align;
        self.length = ((offset + length).next_multiple_of(align).min(size) - self.start) as usize;
        if self.bytes.len() < self.length {
            self.bytes = Buffer::default();
            self.bytes = Buffer::with_capacity(self.length)?;
            self.bytes.resize(self.length);
        }
        let into = &mut self.bytes[..self.length];
        let name = files::segment_name(self.segment);
        if self.past_cache {
            storage.read_past_cache(&name, self.start, into)
        } else {
            storage.read(&name, self.start, into)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: u32 = GAP_BYTES as u32;
    const WINDOW: u32 = WINDOW_BYTES as u32;

    /// `to`: how far behind the first place the last one is that is read together with it.
    #[track_caller]
    fn check(places: &[(u32, u32)], to: u64) {
        let positions: Vec<_> = places.iter().map(|&(seg, at)| Position::at(seg, at)).collect();
        assert_eq!(ahead(&positions), to + LAST_BYTES, "{places:?}");
    }

    #[test]
    fn what_lies_close_together_is_read_at_once() {
        check(&[(1, 64)], 0);
        check(&[(1, 64), (1, 1064)], 1000);
        check(&[(1, 64), (1, 64 + GAP - 1), (1, 64 + GAP)], GAP_BYTES);
        check(&[(1, 64), (1, 64 + GAP)], 0);
        check(&[(1, 64), (1, 1064), (1, 1064 + GAP), (1, 2064 + GAP)], 1000);
        check(&[(1, 64), (2, 1064)], 0);
        check(&[(1, 1064), (1, 64)], 0);
    }

    #[test]
    fn a_window_is_read_at_most() {
        let places: Vec<_> = (0..200).map(|at| (1, at * 10_000)).collect();
        check(&places, u64::from(WINDOW / 10_000 * 10_000));
        check(&[(1, 0), (1, GAP - 1), (1, WINDOW)], GAP_BYTES - 1);
    }
}
