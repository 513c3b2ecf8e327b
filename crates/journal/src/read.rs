//! Records read back, off the appender's thread.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::format::{self, BLOCK_ALIGN, RECORD_HEADER_BYTES};
use crate::{Position, Storage};

/// Bytes read at once where the records asked for lie close together.
const WINDOW_BYTES: u64 = 256 << 10;

/// Records to read back, off the shard's thread.
#[derive(Debug)]
pub struct Read {
    pub(crate) positions: Vec<Position>,
    /// Keeps segments from being reused while this read is under way.
    pub(crate) _readers: Arc<()>,
}

/// A piece of a segment in memory.
#[derive(Default)]
struct Window {
    segment: u32,
    start: u64,
    /// Longer than what was read last: it is not zeroed each time.
    bytes: Vec<u8>,
    length: usize,
}

impl Read {
    /// The records in the order asked for; an unreadable one is an error that names it.
    pub fn run(self, storage: &dyn Storage) -> Result<Vec<Arc<[u8]>>, String> {
        let mut sizes = BTreeMap::new();
        let mut window = Window::default();
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
        window.fill(storage, position, ahead(positions).min(size - offset))?;
    }
    let header = window.slice(position, RECORD_HEADER_BYTES).expect("the window begins here");
    let length = format::record_bytes(header);
    if offset + length as u64 > size {
        return Err(corrupt("its length is impossible"));
    }
    if window.slice(position, length).is_none() {
        window.fill(storage, position, (length as u64).max(ahead(positions)).min(size - offset))?;
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
    fn fill(&mut self, storage: &dyn Storage, position: Position, length: u64) -> io::Result<()> {
        self.segment = position.segment();
        self.start = position.offset().into();
        self.length = length as usize;
        if self.bytes.len() < self.length {
            self.bytes.resize(self.length, 0);
        }
        let into = &mut self.bytes[..self.length];
        storage.read(&format::segment_name(self.segment), self.start, into)
    }
}
