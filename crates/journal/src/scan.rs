//! Looking for blocks: one at a place, the chain of them, and later ones behind a place without one.

use crate::checkpoint::Chain;
use crate::format::{
    self, BLOCK_ALIGN, BlockHeader, FLAG_HOLE, HEADER_BYTES, NoBlock, u32_at, u64_at,
};
use crate::{Position, Storage};

/// Bytes read at first for a block: small ones come with one read.
const FIRST_READ_BYTES: u64 = 16 << 10;
/// Bytes read at a time where blocks are searched for.
const SEARCH_BYTES: u64 = 1 << 20;

/// A segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) id: u32,
    pub(crate) bytes: u64,
}

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
    /// Where and how the log goes on behind this block. `bytes` are the block's.
    fn next(&self, bytes: &[u8]) -> (Position, Chain) {
        let chain = Chain { sequence: self.header.sequence, checksum: self.checksum };
        match bytes.get(HEADER_BYTES..HEADER_BYTES + HOLE_BYTES) {
            Some(hole) if self.header.flags & FLAG_HOLE != 0 => (
                Position(u64_at(hole, 0)),
                Chain { sequence: u64_at(hole, 8), checksum: u32_at(hole, 16) },
            ),
            _ => (self.end(), chain),
        }
    }
}

/// Bytes that a hole's block has behind its header: where the log goes on, and the chain there.
const HOLE_BYTES: usize = 20;

/// Where a hole's block says that the log goes on.
pub(crate) fn hole_end(block: &Block, bytes: &[u8]) -> Option<Position> {
    (block.header.flags & FLAG_HOLE != 0).then(|| block.next(bytes).0)
}

/// A block that says that everything from here to `end` was given up. No chain comes to it.
pub(crate) fn lost(at: Position, end: Position) -> Vec<u8> {
    let walk = Walk::new(Vec::new(), at, Chain::default(), 0);
    seal_hole(at, &walk, end, Chain::default(), 0)
}

/// A block without records that says where the log goes on.
pub(crate) fn hole(at: Position, walk: &Walk, resumes: Position, chain: Chain) -> Vec<u8> {
    seal_hole(at, walk, resumes, chain, walk.chain.sequence + 1)
}

fn seal_hole(at: Position, walk: &Walk, resumes: Position, chain: Chain, sequence: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK_ALIGN];
    let content = &mut bytes[HEADER_BYTES..HEADER_BYTES + HOLE_BYTES];
    content[..8].copy_from_slice(&resumes.0.to_le_bytes());
    content[8..16].copy_from_slice(&chain.sequence.to_le_bytes());
    content[16..].copy_from_slice(&chain.checksum.to_le_bytes());
    let header = BlockHeader {
        flags: FLAG_HOLE,
        segment: at.segment(),
        offset: at.offset(),
        sequence,
        epoch: walk.epoch,
        length: HOLE_BYTES as u32,
        records: 0,
        previous: walk.chain.checksum,
        // Nothing is proven by a block that no chain comes to.
        durable: if sequence > 0 { at } else { Position(0) },
        segment_bytes: 0,
    };
    format::seal_block(&mut bytes, &header);
    bytes
}

/// Segment files among `names`, ascending. Files of size zero count: they are damage, not absence.
pub(crate) fn files(storage: &dyn Storage, names: &[String]) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    for name in names {
        if let Some(id) = format::parse_segment_name(name) {
            let bytes = storage.size(name).map_err(|error| format!("{name}: {error}"))?;
            files.push(File { id, bytes });
        }
    }
    files.sort_by_key(|file| file.id);
    Ok(files)
}

/// Reads the block at `offset` into `buffer` and verifies its checksum.
pub(crate) fn read_block(
    storage: &dyn Storage,
    file: File,
    offset: u64,
    buffer: &mut Vec<u8>,
) -> Result<Result<Block, NoBlock>, String> {
    let name = format::segment_name(file.id);
    let rest = file.bytes.saturating_sub(offset);
    if rest < BLOCK_ALIGN as u64 {
        return Ok(Err(NoBlock::Absent));
    }
    let position = Position::at(file.id, offset as u32);
    let failed = |error| format!("cannot read {name} at offset {offset}: {error}");
    let first = rest.min(FIRST_READ_BYTES) as usize;
    buffer.resize(first, 0);
    storage.read(&name, offset, buffer).map_err(failed)?;
    let header = match BlockHeader::decode(buffer, position) {
        Ok(header) => header,
        Err(why) => return Ok(Err(why)),
    };
    let padded = header.padded();
    if padded as u64 > rest {
        return Ok(Err(NoBlock::Length));
    }
    buffer.resize(padded, 0);
    if padded > first {
        storage.read(&name, offset + first as u64, &mut buffer[first..]).map_err(failed)?;
    }
    Ok(format::verify_block(buffer, &header).map(|checksum| Block { header, checksum }))
}

