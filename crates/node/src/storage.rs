//! Reading messages back: which loads may run, and how their answers find the engine.

use angarium_engine::{Load, LoadId, Loaded};
use angarium_journal::{Position, Read, Storage};

/// Records to be read from the disk, on a thread where that may take its time.
#[derive(Debug)]
pub struct ReadJob {
    pub(crate) id: LoadId,
    pub(crate) read: Read,
}

/// A [`ReadJob`]'s result.
#[derive(Debug)]
pub struct ReadDone {
    pub(crate) id: LoadId,
    pub(crate) records: Loaded,
}

impl ReadJob {
    /// Reads; blocks.
    pub fn run(self, storage: &dyn Storage) -> ReadDone {
        ReadDone { id: self.id, records: self.read.run(storage) }
    }
}

/// Whether everything the load asks for has left the journal's memory.
pub(crate) fn is_readable(load: &Load, written: Position) -> bool {
    load.positions.iter().all(|position| position.0 < written.0)
}

/// The journal's form of the load's positions.
pub(crate) fn positions(load: &Load) -> Vec<Position> {
    load.positions.iter().map(|position| Position(position.0)).collect()
}
