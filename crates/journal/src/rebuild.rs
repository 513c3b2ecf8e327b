//! What is left of a log without a checkpoint and without its beginning: every whole record, and a new
//! checkpoint behind them.
//!
//! Segments that were given back are missing within such a log, so the chain of blocks does not lead
//! through it. Blocks belong to it whose sequence numbers ascend along it and whose epochs do not descend;
//! those that an earlier process left behind the end of its log have an older epoch.

use std::collections::BTreeMap;

use crate::checkpoint::{Chain, Checkpoint};
use crate::files::{self, SegmentFile};
use crate::job::WriteCheckpoint;
use crate::records::whole_records;
use crate::scan::{self, Block, WHOLE};
use crate::segments::Usage;
use crate::storage::failed;
use crate::{Position, Storage};

/// The end of such a log, and its segments.
#[derive(Debug)]
pub struct Remains {
    segments: Vec<Extent>,
    end: Position,
    chain: Chain,
    epoch: u32,
    /// The number for a new checkpoint.
    number: u32,
}

/// What the log has of a segment.
#[derive(Clone, Copy, Debug)]
struct Extent {
    file: SegmentFile,
    /// Where its last whole block ends; 0: it has none.
    end: u32,
    records: u64,
    /// The next block of the log follows its last one: none is missing between.
    is_followed: bool,
}

/// Tells blocks of the log from leftovers.
#[derive(Clone, Copy, Debug, Default)]
struct Along {
    chain: Chain,
    epoch: u32,
    end: Position,
}

impl Along {
    /// Whether a block belongs to the log; goes on to it. A mended block outside the chain stays where it is.
    fn take(&mut self, block: &Block) -> bool {
        let header = &block.header;
        let is_unlinked = header.mended.is_some() && header.sequence == 0;
        if is_unlinked {
            return true;
        }
        let belongs = header.sequence > self.chain.sequence && header.epoch >= self.epoch;
        if belongs {
            *self = Along { chain: block.chain(), epoch: header.epoch, end: block.end() };
        }
        belongs
    }
}

impl Remains {
    /// Passes every whole record of the log to `visit`, in order.
    ///
    /// # Errors
    /// A file cannot be read, or nothing is left.
    pub fn read(
        storage: &dyn Storage,
        mut visit: impl FnMut(Position, &[u8]),
    ) -> Result<Remains, String> {
        let names = storage.list().map_err(failed("list", "the journal"))?;
        let number = names.iter().filter_map(|name| files::parse_checkpoint_name(name)).max();
        let files = files::segments(storage, &names)?;
        let mut along = Along::default();
        let mut segments: Vec<Extent> = Vec::new();
        for &file in files.iter().filter(|file| file.bytes > 0) {
            let mut extent = Extent { file, end: 0, records: 0, is_followed: false };
            scan::search(storage, &[file], Position::at(file.id, 0), WHOLE, |block, _| {
                let before = along.chain.sequence;
                if along.take(block) {
                    if let Some(last) = segments.last_mut().filter(|_| extent.end == 0) {
                        last.is_followed = block.header.sequence == before + 1;
                    }
                    extent.end = block.end().offset();
                    extent.records += u64::from(block.header.records);
                }
                true
            })?;
            segments.push(extent);
        }
        if along.chain == Chain::default() {
            return Err("no block of the journal is whole: restore the data from a copy".to_owned());
        }
        let end = along.end;
        let mut along = Along::default();
        for extent in segments.iter().filter(|extent| extent.file.id <= end.segment()) {
            let is_last = extent.file.id == end.segment();
            let bytes = match extent.is_followed || is_last {
                true => extent.end.into(),
                false => extent.file.bytes,
            };
            let written = SegmentFile { bytes, ..extent.file };
            whole_records(storage, written, &mut |block| along.take(block), &mut visit)?;
        }
        let Along { chain, epoch, .. } = along;
        let number = number.unwrap_or(0) + 1;
        Ok(Remains { segments, end, chain, epoch, number })
    }

    /// Writes a checkpoint with this snapshot, which the log goes on from, and removes those that are lost.
    /// `references`: live ones to each segment.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(
        self,
        storage: &dyn Storage,
        snapshot: Vec<u8>,
        references: &BTreeMap<u32, u64>,
    ) -> Result<String, String> {
        let Remains { segments, end, chain, epoch, number } = self;
        let usage =
            segments.iter().filter(|extent| extent.file.id <= end.segment()).map(|extent| {
                let live = references.get(&extent.file.id).copied().unwrap_or(0);
                let SegmentFile { id, bytes } = extent.file;
                Usage { id, bytes, live, total: extent.records.max(live), end: extent.end }
            });
        let checkpoint = Checkpoint { number, epoch, start: end, chain, segments: usage.collect() };
        let mut write = WriteCheckpoint { checkpoint, snapshot: vec![snapshot], clean: false };
        write.run(storage).map_err(|error| error.text())?;
        let [name, _] = files::checkpoint_names(number);
        Ok(format!("wrote {name}: the log goes on in {end}"))
    }
}
