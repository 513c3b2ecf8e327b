//! What the spill log has its host do with the disk.

use super::chunk::Stored;
use angarium_journal::{Storage, checksum};
use std::io;
use std::sync::Arc;

/// What names of its files begin with.
const FILE_PREFIX: &str = "spill-";

/// A file of the log. It takes one chunk after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) number: u32,
    /// Bytes it has.
    pub(super) bytes: u64,
}

impl File {
    fn name(self) -> String {
        format!("{FILE_PREFIX}{}", self.number)
    }
}

/// Removes what an earlier process left: direct messages do not outlive it. Blocks.
pub fn clear_spill(storage: &dyn Storage) -> io::Result<()> {
    for name in storage.list()?.iter().filter(|name| name.starts_with(FILE_PREFIX)) {
        storage.remove(name)?;
    }
    Ok(())
}

/// Work of the spill log for the disk, on a thread where that may take its time. All of it is done in
/// the order in which it was handed out.
#[derive(Debug)]
pub struct SpillJob(pub(super) Work);

#[derive(Debug)]
pub(super) enum Work {
    Write { chunk: u64, file: File, is_new: bool, bytes: Arc<Vec<u8>> },
    Read { chunk: u64, stored: Stored, bytes: usize },
    Remove { files: Vec<File> },
}

/// A [`SpillJob`]'s result.
#[derive(Debug)]
pub struct SpillDone(pub(super) Outcome);

#[derive(Debug)]
pub(super) enum Outcome {
    /// A chunk was written; its checksum.
    Written {
        chunk: u64,
        file: File,
        result: Result<u32, String>,
    },
    Read {
        chunk: u64,
        stored: Stored,
        result: Result<Vec<u8>, String>,
    },
    Removed,
}

impl SpillJob {
    /// Carries it out; blocks.
    #[must_use]
    pub fn run(self, storage: &dyn Storage) -> SpillDone {
        SpillDone(match self.0 {
            Work::Write { chunk, file, is_new, bytes } => {
                let result = write(storage, file, is_new, &bytes).map_err(|e| e.to_string());
                Outcome::Written { chunk, file, result }
            }
            Work::Read { chunk, stored, bytes } => {
                let result = read(storage, stored, bytes);
                Outcome::Read { chunk, stored, result }
            }
            Work::Remove { files } => {
                for file in files {
                    // One that stays is removed at the next start.
                    let _ = storage.remove(&file.name());
                }
                Outcome::Removed
            }
        })
    }
}

/// Nothing is flushed: what is here is not to survive anything.
fn write(storage: &dyn Storage, file: File, is_new: bool, bytes: &[u8]) -> io::Result<u32> {
    if is_new {
        storage.create(&file.name(), file.bytes)?;
    }
    storage.write(&file.name(), 0, bytes)?;
    Ok(checksum(bytes))
}

fn read(storage: &dyn Storage, stored: Stored, bytes: usize) -> Result<Vec<u8>, String> {
    let Stored { file, sum } = stored;
    let mut buffer = vec![0; bytes];
    storage.read(&file.name(), 0, &mut buffer).map_err(|error| error.to_string())?;
    if checksum(&buffer) == sum { Ok(buffer) } else { Err("its checksum is wrong".to_owned()) }
}
