//! The files of a broker's spill logs, all shards': where their chunks are, each message stored once however
//! many shards have clients that wait for it.
//!
//! A shard writes a chunk, and reads and gives back the same: nothing of it says that parts are copies of what
//! another shard has written. A file stays for as long as one needs it, or has copies of it. Knows chunks,
//! and nothing of cursors. One owner has it and carries out all shards' jobs, one after the other.

mod copies;
mod files;
mod twins;

use self::copies::Copy;
use self::files::{File, Files};
use self::twins::Twins;
use super::SpillOptions;
use super::job::{Outcome, SpillDone, SpillJob, Work};
use angarium_journal::{Storage, checksum};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use files::clear_spill;

/// Own bytes of chunks that are in memory, to be compared with others'.
const RECENT_BYTES_MAX: usize = 16 << 20;

/// A chunk that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// Tells it from all others that are or were.
    pub(super) number: u64,
    /// Its bytes, however many of them are copies.
    pub(super) bytes: usize,
}

/// What is stored of all spill logs, and in which files.
#[derive(Debug)]
pub struct SpillStore {
    /// Whether several shards may wait for the same.
    has_twins: bool,
    twins: Twins,
    recent: Recent,
    kept: BTreeMap<u64, Kept>,
    last: u64,
    files: Files,
    /// Bytes that the logs have in memory and in files: those in files are counted here.
    room: Arc<AtomicU64>,
}

/// So many bytes, and their checksum.
#[derive(Clone, Copy, Debug)]
struct Part {
    bytes: usize,
    sum: u32,
}

impl Part {
    fn of(bytes: &[u8]) -> Part {
        Part { bytes: bytes.len(), sum: checksum(bytes) }
    }

    fn is(self, bytes: &[u8]) -> bool {
        self.bytes == bytes.len() && self.sum == checksum(bytes)
    }
}

/// A chunk in a file: its own bytes, and the list of its copies.
#[derive(Debug)]
struct Kept {
    file: File,
    own: Part,
    list: Part,
    /// The chunks that it has copies of.
    origins: BTreeSet<u64>,
    /// How many chunks have copies of it.
    copied_by: usize,
    /// Its shard may still want it.
    is_wanted: bool,
    is_broken: bool,
}

impl SpillStore {
    /// An empty one for so many shards; their logs have clones of the same options. Whoever writes messages
    /// is not to know the seed.
    pub fn new(options: &SpillOptions, shards: usize, seed: u64) -> SpillStore {
        SpillStore {
            has_twins: shards > 1,
            twins: Twins::new(seed),
            recent: Recent::default(),
            kept: BTreeMap::new(),
            last: 0,
            files: Files::new(options.chunk_bytes as u64),
            room: Arc::clone(&options.bytes),
        }
    }

    /// Carries a job out; blocks. A log's jobs are carried out in the order in which it hands them out.
    #[must_use]
    pub fn run(&mut self, job: SpillJob, storage: &dyn Storage) -> SpillDone {
        SpillDone(match job.0 {
            Work::Write { chunk, bytes } => {
                let result = self.write(bytes, storage).map_err(|error| error.to_string());
                Outcome::Written { chunk, result }
            }
            Work::Read { chunk, stored } => {
                Outcome::Read { chunk, stored, result: self.read(stored, storage) }
            }
            Work::Remove(chunks) => {
                chunks.iter().for_each(|chunk| self.give_back(chunk.number, storage));
                Outcome::Removed { bytes: chunks.iter().map(|chunk| chunk.bytes).sum() }
            }
        })
    }

    /// Nothing is flushed: what is here is not to survive anything.
    fn write(&mut self, chunk: Arc<Vec<u8>>, storage: &dyn Storage) -> io::Result<Stored> {
        self.last += 1;
        let number = self.last;
        let copies = self.find_copies(&chunk, storage);
        let own = match &copies[..] {
            [] => Arc::clone(&chunk),
            copies => Arc::new(copies::own_bytes(&chunk, copies)),
        };
        let list = copies::write(number, &copies);
        let file = self.files.write(&[&own, &list], storage)?;
        if self.has_twins {
            self.twins.remember(number, &chunk, &copies);
            self.recent.add(number, &own);
        }
        let origins: BTreeSet<u64> = copies.iter().map(|copy| copy.origin.chunk).collect();
        for origin in &origins {
            self.kept.get_mut(origin).expect("copies are of what is there").copied_by += 1;
        }
        self.room.fetch_add(file.bytes, Ordering::Relaxed);
        let kept = Kept {
            file,
            own: Part::of(&own),
            list: Part::of(&list),
            origins,
            copied_by: 0,
            is_wanted: true,
            is_broken: false,
        };
        self.kept.insert(number, kept);
        Ok(Stored { number, bytes: chunk.len() })
    }

