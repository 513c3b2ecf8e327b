//! The segments: which exist, how many live references each has, which is next. Independent of blocks.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::files::SegmentFile;
use crate::space::{Space, ZERO_BYTES};
use crate::{Options, Position};

/// Segments that are prepared beside the one being written: the next one, and one in reserve so that
/// settles can be written while there is no space for more.
pub(crate) const READY_SEGMENTS: usize = 2;
/// Records are moved once the segments take more than this many quarters of the bytes that are live in them:
/// half of it is dead, or without space, a fifth.
const SPARSE_QUARTERS: u64 = 8;
const SPARSE_QUARTERS_SHORT: u64 = 5;
/// Fewer segments than this are left as they are.
const SPARSE_SEGMENTS_MIN: usize = 3;

/// A segment's references, as a checkpoint records them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) id: u32,
    pub(crate) bytes: u64,
    /// References to it.
    pub(crate) live: u64,
    /// References ever added.
    pub(crate) total: u64,
    /// Where the log left it, or is in it now.
    pub(crate) end: u32,
}

/// A segment with records, the one that takes the next ones, or one that is prepared for later.
#[derive(Debug)]
struct Segment {
    usage: Usage,
    /// Its file has its final name.
    made: bool,
    /// It was returned as sparse since the last checkpoint.
    moving: bool,
}

impl Segment {
    /// A segment without references.
    fn new(file: SegmentFile, made: bool) -> Segment {
        let SegmentFile { id, bytes } = file;
        Segment { usage: Usage { id, bytes, live: 0, total: 0, end: 0 }, made, moving: false }
    }
    fn file(&self) -> SegmentFile {
        SegmentFile { id: self.usage.id, bytes: self.usage.bytes }
    }
}

/// Files that are free once all reads begun before have ended.
#[derive(Debug)]
struct Retired {
    /// Shared with every read begun before.
    readers: Arc<()>,
    files: Vec<SegmentFile>,
}

/// Progress of the segment that is being made.
#[derive(Clone, Copy, Debug)]
struct Making {
    file: SegmentFile,
    /// Bytes overwritten with zeros; `None`: it is not created yet.
    zeroed: Option<u64>,
}

/// Work that is not tried because the disk had no space for it. [`Segments::retry`] ends every pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pause {
    #[default]
    Nothing,
    /// New files. Free ones are still reused and removed, and a removal ends the pause.
    Making,
    /// Everything: even a rename or a removal failed.
    Everything,
}

#[derive(Debug, Default)]
pub(crate) struct Segments {
    segment_bytes: u64,
    first_bytes: u64,
    free_max: usize,
    /// Ascending ids; the last one is being written.
    used: Vec<Segment>,
    /// How many of `used` have no live references.
    dead: usize,
    /// Prepared for later.
    next: VecDeque<Segment>,
    next_id: u32,
    making: Option<Making>,
    /// A segment that could not be made, whose file is to be removed.
    abandoned: Option<u32>,
    /// The work that is being done.
    out: Option<Space>,
    pause: Pause,
    /// Something needed found no space and is not made yet. True during every pause, so that the caller
    /// knows when to call `retry`.
    pub(crate) short: bool,
    readers: Arc<()>,
    retired: VecDeque<Retired>,
    free: VecDeque<SegmentFile>,
    /// To be removed although they could be reused: a checkpoint needs their space.
    discard: Vec<u32>,
}

impl Segments {
    pub(crate) fn new(options: &Options) -> Segments {
        Segments {
            segment_bytes: options.segment_bytes.into(),
            first_bytes: options.first_segment_bytes.into(),
            free_max: options.free_segments_max(),
            next_id: 1,
            ..Segments::default()
        }
    }

    // ---- recovery ----

    /// Adds a segment with records; ids must ascend.
    pub(crate) fn restore(&mut self, usage: Usage) {
        self.next_id = self.next_id.max(usage.id + 1);
        self.dead += usize::from(usage.live == 0);
        self.used.push(Segment { usage, made: true, moving: false });
    }
    /// Adds a segment without records, made by an earlier process for later. All of them stay so, since a
    /// start expects the one behind the end of the log to be there if any later one is.
    pub(crate) fn restore_next(&mut self, file: SegmentFile) {
        self.next_id = self.next_id.max(file.id + 1);
        self.next.push_back(Segment::new(file, true));
    }
    /// Adds a file of an earlier process that is not needed.
    pub(crate) fn restore_free(&mut self, file: SegmentFile) {
        self.next_id = self.next_id.max(file.id + 1);
        self.free.push_back(file);
    }

    // ---- appending ----

