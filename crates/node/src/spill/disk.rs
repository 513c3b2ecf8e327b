//! The spill log's disk jobs: which are handed out, and what their results change.

use super::chunk::{Chunk, ChunkWork};
use super::content::Content;
use super::job::{Outcome, SpillDone, SpillJob, Stored, Work};
use super::{KEPT, Spill, SpillLoss};

/// Chunks being read at once.
const READS_MAX: usize = 4;
/// Chunks being written at once, so that there is always a next one: what else there is to do on the disk is
/// not to wait for all of them, and they may exceed the limit before anything gives way to them.
const WRITES_MAX: usize = 2;

impl Spill {
    /// The next work for the store, if any; its result comes back by [`Spill::done`]. The host carries these
    /// out one after the other.
    pub fn next_job(&mut self) -> Option<SpillJob> {
        self.next_read().or_else(|| self.next_write()).or_else(|| self.next_removal()).map(SpillJob)
    }

    fn next_read(&mut self) -> Option<Work> {
        while self.reads < READS_MAX {
            let number = self.wanted.pop_front()?;
            let chunk = self.chunk_mut(number).filter(|it| it.work == ChunkWork::Wanted);
            let Some(Chunk { stored: Some(stored), work, .. }) = chunk else { continue };
            *work = ChunkWork::UnderWay;
            let read = Work::Read { chunk: number, number: stored.number };
            self.reads += 1;
            return Some(read);
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
            if !chunk.is_to_be_written() {
                return None;
            }
            chunk.work = ChunkWork::UnderWay;
            Some((self.next_write - 1, chunk.content.clone()?))
        })?;
        self.writes += 1;
        Some(Work::Write { chunk, content })
    }

    fn next_removal(&mut self) -> Option<Work> {
        let passed = std::mem::take(&mut self.passed);
        if passed.is_empty() { None } else { Some(Work::Remove(passed)) }
    }

    /// A job ended.
    pub fn done(&mut self, done: SpillDone) {
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
        self.chunk_mut(number).filter(|chunk| chunk.work == ChunkWork::UnderWay)
    }

    fn written(&mut self, number: u64, stored: Stored) {
        let Some(chunk) = self.worked_on(number) else {
            return self.passed.push(stored.number);
        };
        let (bytes, file_bytes) = (chunk.bytes, stored.file_bytes);
        (chunk.stored, chunk.work) = (Some(stored), ChunkWork::None);
        self.unwritten -= bytes;
        self.stored += file_bytes;
        self.note_loaded(number);
        self.give_way();
    }

    fn read(&mut self, number: u64, content: Content) {
        if let Some(chunk) = self.worked_on(number) {
            (chunk.content, chunk.work) = (Some(content), ChunkWork::None);
            self.note_loaded(number);
        }
    }

    /// A chunk is on the disk and in memory.
    fn note_loaded(&mut self, number: u64) {
        self.loaded.push_back(number);
        self.unload();
        self.stir_at(number);
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
            let oldest = self.loaded.pop_front().and_then(|oldest| self.chunk_mut(oldest));
            oldest.into_iter().for_each(Chunk::unload);
        }
    }
}
