//! Finds blocks: one at a place, the chain of them, and all that are behind a place.

use crate::checkpoint::{Chain, Checkpoint};
use crate::files::{self, SegmentFile};
use crate::format::{self, BLOCK_ALIGN, BlockHeader, HEADER_BYTES, Mended, NoBlock};
use crate::{Position, Storage};

/// Bytes of the first read of a block, which suffices for small ones.
const FIRST_READ_BYTES: u64 = 16 << 10;
/// Bytes read at a time where blocks are searched for.
const SEARCH_BYTES: u64 = 1 << 20;

/// A block whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) header: BlockHeader,
    pub(crate) checksum: u32,
}

impl Block {
    /// Where the block ends, padding included.
    pub(crate) fn end(&self) -> Position {
        Position(self.header.position().0 + self.header.padded() as u64)
    }
    /// The chain behind this block.
    pub(crate) fn chain(&self) -> Chain {
        let BlockHeader { sequence, .. } = self.header;
        match self.header.mended {
            None => Chain { sequence, checksum: self.checksum },
            Some(Mended { checksum, blocks }) => {
                Chain { sequence: sequence + u64::from(blocks) - 1, checksum }
            }
        }
    }
}

fn read(storage: &dyn Storage, id: u32, offset: u64, buffer: &mut [u8]) -> Result<(), String> {
    let name = files::segment_name(id);
    let result = storage.read(&name, offset, buffer);
    result.map_err(|error| format!("cannot read {name} at offset {offset}: {error}"))
}

/// Reads the block at `offset` into `buffer` and verifies its checksum.
pub(crate) fn read_block(
    storage: &dyn Storage,
    file: SegmentFile,
    offset: u64,
    buffer: &mut Vec<u8>,
) -> Result<Result<Block, NoBlock>, String> {
    let rest = file.bytes.saturating_sub(offset);
    if rest < BLOCK_ALIGN as u64 {
        return Ok(Err(NoBlock::Absent));
    }
    let position = Position::at(file.id, offset as u32);
    let first = rest.min(FIRST_READ_BYTES) as usize;
    buffer.resize(first, 0);
    read(storage, file.id, offset, buffer)?;
    let header = match BlockHeader::decode(buffer, position) {
        Ok(header) => header,
        Err(why) => return Ok(Err(why)),
    };
    let padded = header.padded();
    if padded as u64 > rest {
        return Ok(Err(NoBlock::Length));
    }
    let more = padded.saturating_sub(buffer.len());
    if let Err(error) = buffer.try_reserve(more) {
        return Err(format!("cannot read the block of {padded} bytes in {position}: {error}"));
    }
    buffer.resize(padded, 0);
    if padded > first {
        read(storage, file.id, offset + first as u64, &mut buffer[first..])?;
    }
    Ok(format::verify_block(buffer, &header).map(|checksum| Block { header, checksum }))
}

/// What is wrong with the block here, if there are remains of one: its header belongs here, or its checksum
/// is right once the header is corrected.
fn remains(
    storage: &dyn Storage,
    file: SegmentFile,
    place: Position,
) -> Result<Option<NoBlock>, String> {
    let offset = u64::from(place.offset());
    let mut bytes = Vec::new();
    match read_block(storage, file, offset, &mut bytes)? {
        Ok(_) => return Ok(None),
        Err(NoBlock::Absent) => {}
        Err(what) => return Ok(Some(what)),
    }
    if bytes.len() < HEADER_BYTES {
        return Ok(None);
    }
    format::belong(&mut bytes, place);
    let Ok(header) = BlockHeader::decode(&bytes, place) else {
        return Ok(None);
    };
    if header.padded() as u64 > file.bytes - offset {
        return Ok(None);
    }
    bytes.resize(header.padded(), 0);
    read(storage, file.id, offset, &mut bytes)?;
    format::belong(&mut bytes, place);
    Ok(format::verify_block(&bytes, &header).is_ok().then_some(NoBlock::Absent))
}