    pub(crate) fn bytes(&self, id: u32) -> u64 {
        self.find(id).map_or(0, |at| self.used[at].usage.bytes)
    }
    /// What is written of a segment, if there is such a one: all that the log left in it, or what lies before
    /// `written`.
    pub(crate) fn written(&self, id: u32, written: Position) -> Option<SegmentFile> {
        let usage = self.used[self.find(id)?].usage;
        let end = if id == written.segment() { written.offset() } else { usage.end };
        Some(SegmentFile { id, bytes: end.into() })
    }
    /// Whether that segment is not made since there is no space.
    pub(crate) fn is_short_of(&self, id: u32) -> bool {
        self.short && !self.is_made(id)
    }
    pub(crate) fn is_made(&self, id: u32) -> bool {
        self.find(id).is_some_and(|at| self.used[at].made)
    }

    /// The log leaves the segment that it is in at the offset `end`, for one with room for a block of
    /// `block` bytes.
    pub(crate) fn advance(&mut self, end: u32, block: u64) -> u32 {
        self.reached(end);
        // Ids must ascend along the log, so prepared ones that are too small are passed. They stay until a
        // checkpoint, since a start expects the one behind the end of the log to be there.
        let is_small = |next: &Segment| next.usage.bytes < block;
        while self.next.front().is_some_and(is_small) {
            self.used.extend(self.next.pop_front());
            self.dead += 1;
        }
        if self.next.is_empty() {
            self.plan(self.bytes_of_next().max(block));
        }
        let next = self.next.pop_front().expect("one was planned");
        let id = next.usage.id;
        self.used.push(next);
        self.dead += 1;
        id
    }

    /// The log is at the offset `end` of the segment that is being written.
    pub(crate) fn reached(&mut self, end: u32) {
        if let Some(last) = self.used.last_mut() {
            last.usage.end = end;
        }
    }

    /// Bytes of the next segment to plan: a small store has small segments, each twice as large as the one
    /// before.
    fn bytes_of_next(&self) -> u64 {
        let before = self.next.back().or(self.used.last()).map(|before| before.usage.bytes);
        before.map_or(self.first_bytes, |before| {
            (2 * before).max(self.first_bytes).min(self.segment_bytes)
        })
    }

    fn plan(&mut self, bytes: u64) {
        self.next.push_back(Segment::new(SegmentFile { id: self.next_id, bytes }, false));
        self.next_id += 1;
    }

    // ---- references ----

    #[inline]
    fn find(&self, id: u32) -> Option<usize> {
        match self.used.last() {
            Some(last) if last.usage.id == id => Some(self.used.len() - 1),
            _ => self.used.binary_search_by_key(&id, |used| used.usage.id).ok(),
        }
    }
    #[inline]
    pub(crate) fn retain(&mut self, id: u32, count: u64) {
        if let Some(at) = self.find(id) {
            let usage = &mut self.used[at].usage;
            self.dead -= usize::from(usage.live == 0 && count > 0);
            usage.live += count;
            usage.total += count;
        } else {
            debug_assert!(false, "retained in segment {id}, which does not exist");
        }
    }
    #[inline]
    pub(crate) fn release(&mut self, id: u32, count: u64) {
        if let Some(at) = self.find(id) {
            let live = &mut self.used[at].usage.live;
            debug_assert!(*live >= count, "released more than was retained in segment {id}");
            self.dead += usize::from(*live > 0 && *live <= count);
            *live = live.saturating_sub(count);
        } else {
            debug_assert!(false, "released in segment {id}, which does not exist");
        }
    }

    /// Every segment up to the one being written, for a checkpoint.
    pub(crate) fn usage(&self) -> Vec<Usage> {
        self.used.iter().map(|used| used.usage).collect()
    }
    /// Segments without live references, the one being written among them.
    pub(crate) fn dead(&self) -> usize {
        debug_assert_eq!(self.dead, self.used.iter().filter(|it| it.usage.live == 0).count());
        self.dead
    }

    /// A checkpoint with these counts that starts in segment `start` is durable. Retires the segments
    /// before it that had no references then and have none now.
    pub(crate) fn checkpointed(&mut self, start: u32, counted: &[Usage]) {
        let dead = |id: u32| {
            let at = counted.binary_search_by_key(&id, |usage| usage.id);
            at.is_ok_and(|at| counted[at].live == 0)
        };
        let mut files = Vec::new();
        self.used.retain_mut(|used| {
            used.moving = false;
            let goes = used.usage.id < start && used.usage.live == 0 && dead(used.usage.id);
            if goes {
                files.push(used.file());
            }
            !goes
        });
        self.dead -= files.len();
        if !files.is_empty() {
            let readers = std::mem::take(&mut self.readers);
            self.retired.push_back(Retired { readers, files });
        }
        self.collect();
    }

    /// Keeps every existing segment readable as long as the value lives.
    pub(crate) fn readers(&self) -> Arc<()> {
        Arc::clone(&self.readers)
    }

