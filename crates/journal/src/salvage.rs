//! Finds the records that are whole within damaged bytes, and makes a mended block of them.
//!
//! A record carries a checksum of its own, which covers its position too. So of a damaged block only those
//! records are lost that the damage lies in: as long as lengths lead from one to the next they are
//! followed, and behind a damaged one every byte is tried as the beginning of the next.

use std::io;
use std::ops::Range;

use crate::format::{
    self, BLOCK_ALIGN, BlockHeader, FLAG_MENDED, HEADER_BYTES, Mended, RECORD_HEADER_BYTES,
};
use crate::scan::Walk;
use crate::storage::failed;
use crate::{Position, Storage, files};

/// Most bytes whose checksums are tried within one region: content can be made so that every byte of it
/// looks like the beginning of a long record.
const TRIED_BYTES_MAX: u64 = 4 << 30;

/// Bytes of a segment that hold no whole blocks, from one multiple of 4 KiB to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) id: u32,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// What is left of a region.
#[derive(Debug)]
pub(crate) struct Salvaged {
    pub(crate) region: Region,
    bytes: Vec<u8>,
    /// Whole records, ascending, as offsets in `bytes`.
    whole: Vec<Range<usize>>,
    /// What lies between and is not padding.
    gaps: Vec<Range<usize>>,
    /// Where records, gaps included, end.
    end: usize,
}

/// How a mended block is linked into the chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link<'a> {
    /// The chain before it ends where this walk does.
    pub(crate) walk: &'a Walk,
    pub(crate) mended: Mended,
}

impl Region {
    pub(crate) fn at(&self) -> Position {
        Position::at(self.id, self.from as u32)
    }

    /// Reads the region and finds what is whole in it.
    pub(crate) fn read(self, storage: &dyn Storage) -> Result<Salvaged, String> {
        let name = files::segment_name(self.id);
        let mut bytes = Vec::new();
        let length = (self.to - self.from) as usize;
        bytes.try_reserve_exact(length).map_err(io::Error::from).map_err(failed("read", &name))?;
        bytes.resize(length, 0);
        storage.read(&name, self.from, &mut bytes).map_err(failed("read", &name))?;
        let whole = whole_records(&bytes, self.at()).map_err(failed("read", &name))?;
        Ok(Salvaged::new(self, bytes, whole))
    }
}

/// The whole records in the bytes that lie at `at`, where a block begins.
///
/// # Errors
/// There is no memory for the list of them.
pub(crate) fn whole_records(bytes: &[u8], at: Position) -> io::Result<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let mut tried = 0;
    let mut from = HEADER_BYTES;
    while from + RECORD_HEADER_BYTES <= bytes.len() && tried < TRIED_BYTES_MAX {
        let rest = &bytes[from..];
        let length = format::record_bytes(rest);
        // Padding looks like records without content and checksum.
        let is_possible = length <= rest.len() && rest[..RECORD_HEADER_BYTES] != [0; 8];
        let position = Position(at.0 + from as u64);
        if is_possible && format::verify_record(&rest[..length], position).is_some() {
            found.try_reserve(1)?;
            found.push(from..from + length);
            from += length;
        } else {
            tried += if is_possible { length as u64 } else { 0 };
            from += 1;
        }
    }
    Ok(found)
}

impl Salvaged {
    fn new(region: Region, bytes: Vec<u8>, whole: Vec<Range<usize>>) -> Salvaged {
        let mut gaps = Vec::new();
        let mut end = HEADER_BYTES;
        for record in &whole {
            if record.start > end {
                gaps.push(end..record.start);
            }
            end = record.end;
        }
        let rest = &bytes[end..];
        let is_padding = rest.len() < BLOCK_ALIGN && rest.iter().all(|byte| *byte == 0);
        let is_gap = !whole.is_empty() && is_padding;
        if !is_gap && rest.len() >= RECORD_HEADER_BYTES {
            gaps.push(end..bytes.len());
            end = bytes.len();
        }
        Salvaged { region, bytes, whole, gaps, end }
    }

    /// The whole records, in order.
    pub(crate) fn records(&self) -> impl Iterator<Item = (Position, &[u8])> {
        self.whole.iter().map(|record| {
            let position = Position(self.region.at().0 + record.start as u64);
            (position, &self.bytes[record.start + RECORD_HEADER_BYTES..record.end])
        })
    }

