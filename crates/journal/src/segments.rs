//! The segments: which exist, how many live references each has, which is next. Independent of blocks.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::files::SegmentFile;
use crate::space::{Space, ZERO_BYTES};

/// Segments that are prepared beside the one being written: the next one, and one in reserve so that settles
/// can be written while there is no space for more.
pub(crate) const READY_SEGMENTS: usize = 2;
/// Segments may take this many times the bytes that are live in them before records are moved.
const SPARSE_FACTOR: u64 = 2;
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
}

/// Sums over all segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Totals {
    /// Segments that hold records, or will next.
    pub(crate) segments: usize,
    /// Bytes of all files.
    pub(crate) disk_bytes: u64,
    /// References that keep records.
    pub(crate) live: u64,
}

/// A segment with records, or the one that takes the next ones.
#[derive(Debug)]
struct Used {
    usage: Usage,
    /// Its file has its final name.
    made: bool,
    /// It was returned as sparse since the last checkpoint.
    moving: bool,
}

/// A segment that is prepared for later.
#[derive(Debug)]
struct Next {
    id: u32,
    bytes: u64,
    made: bool,
}

/// Files that are free once all reads begun before have ended.
#[derive(Debug)]
struct Retired {
    /// Shared with every read begun before.
    readers: Arc<()>,
    files: Vec<SegmentFile>,
}

/// Progress of the segment that is being made.
#[derive(Debug)]
struct Making {
    id: u32,
    bytes: u64,
    zeroed: u64,
    created: bool,
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
    used: Vec<Used>,
    /// How many of `used` have no live references.
    dead: usize,
    next: VecDeque<Next>,
    next_id: u32,
    making: Option<Making>,
    /// A segment that could not be made, whose file is to be removed.
    abandoned: Option<u32>,
    /// The work that is being done.
    out: Option<Space>,
    pause: Pause,
    /// Something needed found no space and is not made yet. True during every pause, so that the caller knows
    /// when to call `retry`.
    short: bool,
    readers: Arc<()>,
    retired: VecDeque<Retired>,
    free: VecDeque<SegmentFile>,
    /// To be removed although they could be reused: a checkpoint needs their space.
    discard: Vec<u32>,
}

impl Segments {
    pub(crate) fn new(segment_bytes: u32, first_bytes: u32, free_max: usize) -> Segments {
        Segments {
            segment_bytes: segment_bytes.into(),
            first_bytes: first_bytes.into(),
            free_max,
            next_id: 1,
            ..Segments::default()
        }
    }

    // ---- recovery ----

    /// Adds a segment with records; ids must ascend.
    pub(crate) fn restore(&mut self, usage: Usage) {
        self.next_id = self.next_id.max(usage.id + 1);
        self.dead += usize::from(usage.live == 0);
        self.used.push(Used { usage, made: true, moving: false });
    }
    /// Adds a segment without records, made by an earlier process for later.
    pub(crate) fn restore_next(&mut self, id: u32, bytes: u64) {
        self.next_id = self.next_id.max(id + 1);
        if bytes == self.segment_bytes && self.next.len() < READY_SEGMENTS {
            self.next.push_back(Next { id, bytes, made: true });
        } else {
            self.free.push_back(SegmentFile { id, bytes });
        }
    }
    /// Adds a file of an earlier process that is not needed.
    pub(crate) fn restore_free(&mut self, id: u32, bytes: u64) {
        self.next_id = self.next_id.max(id + 1);
        self.free.push_back(SegmentFile { id, bytes });
    }

    // ---- appending ----

    pub(crate) fn bytes(&self, id: u32) -> u64 {
        self.find(id).map_or(0, |at| self.used[at].usage.bytes)
    }
    pub(crate) fn is_made(&self, id: u32) -> bool {
        self.find(id).is_some_and(|at| self.used[at].made)
    }

