//! Jobs for the disk and their results. A job runs on any thread and touches only the storage.

use std::io;

use crate::batch::Batch;
use crate::checkpoint::{Chain, Checkpoint, clean_mark, read_back};
use crate::files::{self, CLEAN_NAME};
use crate::format::{self, BlockHeader, HEADER_BYTES};
use crate::space::{Space, explain};
use crate::storage::{JobError, failed};
use crate::{Position, Storage};

/// Work for the disk: a flush, a new segment, a checkpoint, a removal.
#[derive(Debug)]
pub struct Job {
    pub(crate) work: Work,
}

/// What a job does. One job of each kind may run at a time, on different threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Writes records; confirms wait for it.
    Flush,
    /// Makes or removes segments, one piece of work at a time.
    Space,
    /// Writes a checkpoint.
    Checkpoint,
}

/// A job's result.
#[derive(Debug)]
pub struct Done {
    pub(crate) work: Work,
    pub(crate) result: Result<(), JobError>,
}

#[derive(Debug)]
pub(crate) enum Work {
    Flush(Flush),
    Space(Space),
    Checkpoint(WriteCheckpoint),
}

/// Batches to write, and whether to flush them.
#[derive(Debug)]
pub(crate) struct Flush {
    pub(crate) batches: Vec<Batch>,
    /// Segments with writes that are not flushed, those of these batches included.
    pub(crate) segments: Vec<u32>,
    pub(crate) sync: bool,
    /// The chain before the first batch; after [`Job::run`], after the last.
    pub(crate) chain: Chain,
    pub(crate) epoch: u32,
    pub(crate) boot: u32,
    pub(crate) durable: Position,
    /// Where a pending checkpoint starts: it needs the chain there.
    pub(crate) mark: Position,
    pub(crate) chain_at_mark: Option<Chain>,
}

#[derive(Debug)]
pub(crate) struct WriteCheckpoint {
    pub(crate) checkpoint: Checkpoint,
    /// In consecutive pieces; freed once it is written.
    pub(crate) snapshot: Vec<Vec<u8>>,
    /// Written by an orderly shutdown.
    pub(crate) clean: bool,
}

impl Work {
    fn kind(&self) -> JobKind {
        match self {
            Work::Flush(_) => JobKind::Flush,
            Work::Space(_) => JobKind::Space,
            Work::Checkpoint(_) => JobKind::Checkpoint,
        }
    }
}

impl Job {
    /// The kind of the job.
    pub fn kind(&self) -> JobKind {
        self.work.kind()
    }

    /// Bytes that the job writes.
    pub fn bytes(&self) -> u64 {
        match &self.work {
            Work::Flush(flush) => flush.batches.iter().map(|batch| batch.len() as u64).sum(),
            Work::Space(Space::Zero { bytes, .. }) => *bytes,
            Work::Space(_) => 0,
            Work::Checkpoint(write) => write.snapshot.iter().map(|piece| piece.len() as u64).sum(),
        }
    }

    /// Runs the job. Blocks.
    pub fn run(mut self, storage: &dyn Storage) -> Done {
        let result = match &mut self.work {
            Work::Flush(flush) => flush.run(storage),
            Work::Space(space) => space.run(storage),
            Work::Checkpoint(write) => write.run(storage),
        };
        Done { work: self.work, result }
    }
}

impl Done {
    /// The kind of the job.
    pub fn kind(&self) -> JobKind {
        self.work.kind()
    }
}

impl Flush {
    /// No space is a failure here: segments are made with their space. Without memory nothing is written.
    fn run(&mut self, storage: &dyn Storage) -> Result<(), JobError> {
        self.seal().map_err(failed("make", "a block")).map_err(JobError::NoMemory)?;
        self.write(storage).map_err(JobError::Failed)?;
        self.batches.iter_mut().for_each(Batch::written);
        Ok(())
    }

    fn write(&self, storage: &dyn Storage) -> Result<(), String> {
        let adjoins = |a: &Batch, b: &Batch| a.end() == b.start;
        for adjoining in self.batches.chunk_by(adjoins) {
            let start = adjoining[0].start;
            let name = files::segment_name(start.segment());
            let parts: Vec<&[u8]> = adjoining.iter().map(|batch| &*batch.bytes).collect();
            let written = storage.write_parts(&name, start.offset().into(), &parts);
            written.map_err(failed("write", &name))?;
        }
        if self.sync {
            for &segment in &self.segments {
                let name = files::segment_name(segment);
                storage.sync(&name).map_err(failed("flush", &name))?;
            }
        }
        Ok(())
    }

    /// Writes the blocks' headers and checksums.
    fn seal(&mut self) -> io::Result<()> {
        for batch in &mut self.batches {
            batch.assemble()?;
            let header = BlockHeader {
                flags: 0,
                segment: batch.start.segment(),
                offset: batch.start.offset(),
                sequence: self.chain.sequence + 1,
                epoch: self.epoch,
                length: (batch.filled - HEADER_BYTES) as u32,
                records: batch.records,
                previous: self.chain.checksum,
                durable: self.durable,
                segment_bytes: batch.segment_bytes,
                boot: self.boot,
                mended: None,
            };
            let checksum = format::seal_block(&mut batch.bytes, &header);
            self.chain = Chain { sequence: header.sequence, checksum };
            if batch.end() == self.mark {
                self.chain_at_mark = Some(self.chain);
            }
        }
        Ok(())
    }
}

impl WriteCheckpoint {
    pub(crate) fn run(&mut self, storage: &dyn Storage) -> Result<(), JobError> {
        let number = self.checkpoint.number;
        let names = files::checkpoint_names(number);
        let bytes = self.checkpoint.encode(std::mem::take(&mut self.snapshot));
        let bytes = explain("make", &names[0], bytes)?;
        for name in &names {
            explain("write", name, storage.replace(name, &bytes))?;
            explain("read back", name, read_back(storage, name, &bytes))?;
        }
        // The older ones go before any segment that they need: see `checkpoint`.
        for name in explain("list", "the journal", storage.list())? {
            if files::parse_checkpoint_name(&name).is_some_and(|other| other < number) {
                explain("remove", &name, storage.remove(&name))?;
            }
        }
        if self.clean {
            let mark = clean_mark(number, self.checkpoint.epoch);
            explain("write", CLEAN_NAME, storage.replace(CLEAN_NAME, &mark))?;
        }
        Ok(())
    }
}
