//! The files that hold the chunks of all shards' spill logs.
//!
//! Independent of what is in a chunk and of who reads it. One owner carries out the jobs of all shards, one
//! after the other.

mod files;

use self::files::{File, Files};
use super::SpillOptions;
use super::job::{Outcome, SpillDone, SpillJob, Stored, Work};
use angarium_engine::{Bytes, share};
use angarium_journal::{Storage, checksum};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use files::clear_spill;

/// The chunks of all spill logs, each in a file.
#[derive(Debug)]
pub struct SpillStore {
    chunks: BTreeMap<u64, StoredChunk>,
    last: u64,
    files: Files,
    /// Bytes of the files that hold a chunk.
    file_bytes: Arc<AtomicU64>,
}

/// A chunk in a file.
#[derive(Debug)]
struct StoredChunk {
    file: File,
    bytes: usize,
    checksum: u32,
    /// A read of it has failed: its file is not used again.
    is_damaged: bool,
}

impl StoredChunk {
    fn read(&mut self, storage: &dyn Storage) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; self.bytes];
        let result = match storage.read(&self.file.name(), 0, &mut bytes) {
            Ok(()) if self.checksum == checksum(&bytes) => Ok(bytes),
            Ok(()) => Err("a checksum is wrong".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        self.is_damaged |= result.is_err();
        result
    }
}

impl SpillStore {
    /// An empty store; the logs that use it have clones of the same options.
    pub fn new(options: &SpillOptions) -> SpillStore {
        SpillStore {
            chunks: BTreeMap::new(),
            last: 0,
            files: Files::new(options.chunk_bytes as u64),
            file_bytes: Arc::clone(&options.bytes),
        }
    }

    /// Carries out a job; blocks. The jobs of one log are carried out in the order in which it hands them
    /// out.
    #[must_use]
    pub fn run(&mut self, job: SpillJob, storage: &dyn Storage) -> SpillDone {
        SpillDone(match job.0 {
            Work::Write { chunk, content } => {
                let bytes = content.into_whole();
                let result = self.write(&bytes, storage).map_err(|error| error.to_string());
                Outcome::Written { chunk, result }
            }
            Work::Read { chunk, number } => {
                let stored = self.chunks.get_mut(&number).expect("a log reads what it has stored");
                Outcome::Read { chunk, result: stored.read(storage).map(share) }
            }
            Work::Remove(numbers) => {
                numbers.into_iter().for_each(|number| self.remove(number, storage));
                Outcome::Removed
            }
        })
    }

    /// Writes a chunk without a flush: the spill does not outlive the process.
    fn write(&mut self, chunk: &Bytes, storage: &dyn Storage) -> io::Result<Stored> {
        let file = self.files.write(chunk, storage)?;
        self.last += 1;
        let (bytes, checksum) = (chunk.len(), checksum(chunk));
        let stored = StoredChunk { file, bytes, checksum, is_damaged: false };
        self.chunks.insert(self.last, stored);
        Ok(Stored::new(self.last, file.bytes, &self.file_bytes))
    }

    fn remove(&mut self, number: u64, storage: &dyn Storage) {
        let chunk = self.chunks.remove(&number).expect("a log gives back what it has stored, once");
        self.files.give_back(chunk.file, chunk.is_damaged, storage);
        if self.chunks.is_empty() {
            self.files.keep_none(storage);
        }
    }
}
