//! The format of blocks and records on the disk.
//!
//! All numbers are little-endian. A segment is a sequence of blocks, each at a multiple of 4 KiB:
//!
//! ```text
//!  0      4        6      8        12      16        24     28
//!  | AGJB | version| flags| segment| offset| sequence| epoch| length |
//!  32       36         40       48             52        60        64
//!  | records| previous | durable | segment bytes| boot u32, 0 | checksum | records ... zeros to 4 KiB
//!
//!  record:  | length u32 | checksum u32 | bytes ... |
//! ```
//!
//! `sequence` counts blocks, `epoch` counts openings of the journal, `length` is that of the records
//! with their headers, `previous` is the checksum of the block before, `durable` is the position
//! before which everything was flushed when the block was made, `segment bytes` the size of the file
//! (a shorter one was cut), `boot` the machine's boot in which the block was written. The block's checksum
//! covers header and records; a record's checksum covers its position, length and bytes, so that a stale or
//! misplaced record is not taken for another.
//!
//! A mended block is what a repair made of damaged ones: the records that were whole stay where they were,
//! and gaps take the place of the others. In its header, `boot` and the zeros behind it are instead the
//! checksum that the next block refers to, and the number of blocks that it stands for. A gap begins with
//! | E7 E7 E7 E7 | length u32 | and is filled with E7, so that a reader knows it wherever a record was.
//!
//! Every version of the format keeps magic, version and the places of the checksums, so that another
//! version can be distinguished from damage.

use crate::{Position, checksum};

pub(crate) const BLOCK_ALIGN: usize = 4096;
pub(crate) const HEADER_BYTES: usize = 64;
pub(crate) const RECORD_HEADER_BYTES: usize = 8;
/// Format version of blocks and checkpoints.
pub(crate) const VERSION: u16 = 2;
/// The block was mended by a repair.
pub(crate) const FLAG_MENDED: u16 = 2;
/// Fills gaps: four of them are no possible length of a record.
pub(crate) const GAP_BYTE: u8 = 0xe7;
const GAP_MARK: u32 = u32::from_le_bytes([GAP_BYTE; 4]);
const MAGIC: [u8; 4] = *b"AGJB";
const CHECKSUM_AT: usize = 60;

/// Rounds up to the next multiple of 4 KiB.
pub(crate) const fn align(bytes: usize) -> usize {
    bytes.next_multiple_of(BLOCK_ALIGN)
}

/// What blocks say of the process that wrote them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    /// Counts openings of the journal.
    pub(crate) epoch: u32,
    /// The machine's boot.
    pub(crate) boot: u32,
}

/// The header of a block, without its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub(crate) flags: u16,
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) sequence: u64,
    pub(crate) epoch: u32,
    pub(crate) length: u32,
    pub(crate) records: u32,
    pub(crate) previous: u32,
    pub(crate) durable: Position,
    pub(crate) segment_bytes: u32,
    /// The machine's boot in which it was written; 0: not known.
    pub(crate) boot: u32,
    /// How the chain goes on behind a mended block.
    pub(crate) mended: Option<Mended>,
}

/// How the chain goes on behind a mended block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mended {
    /// The checksum that the next block refers to.
    pub(crate) checksum: u32,
    /// Blocks that it stands for.
    pub(crate) blocks: u32,
}

/// Why bytes are not a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoBlock {
    /// No block was ever written here, or one of another segment or place (a reused file).
    Absent,
    /// Another version of the format.
    Version(u16),
    /// Its length is impossible.
    Length,
    /// Its checksum is wrong.
    Checksum,
}

impl std::fmt::Display for NoBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoBlock::Absent => f.write_str("no block header where one belongs"),
            NoBlock::Version(version) => f.write_str(&other_version(*version)),
            NoBlock::Length => f.write_str("block length impossible"),
            NoBlock::Checksum => f.write_str("block checksum wrong"),
        }
    }
}

