//! The log as a value: what is appended, being written, written, durable. Does no I/O.

use std::collections::VecDeque;

use crate::batch::{Batch, Buffer, SharedRecord};
use crate::checkpoint::{Chain, Checkpoint};
use crate::checkpointing::Checkpointing;
use crate::format::{HEADER_BYTES, Opening, RECORD_HEADER_BYTES, align};
use crate::job::{Done, Flush, Job, Work, WriteCheckpoint};
use crate::segments::Segments;
use crate::state::{State, Stats};
use crate::storage::JobError;
use crate::{Options, Position, Read, SegmentScan};

/// Most bytes of one flush, unless one batch is larger: bounds how long a confirm waits behind a backlog.
pub(crate) const FLUSH_BYTES_MAX: usize = 8 << 20;

/// Backlog in bytes from which on records that need no flush are written without delay: a write of that
/// size is efficient.
const DEFERRED_BYTES_MAX: u64 = 256 << 10;

/// Mean bytes of the last flushes above which new segments are not overwritten with zeros first:
/// `docs/decisions/0007-what-a-flush-costs.md` has the measurements.
const ZEROING_FLUSH_BYTES_MAX: u64 = 128 << 10;

/// Most buffers that are kept for reuse.
const SPARE_BUFFERS_MAX: usize = 4;

/// The log.
#[derive(Debug)]
pub struct Journal {
    options: Options,
    state: State,
    /// The batch that takes records.
    open: Batch,
    /// Bytes that it still takes.
    room: usize,
    /// End of the last sealed batch.
    sealed_end: Position,
    /// Sealed batches that are not being written yet.
    sealed: VecDeque<Batch>,
    sealed_bytes: usize,
    /// The backlog is to be written without delay.
    write_soon: bool,
    /// Bytes being written.
    out_bytes: usize,
    /// A moving average, in which the newest flush counts an eighth.
    flush_bytes_mean: u64,
    /// Buffers for reuse.
    spare: Vec<Buffer>,
    flushing: bool,
    /// As of the last finished flush.
    chain: Chain,
    epoch: u32,
    written: Position,
    durable: Position,
    /// The highest `durable` that a block on the disk carries.
    proven: Position,
    /// The machine's boot.
    boot: u32,
    /// What there was no space or memory for, while the state is `Full`.
    shortage: String,
    lacks_memory: bool,
    /// The last flush found no memory; whether another may be tried, as `retry` says.
    starved: Option<bool>,
    /// What the start found that lost nothing for certain, in sentences.
    notes: Vec<String>,
    /// A checkpoint, with which records of a sparse segment are moved, would give space back.
    may_compact: bool,
    /// The part of the log that was replayed has gaps that a repair made.
    pub(crate) mended: bool,
    /// Segments written to since they were last flushed.
    unsynced: Vec<u32>,
    pub(crate) segments: Segments,
    checkpoints: Checkpointing,
    stats: Stats,
}

impl Journal {
    /// A journal whose newest checkpoint has the number `checkpoint` (0: none), before replay.
    pub(crate) fn new(options: Options, segments: Segments, checkpoint: u32) -> Journal {
        Journal {
            options,
            state: State::Ready,
            open: Batch::new(Position(0), 0, Buffer::default()),
            room: 0,
            sealed_end: Position(0),
            sealed: VecDeque::new(),
            sealed_bytes: 0,
            write_soon: false,
            out_bytes: 0,
            flush_bytes_mean: 0,
            spare: Vec::new(),
            flushing: false,
            chain: Chain::default(),
            epoch: 0,
            written: Position(0),
            durable: Position(0),
            proven: Position(0),
            boot: 0,
            shortage: String::new(),
            lacks_memory: false,
            starved: None,
            notes: Vec::new(),
            may_compact: false,
            mended: false,
            unsynced: Vec::new(),
            segments,
            checkpoints: Checkpointing::new(checkpoint),
            stats: Stats::default(),
        }
    }

    /// Appends go on at `end`, before which everything is durable, and blocks show it up to `proven`.
    pub(crate) fn continue_at(
        &mut self,
        end: Position,
        proven: Position,
        chain: Chain,
        opening: Opening,
    ) {
        let Opening { epoch, boot } = opening;
        self.boot = boot;
        self.segments.reached(end.offset());
        self.proven = proven;
        self.open.start = end;
        self.sealed_end = end;
        self.written = end;
        self.durable = end;
        self.chain = chain;
        self.epoch = epoch;
    }
    pub(crate) fn replayed(&mut self, bytes: u64) {
        self.checkpoints.appended_bytes += bytes;
    }

