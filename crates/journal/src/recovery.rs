//! Opens an existing log: the checkpoint, then the records after it, one block in memory at a time.
//!
//! The log ends where the chain of blocks ends. The blocks behind the end tell why. Every block carries the
//! position before which everything was flushed when it was made. If a valid block behind the end shows
//! that the end was flushed, or was written in this boot of the machine, the bytes at the end are damaged:
//! the start is refused. Otherwise they are dropped as the torn tail of a crash, and the journal's notes
//! say what was there.

use std::collections::VecDeque;

use crate::check::{self, Problem};
use crate::checkpoint::{self, Chain, Checkpoint, Lost, Stored};
use crate::files::{self, CLEAN_NAME, PREPARING_SUFFIX, SegmentFile};
use crate::format::{NoBlock, Opening, Part, RECORD_HEADER_BYTES, parts};
use crate::journal::FLUSH_BYTES_MAX;
use crate::scan::{self, Block, Walk};
use crate::segments::{Segments, Usage};
use crate::storage::{failed, is_full};
use crate::tail::{Proof, Tail};
use crate::{Journal, Options, Position, Storage};

const HINT: &str = "nothing was changed; run `angarium journal check` to see what is damaged";

/// An opened log whose records are not replayed yet.
#[derive(Debug)]
pub struct Recovery {
    options: Options,
    names: Vec<String>,
    files: Vec<SegmentFile>,
    checkpoint: Option<Stored>,
    clean: bool,
}

impl Recovery {
    /// Reads the newest checkpoint and finds the segments. The error for damage names file and offset, and
    /// `angarium journal check`.
    pub fn open(storage: &dyn Storage, options: Options) -> Result<Recovery, String> {
        let names = storage.list().map_err(failed("list", "the journal"))?;
        let files = files::segments(storage, &names)?;
        let checkpoint = checkpoint::newest(storage, &names).map_err(|lost| match lost {
            Lost::Version(_) => lost.to_string(),
            Lost::Damaged(..) => format!("{lost}; {HINT}"),
        })?;
        let newest = checkpoint.as_ref().map(|it| it.checkpoint.clone()).unwrap_or_default();
        if let Some(Problem { name, offset, what, .. }) = check::missing(&newest, &files).first() {
            return Err(format!("{name} is damaged at offset {offset}: {what}; {HINT}"));
        }
        let mut walk = Walk::new(files.clone(), &newest);
        let clean = checkpoint.is_some()
            && checkpoint::is_clean(storage, &names, &newest)
            && walk.next(storage, &mut Vec::new())?.is_none();
        Ok(Recovery { options: options.rounded(), names, files, checkpoint, clean })
    }

    /// The snapshot in the checkpoint, if there is one.
    pub fn snapshot(&self) -> Option<&[u8]> {
        self.checkpoint.as_ref().map(Stored::snapshot)
    }
    /// Whether the last process shut the journal down in an orderly way (`Journal::close`).
    pub fn clean(&self) -> bool {
        self.clean
    }