/// What to say of a whole block or checkpoint of another version.
pub(crate) fn other_version(version: u16) -> String {
    format!(
        "the journal is of format version {version}, and this program reads version {VERSION} only: it is \
         not damaged; use the program that wrote it, or another data folder"
    )
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl BlockHeader {
    pub(crate) fn position(&self) -> Position {
        Position::at(self.segment, self.offset)
    }
    /// Bytes that the block takes on the disk.
    pub(crate) fn padded(&self) -> usize {
        align(HEADER_BYTES + self.length as usize)
    }

    fn encode(&self, out: &mut [u8]) {
        out[..HEADER_BYTES].fill(0);
        out[0..4].copy_from_slice(&MAGIC);
        out[4..6].copy_from_slice(&VERSION.to_le_bytes());
        out[6..8].copy_from_slice(&self.flags.to_le_bytes());
        out[8..12].copy_from_slice(&self.segment.to_le_bytes());
        out[12..16].copy_from_slice(&self.offset.to_le_bytes());
        out[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        out[24..28].copy_from_slice(&self.epoch.to_le_bytes());
        out[28..32].copy_from_slice(&self.length.to_le_bytes());
        out[32..36].copy_from_slice(&self.records.to_le_bytes());
        out[36..40].copy_from_slice(&self.previous.to_le_bytes());
        out[40..48].copy_from_slice(&self.durable.0.to_le_bytes());
        out[48..52].copy_from_slice(&self.segment_bytes.to_le_bytes());
        let (at_52, at_56) = self.mended.map_or((self.boot, 0), |it| (it.checksum, it.blocks));
        out[52..56].copy_from_slice(&at_52.to_le_bytes());
        out[56..60].copy_from_slice(&at_56.to_le_bytes());
    }

    fn parse(bytes: &[u8]) -> Option<BlockHeader> {
        if bytes.len() < HEADER_BYTES || bytes[0..4] != MAGIC {
            return None;
        }
        let flags = u16_at(bytes, 6);
        let (at_52, at_56) = (u32_at(bytes, 52), u32_at(bytes, 56));
        let is_mended = flags & FLAG_MENDED != 0;
        Some(BlockHeader {
            flags,
            segment: u32_at(bytes, 8),
            offset: u32_at(bytes, 12),
            sequence: u64_at(bytes, 16),
            epoch: u32_at(bytes, 24),
            length: u32_at(bytes, 28),
            records: u32_at(bytes, 32),
            previous: u32_at(bytes, 36),
            durable: Position(u64_at(bytes, 40)),
            segment_bytes: u32_at(bytes, 48),
            boot: if is_mended { 0 } else { at_52 },
            mended: is_mended.then_some(Mended { checksum: at_52, blocks: at_56 }),
        })
    }

    /// Reads the header of a block that belongs at `position`, without verifying checksum and version.
    pub(crate) fn decode(bytes: &[u8], position: Position) -> Result<BlockHeader, NoBlock> {
        let header = BlockHeader::parse(bytes).ok_or(NoBlock::Absent)?;
        if header.position() == position { Ok(header) } else { Err(NoBlock::Absent) }
    }
}

/// The header of a block that was written here when this file was an older segment.
pub(crate) fn left_over(bytes: &[u8], position: Position) -> Option<BlockHeader> {
    let header = BlockHeader::parse(bytes)?;
    let is_older = header.segment < position.segment() && header.offset == position.offset();
    is_older.then_some(header)
}

/// Changes a block's header so that it belongs at `position`.
pub(crate) fn belong(bytes: &mut [u8], position: Position) {
    bytes[0..4].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&position.segment().to_le_bytes());
    bytes[12..16].copy_from_slice(&position.offset().to_le_bytes());
}

fn block_checksum(bytes: &[u8], length: usize) -> u32 {
    let header = checksum::of(&bytes[..CHECKSUM_AT]);
    checksum::append(header, &bytes[HEADER_BYTES..HEADER_BYTES + length])
}

/// Starts from a mix of position and length in place of zero, so that one pass covers all three.
fn record_checksum(position: Position, bytes: &[u8]) -> u32 {
    let place = position.0 ^ (bytes.len() as u64).rotate_left(48);
    let mixed = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    checksum::append((mixed >> 32) as u32, bytes)
}

/// Writes the header and every checksum into a block whose records are in place with their lengths.
/// Returns the block's checksum.
pub(crate) fn seal_block(bytes: &mut [u8], header: &BlockHeader) -> u32 {
    let end = HEADER_BYTES + header.length as usize;
    if header.mended.is_none() {
        let mut at = HEADER_BYTES;
        while at < end {
            let start = at + RECORD_HEADER_BYTES;
            let next = start + u32_at(bytes, at) as usize;
            let position = Position::at(header.segment, header.offset + at as u32);
            let checksum = record_checksum(position, &bytes[start..next]);
            bytes[at + 4..start].copy_from_slice(&checksum.to_le_bytes());
            at = next;
        }
    }
    header.encode(bytes);
    let checksum = block_checksum(bytes, header.length as usize);
    bytes[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Gives a block that a test changed the right checksum.
#[cfg(test)]
pub(crate) fn reseal(bytes: &mut [u8]) {
    let checksum = block_checksum(bytes, u32_at(bytes, 28) as usize);
    bytes[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// The checksum of a whole block, if it is the one the block carries. Only a whole block is of another
/// version: a flipped bit is not.
pub(crate) fn verify_block(bytes: &[u8], header: &BlockHeader) -> Result<u32, NoBlock> {
    let checksum = block_checksum(bytes, header.length as usize);
    match u16_at(bytes, 4) {
        _ if checksum != u32_at(bytes, CHECKSUM_AT) => Err(NoBlock::Checksum),
        VERSION => Ok(checksum),
        version => Err(NoBlock::Version(version)),
    }
}

/// Whether a repair gave up the record whose header would begin `bytes`.
pub(crate) fn is_gap(bytes: &[u8]) -> bool {
    u32_at(bytes, 0) == GAP_MARK
}

/// Makes a gap of these bytes; there are at least eight.
pub(crate) fn make_gap(bytes: &mut [u8]) {
    let length = bytes.len() as u32;
    bytes.fill(GAP_BYTE);
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
}

/// Length of the record whose header begins `bytes`, header included.
pub(crate) fn record_bytes(bytes: &[u8]) -> usize {
    RECORD_HEADER_BYTES + u32_at(bytes, 0) as usize
}

/// The payload of a whole record with its header, if its checksum is right.
pub(crate) fn verify_record(bytes: &[u8], position: Position) -> Option<&[u8]> {
    let payload = &bytes[RECORD_HEADER_BYTES..];
    (record_checksum(position, payload) == u32_at(bytes, 4)).then_some(payload)
}

/// What a block consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// A whole record with its header.
    Record(Position, &'a [u8]),
    /// Bytes that a repair gave up.
    Gap(Position, u64),
    /// The framing is impossible here.
    Malformed(Position),
}

/// The parts of a block whose checksum is right.
pub(crate) fn parts<'a>(bytes: &'a [u8], header: &BlockHeader) -> impl Iterator<Item = Part<'a>> {
    let block = header.position();
    let is_mended = header.mended.is_some();
    let end = HEADER_BYTES + header.length as usize;
    let mut at = HEADER_BYTES;
    std::iter::from_fn(move || {
        let rest = &bytes[at..end];
        if rest.is_empty() {
            return None;
        }
        let position = Position(block.0 + at as u64);
        let is_framed = rest.len() >= RECORD_HEADER_BYTES;
        let is_gap = is_framed && is_mended && is_gap(rest);
        let length = match is_framed {
            true if is_gap => u32_at(rest, 4) as usize,
            true => record_bytes(rest),
            false => 0,
        };
        if length < RECORD_HEADER_BYTES || rest.len() < length {
            at = end;
            return Some(Part::Malformed(position));
        }
        at += length;
        Some(match is_gap {
            true => Part::Gap(position, length as u64),
            false => Part::Record(position, &rest[..length]),
        })
    })
}