/// What is wrong with the damaged block here, if there are remains of one: its header says that it
/// belongs here, or its checksum is right once it does.
fn remains(storage: &dyn Storage, file: File, place: Position) -> Result<Option<NoBlock>, String> {
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
    let name = format::segment_name(file.id);
    storage
        .read(&name, offset, &mut bytes)
        .map_err(|error| format!("cannot read {name} at offset {offset}: {error}"))?;
    format::belong(&mut bytes, place);
    Ok(format::verify_block(&bytes, &header).is_ok().then_some(NoBlock::Absent))
}

/// A walk along the chain of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    files: Vec<File>,
    /// Where the next block should be.
    pub(crate) at: Position,
    pub(crate) chain: Chain,
    pub(crate) epoch: u32,
    /// Why there is none at `at`, once the walk has ended.
    pub(crate) end: NoBlock,
    /// The `durable` of the last block.
    pub(crate) durable: Position,
}

impl Walk {
    pub(crate) fn new(files: Vec<File>, at: Position, chain: Chain, epoch: u32) -> Walk {
        Walk { files, at, chain, epoch, end: NoBlock::Absent, durable: at }
    }

    pub(crate) fn files(&self) -> &[File] {
        &self.files
    }

    /// The next block, if the chain goes on: here, or at the beginning of a later segment (a batch
    /// that did not fit goes there, and segments may be passed over for a larger one).
    pub(crate) fn next(
        &mut self,
        storage: &dyn Storage,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Block>, String> {
        let here = self.files.partition_point(|file| file.id < self.at.segment());
        for at in here..self.files.len() {
            let file = self.files[at];
            let is_here = file.id == self.at.segment();
            let offset = if is_here { self.at.offset() } else { 0 };
            match read_block(storage, file, offset.into(), buffer)? {
                Ok(block) if self.follows(&block.header) => {
                    (self.at, self.chain) = block.next(buffer);
                    self.epoch = block.header.epoch;
                    self.durable = block.header.durable;
                    return Ok(Some(block));
                }
                Ok(_) if is_here => self.end = NoBlock::Absent,
                Err(why) if is_here => self.end = why,
                _ => {}
            }
        }
        Ok(None)
    }

    /// Where the block that the chain misses was, and what is wrong there. A segment's last block need
    /// not reach its end: behind it the next one may be missing here or at the beginning of any later
    /// segment up to where the log goes on, so the first of those places with the remains of a block
    /// counts.
    pub(crate) fn missing(
        &self,
        storage: &dyn Storage,
        resumes: Position,
    ) -> Result<(Position, NoBlock), String> {
        let here = self.files.partition_point(|file| file.id < self.at.segment());
        for &file in &self.files[here..] {
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

    /// Blocks that an earlier process wrote behind the end of its log, and that nobody ever counted
    /// on, have an older epoch or another predecessor.
    fn follows(&self, header: &BlockHeader) -> bool {
        header.sequence == self.chain.sequence + 1
            && header.previous == self.chain.checksum
            && header.epoch >= self.epoch
    }
}

/// Calls `visit` with every valid block at or behind `from`, until it says false. Steps over a valid
/// block as a whole.
pub(crate) fn search(
    storage: &dyn Storage,
    files: &[File],
    from: Position,
    mut visit: impl FnMut(&Block, &[u8]) -> bool,
) -> Result<(), String> {
    let mut chunk = Vec::new();
    let mut block_bytes = Vec::new();
    for &file in files.iter().filter(|file| file.id >= from.segment()) {
        let mut offset = if file.id == from.segment() { u64::from(from.offset()) } else { 0 };
        while offset + BLOCK_ALIGN as u64 <= file.bytes {
            let start = offset;
            let whole = (file.bytes - start) / BLOCK_ALIGN as u64 * BLOCK_ALIGN as u64;
            chunk.resize(whole.min(SEARCH_BYTES) as usize, 0);
            let name = format::segment_name(file.id);
            storage
                .read(&name, start, &mut chunk)
                .map_err(|error| format!("cannot read {name} at offset {start}: {error}"))?;
            while offset < start + chunk.len() as u64 {
                let place = Position::at(file.id, offset as u32);
                let here = &chunk[(offset - start) as usize..];
                let found = match BlockHeader::decode(here, place) {
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