    /// What the start found beside a whole log, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
    /// Adds to the notes.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }
    /// Whether the part of the log that was replayed, so far as it was, has gaps that a repair made: later
    /// records may refer to what was in them.
    pub fn is_mended(&self) -> bool {
        self.mended
    }
    /// What there is no space or memory for, while the state is [`State::Full`].
    pub fn shortage(&self) -> &str {
        &self.shortage
    }
    /// Whether nothing that is appended can be written until [`Journal::retry`] finds space or memory: what
    /// was kept back for that is used up, or a flush found no memory.
    pub fn is_exhausted(&self) -> bool {
        let next = self.sealed.front().unwrap_or(&self.open).start.segment();
        let is_stuck = self.starved.is_some() || self.segments.is_short_of(next);
        self.state == State::Full && !self.flushing && is_stuck
    }
    /// What is short while the state is [`State::Full`], in words.
    pub fn shortage_kind(&self) -> &'static str {
        if self.lacks_memory { "memory is refused" } else { "the disk is full" }
    }

    // ---- appending ----

    /// Appends a record made of `parts` to the current batch. `durable`: it needs a flush; a batch without
    /// such a record is only written. Sum of `parts`: less than 1 GiB.
    #[inline]
    pub fn append(&mut self, parts: &[&[u8]], durable: bool) -> Position {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.take_room(length, 0);
        self.open.push(length, parts, durable)
    }

    /// Appends a record whose large part is copied only on the thread that writes it.
    pub fn append_shared(&mut self, record: SharedRecord<'_>, durable: bool) -> Position {
        self.take_room(record.len(), record.shared.len());
        self.open.push_shared(record, durable)
    }

    /// Takes room for a record of `length` bytes, in a new batch where the current one is full. `shared` of
    /// them are copied later.
    #[inline]
    fn take_room(&mut self, length: usize, shared: usize) {
        let bytes = length + RECORD_HEADER_BYTES;
        if bytes > self.room {
            self.make_room(bytes, shared);
        }
        self.room -= bytes;
        self.stats.records += 1;
        self.stats.record_bytes += length as u64;
    }

    /// Makes the next job write the backlog even if no record in it needs a flush.
    #[inline]
    pub fn write_soon(&mut self) {
        self.write_soon = true;
    }

    /// Makes the appends that follow, up to `bytes` in sum (framing excluded) and `records`, one
    /// atomic group. Without memory for it the journal fails, and what is appended then is not kept.
    pub fn reserve(&mut self, bytes: usize, records: usize) {
        let bytes = bytes + records * RECORD_HEADER_BYTES;
        if bytes > self.room {
            self.make_room(bytes, 0);
            if matches!(self.state, State::Failed(_)) {
                self.room = 0;
            }
        }
    }

    /// Opens a batch for `bytes`, in the same segment or in the next one. `shared` of them need no room in
    /// its buffer yet.
    #[cold]
    fn make_room(&mut self, bytes: usize, shared: usize) {
        assert!(
            bytes < 1 << 31,
            "a record or group of {bytes} bytes is larger than a segment can be"
        );
        self.seal();
        let block = align(HEADER_BYTES + bytes);
        let mut start = self.open.start;
        let mut size = self.segments.bytes(start.segment());
        if u64::from(start.offset()) + block as u64 > size {
            start = Position::at(self.segments.advance(start.offset(), block as u64), 0);
            size = self.segments.bytes(start.segment());
            self.open.start = start;
        }
        self.open.segment_bytes = size as u32;
        let rest = size as usize - start.offset() as usize;
        let ordinary = self.options.block_bytes_max();
        self.room = rest.min(block.max(ordinary)) - HEADER_BYTES;
        let copied = align(HEADER_BYTES + bytes - shared).max(ordinary);
        if let Err(error) = self.open.fit(copied) {
            self.fail(format!("no memory for a block of {copied} bytes: {error}"));
        }
    }

    /// Ends the current batch, if it has records.
    fn seal(&mut self) {
        if !self.open.is_empty() {
            self.seal_open();
        }
    }

    fn seal_open(&mut self) {
        let end = self.open.seal();
        self.sealed_end = end;
        let buffer = self.spare.pop().unwrap_or_default();
        let next = Batch::new(end, self.open.segment_bytes, buffer);
        let batch = std::mem::replace(&mut self.open, next);
        self.room = 0;
        self.checkpoints.appended_bytes += batch.len() as u64;
        if matches!(self.state, State::Failed(_)) {
            return self.keep(batch.bytes);
        }
        self.sealed_bytes += batch.len();
        self.sealed.push_back(batch);
    }

    /// Keeps a buffer of ordinary size for reuse.
    fn keep(&mut self, buffer: Buffer) {
        let is_ordinary = (1..=2 * self.options.block_bytes_max()).contains(&buffer.capacity());
        if self.spare.len() < SPARE_BUFFERS_MAX && is_ordinary {
            self.spare.push(buffer);
        }
    }

    /// Adds `count` references, which keep the segment of this record.
    #[inline]
    pub fn retain(&mut self, position: Position, count: u32) {
        self.segments.retain(position.segment(), count.into());
    }
    /// Removes `count` references to the segment of this record.
    #[inline]
    pub fn release(&mut self, position: Position, count: u32) {
        self.segments.release(position.segment(), count.into());
    }

    /// Whether the last flush is proven by no block on the disk: if its bytes rot, and power is lost, they
    /// look like a write that was cut off.
    #[inline]
    pub fn is_unproven(&self) -> bool {
        self.proven < self.durable
    }

    /// Writes a block without records that proves the last flush; the host calls it a while after that
    /// flush if no other followed.
    pub fn prove_flush(&mut self) {
        let is_idle = self.state == State::Ready && self.backlog_bytes() == 0;
        if is_idle && self.is_unproven() {
            self.make_room(0, 0);
            self.seal_open();
            self.write_soon = true;
        }
    }

    // ---- progress ----

    /// Everything before this is written and flushed.
    pub fn durable(&self) -> Position {
        self.durable
    }
    /// Everything before this can be read back.
    pub fn written(&self) -> Position {
        self.written
    }
    /// Whether records can be made durable.
    pub fn state(&self) -> &State {
        &self.state
    }
    /// Whether publishers have to wait: the backlog is above its limit.
    pub fn congested(&self) -> bool {
        self.backlog_bytes() > self.options.backlog_bytes_max
    }
    /// Bytes of records that are not written yet.
    pub fn backlog_bytes(&self) -> u64 {
        let open = if self.open.is_empty() { 0 } else { self.open.len() };
        (self.sealed_bytes + self.out_bytes + open) as u64
    }
    /// A read of records; every position is before [`Journal::written`]. `past_cache`: bypasses the page
    /// cache, for less processor time and more latency.
    pub fn read(&self, positions: Vec<Position>, past_cache: bool) -> Read {
        Read { positions, past_cache, _readers: self.segments.readers() }
    }
    /// A scan of segments for every record that is whole and written.
    pub fn scan(&self, segments: &[u32]) -> SegmentScan {
        let files = segments.iter().filter_map(|id| self.segments.written(*id, self.written));
        SegmentScan { files: files.collect(), _readers: self.segments.readers() }
    }
    /// Counters for metrics.
    pub fn stats(&self) -> Stats {
        Stats {
            backlog_bytes: self.backlog_bytes(),
            segments: self.segments.count() as u64,
            disk_bytes: self.segments.disk_bytes(),
            live_references: self.segments.live_references(),
            ..self.stats.clone()
        }
    }

    // ---- jobs ----

    /// The next job for a disk. Several may run at the same time, but only one of each kind.
    pub fn next_job(&mut self) -> Option<Job> {
        if matches!(self.state, State::Failed(_)) {
            return None;
        }
        let work = if let Some(flush) = self.next_flush() {
            Work::Flush(flush)
        } else if let Some(write) = self.checkpoints.next(self.durable) {
            Work::Checkpoint(write)
        } else {
            return self.next_space_job();
        };
        Some(Job { work })
    }

    /// The next job for a disk that writes no records.
    pub fn next_space_job(&mut self) -> Option<Job> {
        // A large flush gains little from zeroed space, and would share the disk with the zeroing.
        let zero = self.flush_bytes_mean <= ZEROING_FLUSH_BYTES_MAX;
        Some(Job { work: Work::Space(self.segments.next_job(zero)?) })
    }

    /// Whether there is a backlog whose write can be deferred: it is small, and no record in it needs a
    /// flush.
    pub fn can_defer_write(&self) -> bool {
        let is_due = self.write_soon
            || self.flushing
            || self.checkpoints.pending_start().is_some()
            || self.open.durable
            || self.sealed.iter().any(|batch| batch.durable);
        let is_little = (1..DEFERRED_BYTES_MAX).contains(&self.backlog_bytes());
        !matches!(self.state, State::Failed(_)) && !is_due && is_little
    }

    fn next_flush(&mut self) -> Option<Flush> {
        if self.flushing || self.starved == Some(false) {
            return None;
        }
        // While its segment is being made it cannot be written, and sealing it would only add padding.
        let is_placed = self.segments.is_made(self.open.start.segment());
        if is_placed && self.sealed_bytes < FLUSH_BYTES_MAX {
            self.seal();
        }
        let mut batches = Vec::new();
        let mut bytes = 0;
        let mut sync = false;
        while let Some(batch) = self.sealed.front() {
            let larger = bytes + batch.len();
            let is_made = self.segments.is_made(batch.start.segment());
            if !is_made || (bytes > 0 && larger > FLUSH_BYTES_MAX) {
                break;
            }
            bytes = larger;
            sync |= batch.durable;
            let segment = batch.start.segment();
            if self.unsynced.last() != Some(&segment) {
                self.unsynced.push(segment);
            }
            batches.extend(self.sealed.pop_front());
        }
        // A checkpoint needs everything to be flushed that its snapshot may know of.
        let awaited = self.checkpoints.awaited();
        sync |= self.durable < awaited && (bytes > 0 || self.written >= awaited);
        if batches.is_empty() && !sync {
            return None;
        }
        self.flushing = true;
        self.write_soon &= !(self.sealed.is_empty() && self.open.is_empty());
        self.sealed_bytes -= bytes;
        self.out_bytes = bytes;
        Some(Flush {
            batches,
            segments: self.unsynced.clone(),
            sync,
            chain: self.chain,
            epoch: self.epoch,
            boot: self.boot,
            durable: self.durable,
            mark: self.checkpoints.pending_start().unwrap_or_default(),
            chain_at_mark: None,
        })
    }

    /// Takes a job's result.
    pub fn finished(&mut self, done: Done) {
        let Done { work, result } = done;
        match (work, &result) {
            (Work::Flush(flush), Err(JobError::NoMemory(_))) => self.put_back(flush),
            (Work::Flush(flush), _) => self.flush_finished(flush, result.is_ok()),
            (Work::Space(space), Ok(())) => self.segments.done(&space),
            (Work::Space(space), Err(JobError::Full(_) | JobError::NoMemory(_))) => {
                self.segments.full(&space);
            }
            (Work::Checkpoint(write), Ok(())) => self.checkpoint_written(&write),
            (Work::Checkpoint(_), Err(JobError::Full(_))) => {
                // The older one stays. A checkpoint, which frees segments, needs the space more than the
                // reserve for records does.
                let gave_up = self.segments.give_up_reserve();
                self.checkpoints.full(!gave_up);
            }
            (Work::Checkpoint(_), Err(JobError::NoMemory(_))) => self.checkpoints.full(true),
            (_, Err(JobError::Failed(_))) => {}
        }
        match result {
            Ok(()) => {}
            Err(JobError::Full(why)) => (self.shortage, self.lacks_memory) = (why, false),
            Err(JobError::NoMemory(why)) => (self.shortage, self.lacks_memory) = (why, true),
            Err(JobError::Failed(why)) => self.fail(why),
        }
        self.update_state();
    }

    /// Sets the state to `Full` exactly as long as something could not be made because there was no space,
    /// so that the host calls [`Journal::retry`].
    fn update_state(&mut self) {
        if !matches!(self.state, State::Failed(_)) {
            let waits = self.starved.is_some() || (self.checkpoints.owed && self.lacks_memory);
            let is_full = self.segments.short || self.checkpoints.blocked || waits;
            self.state = if is_full { State::Full } else { State::Ready };
        }
    }

    /// Nothing of it was written: it is the backlog again.
    fn put_back(&mut self, flush: Flush) {
        self.flushing = false;
        self.starved = Some(false);
        self.write_soon = true;
        self.sealed_bytes += std::mem::take(&mut self.out_bytes);
        for batch in flush.batches.into_iter().rev() {
            self.sealed.push_front(batch);
        }
    }

    fn flush_finished(&mut self, flush: Flush, is_ok: bool) {
        self.flushing = false;
        self.flush_bytes_mean = (7 * self.flush_bytes_mean + self.out_bytes as u64) / 8;
        self.out_bytes = 0;
        if !is_ok {
            return;
        }
        self.starved = None;
        self.chain = flush.chain;
        if let Some(chain) = flush.chain_at_mark {
            self.checkpoints.chained_at(flush.mark, chain);
        }
        if !flush.batches.is_empty() {
            self.proven = flush.durable;
        }
        self.stats.flushes += 1;
        self.stats.unsynced += u64::from(!flush.sync);
        for batch in flush.batches {
            self.written = batch.end();
            self.stats.flushed_bytes += batch.len() as u64;
            self.keep(batch.bytes);
        }
        if flush.sync {
            self.durable = self.written;
            self.unsynced.clear();
        }
        // The checkpoint may have been begun during this flush.
        self.checkpoints.chained_at(self.written, self.chain);
    }

    fn fail(&mut self, why: String) {
        if !matches!(self.state, State::Failed(_)) {
            self.state = State::Failed(why);
        }
        self.sealed.clear();
        self.sealed_bytes = 0;
        self.checkpoints.pending = None;
    }

    /// Tries again what found no space; the host calls it now and then while [`Journal::state`] is `Full`.
    pub fn retry(&mut self) {
        self.segments.retry();
        self.checkpoints.blocked = false;
        self.starved = self.starved.map(|_| true);
        self.may_compact = self.segments.can_compact(self.open.start.offset());
        self.update_state();
    }

    // ---- checkpoints and space ----

    /// Whether the host should now call [`Journal::begin_checkpoint`].
    pub fn checkpoint_due(&self) -> bool {
        if self.checkpoints.is_busy() {
            return false;
        }
        let dead = self.segments.dead() as u64;
        match self.state {
            State::Failed(_) => false,
            _ if self.segments.is_discarding() => false,
            _ if self.checkpoints.owed => true,
            State::Full => dead > 1 || self.may_compact,
            State::Ready => {
                let segment_bytes = u64::from(self.options.segment_bytes);
                self.checkpoints.appended_bytes >= self.options.checkpoint_bytes
                    || dead * segment_bytes > self.options.checkpoint_bytes + segment_bytes
            }
        }
    }

    /// Begins a checkpoint of what was appended so far, and of the current references. Its snapshot is of
    /// this moment, and may be handed in later.
    pub fn begin_checkpoint(&mut self) {
        self.await_snapshot(false);
    }

    /// Writes the checkpoint that was begun; its snapshot comes in consecutive pieces.
    pub fn finish_checkpoint(&mut self, snapshot: Vec<Vec<u8>>) {
        self.seal();
        self.checkpoints.complete(snapshot, self.sealed_end);
    }

    /// Makes the last checkpoint of this process, marked clean; afterwards run all jobs and append nothing.
    /// Drops a checkpoint that was begun.
    pub fn close(&mut self, snapshot: Vec<u8>) {
        self.await_snapshot(true);
        self.finish_checkpoint(vec![snapshot]);
    }

    fn await_snapshot(&mut self, clean: bool) {
        if matches!(self.state, State::Failed(_)) {
            return;
        }
        self.may_compact = false;
        self.seal();
        let start = self.sealed_end;
        self.segments.reached(start.offset());
        let checkpoint = Checkpoint {
            // Known when it is written.
            number: 0,
            epoch: self.epoch,
            start,
            chain: self.chain,
            segments: self.segments.usage(),
        };
        self.checkpoints.begin(checkpoint, start == self.written, clean);
    }

    fn checkpoint_written(&mut self, write: &WriteCheckpoint) {
        let checkpoint = &write.checkpoint;
        self.checkpoints.written(checkpoint);
        self.stats.checkpoints += 1;
        self.segments.checkpointed(checkpoint.start.segment(), &checkpoint.segments);
    }

    /// A segment with so few live records that appending them again gives its space back; each is returned
    /// once between two checkpoints. Looks at every segment: call it after a checkpoint, not every turn.
    pub fn sparse_segment(&mut self) -> Option<u32> {
        self.segments.sparse()
    }
}
