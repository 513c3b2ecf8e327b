//! Every record that is whole in some segments, damaged blocks included.

use std::sync::Arc;

use crate::files::SegmentFile;
use crate::format::{Part, parts, verify_record};
use crate::salvage::Region;
use crate::scan::{self, Block, WHOLE};
use crate::{Position, Storage};

/// Reads segments from beginning to end, to be run on another thread than the shard's.
#[derive(Debug)]
pub struct SegmentScan {
    /// Each with the bytes that were written to it.
    pub(crate) files: Vec<SegmentFile>,
    /// Keeps segments from being reused while this scan is under way.
    pub(crate) _readers: Arc<()>,
}

impl SegmentScan {
    /// Passes every whole record to `visit`, in order.
    ///
    /// # Errors
    /// A segment cannot be read.
    pub fn run(
        self,
        storage: &dyn Storage,
        mut visit: impl FnMut(Position, &[u8]),
    ) -> Result<(), String> {
        let mut all = |_: &Block| true;
        self.files.iter().try_for_each(|file| whole_records(storage, *file, &mut all, &mut visit))
    }
}

/// Passes every whole record in a segment's first `file.bytes` bytes to `visit`, in order: those of blocks
/// that `is_ours` takes, and those between blocks. What is in other blocks is passed over.
pub(crate) fn whole_records(
    storage: &dyn Storage,
    file: SegmentFile,
    is_ours: &mut dyn FnMut(&Block) -> bool,
    visit: &mut dyn FnMut(Position, &[u8]),
) -> Result<(), String> {
    let mut expected = 0;
    let mut failed = Ok(());
    scan::search(storage, &[file], Position::at(file.id, 0), WHOLE, |block, bytes| {
        let from = std::mem::replace(&mut expected, u64::from(block.end().offset()));
        let to = block.header.offset.into();
        failed = salvaged_records(storage, Region { id: file.id, from, to }, visit);
        if failed.is_ok() && is_ours(block) {
            for part in parts(bytes, &block.header) {
                if let Part::Record(position, record) = part
                    && let Some(record) = verify_record(record, position)
                {
                    visit(position, record);
                }
            }
        }
        failed.is_ok()
    })?;
    failed?;
    salvaged_records(storage, Region { id: file.id, from: expected, to: file.bytes }, visit)
}

/// The whole records of a region without whole blocks.
fn salvaged_records(
    storage: &dyn Storage,
    region: Region,
    visit: &mut dyn FnMut(Position, &[u8]),
) -> Result<(), String> {
    if region.from >= region.to {
        return Ok(());
    }
    region.read(storage)?.records().for_each(|(position, record)| visit(position, record));
    Ok(())
}
