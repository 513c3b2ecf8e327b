//! Checks a journal without changing it: what is in it, and what is damaged.

use crate::checkpoint::{self, Chain, Checkpoint, Lost};
use crate::files::{self, SegmentFile};
use crate::format::{NoBlock, Part, parts, verify_record};
use crate::salvage::Region;
use crate::scan::{self, Block, WHOLE, Walk};
use crate::segments::Usage;
use crate::storage::failed;
use crate::tail::{Proof, Tail};
use crate::{Position, Storage};

/// What [`check`] found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The newest checkpoint, if it can be read.
    pub checkpoint: Option<CheckpointReport>,
    /// Every segment file, ascending.
    pub segments: Vec<SegmentReport>,
    /// What is wrong. Empty: the journal is whole.
    pub problems: Vec<Problem>,
    /// What costs nothing for all that is known: a missing copy, what lies behind the end of the log.
    pub notes: Vec<String>,
    /// Where the log ends, if nothing is wrong: appends go on there.
    pub end: Position,
    /// Everything before this was flushed, according to the last block: a start finds damage there. Damage
    /// behind it cannot be told from a flush that a crash interrupted.
    pub flushed: Position,
}

/// The newest checkpoint.
#[derive(Clone, Debug)]
pub struct CheckpointReport {
    /// Its file.
    pub name: String,
    /// Replay starts here.
    pub start: Position,
    /// Bytes of its snapshot.
    pub snapshot_bytes: u64,
    /// Whether an orderly shutdown wrote it.
    pub clean: bool,
}

/// One segment file.
#[derive(Clone, Debug)]
pub struct SegmentReport {
    /// Its file.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Valid blocks of this segment in it.
    pub blocks: u64,
    /// Records in them.
    pub records: u64,
    /// Bytes of blocks that a repair gave up.
    pub given_up: u64,
    /// Live references to it as of the checkpoint, if there is one.
    pub live: Option<u64>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub name: String,
    /// Where in it.
    pub offset: u64,
    /// What is wrong, and what it means.
    pub what: String,
    pub(crate) kind: ProblemKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    /// The journal is of another version of the format.
    Version,
    /// No file of any checkpoint can be used.
    Checkpoint {
        /// The log is there from its beginning to its end.
        log_is_whole: bool,
    },
    /// A file of a checkpoint cannot be used, and nothing is lost by it.
    Copy,
    /// A segment is gone or shorter than it was.
    Segment {
        id: u32,
        /// Its size before; 0: not known.
        bytes: u64,
    },
    /// The chain of blocks breaks where `walk` ended.
    Gap { walk: Walk, resumes: Resumption },
    /// Records before the checkpoint cannot be read: reading one returns an error.
    Unreadable(Region),
}

/// Where the chain of blocks goes on behind a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumption {
    /// With this block.
    Block(Block),
    /// Nowhere: the last block is the damaged one, which ends here.
    Nowhere(Position),
}

impl Report {
    /// Whether nothing says what the log began with: no checkpoint is left, and not the whole log.
    /// [`Remains`](crate::Remains) is what can be done about it.
    pub fn needs_rebuild(&self) -> bool {
        let lost = ProblemKind::Checkpoint { log_is_whole: false };
        self.problems.iter().any(|problem| problem.kind == lost)
    }

    /// Whether the journal is of another version of the format, which nothing here can read.
    pub fn is_of_another_version(&self) -> bool {
        self.problems.iter().any(|problem| problem.kind == ProblemKind::Version)
    }
}

impl Problem {
    /// A segment that had `bytes` bytes (0: not known) and lacks what was in it from `offset` on.
    fn segment(id: u32, bytes: u64, offset: u64, what: String) -> Problem {
        let kind = ProblemKind::Segment { id, bytes };
        Problem { name: files::segment_name(id), offset, what, kind }
    }
}

/// Looks at every block and record.
pub fn check(storage: &dyn Storage) -> Result<Report, String> {
    let names = storage.list().map_err(failed("list", "the journal"))?;
    let files = files::segments(storage, &names)?;
    let mut report = Report::default();
    let newest = check_checkpoint(storage, &names, &files, &mut report)?;
    if let Some(newest) = &newest {
        report.problems.extend(missing(newest, &files));
        check_chain(storage, newest, &files, &mut report)?;
    }
    let newest = newest.unwrap_or_default();
    for &file in &files {
        check_segment(storage, &newest, file, &mut report)?;
    }
    Ok(report)
}