/// A walk along the chain of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    pub(crate) files: Vec<SegmentFile>,
    /// Where the next block should be.
    pub(crate) at: Position,
    pub(crate) chain: Chain,
    pub(crate) epoch: u32,
    /// Why there is no block at `at`, once the walk has ended.
    pub(crate) end: NoBlock,
    /// The `durable` of the last block.
    pub(crate) durable: Position,
    /// No record lies in the last block, so that no later one need prove that it was flushed.
    pub(crate) is_proven: bool,
}

impl Walk {
    /// A walk behind a checkpoint.
    pub(crate) fn new(files: Vec<SegmentFile>, newest: &Checkpoint) -> Walk {
        let Checkpoint { start, chain, epoch, .. } = *newest;
        Walk {
            files,
            at: start,
            chain,
            epoch,
            end: NoBlock::Absent,
            durable: start,
            is_proven: true,
        }
    }

    /// The files from the one that the walk is in on.
    fn files_ahead(&self) -> &[SegmentFile] {
        &self.files[self.files.partition_point(|file| file.id < self.at.segment())..]
    }

    /// The next block of the chain: here, or at the beginning of a later segment (for a batch that did not
    /// fit; segments may be skipped for a larger one).
    pub(crate) fn next(
        &mut self,
        storage: &dyn Storage,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Block>, String> {
        let here = self.files.len() - self.files_ahead().len();
        self.end = NoBlock::Absent;
        for at in here..self.files.len() {
            let file = self.files[at];
            let is_here = file.id == self.at.segment();
            let offset = if is_here { self.at.offset() } else { 0 };
            match read_block(storage, file, offset.into(), buffer)? {
                Ok(block) if self.follows(&block.header) => {
                    (self.at, self.chain) = (block.end(), block.chain());
                    self.is_proven = block.header.records == 0;
                    self.epoch = block.header.epoch;
                    self.durable = block.header.durable;
                    return Ok(Some(block));
                }
                // A log of another version may begin, or go on, in a segment ahead.
                Err(why) if is_here || matches!(why, NoBlock::Version(_)) => self.end = why,
                _ => {}
            }
        }
        Ok(None)
    }

    /// Where the missing block of the chain was, and what is wrong there. It can be missing here or at the
    /// beginning of any later segment up to where the log continues; the first of these places with remains
    /// of a block counts.
    pub(crate) fn missing(
        &self,
        storage: &dyn Storage,
        resumes: Position,
    ) -> Result<(Position, NoBlock), String> {
        for &file in self.files_ahead() {
            let is_here = file.id == self.at.segment();
            let place = if is_here { self.at } else { Position::at(file.id, 0) };
            if place >= resumes {
                break;
            }
            if let Some(what) = remains(storage, file, place)? {
                return Ok((place, what));
            }
        }
        Ok((self.at, self.end))
    }

    /// The segment behind the one in which the walk ended, if it is gone although a later one is there:
    /// segments are made in order, and those behind the log are not removed.
    pub(crate) fn missing_file(&self) -> Option<SegmentFile> {
        let here = self.at.segment();
        let next = self.files_ahead().iter().find(|file| file.id > here)?;
        (next.id > here + 1).then_some(SegmentFile { id: here + 1, bytes: next.bytes })
    }

    /// Whether a block belongs behind the missing one.
    pub(crate) fn precedes(&self, header: &BlockHeader) -> bool {
        header.epoch >= self.epoch && header.sequence > self.chain.sequence
    }

    /// The damaged block at the end of the walk that would continue the chain, and its bytes; `None` if its
    /// header does not say that there is one.
    pub(crate) fn damaged(
        &self,
        storage: &dyn Storage,
    ) -> Result<Option<(BlockHeader, Vec<u8>)>, String> {
        let here = self.files.iter().find(|file| file.id == self.at.segment());
        let first = self.files_ahead().iter().find(|file| file.id > self.at.segment());
        for (file, at) in [(here, self.at.offset()), (first, 0)] {
            let Some(&file) = file else { continue };
            let mut bytes = Vec::new();
            if read_block(storage, file, at.into(), &mut bytes)? == Err(NoBlock::Checksum)
                && let Ok(header) = BlockHeader::decode(&bytes, Position::at(file.id, at))
                && self.follows(&header)
            {
                return Ok(Some((header, bytes)));
            }
        }
        Ok(None)
    }

    /// Whether a block continues the chain. Blocks that an earlier process left behind the end of its log
    /// have an older epoch or another predecessor.
    fn follows(&self, header: &BlockHeader) -> bool {
        header.sequence == self.chain.sequence + 1
            && header.previous == self.chain.checksum
            && header.epoch >= self.epoch
    }
}

/// The gap of a search that goes to the ends of all segments.
pub(crate) const WHOLE: u64 = u64::MAX;

/// Where the search of a segment ends.
#[derive(Debug)]
struct Horizon {
    gap: u64,
    end: u64,
    /// End of a leftover block of the segment that this file was before.
    foreign_end: u64,
}

impl Horizon {
    /// Moves the end on where this segment was written: not where zeros are, nor bytes of a leftover block.
    /// Other bytes are of a block whose header, and so its length, cannot be read; only in the first page
    /// is it certain that the block begins there.
    fn look(&mut self, page: &[u8], place: Position, header: &Result<BlockHeader, NoBlock>) {
        if self.gap == WHOLE {
            return;
        }
        let offset = u64::from(place.offset());
        let sign = match header {
            Ok(header) => header.padded(),
            Err(NoBlock::Absent) => {
                if let Some(header) = format::left_over(page, place) {
                    self.foreign_end = self.foreign_end.max(offset + header.padded() as u64);
                    return;
                }
                if offset < self.foreign_end || page.iter().all(|byte| *byte == 0) {
                    return;
                }
                if offset == 0 {
                    self.end = u64::MAX;
                }
                BLOCK_ALIGN
            }
            Err(_) => BLOCK_ALIGN,
        };
        self.end = self.end.max((offset + sign as u64).saturating_add(self.gap));
    }
}

/// Calls `visit` with every valid block at or behind `from` until it returns false. The segments behind the
/// one that it begins in are left once `gap` bytes have shown no sign that they were written there.
pub(crate) fn search(
    storage: &dyn Storage,
    files: &[SegmentFile],
    from: Position,
    gap: u64,
    mut visit: impl FnMut(&Block, &[u8]) -> bool,
) -> Result<(), String> {
    let mut chunk = Vec::new();
    let mut block_bytes = Vec::new();
    for &file in files.iter().filter(|file| file.id >= from.segment()) {
        let is_first = file.id == from.segment();
        let gap = if is_first { WHOLE } else { gap };
        let mut horizon = Horizon { gap, end: gap, foreign_end: 0 };
        let mut offset = if is_first { u64::from(from.offset()) } else { 0 };
        while offset + BLOCK_ALIGN as u64 <= file.bytes.min(horizon.end) {
            let start = offset;
            let rest = file.bytes.min(horizon.end) - start;
            let whole = rest / BLOCK_ALIGN as u64 * BLOCK_ALIGN as u64;
            chunk.resize(whole.min(SEARCH_BYTES) as usize, 0);
            read(storage, file.id, start, &mut chunk)?;
            while offset < start + chunk.len() as u64 {
                let place = Position::at(file.id, offset as u32);
                let page = &chunk[(offset - start) as usize..][..BLOCK_ALIGN];
                let header = BlockHeader::decode(page, place);
                horizon.look(page, place, &header);
                let found = match header {
                    Ok(_) => read_block(storage, file, offset, &mut block_bytes)?.ok(),
                    Err(_) => None,
                };
                if let Some(block) = &found
                    && !visit(block, &block_bytes)
                {
                    return Ok(());
                }
                offset += found.map_or(BLOCK_ALIGN, |block| block.header.padded()) as u64;
            }
        }
    }
    Ok(())
}
