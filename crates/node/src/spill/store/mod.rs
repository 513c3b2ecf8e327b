//! The files of a broker's spill logs, all shards': where their chunks are, each message stored once however
//! many shards have clients that wait for it.
//!
//! A shard writes a chunk, and reads and gives back the same: it does not see that parts are copies of what
//! another one has written. A file stays for as long as a log wants its chunk, or one with copies of it.
//! Knows chunks, and nothing of cursors. One owner has it and carries out all shards' jobs, one after the
//! other.

mod copies;
mod files;
mod recent;
mod space;
mod twins;

use self::copies::{Copy, Origin};
use self::files::{File, Files};
use self::recent::Recent;
use self::twins::Twins;
use super::SpillOptions;
use super::job::{Outcome, SpillDone, SpillJob, Work};
use crate::spill::store::space::Claim;
use angarium_engine::{Bytes, share};
use angarium_journal::{Storage, checksum};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

pub(super) use crate::spill::store::space::{Staying, Stored};
pub use files::clear_spill;

/// What is copied of a chunk keeps all of its file: it is to be worth it, an eighth of the file or more.
const WORTH: usize = 8;
/// Why what was stored is not there.
const CHECKSUM_IS_WRONG: &str = "a checksum is wrong";

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
    /// Bytes of the files.
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
    claim: Weak<Claim>,
    own: Part,
    list: Part,
    /// The chunks that it has copies of, for as long as its log wants it.
    origins: BTreeSet<u64>,
    /// How many chunks that are wanted have copies of it.
    copied_by: usize,
    /// Its log may still want it.
    is_wanted: bool,
    /// Its own bytes are not what they were.
    is_broken: bool,
    /// Something in its file is not: it is not written to again.
    is_damaged: bool,
}

impl Kept {
    /// Its own bytes from its file; once they are not what they were, never again.
    fn read_own(&mut self, storage: &dyn Storage) -> Result<Vec<u8>, String> {
        let read = self.read_part(0, self.own, storage);
        self.is_broken |= read.is_err();
        read
    }

    fn read_list(&mut self, storage: &dyn Storage) -> Result<Vec<u8>, String> {
        if self.list.bytes == 0 {
            return Ok(Vec::new());
        }
        self.read_part(self.own.bytes as u64, self.list, storage)
    }

