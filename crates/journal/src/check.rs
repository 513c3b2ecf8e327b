//! Checks a journal without changing it: what is in it, and what is damaged.

use crate::checkpoint::{self, Checkpoint};
use crate::files::{self, SegmentFile};
use crate::format::{NoBlock, records, verify_record};
use crate::scan::{self, Block, WHOLE, Walk};
use crate::segments::Usage;
use crate::storage::failed;
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
    /// The newest checkpoint cannot be used.
    Checkpoint,
    /// A segment with live records is gone or shorter than it was.
    Segment {
        id: u32,
        /// Its size before; 0: not known.
        bytes: u64,
    },
    /// The chain of blocks breaks where `walk` ended, and continues with `resumes`.
    Gap { walk: Walk, resumes: Block },
    /// Records before the checkpoint cannot be read: reading one returns an error.
    Unreadable,
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
    let newest = check_checkpoint(storage, &names, &mut report)?;
    if let Some(newest) = &newest {
        report.problems.extend(missing(newest, &files));
        check_chain(storage, newest, &files, &mut report)?;
    }
    let newest = newest.unwrap_or_default();
    let mut given_up = Position(0);
    for &file in &files {
        check_segment(storage, &newest, file, &mut given_up, &mut report)?;
    }
    Ok(report)
}

/// The newest checkpoint; the default one if there is none; `None` if it is corrupt.
fn check_checkpoint(
    storage: &dyn Storage,
    names: &[String],
    report: &mut Report,
) -> Result<Option<Checkpoint>, String> {
    match checkpoint::newest(storage, names) {
        Ok(None) => Ok(Some(Checkpoint::default())),
        Ok(Some((newest, snapshot))) => {
            report.checkpoint = Some(CheckpointReport {
                name: files::checkpoint_name(newest.number),
                start: newest.start,
                snapshot_bytes: snapshot.len() as u64,
                clean: checkpoint::is_clean(storage, names, &newest),
            });
            Ok(Some(newest))
        }
        Err(what) => {
            let number = names.iter().filter_map(|name| files::parse_checkpoint_name(name)).max();
            let name = files::checkpoint_name(number.unwrap_or_default());
            report.problems.push(Problem { name, offset: 0, what, kind: ProblemKind::Checkpoint });
            Ok(None)
        }
    }
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
        let Some(resumes) = resumption(storage, &walk)? else {
            return Ok(());
        };
        let to = resumes.header.position();
        let (place, what) = walk.missing(storage, to)?;
        report.problems.push(Problem {
            name: files::segment_name(place.segment()),
            offset: place.offset().into(),
            what: format!(
                "{what}, though it was flushed once; the log goes on in {to}: whatever was between is \
                 lost",
            ),
            kind: ProblemKind::Gap { walk: walk.clone(), resumes },
        });
        walk.at = to;
        walk.chain.sequence = resumes.header.sequence - 1;
        walk.chain.checksum = resumes.header.previous;
    }
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

/// The first block behind the end of the walk that belongs to the log, if a later one proves that the end
/// was flushed once. Blocks that an earlier process left behind have an older epoch than those.
fn resumption(storage: &dyn Storage, walk: &Walk) -> Result<Option<Block>, String> {
    let mut first: Option<Block> = None;
    let mut proven = false;
    scan::search(storage, &walk.files, walk.at, WHOLE, |block, _| {
        let newer = |first: &Block| {
            block.header.epoch > first.header.epoch
                && block.header.sequence <= first.header.sequence
        };
        if block.header.epoch >= walk.epoch && block.header.sequence > walk.chain.sequence {
            if first.is_none_or(|first| newer(&first)) {
                first = Some(*block);
            }
            proven |= block.header.durable > walk.at;
        }
        true
    })?;
    Ok(first.filter(|_| proven))
}

/// Counts a segment's blocks and verifies its records. A repair gave up what lies before `given_up`.
fn check_segment(
    storage: &dyn Storage,
    newest: &Checkpoint,
    file: SegmentFile,
    given_up: &mut Position,
    report: &mut Report,
) -> Result<(), String> {
    let name = files::segment_name(file.id);
    let at = |offset: u64| Position(Position::at(file.id, 0).0 + offset);
    let live = newest.segments.iter().find(|usage| usage.id == file.id).map_or(0, |it| it.live);
    let known = report.checkpoint.is_some().then_some(live);
    let mut segment = SegmentReport {
        name: name.clone(),
        bytes: file.bytes,
        blocks: 0,
        records: 0,
        given_up: 0,
        live: known,
    };
    let mut expected = 0;
    let mut note = |offset: u64, what: String| {
        // From the checkpoint's start on, the walk along the chain reports gaps.
        if at(offset) < newest.start && live > 0 {
            let what = format!("{what}: live records here may be unreadable");
            let kind = ProblemKind::Unreadable;
            report.problems.push(Problem { name: name.clone(), offset, what, kind });
        }
    };
    scan::search(storage, &[file], Position::at(file.id, 0), WHOLE, |block, bytes| {
        let offset = u64::from(block.header.offset);
        let hole = scan::hole_end(block, bytes);
        // A gap that ends at a hole is the block in which the file was cut off.
        if offset > expected && (at(offset) <= *given_up || hole.is_some()) {
            segment.given_up += offset - expected;
        } else if offset > expected {
            note(expected, format!("no valid block up to offset {offset}"));
        }
        expected = offset + block.header.padded() as u64;
        *given_up = hole.unwrap_or_default().max(*given_up);
        segment.blocks += 1;
        for record in records(bytes, &block.header) {
            segment.records += 1;
            let valid = record.map(|(position, bytes)| verify_record(bytes, position).is_some());
            if valid != Ok(true) {
                note(offset, "a record's checksum is wrong".into());
            }
        }
        true
    })?;
    if expected < file.bytes && at(file.bytes) <= *given_up {
        segment.given_up += file.bytes - expected;
    } else if expected == 0 && live > 0 {
        note(0, NoBlock::Absent.to_string());
    }
    report.segments.push(segment);
    Ok(())
}