    /// What of a chunk is a copy of what is stored.
    fn find_copies(&mut self, chunk: &[u8], storage: &dyn Storage) -> Vec<Copy> {
        if !self.has_twins {
            return Vec::new();
        }
        let mut copies = self.twins.find(chunk, |number| Some(self.kept.get(&number)?.own.bytes));
        copies.retain(|copy| {
            let own = self.own_of(copy.origin.chunk, storage);
            let there =
                own.as_ref().and_then(|own| own.get(copy.origin.offset..)?.get(..copy.bytes));
            there == Some(&chunk[copy.at..copy.at + copy.bytes])
        });
        copies
    }

    /// Bytes that were stored for a chunk.
    fn own_of(&mut self, number: u64, storage: &dyn Storage) -> Option<Arc<Vec<u8>>> {
        let kept = self.kept.get_mut(&number).filter(|kept| !kept.is_broken)?;
        if let Some(own) = self.recent.find(number) {
            return Some(own);
        }
        let mut own = vec![0; kept.own.bytes];
        let is_read = storage.read(&kept.file.name(), 0, &mut own).is_ok();
        if !is_read || !kept.own.is(&own) {
            kept.is_broken = true;
            return None;
        }
        let own = Arc::new(own);
        self.recent.add(number, &own);
        Some(own)
    }

    fn read(&mut self, stored: Stored, storage: &dyn Storage) -> Result<Vec<u8>, String> {
        let kept = self.kept.get(&stored.number).expect("a log reads what it has stored");
        let Kept { file, own, list, .. } = *kept;
        let mut whole = vec![0; own.bytes + list.bytes];
        let result = storage.read(&file.name(), 0, &mut whole);
        let result = result.map_err(|error| error.to_string()).and_then(|()| {
            let listed = whole.split_off(own.bytes);
            let is_right = own.is(&whole) && list.is(&listed);
            let whole = is_right.then(|| self.assemble(stored, whole, &listed, storage));
            whole.flatten().ok_or_else(|| "a checksum is wrong".to_owned())
        });
        if result.is_err() {
            self.kept.get_mut(&stored.number).expect("it was there just now").is_broken = true;
        }
        result
    }

    /// A chunk, of its own bytes and the list of its copies.
    fn assemble(
        &mut self,
        stored: Stored,
        own: Vec<u8>,
        list: &[u8],
        storage: &dyn Storage,
    ) -> Option<Vec<u8>> {
        if list.is_empty() {
            return Some(own);
        }
        let copies = copies::read(stored.number, list)?;
        copies::assemble(&own, &copies, stored.bytes, |origin| self.own_of(origin, storage))
    }

    #[cfg(test)]
    pub(super) fn forget_recent(&mut self) {
        self.recent = Recent::default();
    }

    /// A shard does not want its chunk any more. Its file is free once nobody has copies of it.
    fn give_back(&mut self, number: u64, storage: &dyn Storage) {
        let kept = self.kept.get_mut(&number).expect("a log gives back what it has stored, once");
        kept.is_wanted = false;
        let mut unwanted = vec![number];
        while let Some(number) = unwanted.pop() {
            let is_free = |kept: &Kept| !kept.is_wanted && kept.copied_by == 0;
            if !self.kept.get(&number).is_some_and(is_free) {
                continue;
            }
            let Some(kept) = self.kept.remove(&number) else { continue };
            self.recent.forget(number);
            self.room.fetch_sub(kept.file.bytes, Ordering::Relaxed);
            self.files.give_back(kept.file, kept.is_broken, storage);
            for origin in kept.origins {
                self.kept.get_mut(&origin).expect("it was kept for its copies").copied_by -= 1;
                unwanted.push(origin);
            }
        }
        if self.kept.is_empty() {
            self.twins.forget();
            self.files.keep_none(storage);
        }
    }
}

/// Own bytes of chunks that were stored or looked at lately.
#[derive(Debug, Default)]
struct Recent {
    chunks: VecDeque<(u64, Arc<Vec<u8>>)>,
    bytes: usize,
}

impl Recent {
    fn find(&self, number: u64) -> Option<Arc<Vec<u8>>> {
        let found = self.chunks.iter().rev().find(|(other, _)| *other == number);
        found.map(|(_, own)| Arc::clone(own))
    }

    fn add(&mut self, number: u64, own: &Arc<Vec<u8>>) {
        self.bytes += own.len();
        self.chunks.push_back((number, Arc::clone(own)));
        while self.bytes > RECENT_BYTES_MAX {
            let oldest = self.chunks.pop_front();
            self.bytes -= oldest.map_or(0, |(_, own)| own.len());
        }
    }

    fn forget(&mut self, number: u64) {
        self.chunks.retain(|(other, _)| *other != number);
        self.bytes = self.chunks.iter().map(|(_, own)| own.len()).sum();
    }
}