    fn collect(&mut self) {
        while let Some(retired) = self.retired.front_mut()
            && Arc::strong_count(&retired.readers) == 1
        {
            self.free.extend(retired.files.drain(..));
            self.retired.pop_front();
        }
    }

    /// A sealed segment with so few live records that moving them gives most of its space back.
    pub(crate) fn sparse(&mut self) -> Option<u32> {
        let quarters = if self.short { SPARSE_QUARTERS_SHORT } else { SPARSE_QUARTERS };
        let sealed = self.used.len().saturating_sub(1);
        let used = &mut self.used[..sealed];
        if used.len() < SPARSE_SEGMENTS_MIN {
            return None;
        }
        let live_bytes = |usage: &Usage| {
            u128::from(usage.bytes) * u128::from(usage.live) / u128::from(usage.total.max(1))
        };
        let taken: u128 = used.iter().map(|used| u128::from(used.usage.bytes)).sum();
        let live: u128 = used.iter().map(|used| live_bytes(&used.usage)).sum();
        if 4 * taken <= live * u128::from(quarters) {
            return None;
        }
        let sparse = used
            .iter_mut()
            .filter(|used| !used.moving && used.usage.live > 0)
            .filter(|used| used.usage.live * quarters <= 4 * used.usage.total)
            .min_by_key(|used| live_bytes(&used.usage) * 1024 / u128::from(used.usage.bytes))?;
        sparse.moving = true;
        Some(sparse.usage.id)
    }

    /// Without space: whether moving the records of a sparse segment gives some back, and what is prepared
    /// has room for them. The log is at the offset `end`.
    pub(crate) fn can_compact(&mut self, end: u32) -> bool {
        let Some(sparse) = self.sparse() else { return false };
        let Some(at) = self.find(sparse) else { return false };
        self.used[at].moving = false;
        let Usage { bytes, live, total, .. } = self.used[at].usage;
        let needed = u128::from(bytes) * u128::from(live) / u128::from(total.max(1));
        let rest = self.used.last().map_or(0, |last| last.usage.bytes - u64::from(end));
        let prepared = self.next.iter().filter(|next| next.made).map(|next| next.usage.bytes);
        prepared.chain([rest]).any(|room| u128::from(room) > needed + needed / 8)
    }

    // ---- space ----

    /// Ends every pause.
    pub(crate) fn retry(&mut self) {
        self.pause = Pause::Nothing;
        self.settle();
    }
    /// Ends the shortage once everything needed is made.
    fn settle(&mut self) {
        if self.pause != Pause::Everything && self.discard.is_empty() && self.needed().is_none() {
            self.pause = Pause::Nothing;
            self.short = false;
        }
    }
    /// Gives up a prepared segment, so that a checkpoint finds space. False: there is none.
    pub(crate) fn give_up_reserve(&mut self) -> bool {
        self.pause(Pause::Making);
        let free = self.free.iter().rposition(|file| !self.is_reused(file.id));
        let file = free.and_then(|at| self.free.remove(at)).map(|file| file.id);
        let file = file.or_else(|| self.give_up_prepared());
        self.discard.extend(file);
        file.is_some()
    }
    /// Gives up the last prepared segment; its number is given again, so that none is missing in between.
    fn give_up_prepared(&mut self) -> Option<u32> {
        if self.out.is_some() || self.making.is_some() {
            return None;
        }
        let at = self.next.iter().rposition(|next| next.made)?;
        self.next_id = self.next[at].usage.id;
        self.next.truncate(at);
        Some(self.next_id)
    }
    /// Whether that file is being renamed to become another segment.
    fn is_reused(&self, id: u32) -> bool {
        matches!(self.out, Some(Space::Reuse { from, .. }) if from == id)
    }
    /// Something found no space.
    fn pause(&mut self, pause: Pause) {
        self.short = true;
        if self.pause != Pause::Everything {
            self.pause = pause;
        }
    }
    pub(crate) fn is_discarding(&self) -> bool {
        !self.discard.is_empty()
    }

    /// The next piece of work. `zero`: new segments are overwritten with zeros.
    pub(crate) fn next_job(&mut self, zero: bool) -> Option<Space> {
        if self.out.is_some() || self.pause == Pause::Everything {
            return None;
        }
        self.collect();
        self.out = self.choose(zero);
        self.out.clone()
    }