/// The newest checkpoint; the default one if there is none; `None` if none can be used.
fn check_checkpoint(
    storage: &dyn Storage,
    names: &[String],
    files: &[SegmentFile],
    report: &mut Report,
) -> Result<Option<Checkpoint>, String> {
    let stored = match checkpoint::newest(storage, names) {
        Ok(Some(stored)) => stored,
        Ok(None) if !were_given_back(files) => return Ok(Some(Checkpoint::default())),
        Ok(None) => {
            let name = "checkpoint".to_owned();
            let what = "missing, and so are segments, which are given back only once there is one; what is \
                        whole can be rebuilt, without what only the checkpoint knew"
                .to_owned();
            let kind = ProblemKind::Checkpoint { log_is_whole: false };
            report.problems.push(Problem { name, offset: 0, what, kind });
            return Ok(None);
        }
        Err(Lost::Version(version)) => {
            let (name, what) = ("checkpoint".to_owned(), Lost::Version(version).to_string());
            report.problems.push(Problem { name, offset: 0, what, kind: ProblemKind::Version });
            return Ok(None);
        }
        Err(Lost::Damaged(name, what)) => {
            let log_is_whole = is_whole_log(storage, files)?;
            let means = match log_is_whole {
                true => "the log is there from its beginning and says the same",
                false => {
                    "parts of the log were given back; what is whole can be rebuilt, without what only the \
                     checkpoint knew"
                }
            };
            let what = format!("{what}; {means}");
            let kind = ProblemKind::Checkpoint { log_is_whole };
            report.problems.push(Problem { name, offset: 0, what, kind });
            return Ok(None);
        }
    };
    for flaw in &stored.flaws {
        if flaw.what.is_none() {
            report.notes.push(format!("{}: the next start writes it again", stored.cost(flaw)));
            continue;
        }
        let (name, what) = (flaw.name.clone(), stored.cost(flaw));
        report.problems.push(Problem { name, offset: 0, what, kind: ProblemKind::Copy });
    }
    let newest = stored.checkpoint.clone();
    let [name, _] = files::checkpoint_names(newest.number);
    report.checkpoint = Some(CheckpointReport {
        name,
        start: newest.start,
        snapshot_bytes: stored.snapshot().len() as u64,
        clean: checkpoint::is_clean(storage, names, &newest),
    });
    Ok(Some(newest))
}

/// Whether more than one segment is missing up to the last one that is there: one may have been lost, several
/// were given back.
fn were_given_back(files: &[SegmentFile]) -> bool {
    files.last().is_some_and(|last| last.id as usize > files.len() + 1)
}

/// Whether the chain of blocks leads from the beginning of the log to its end.
fn is_whole_log(storage: &dyn Storage, files: &[SegmentFile]) -> Result<bool, String> {
    let mut walk = Walk::new(files.to_vec(), &Checkpoint::default());
    let mut buffer = Vec::new();
    while walk.next(storage, &mut buffer)?.is_some() {}
    Ok(walk.chain != Chain::default() && Tail::look(storage, &walk, WHOLE)?.proof.is_none())
}

/// Walks the log as a start does, and continues behind every gap.
fn check_chain(
    storage: &dyn Storage,
    newest: &Checkpoint,
    files: &[SegmentFile],
    report: &mut Report,
) -> Result<(), String> {
    let mut walk = Walk::new(files.to_vec(), newest);
    let mut buffer = Vec::new();
    loop {
        while let Some(block) = walk.next(storage, &mut buffer)? {
            if let Some(problem) = cut_short(&block, files) {
                report.problems.push(problem);
            }
        }
        (report.end, report.flushed) = (walk.at, walk.durable);
        // A walk that found nothing has not come to the first segment.
        let name = files::segment_name(walk.at.segment().max(1));
        if let NoBlock::Version(_) = walk.end {
            let (offset, what) = (walk.at.offset().into(), walk.end.to_string());
            report.problems.push(Problem { name, offset, what, kind: ProblemKind::Version });
            return Ok(());
        }
        let tail = Tail::look(storage, &walk, WHOLE)?;
        let Some(proof) = tail.proof else {
            report.problems.extend(walk.missing_file().map(missing_file));
            report.notes.extend(tail.note(&walk));
            return Ok(());
        };
        let resumes = resumption(storage, &walk, proof)?;
        let (to, goes_on) = match resumes {
            Resumption::Block(block) => {
                let to = block.header.position();
                (to, format!("the log goes on in {to}"))
            }
            Resumption::Nowhere(end) => (end, "the log ends with it".to_owned()),
        };
        let (place, what) = walk.missing(storage, to)?;
        let id = place.segment().max(1);
        let is_there = files.iter().any(|file| file.id == id);
        let what = if is_there { what.to_string() } else { "missing".to_owned() };
        let proof = proof.text();
        report.problems.push(Problem {
            name: files::segment_name(id),
            offset: place.offset().into(),
            what: format!("{what}, though {proof}; {goes_on}"),
            kind: ProblemKind::Gap { walk: walk.clone(), resumes },
        });
        let Resumption::Block(block) = resumes else { return Ok(()) };
        walk.at = to;
        walk.chain.sequence = block.header.sequence - 1;
        walk.chain.checksum = block.header.previous;
    }
}