    /// What is kept and what is lost, in words.
    pub(crate) fn text(&self) -> String {
        let Salvaged { region: Region { from, .. }, whole, gaps, .. } = self;
        let places: Vec<String> = gaps
            .iter()
            .map(|gap| format!("{} to {}", from + gap.start as u64, from + gap.end as u64))
            .collect();
        let is_blank = whole.is_empty() && self.bytes[HEADER_BYTES..].iter().all(|byte| *byte == 0);
        let lost = match places.as_slice() {
            _ if is_blank => {
                return "it is blank, and what was there, if anything, is lost".to_owned();
            }
            [] => "none is lost".to_owned(),
            places => format!("what lay at the offsets {} is lost", places.join(", ")),
        };
        format!("{} records in it are whole, {lost}", whole.len())
    }

    /// What a repair of it keeps and gives up, in words.
    pub(crate) fn mended(&self) -> String {
        let Region { id, from, to } = self.region;
        format!("mended {} from {from} to {to}: {}", files::segment_name(id), self.text())
    }

    /// Makes a mended block of the region.
    pub(crate) fn mend(&mut self, storage: &dyn Storage, link: Option<Link<'_>>) -> io::Result<()> {
        let at = self.region.at();
        // A block outside the chain proves nothing.
        let unlinked = Mended { checksum: 0, blocks: 0 };
        let (sequence, epoch, previous, durable, mended) =
            link.map_or((0, 0, 0, Position(0), unlinked), |Link { walk, mended }| {
                (walk.chain.sequence + 1, walk.epoch, walk.chain.checksum, at, mended)
            });
        for gap in &self.gaps {
            format::make_gap(&mut self.bytes[gap.clone()]);
        }
        self.bytes[self.end..].fill(0);
        let header = BlockHeader {
            flags: FLAG_MENDED,
            segment: at.segment(),
            offset: at.offset(),
            sequence,
            epoch,
            length: (self.end - HEADER_BYTES) as u32,
            records: self.whole.len() as u32,
            previous,
            durable,
            segment_bytes: 0,
            boot: 0,
            mended: Some(mended),
        };
        format::seal_block(&mut self.bytes, &header);
        let name = files::segment_name(at.segment());
        storage.write(&name, self.region.from, &self.bytes)?;
        storage.sync(&name)
    }
}

/// How many of a damaged block's records are whole, and whether the last of them is: then it was written to
/// its end.
///
/// # Errors
/// There is no memory to find out.
pub(crate) fn whole_in_block(bytes: &[u8], header: &BlockHeader) -> Result<(usize, bool), String> {
    let end = HEADER_BYTES + header.length as usize;
    let whole = whole_records(&bytes[..end.min(bytes.len())], header.position())
        .map_err(|error| format!("cannot look for records in {}: {error}", header.position()))?;
    let is_complete = whole.last().is_some_and(|last| last.end == end);
    Ok((whole.len(), is_complete))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(lengths: &[usize], at: Position) -> Vec<u8> {
        let content: usize = lengths.iter().map(|length| RECORD_HEADER_BYTES + length).sum();
        let mut bytes = vec![0; format::align(HEADER_BYTES + content)];
        let mut from = HEADER_BYTES;
        for (number, &length) in lengths.iter().enumerate() {
            bytes[from..from + 4].copy_from_slice(&(length as u32).to_le_bytes());
            bytes[from + 8..from + 8 + length].fill(number as u8 + 1);
            from += RECORD_HEADER_BYTES + length;
        }
        let header = BlockHeader {
            flags: 0,
            segment: at.segment(),
            offset: at.offset(),
            sequence: 1,
            epoch: 1,
            length: content as u32,
            records: lengths.len() as u32,
            previous: 0,
            durable: at,
            segment_bytes: 0,
            boot: 0,
            mended: None,
        };
        format::seal_block(&mut bytes, &header);
        bytes
    }

    #[test]
    fn every_record_is_found_that_the_damage_does_not_touch() {
        let at = Position::at(3, 8192);
        let lengths = [100, 0, 5000, 7, 3000, 4096, 1];
        let bytes = block(&lengths, at);
        let all = whole_records(&bytes, at).unwrap();
        assert_eq!(all.len(), lengths.len());
        for page in 0..bytes.len() / BLOCK_ALIGN {
            for fill in [0, 0xff, 0x5a] {
                let damage = page * BLOCK_ALIGN..(page + 1) * BLOCK_ALIGN;
                let mut damaged = bytes.clone();
                damaged[damage.clone()].fill(fill);
                let expected: Vec<_> = all
                    .iter()
                    .filter(|it| it.end <= damage.start || it.start >= damage.end)
                    .cloned()
                    .collect();
                assert_eq!(whole_records(&damaged, at).unwrap(), expected, "page {page} of {fill}");
            }
        }
        // Elsewhere they are not taken for records.
        assert_eq!(whole_records(&bytes, Position::at(4, 8192)).unwrap(), []);
    }
}