    /// Moves on to a segment with room for a block of `block` bytes.
    pub(crate) fn advance(&mut self, block: u64) -> u32 {
        if self.used.is_empty() && self.next.is_empty() {
            let bytes = self.first_bytes.max(block);
            self.used.push(Used {
                usage: Usage { id: self.next_id, bytes, live: 0, total: 0 },
                made: false,
                moving: false,
            });
            self.next_id += 1;
            self.dead += 1;
            return self.next_id - 1;
        }
        if block > self.segment_bytes {
            // Ids must ascend along the log, so the prepared ones are skipped; their files are reused under a
            // later id.
            let passed = std::mem::take(&mut self.next);
            for next in passed {
                if next.made {
                    self.free.push_back(SegmentFile { id: next.id, bytes: next.bytes });
                }
            }
        }
        if self.next.is_empty() {
            self.plan(block.max(self.segment_bytes));
        }
        let next = self.next.pop_front().expect("one was planned");
        self.used.push(Used {
            usage: Usage { id: next.id, bytes: next.bytes, live: 0, total: 0 },
            made: next.made,
            moving: false,
        });
        self.dead += 1;
        next.id
    }

    fn plan(&mut self, bytes: u64) {
        self.next.push_back(Next { id: self.next_id, bytes, made: false });
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

    /// A checkpoint with these counts that starts in segment `start` is durable. Retires the segments before
    /// it that had no references then and have none now.
    pub(crate) fn checkpointed(&mut self, start: u32, counted: &[Usage]) {
        let dead = |id: u32| {
            let at = counted.binary_search_by_key(&id, |usage| usage.id);
            at.is_ok_and(|at| counted[at].live == 0)
        };
        let mut files = Vec::new();
        self.used.retain_mut(|used| {
            let usage = used.usage;
            used.moving = false;
            let goes = usage.id < start && usage.live == 0 && dead(usage.id);
            if goes {
                files.push(SegmentFile { id: usage.id, bytes: usage.bytes });
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
        while let Some(retired) = self.retired.front() {
            if Arc::strong_count(&retired.readers) > 1 {
                return;
            }
            let retired = self.retired.pop_front().expect("there is a front");
            self.free.extend(retired.files);
        }
    }

    /// A sealed segment with so few live records that moving them gives most of its space back.
    pub(crate) fn sparse(&mut self) -> Option<u32> {
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
        if taken <= live * u128::from(SPARSE_FACTOR) {
            return None;
        }
        let sparse = used
            .iter_mut()
            .filter(|used| !used.moving && used.usage.live > 0)
            .filter(|used| used.usage.live * SPARSE_FACTOR <= used.usage.total)
            .min_by_key(|used| live_bytes(&used.usage) * 1024 / u128::from(used.usage.bytes))?;
        sparse.moving = true;
        Some(sparse.usage.id)
    }

    // ---- space ----

    /// Ends every pause.
    pub(crate) fn retry(&mut self) {
        self.pause = Pause::Nothing;
        self.settle();
    }
    /// Whether something needed is not made because there was no space for it.
    pub(crate) fn is_short(&self) -> bool {
        self.short
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
        let next = self.next.iter().rposition(|next| next.made);
        let file = file.or_else(|| Some(self.next.remove(next?)?.id));
        self.discard.extend(file);
        file.is_some()
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
            return Some(Space::Abandon { id });
        }
        if let Some(&id) = self.discard.last() {
            return Some(Space::Remove { id });
        }
        if let Some(making) = &self.making {
            let (id, from) = (making.id, making.zeroed);
            return Some(if !making.created {
                Space::Create { id, bytes: making.bytes }
            } else if zero && from < making.bytes {
                Space::Zero { id, from, bytes: (making.bytes - from).min(ZERO_BYTES as u64) }
            } else {
                Space::Finish { id }
            });
        }
        if let Some(SegmentFile { id, bytes }) = self.needed() {
            if let Some(free) = self.free.iter().find(|file| file.bytes == bytes) {
                return Some(Space::Reuse { from: free.id, to: id });
            }
            if self.pause == Pause::Nothing {
                self.making = Some(Making { id, bytes, zeroed: 0, created: false });
                return Some(Space::Create { id, bytes });
            }
            // No free file fits, so they are removed for their space.
            return Some(Space::Remove { id: self.free.front()?.id });
        }
        let is_reusable = |file: &&SegmentFile| file.bytes == self.segment_bytes;
        let surplus = self.free.iter().filter(is_reusable).count() > self.free_max;
        let file = self.free.iter().find(|file| surplus || !is_reusable(file))?;
        Some(Space::Remove { id: file.id })
    }

    /// The segment to make: the one that records wait for, else one to prepare.
    fn needed(&mut self) -> Option<SegmentFile> {
        if let Some(used) = self.used.iter().find(|used| !used.made) {
            return Some(SegmentFile { id: used.usage.id, bytes: used.usage.bytes });
        }
        while !self.used.is_empty() && self.next.len() < READY_SEGMENTS {
            self.plan(self.segment_bytes);
        }
        let next = self.next.iter().find(|next| !next.made)?;
        Some(SegmentFile { id: next.id, bytes: next.bytes })
    }

    pub(crate) fn done(&mut self, space: &Space) {
        self.out = None;
        match *space {
            Space::Create { .. } => {
                if let Some(making) = &mut self.making {
                    making.created = true;
                }
            }
            Space::Zero { bytes, .. } => {
                if let Some(making) = &mut self.making {
                    making.zeroed += bytes;
                }
            }
            Space::Finish { id } => {
                let making = self.making.take();
                self.made(id, making.map_or(0, |making| making.bytes));
            }
            Space::Reuse { from, to } => {
                let at = self.free.iter().position(|file| file.id == from);
                let file = at.and_then(|at| self.free.remove(at));
                self.made(to, file.map_or(0, |file| file.bytes));
            }
            Space::Remove { id } if self.discard.contains(&id) => {
                self.discard.retain(|&discarded| discarded != id);
            }
            Space::Remove { id } => {
                self.free.retain(|file| file.id != id);
                self.retry();
            }
            Space::Abandon { .. } => self.abandoned = None,
        }
        self.settle();
    }

    fn made(&mut self, id: u32, bytes: u64) {
        if let Some(used) = self.used.iter_mut().find(|used| used.usage.id == id) {
            used.made = true;
        } else if let Some(next) = self.next.iter_mut().find(|next| next.id == id) {
            next.made = true;
        } else {
            // It was skipped for a larger one while it was made.
            self.free.push_back(SegmentFile { id, bytes });
        }
    }

    /// The work found no space. A segment that was begun is given up.
    pub(crate) fn full(&mut self, space: &Space) {
        self.out = None;
        match space {
            Space::Create { .. } => self.making = None,
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

    pub(crate) fn totals(&self) -> Totals {
        let made = self.used.iter().filter(|used| used.made).map(|used| used.usage.bytes);
        let next = self.next.iter().filter(|next| next.made).map(|next| next.bytes);
        let free = self.free.iter().map(|file| file.bytes);
        let retired = self.retired.iter().flat_map(|retired| &retired.files).map(|file| file.bytes);
        Totals {
            segments: self.used.len(),
            disk_bytes: made.chain(next).chain(free).chain(retired).sum(),
            live: self.used.iter().map(|used| used.usage.live).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u32 = 64 << 10;

    #[test]
    fn a_file_that_is_being_reused_is_not_given_up() {
        let mut segments = Segments::new(BYTES, BYTES, 8);
        segments.restore(Usage { id: 1, bytes: BYTES.into(), live: 1, total: 1 });
        segments.restore_free(2, BYTES.into());
        let job = segments.next_job(false).expect("segments are lacking");
        assert!(matches!(job, Space::Reuse { from: 2, .. }), "{job:?}");
        assert!(!segments.give_up_reserve());
        segments.done(&job);
        let next = segments.next_job(false);
        assert!(!matches!(next, Some(Space::Remove { id: 2 })), "{next:?}");
    }
}