/// A segment between the end of the log and one prepared for later is gone.
pub(crate) fn missing_file(file: SegmentFile) -> Problem {
    let what = "missing, though a later segment is there: what it held, if anything, is lost";
    Problem::segment(file.id, file.bytes, 0, what.to_owned())
}

fn cut_short(block: &Block, files: &[SegmentFile]) -> Option<Problem> {
    let file = files.iter().find(|file| file.id == block.header.segment)?;
    let had = block.header.segment_bytes;
    (u64::from(had) > file.bytes && block.header.offset == 0).then(|| {
        let what = format!("cut short: it had {had} bytes");
        Problem::segment(file.id, had.into(), file.bytes, what)
    })
}

/// Segments with live records that are missing or cut short.
pub(crate) fn missing(newest: &Checkpoint, files: &[SegmentFile]) -> Vec<Problem> {
    let mut found = Vec::new();
    // Segments get their names only when they are complete.
    for &SegmentFile { id, .. } in files.iter().filter(|file| file.bytes == 0) {
        let usage = newest.segments.iter().find(|usage| usage.id == id);
        let bytes = usage.map_or(0, |usage| usage.bytes);
        found.push(Problem::segment(id, bytes, 0, "cut short: it is empty".into()));
    }
    for &Usage { id, bytes, live, .. } in &newest.segments {
        let is_start = id == newest.start.segment() && newest.start.offset() > 0;
        if live == 0 && !is_start {
            continue;
        }
        match files.iter().find(|file| file.id == id) {
            None => {
                let what = format!("missing: it kept records with {live} live references");
                found.push(Problem::segment(id, bytes, 0, what));
            }
            Some(file) if file.bytes > 0 && file.bytes < bytes => {
                let what = format!("cut short: it had {bytes} bytes");
                found.push(Problem::segment(id, bytes, file.bytes, what));
            }
            Some(_) => {}
        }
    }
    found
}

/// The first block behind the end of the walk that belongs to the log; `proof` says that something is
/// missing before it. Blocks that an earlier process left behind have an older epoch than those that prove
/// it.
fn resumption(storage: &dyn Storage, walk: &Walk, proof: Proof) -> Result<Resumption, String> {
    let mut first: Option<Block> = None;
    scan::search(storage, &walk.files, walk.at, WHOLE, |block, _| {
        let is_newer = |first: &Block| {
            block.header.epoch > first.header.epoch
                && block.header.sequence <= first.header.sequence
        };
        if walk.precedes(&block.header) && first.is_none_or(|first| is_newer(&first)) {
            first = Some(*block);
        }
        true
    })?;
    match (first, walk.damaged(storage)?) {
        (Some(block), _) => Ok(Resumption::Block(block)),
        (None, Some((header, _))) => {
            Ok(Resumption::Nowhere(Position(header.position().0 + header.padded() as u64)))
        }
        (None, None) => Err(format!("{} cannot be told from its end: {}", walk.at, proof.text())),
    }
}

/// Counts a segment's blocks and verifies its records.
fn check_segment(
    storage: &dyn Storage,
    newest: &Checkpoint,
    file: SegmentFile,
    report: &mut Report,
) -> Result<(), String> {
    let name = files::segment_name(file.id);
    let usage = newest.segments.iter().find(|usage| usage.id == file.id);
    let live = usage.map_or(0, |usage| usage.live);
    let mut segment = SegmentReport {
        name: name.clone(),
        bytes: file.bytes,
        blocks: 0,
        records: 0,
        given_up: 0,
        live: report.checkpoint.is_some().then_some(live),
    };
    // From the checkpoint's start on, the walk along the chain reports gaps.
    let limit = match usage {
        Some(usage) if live == 0 || usage.id > newest.start.segment() => 0,
        Some(usage) => u64::from(usage.end).min(file.bytes),
        None => 0,
    };
    let mut damaged = Vec::new();
    let mut expected = 0;
    let mut note = |from: u64, to: u64| {
        if from < to.min(limit) {
            damaged.push(Region { id: file.id, from, to: to.min(limit) });
        }
    };
    scan::search(storage, &[file], Position::at(file.id, 0), WHOLE, |block, bytes| {
        let offset = u64::from(block.header.offset);
        note(expected, offset);
        expected = offset + block.header.padded() as u64;
        segment.blocks += 1;
        for part in parts(bytes, &block.header) {
            match part {
                Part::Gap(_, bytes) => segment.given_up += bytes,
                Part::Record(position, bytes) if verify_record(bytes, position).is_some() => {
                    segment.records += 1;
                }
                Part::Record(..) | Part::Malformed(_) => note(offset, expected),
            }
        }
        true
    })?;
    note(expected, limit);
    report.segments.push(segment);
    for region in damaged {
        let salvaged = region.read(storage)?;
        let what = format!("no valid block up to offset {}: {}", region.to, salvaged.text());
        let kind = ProblemKind::Unreadable(region);
        report.problems.push(Problem { name: name.clone(), offset: region.from, what, kind });
    }
    Ok(())
}