    /// Passes every record after the checkpoint to `apply`, in order. `apply` gets `&mut Journal` only for
    /// `retain` and `release`.
    pub fn replay(
        self,
        storage: &dyn Storage,
        mut apply: impl FnMut(&mut Journal, Position, &[u8]) -> Result<(), String>,
    ) -> Result<Journal, String> {
        let Recovery { options, names, files, checkpoint, clean } = self;
        let newest = checkpoint.as_ref().map(|it| it.checkpoint.clone()).unwrap_or_default();
        let last_number = checkpoint.as_ref().map_or(0, |stored| stored.last_number);
        let mut walk = Walk::new(files.clone(), &newest);
        // Segments behind the checkpoint are added when replay reaches them.
        let segments = known_segments(&options, &newest, &files);
        let mut journal = Journal::new(options.clone(), segments, last_number);
        let mut buffer = Vec::new();
        let mut tail = VecDeque::new();
        while let Some(block) = walk.next(storage, &mut buffer)? {
            journal.replayed(block.header.padded() as u64);
            let bytes = size_of(&files, block.header.segment);
            whole(&block, bytes)?;
            journal.reach(&block, bytes);
            apply_block(&mut journal, &block, &buffer, &mut apply)?;
            tail.push_back(block);
            while tail.front().is_some_and(|block| block.end() <= walk.durable) {
                tail.pop_front();
            }
        }
        let mut epoch = walk.epoch;
        if !clean {
            let end = judge_end(storage, &walk, search_gap(&options))?;
            epoch = end.epoch;
            end.note(&walk).into_iter().for_each(|note| journal.note(note));
            settle_tail(storage, &files, tail)?;
        }
        tidy(storage, &names, newest.number)?;
        if let Some(stored) = &checkpoint {
            restore_files(storage, stored)?.into_iter().for_each(|note| journal.note(note));
        }
        journal.begin(&walk, &files, epoch + 1, storage.boot());
        Ok(journal)
    }
}

/// Writes the files of the checkpoint again that are damaged or missing. Returns what was wrong with them.
fn restore_files(storage: &dyn Storage, stored: &Stored) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    for flaw in &stored.flaws {
        let text = stored.cost(flaw);
        let written = if stored.is_its_own(&flaw.name) {
            storage.replace(&flaw.name, &stored.bytes)
        } else {
            Ok(())
        };
        notes.push(match written {
            Err(error) if is_full(&error) => format!("{text}; it cannot be written again: {error}"),
            result => {
                result.map_err(failed("write", &flaw.name))?;
                text
            }
        });
    }
    Ok(notes)
}

/// Refuses a segment that is shorter than its blocks say: records at its end are gone.
fn whole(block: &Block, bytes: u64) -> Result<(), String> {
    if u64::from(block.header.segment_bytes) <= bytes {
        return Ok(());
    }
    let name = files::segment_name(block.header.segment);
    let had = block.header.segment_bytes;
    Err(format!("{name} is damaged at offset {bytes}: cut short: it had {had} bytes; {HINT}"))
}

fn size_of(files: &[SegmentFile], id: u32) -> u64 {
    files.iter().find(|file| file.id == id).map_or(0, |file| file.bytes)
}

/// The segments that the checkpoint knows, with its counts.
fn known_segments(options: &Options, newest: &Checkpoint, files: &[SegmentFile]) -> Segments {
    let mut segments = Segments::new(options);
    let is_there = |usage: &&Usage| files.iter().any(|file| file.id == usage.id);
    for usage in newest.segments.iter().filter(is_there) {
        if usage.live > 0 || usage.id >= newest.start.segment() {
            segments.restore(*usage);
        }
    }
    segments
}

fn apply_block(
    journal: &mut Journal,
    block: &Block,
    bytes: &[u8],
    apply: &mut impl FnMut(&mut Journal, Position, &[u8]) -> Result<(), String>,
) -> Result<(), String> {
    journal.mended |= block.header.mended.is_some();
    for part in parts(bytes, &block.header) {
        match part {
            Part::Gap(..) => {}
            Part::Malformed(position) => {
                return Err(format!("the record in {position} is malformed; {HINT}"));
            }
            Part::Record(position, record) => {
                apply(journal, position, &record[RECORD_HEADER_BYTES..])
                    .map_err(|why| format!("the record in {position} cannot be replayed: {why}"))?;
            }
        }
    }
    Ok(())
}

/// How many bytes without a sign of a block end the search for proof in a segment behind the one in
/// which the chain ended.
///
/// A segment is written from its beginning on, so the search can stop early in segments that are prepared
/// for later. Between the end of what was flushed and a proof there can be, without any sign, what a crash
/// took of the proof's own flush; and before that the missing block of the chain, if only zeros are left of
/// it. The gap has room for both.
fn search_gap(options: &Options) -> u64 {
    (FLUSH_BYTES_MAX + options.block_bytes_max()) as u64
}

