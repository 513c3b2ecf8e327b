//! Records read back, off the appender's thread.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::batch::Buffer;
use crate::format::{self, BLOCK_ALIGN, RECORD_HEADER_BYTES};
use crate::{Position, Storage};

/// Bytes read at once where the records asked for lie close together.
const WINDOW_BYTES: u64 = 512 << 10;
/// From here on a read may go past the page cache: short ones gain by what the kernel reads ahead.
const DIRECT_BYTES: u64 = 64 << 10;

/// Records to read back, off the shard's thread.
#[derive(Debug)]
pub struct Read {
    pub(crate) positions: Vec<Position>,
    /// Past the page cache: slower, but with a tenth of the processor time (decision 0013).
    pub(crate) past_cache: bool,
    /// Keeps segments from being reused while this read is under way.
    pub(crate) _readers: Arc<()>,
}

/// A piece of a segment in memory, from one multiple of 4 KiB to another.
#[derive(Default)]
struct Window {
    segment: u32,
    start: u64,
    /// Longer than what was read last: it is not zeroed each time.
    bytes: Buffer,
    length: usize,
    past_cache: bool,
}

impl Read {
    /// The records in the order asked for; an unreadable one is an error that names it.
    pub fn run(self, storage: &dyn Storage) -> Result<Vec<Arc<[u8]>>, String> {
        let mut sizes = BTreeMap::new();
        let mut window = Window { past_cache: self.past_cache, ..Window::default() };
        let mut records = Vec::with_capacity(self.positions.len());
        for (at, &position) in self.positions.iter().enumerate() {
            let record = read_one(storage, &mut sizes, &mut window, &self.positions[at..])
                .map_err(|error| format!("cannot read the record in {position}: {error}"))?;
            records.push(record);
        }
        Ok(records)
    }
}

/// Reads the first of `positions`, and ahead if the following ones are near.
fn read_one(
    storage: &dyn Storage,
    sizes: &mut BTreeMap<u32, u64>,
    window: &mut Window,
    positions: &[Position],
) -> io::Result<Arc<[u8]>> {
    let position = positions[0];
    let offset = u64::from(position.offset());
    let size = match sizes.get(&position.segment()) {
        Some(&size) => size,
        None => {
            let size = storage.size(&format::segment_name(position.segment()))?;
            sizes.insert(position.segment(), size);
            size
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
    let length = format::record_bytes(header);
    if offset + length as u64 > size {
        return Err(corrupt("its length is impossible"));
    }
    if window.slice(position, length).is_none() {
        window.fill(storage, position, (length as u64).max(ahead(positions)), size)?;
    }
    let record = window.slice(position, length).expect("the window was made to hold it");
    let payload = format::verify_record(record, position);
    Ok(payload.ok_or_else(|| corrupt("its checksum is wrong"))?.into())
}

/// How far to read from the first position: up to a page behind the last of those that follow within
/// a window.
fn ahead(positions: &[Position]) -> u64 {
    let first = positions[0];
    let last = positions.iter().take_while(|next| {
        next.segment() == first.segment()
            && next.0.checked_sub(first.0).is_some_and(|distance| distance < WINDOW_BYTES)
    });
    last.last().map_or(0, |last| last.0 - first.0) + BLOCK_ALIGN as u64
}

impl Window {
    fn slice(&self, position: Position, length: usize) -> Option<&[u8]> {
        if position.segment() != self.segment {
            return None;
        }
        let from = u64::from(position.offset()).checked_sub(self.start)? as usize;
        self.bytes[..self.length].get(from..from.checked_add(length)?)
    }

    /// Reads at least `length` bytes from `position` on, as far as the segment of `size` bytes goes.
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
            self.bytes = Buffer::with_capacity(self.length);
            self.bytes.resize(self.length);
        }
        let into = &mut self.bytes[..self.length];
        let name = format::segment_name(self.segment);
        if self.past_cache && length >= DIRECT_BYTES {
            storage.read_past_cache(&name, self.start, into)
        } else {
            storage.read(&name, self.start, into)
        }
    }
}
