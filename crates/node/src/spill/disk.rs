//! The spill log's disk jobs: which are handed out, and what their results change.

use super::chunk::{Chunk, Place};
use super::content::Content;
use super::job::{Outcome, SpillDone, SpillJob, Work};
use super::loss::SpillLoss;
use super::store::Stored;
use super::{KEPT, Spill};

/// Chunks being read at once.
const READS_MAX: usize = 4;
/// Chunks being written at once, so that there is always a next one: what else there is to do on the disk is
/// not to wait for all of them, and so much may be beyond the limit before anything gives way to it.
const WRITES_MAX: usize = 2;

impl Spill {
    /// The next work for the disk, if any.
    pub(crate) fn next_job(&mut self) -> Option<SpillJob> {
        self.next_read().or_else(|| self.next_write()).or_else(|| self.next_removal()).map(SpillJob)
    }

    fn next_read(&mut self) -> Option<Work> {
        while self.reads < READS_MAX {
            let number = self.wanted.pop_front()?;
            let Some(at) = number.checked_sub(self.first) else { continue };
            let Some(chunk) = self.chunks.get_mut(at as usize) else { continue };
            let Place::Wanted(stored) = &chunk.place else { continue };
            let stored = stored.number;
            chunk.take_stored(Place::Loading);
            self.reads += 1;
            return Some(Work::Read { chunk: number, number: stored });
        }
        None
    }

    fn next_write(&mut self) -> Option<Work> {
        if self.yields || self.writes >= WRITES_MAX {
            return None;
        }
        self.next_write = self.next_write.max(self.first);
        let from = (self.next_write - self.first) as usize;
        let most = self.options.chunk_bytes;
        let kept = self.chunks.iter().rev().take(KEPT).take_while(|chunk| chunk.bytes <= most);
        let count = self.chunks.len() - kept.count();
        let mut chunks = self.chunks.iter_mut().take(count).skip(from);
        let (chunk, content) = chunks.find_map(|chunk| {
            self.next_write += 1;
            let Place::Filled(content) = &chunk.place else { return None };
            let content = content.clone();
            chunk.place = Place::Writing(content.clone());
            Some((self.next_write - 1, content))
        })?;
        self.writes += 1;
        Some(Work::Write { chunk, content })
    }

    fn next_removal(&mut self) -> Option<Work> {
        let passed = std::mem::take(&mut self.passed);
        if passed.is_empty() { None } else { Some(Work::Remove(passed)) }
    }

    /// A job ended.
    pub(crate) fn done(&mut self, done: SpillDone) {
        match done.0 {
            Outcome::Removed => {}
            Outcome::Written { chunk, result } => {
                self.writes -= 1;
                match result {
                    Ok(stored) => self.written(chunk, stored),
                    Err(why) => self.failed(chunk, why),
                }
            }
            Outcome::Read { chunk, result } => {
                self.reads -= 1;
                match result {
                    Ok(bytes) => self.read(chunk, Content::whole(bytes)),
                    Err(why) => self.failed(chunk, why),
                }
            }
        }
    }

    /// The chunk that a job was about, where it is still needed.
    fn worked_on(&mut self, number: u64) -> Option<&mut Chunk> {
        let at = number.checked_sub(self.first)?;
        self.chunks.get_mut(at as usize).filter(|chunk| chunk.is_worked_on())
    }

    fn written(&mut self, number: u64, stored: Stored) {
        let Some(chunk) = self.worked_on(number) else {
            return self.passed.push(stored.number);
        };
        let filled = chunk.in_memory().expect("what is being written is in memory").clone();
        let (bytes, file_bytes) = (filled.len(), stored.file_bytes);
        chunk.place = Place::Loaded(stored, filled);
        self.unwritten -= bytes;
        self.stored += file_bytes;
        self.note_loaded(number);
        self.give_way();
    }

    fn read(&mut self, number: u64, content: Content) {
        if let Some(chunk) = self.worked_on(number) {
            chunk.take_stored(|stored| Place::Loaded(stored, content));
            self.note_loaded(number);
        }
    }

    /// A chunk is on the disk and in memory.
    fn note_loaded(&mut self, number: u64) {
        self.loaded.push_back(number);
        self.unload();
        let there =
            self.slow_consumers.values().filter(|slow_consumer| slow_consumer.chunk == number);
        self.stirred.extend(there.map(|slow_consumer| slow_consumer.connection));
    }

    fn failed(&mut self, number: u64, why: String) {
        self.stats.failures += 1;
        self.stats.last_failure = Some(why);
        if self.worked_on(number).is_some() {
            self.lose(number, SpillLoss::FailedDisk);
        }
    }

    /// Frees the memory of chunks that have had it longest.
    fn unload(&mut self) {
        while self.loaded.len() > self.options.loaded_max.max(1) {
            let at = self.loaded.pop_front().and_then(|oldest| oldest.checked_sub(self.first));
            if let Some(chunk) = at.and_then(|at| self.chunks.get_mut(at as usize)) {
                chunk.unload();
            }
        }
    }
}