/// Refuses the start if the bytes at the end of the walk are damaged.
fn judge_end(storage: &dyn Storage, walk: &Walk, gap: u64) -> Result<Tail, String> {
    if let NoBlock::Version(_) = walk.end {
        return Err(walk.end.to_string());
    }
    let tail = Tail::look(storage, walk, gap)?;
    let (resumes, proof) = match tail.proof {
        None => {
            return match walk.missing_file().map(check::missing_file) {
                Some(Problem { name, what, .. }) => Err(format!("{name} is {what}; {HINT}")),
                None => Ok(tail),
            };
        }
        Some(proof @ (Proof::Flushed(place) | Proof::Behind(place))) => (place, proof),
        Some(proof @ Proof::Complete) => (Position(u64::MAX), proof),
    };
    let proof = proof.text();
    Err(match walk.missing(storage, resumes)? {
        (Position(0), _) => format!(
            "the beginning of the journal is missing, and there is no checkpoint: {proof}; {HINT}"
        ),
        (place, what) => {
            format!("the journal is damaged in {place}: {what}, though {proof}; {HINT}")
        }
    })
}

/// Writes and flushes again the blocks that were read but perhaps never flushed. After a failed flush the
/// page cache may show bytes that the disk does not have, and another flush alone would not write them.
/// They must be durable, since every later block says that everything before it is.
fn settle_tail(
    storage: &dyn Storage,
    files: &[SegmentFile],
    mut tail: VecDeque<Block>,
) -> Result<(), String> {
    let mut buffer = Vec::new();
    let is_same_segment = |a: &Block, b: &Block| a.header.segment == b.header.segment;
    for blocks in tail.make_contiguous().chunk_by(is_same_segment) {
        let id = blocks[0].header.segment;
        let (name, file) = (files::segment_name(id), SegmentFile { id, bytes: size_of(files, id) });
        for block in blocks {
            let offset = block.header.offset.into();
            if scan::read_block(storage, file, offset, &mut buffer)? != Ok(*block) {
                return Err(format!("{} reads differently each time", block.header.position()));
            }
            storage.write(&name, offset, &buffer).map_err(failed("write", &name))?;
        }
        storage.sync(&name).map_err(failed("flush", &name))?;
    }
    Ok(())
}

/// Removes the mark of an orderly shutdown (before anything is delivered again) and unfinished files.
fn tidy(storage: &dyn Storage, names: &[String], newest: u32) -> Result<(), String> {
    for name in names {
        let unfinished = name.strip_suffix(PREPARING_SUFFIX).is_some_and(|name| {
            files::parse_segment_name(name).is_some()
                || files::parse_checkpoint_name(name).is_some()
                || name == CLEAN_NAME
        });
        let older = files::parse_checkpoint_name(name).is_some_and(|number| number < newest);
        if unfinished || older || name == CLEAN_NAME {
            storage.remove(name).map_err(failed("remove", name))?;
        }
    }
    Ok(())
}

impl Journal {
    /// Replay reaches a block in a segment of this size.
    fn reach(&mut self, block: &Block, bytes: u64) {
        let id = block.header.segment;
        if self.segments.bytes(id) == 0 {
            self.segments.restore(Usage { id, bytes, live: 0, total: 0, end: 0 });
        }
        self.segments.reached(block.end().offset());
    }

    /// Replay is over: appends continue behind the last block.
    fn begin(&mut self, walk: &Walk, files: &[SegmentFile], epoch: u32, boot: u32) {
        // Where nothing was ever written, all existing segments are unused.
        let end = if walk.chain == Chain::default() { Position(0) } else { walk.at };
        for &file in files {
            if self.segments.bytes(file.id) > 0 {
                continue;
            }
            if file.id > end.segment() {
                self.segments.restore_next(file);
            } else {
                self.segments.restore_free(file);
            }
        }
        let proven = if walk.is_proven { end } else { walk.durable };
        self.continue_at(end, proven, walk.chain, Opening { epoch, boot });
    }
}
