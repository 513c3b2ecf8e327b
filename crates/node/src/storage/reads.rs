//! Reads of the journal, and which of them may run.

use angarium_engine::{Load, LoadId, Loaded, PageSearch};
use angarium_journal::{Position, Read, ReadBuffer, SegmentScan, Storage};

/// Records to be read from the disk, on a thread where that may take its time.
#[derive(Debug)]
pub struct ReadJob {
    pub(crate) id: LoadId,
    pub(crate) reading: Reading,
}

#[derive(Debug)]
pub(crate) enum Reading {
    Records(Read),
    /// The messages of a page whose record is lost.
    LostPage(SegmentScan, Box<PageSearch>),
}

/// A [`ReadJob`]'s result.
#[derive(Debug)]
pub struct ReadDone {
    pub(crate) id: LoadId,
    pub(crate) records: Loaded,
}

impl ReadJob {
    /// Reads; blocks. `buffer` may have been used for other reads.
    pub fn run(self, storage: &dyn Storage, buffer: &mut ReadBuffer) -> ReadDone {
        let records = match self.reading {
            Reading::Records(read) => read.run(storage, buffer),
            Reading::LostPage(scan, mut search) => scan
                .run(storage, |position, record| {
                    search.look(angarium_engine::Position(position.0), record);
                })
                .map(|()| vec![search.record()]),
        };
        ReadDone { id: self.id, records }
    }
}

/// Whether a load may run: everything it asks for has left the journal's memory, which has room for what the
/// engine appends then.
pub(crate) fn may_run(load: &Load, written: Position, is_congested: bool) -> bool {
    let is_put_off = load.appends && is_congested;
    !is_put_off && is_written(load, written)
}

/// Whether everything that a load asks for has left the journal's memory.
pub(crate) fn is_written(load: &Load, written: Position) -> bool {
    load.positions.iter().all(|position| position.0 < written.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_wait_for_what_they_read_and_for_room() {
        // A position, whether it appends, whether the journal is congested.
        let cases = [
            (99, false, false, true),
            (100, false, false, false),
            (99, false, true, true),
            (99, true, false, true),
            (99, true, true, false),
            (100, true, false, false),
        ];
        for (position, appends, is_congested, expected) in cases {
            let positions = vec![angarium_engine::Position(position)];
            let load =
                Load { id: LoadId(1), positions, appends, is_beside_others: false, search: None };
            let runs = may_run(&load, Position(100), is_congested);
            assert_eq!(runs, expected, "{position} {appends} {is_congested}");
        }
    }
}