    fn choose(&mut self, zero: bool) -> Option<Space> {
        if let Some(id) = self.abandoned {
            return Some(Space::Abandon(id));
        }
        if let Some(&id) = self.discard.last() {
            return Some(Space::Remove(id));
        }
        if let Some(Making { file, zeroed }) = self.making {
            let SegmentFile { id, bytes } = file;
            return Some(match zeroed {
                None => Space::Create(file),
                Some(from) if zero && from < bytes => {
                    Space::Zero { id, from, bytes: (bytes - from).min(ZERO_BYTES as u64) }
                }
                Some(_) => Space::Finish(id),
            });
        }
        if let Some(file) = self.needed() {
            if let Some(free) = self.free.iter().find(|free| free.bytes == file.bytes) {
                return Some(Space::Reuse { from: free.id, to: file.id });
            }
            if self.pause == Pause::Nothing {
                self.making = Some(Making { file, zeroed: None });
                return Some(Space::Create(file));
            }
            // No free file fits, so they are removed for their space.
            return Some(Space::Remove(self.free.front()?.id));
        }
        let is_reusable = |file: &&SegmentFile| file.bytes == self.segment_bytes;
        let surplus = self.free.iter().filter(is_reusable).count() > self.free_max;
        let file = self.free.iter().find(|file| surplus || !is_reusable(file))?;
        Some(Space::Remove(file.id))
    }

    /// The segment to make: the one that records wait for, else one to prepare.
    fn needed(&mut self) -> Option<SegmentFile> {
        if let Some(used) = self.used.iter().find(|used| !used.made) {
            return Some(used.file());
        }
        while !self.used.is_empty() && self.next.len() < READY_SEGMENTS {
            self.plan(self.bytes_of_next());
        }
        self.next.iter().find(|next| !next.made).map(Segment::file)
    }

    pub(crate) fn done(&mut self, space: &Space) {
        self.out = None;
        match *space {
            Space::Create(_) => self.zeroed(0),
            Space::Zero { from, bytes, .. } => self.zeroed(from + bytes),
            Space::Finish(id) => {
                let making = self.making.take();
                self.made(id, making.map_or(0, |making| making.file.bytes));
            }
            Space::Reuse { from, to } => {
                let at = self.free.iter().position(|file| file.id == from);
                let file = at.and_then(|at| self.free.remove(at));
                self.made(to, file.map_or(0, |file| file.bytes));
            }
            Space::Remove(id) if self.discard.contains(&id) => {
                self.discard.retain(|&discarded| discarded != id);
            }
            Space::Remove(id) => {
                self.free.retain(|file| file.id != id);
                self.retry();
            }
            Space::Abandon(_) => self.abandoned = None,
        }
        self.settle();
    }

    /// The segment that is being made exists, with zeros up to `bytes`.
    fn zeroed(&mut self, bytes: u64) {
        if let Some(making) = &mut self.making {
            making.zeroed = Some(bytes);
        }
    }

    fn made(&mut self, id: u32, bytes: u64) {
        let mut segments = self.used.iter_mut().chain(&mut self.next);
        match segments.find(|segment| segment.usage.id == id) {
            Some(segment) => segment.made = true,
            // A checkpoint passed it.
            None => self.free.push_back(SegmentFile { id, bytes }),
        }
    }

    /// The work found no space. A segment that was begun is given up.
    pub(crate) fn full(&mut self, space: &Space) {
        self.out = None;
        match space {
            Space::Create(_) => self.making = None,
            Space::Zero { id, .. } => {
                self.making = None;
                self.abandoned = Some(*id);
            }
            // Renaming and removing rarely need space; where they do, trying again immediately is useless.
            _ => self.pause(Pause::Everything),
        }
        self.pause(Pause::Making);
    }

    // ---- statistics ----

    /// Segments that hold records, or will next.
    pub(crate) fn count(&self) -> usize {
        self.used.len()
    }
    /// Bytes of all files.
    pub(crate) fn disk_bytes(&self) -> u64 {
        let made = self.used.iter().chain(&self.next).filter(|segment| segment.made);
        let retired = self.retired.iter().flat_map(|retired| &retired.files);
        let unused = self.free.iter().chain(retired).map(|file| file.bytes);
        made.map(|segment| segment.usage.bytes).chain(unused).sum()
    }
    /// References that keep records.
    pub(crate) fn live_references(&self) -> u64 {
        self.used.iter().map(|used| used.usage.live).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u32 = 64 << 10;

    #[test]
    fn a_file_that_is_being_reused_is_not_given_up() {
        let mut segments =
            Segments::new(&Options { segment_bytes: BYTES, ..Options::default() }.rounded());
        segments.restore(Usage { id: 1, bytes: BYTES.into(), live: 1, total: 1, end: 0 });
        segments.restore_free(SegmentFile { id: 2, bytes: BYTES.into() });
        let job = segments.next_job(false).expect("segments are lacking");
        assert!(matches!(job, Space::Reuse { from: 2, .. }), "{job:?}");
        assert!(!segments.give_up_reserve());
        segments.done(&job);
        let next = segments.next_job(false);
        assert!(!matches!(next, Some(Space::Remove(2))), "{next:?}");
    }
}
