//! Progress of checkpoints: when one is due, the pending one, and the newest one on the disk.

use crate::Position;
use crate::checkpoint::{Chain, Checkpoint};
use crate::job::WriteCheckpoint;

/// A checkpoint that waits for its snapshot, and for everything before it to be durable.
#[derive(Debug)]
pub(crate) struct Pending {
    write: WriteCheckpoint,
    /// The chain at its start is known.
    chained: bool,
    /// It has its snapshot, which may say of some things what was true at this position.
    complete: Option<Position>,
}

impl Pending {
    fn start(&self) -> Position {
        self.write.checkpoint.start
    }
}

/// Checkpoints of a journal.
#[derive(Debug, Default)]
pub(crate) struct Checkpointing {
    /// The highest number of one on the disk; 0: none.
    newest: u32,
    pub(crate) pending: Option<Pending>,
    /// One is being written.
    writing: bool,
    /// The last one found no space.
    pub(crate) owed: bool,
    /// There is nothing left to give up for it: none is due before `retry`.
    pub(crate) blocked: bool,
    /// Bytes appended since the last one began: replay has to read them.
    pub(crate) appended_bytes: u64,
}

impl Checkpointing {
    pub(crate) fn new(newest: u32) -> Checkpointing {
        Checkpointing { newest, ..Checkpointing::default() }
    }

    /// Whether one is pending or being written, or cannot be written for lack of space.
    pub(crate) fn is_busy(&self) -> bool {
        self.pending.is_some() || self.writing || self.blocked
    }

    /// Where the pending one starts: the flush that reaches it reports the chain there.
    pub(crate) fn pending_start(&self) -> Option<Position> {
        self.pending.as_ref().map(Pending::start)
    }

    /// What has to be durable before the pending one can be written.
    pub(crate) fn awaited(&self) -> Position {
        let awaited = self.pending.as_ref().map(|it| it.complete.unwrap_or_else(|| it.start()));
        awaited.unwrap_or_default()
    }

    /// Makes `checkpoint` the pending one, in place of another. Its number is given when it is written.
    pub(crate) fn begin(&mut self, checkpoint: Checkpoint, chained: bool, clean: bool) {
        let write = WriteCheckpoint { checkpoint, snapshot: Vec::new(), clean };
        self.pending = Some(Pending { write, chained, complete: None });
        self.appended_bytes = 0;
    }

    /// Hands in the snapshot of the pending one, if there is one. `end`: where the journal ends now.
    pub(crate) fn complete(&mut self, snapshot: Vec<Vec<u8>>, end: Position) {
        if let Some(pending) = &mut self.pending {
            pending.write.snapshot = snapshot;
            pending.complete = Some(end);
        }
    }

    /// The chain at a position is known: the pending one may start there.
    pub(crate) fn chained_at(&mut self, position: Position, chain: Chain) {
        if let Some(pending) = self.pending.as_mut().filter(|it| it.start() == position) {
            pending.write.checkpoint.chain = chain;
            pending.chained = true;
        }
    }

    /// The pending checkpoint, to be written. It is returned only once everything is durable that was
    /// appended before its snapshot was complete: that names records by position, and says of some things
    /// what later records say. Written earlier, it could survive a crash that they do not.
    pub(crate) fn next(&mut self, durable: Position) -> Option<WriteCheckpoint> {
        if self.writing {
            return None;
        }
        let is_ready =
            |it: &mut Pending| it.chained && it.complete.is_some_and(|end| end <= durable);
        let mut write = self.pending.take_if(is_ready)?.write;
        write.checkpoint.number = self.newest + 1;
        self.writing = true;
        Some(write)
    }

    /// The checkpoint is durable.
    pub(crate) fn written(&mut self, checkpoint: &Checkpoint) {
        self.writing = false;
        self.newest = checkpoint.number;
        self.owed = false;
    }
    /// The checkpoint found no space. `blocked`: nothing could be given up for it.
    pub(crate) fn full(&mut self, blocked: bool) {
        self.writing = false;
        self.owed = true;
        self.blocked = blocked;
    }
}