    fn read_part(
        &mut self,
        offset: u64,
        part: Part,
        storage: &dyn Storage,
    ) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; part.bytes];
        let result = match storage.read(&self.file.name(), offset, &mut bytes) {
            Ok(()) if part.is(&bytes) => Ok(bytes),
            Ok(()) => Err(CHECKSUM_IS_WRONG.to_owned()),
            Err(error) => Err(error.to_string()),
        };
        self.is_damaged |= result.is_err();
        result
    }
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
            Work::Write { chunk, content } => {
                let bytes = content.into_whole();
                let result = self.write(bytes, storage).map_err(|error| error.to_string());
                Outcome::Written { chunk, result }
            }
            Work::Read { chunk, number, bytes } => {
                let result = self.read(number, bytes, storage).map(share);
                Outcome::Read { chunk, result }
            }
            Work::Remove(numbers) => {
                numbers.into_iter().for_each(|number| self.give_back(number, storage));
                Outcome::Removed
            }
        })
    }

    /// Nothing is flushed: what is here is not to survive anything.
    fn write(&mut self, chunk: Bytes, storage: &dyn Storage) -> io::Result<Stored> {
        self.last += 1;
        let number = self.last;
        let copies = if self.has_twins { self.find_copies(&chunk, storage) } else { Vec::new() };
        let origins: BTreeSet<u64> = copies.iter().map(|copy| copy.origin.chunk).collect();
        let claims: Option<Vec<_>> = origins.iter().map(|origin| self.claim(*origin)).collect();
        // Where a log has just given an origin up, all is stored anew.
        let (copies, origins, claims) = match claims {
            Some(claims) => (copies, origins, claims),
            None => Default::default(),
        };
        let own = match &copies[..] {
            [] => chunk.clone(),
            copies => share(copies::own_bytes(&chunk, copies)),
        };
        let list = copies::write(number, &copies);
        let file = self.files.write(&[&own, &list], storage)?;
        if self.has_twins {
            self.twins.remember(number, &chunk, &copies);
            self.recent.add(number, &own);
        }
        for origin in &origins {
            self.kept.get_mut(origin).expect("copies are of what is there").copied_by += 1;
        }
        let claim = Claim::new(number, file.bytes, &self.room);
        let kept = Kept {
            file,
            claim: Arc::downgrade(&claim),
            own: Part::of(&own),
            list: Part::of(&list),
            origins,
            copied_by: 0,
            is_wanted: true,
            is_broken: false,
            is_damaged: false,
        };
        self.kept.insert(number, kept);
        Ok(Stored::new(number, chunk.len(), std::iter::once(claim).chain(claims)))
    }

    /// A share in the room of a chunk's file; `None`: no log has one any more.
    fn claim(&self, number: u64) -> Option<Arc<Claim>> {
        self.kept.get(&number)?.claim.upgrade()
    }

    /// What of a chunk is a copy of what is stored.
    fn find_copies(&mut self, chunk: &[u8], storage: &dyn Storage) -> Vec<Copy> {
        let mut copies = self.twins.find(chunk);
        self.leave_what_is_little(&mut copies);
        let mut origins: BTreeMap<u64, Option<Bytes>> = BTreeMap::new();
        copies.retain(|copy| {
            let Origin { chunk: number, offset } = copy.origin;
            let own = origins.entry(number).or_insert_with(|| self.own_of(number, storage));
            let there = own.as_ref().and_then(|own| own.get(offset..)?.get(..copy.bytes));
            there == Some(&chunk[copy.at..copy.at + copy.bytes])
        });
        self.leave_what_is_little(&mut copies);
        copies
    }

    /// Takes out what is copied of files that are not worth it.
    fn leave_what_is_little(&self, copies: &mut Vec<Copy>) {
        let mut copied: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        for Copy { bytes, origin, .. } in copies.iter() {
            let (sum, end) = copied.entry(origin.chunk).or_default();
            // The same once more is nothing more of the file.
            if origin.offset >= *end {
                (*sum, *end) = (*sum + bytes, origin.offset + bytes);
            }
        }
        copied.retain(|chunk, (bytes, _)| {
            let is_worth_it =
                |kept: &Kept| kept.claim.strong_count() > 0 && *bytes >= kept.own.bytes / WORTH;
            self.kept.get(chunk).is_some_and(is_worth_it)
        });
        copies.retain(|copy| copied.contains_key(&copy.origin.chunk));
    }

    /// Bytes that were stored for a chunk.
    fn own_of(&mut self, number: u64, storage: &dyn Storage) -> Option<Bytes> {
        let kept = self.kept.get_mut(&number).filter(|kept| !kept.is_broken)?;
        if let Some(own) = self.recent.find(number) {
            return Some(own);
        }
        let own = share(kept.read_own(storage).ok()?);
        self.recent.add(number, &own);
        Some(own)
    }

    fn read(
        &mut self,
        number: u64,
        bytes: usize,
        storage: &dyn Storage,
    ) -> Result<Vec<u8>, String> {
        let kept = self.kept.get_mut(&number).expect("a log reads what it has stored");
        let own = kept.read_own(storage)?;
        let list = kept.read_list(storage)?;
        let whole = self.assemble(number, own, &list, bytes, storage);
        whole.ok_or_else(|| CHECKSUM_IS_WRONG.to_owned())
    }

    /// A chunk of so many bytes, of its own ones and the list of its copies.
    fn assemble(
        &mut self,
        number: u64,
        own: Vec<u8>,
        list: &[u8],
        bytes: usize,
        storage: &dyn Storage,
    ) -> Option<Vec<u8>> {
        if list.is_empty() {
            return Some(own);
        }
        let copies = copies::read(number, list)?;
        copies::assemble(&own, &copies, bytes, |origin| self.own_of(origin, storage))
    }

    #[cfg(test)]
    pub(super) fn forget_recent(&mut self) {
        self.recent = Recent::default();
    }

    /// The files in which there are lists, and where those begin.
    #[cfg(test)]
    pub(super) fn lists(&self) -> impl Iterator<Item = (String, u64)> {
        let have_some = self.kept.values().filter(|kept| kept.list.bytes > 0);
        have_some.map(|kept| (kept.file.name(), kept.own.bytes as u64))
    }

    /// A log does not want its chunk any more, nor what it has copies of. A file is free once nobody wants
    /// what is in it.
    fn give_back(&mut self, number: u64, storage: &dyn Storage) {
        let kept = self.kept.get_mut(&number).expect("a log gives back what it has stored, once");
        kept.is_wanted = false;
        let origins = std::mem::take(&mut kept.origins);
        for origin in &origins {
            self.kept.get_mut(origin).expect("it was kept for its copies").copied_by -= 1;
        }
        for number in origins.into_iter().chain([number]) {
            let is_free = |kept: &Kept| !kept.is_wanted && kept.copied_by == 0;
            if self.kept.get(&number).is_some_and(is_free)
                && let Some(kept) = self.kept.remove(&number)
            {
                self.recent.forget(number);
                self.files.give_back(kept.file, kept.is_damaged, storage);
            }
        }
        if self.kept.is_empty() {
            self.twins.forget();
            self.files.keep_none(storage);
        }
    }
}
