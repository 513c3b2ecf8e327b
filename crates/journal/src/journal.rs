//! Entry points of the journal.

use crate::Storage;

/// Segment number in the upper 32 bits, byte offset in the lower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// Sizes and thresholds.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of a segment; a larger record or group gets a segment of its own.
    pub segment_bytes: u32,
    /// Appended bytes after which a checkpoint is due.
    pub checkpoint_bytes: u64,
    /// Appended and not yet written bytes beyond which the journal is congested.
    pub backlog_bytes_max: u64,
}

/// Whether records can be made durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Yes.
    Ready,
    /// No space for another segment; tried again.
    Full,
    /// A write or flush failed: never again in this process. The text says what failed.
    Failed(String),
}

/// Work for the disk: a flush, a new segment, a checkpoint, a removal.
#[derive(Debug)]
pub struct Job {}

/// A job's result.
#[derive(Debug)]
pub struct Done {}

/// Counters for metrics.
#[derive(Clone, Debug, Default)]
pub struct Stats {}

/// Records to read back, off the shard's thread.
#[derive(Debug)]
pub struct Read {}

/// The log.
#[derive(Debug)]
pub struct Journal {}

/// An opened log before its records were replayed.
#[derive(Debug)]
pub struct Recovery {}

#[allow(clippy::todo, unused_variables, missing_docs)]
impl Recovery {
    /// Reads the newest valid checkpoint and finds the records after it. Errors name segment and
    /// offset of a corruption and `angarium journal check`.
    pub fn open(storage: &dyn Storage, options: Options) -> Result<Recovery, String> {
        todo!()
    }
    /// The snapshot in the checkpoint, if there is one.
    pub fn snapshot(&self) -> Option<&[u8]> {
        todo!()
    }
    /// Whether the last process closed the journal in order (`Journal::close`).
    pub fn clean(&self) -> bool {
        todo!()
    }
    /// Hands every record after the checkpoint to `apply`, in order, streaming.
    /// `apply` gets `&mut Journal` for `retain` and `release` (and for nothing else).
    pub fn replay(
        self,
        storage: &dyn Storage,
        apply: impl FnMut(&mut Journal, Position, &[u8]) -> Result<(), String>,
    ) -> Result<Journal, String> {
        todo!()
    }
}

#[allow(clippy::todo, unused_variables, missing_docs)]
impl Journal {
    /// Appends a record made of `parts` to the current batch.
    pub fn append(&mut self, parts: &[&[u8]], durable: bool) -> Position {
        todo!()
    }
    /// Makes the appends that follow, up to `bytes` in sum (framing excluded), one atomic group.
    pub fn reserve(&mut self, bytes: usize, records: usize) {
        todo!()
    }
    pub fn retain(&mut self, position: Position, count: u32) {
        todo!()
    }
    pub fn release(&mut self, position: Position, count: u32) {
        todo!()
    }
    /// Everything before this is written and flushed.
    pub fn durable(&self) -> Position {
        todo!()
    }
    /// Everything before this can be read back.
    pub fn written(&self) -> Position {
        todo!()
    }
    pub fn state(&self) -> &State {
        todo!()
    }
    /// Whether publishers have to wait: more is appended than the disk takes.
    pub fn congested(&self) -> bool {
        todo!()
    }
    /// The next work for a disk; several may be out at once, but only one of each kind.
    pub fn next_job(&mut self) -> Option<Job> {
        todo!()
    }
    pub fn finished(&mut self, done: Done) {
        todo!()
    }
    /// Whether the host should now call [`Journal::checkpoint`].
    pub fn checkpoint_due(&self) -> bool {
        todo!()
    }
    /// Writes a checkpoint: `snapshot` holds everything appended so far.
    pub fn checkpoint(&mut self, snapshot: Vec<u8>) {
        todo!()
    }
    /// A segment so sparsely live that its records are worth moving, if any.
    pub fn straggling(&self) -> Option<u32> {
        todo!()
    }
    /// The last checkpoint of this process, marked clean; run its jobs to the end after it.
    pub fn close(&mut self, snapshot: Vec<u8>) {
        todo!()
    }
    pub fn read(&self, positions: Vec<Position>) -> Read {
        todo!()
    }
    pub fn stats(&self) -> Stats {
        todo!()
    }
}

#[allow(clippy::todo, unused_variables, missing_docs)]
impl Job {
    pub fn run(self, storage: &dyn Storage) -> Done {
        todo!()
    }
}

#[allow(clippy::todo, unused_variables, missing_docs)]
impl Read {
    /// The records in the order asked for; an unreadable one is an error that names it.
    pub fn run(self, storage: &dyn Storage) -> Result<Vec<Vec<u8>>, String> {
        todo!()
    }
}
