//! A journal whose checkpoints are all lost, and whose log does not begin at its beginning, gets a new
//! checkpoint with what is whole.

use crate::options::Options;
use crate::storage::recovery::{self, Count, Replay};
use angarium_engine::{Position, Rebuild};
use angarium_journal::{Remains, Storage};
use std::collections::BTreeMap;

/// Makes the durable state anew from every record that is whole. Returns what is there again and what is
/// lost, in sentences.
///
/// # Errors
/// The journal cannot be read or written; nothing in it was changed before the new checkpoint is whole.
pub fn rebuild(storage: &dyn Storage, options: &Options) -> Result<Vec<String>, String> {
    let mut records = Rebuild::default();
    let remains = Remains::read(storage, |position, record| {
        records.look(Position(position.0), record);
    })?;
    let mut references: BTreeMap<u32, u64> = BTreeMap::new();
    let mut engine = recovery::engine(options);
    let mut replay = Replay {
        count: |position: Position, change| {
            let references = references.entry(position.segment()).or_default();
            match change {
                Count::Retain(count) => *references += u64::from(count),
                Count::Release(count) => *references = references.saturating_sub(count.into()),
            }
        },
    };
    let mut said = records.restore(&mut engine, &mut replay);
    let mut snapshot = Vec::new();
    engine.snapshot(&mut snapshot);
    said.push(remains.write(storage, snapshot, &references)?);
    Ok(said)
}
