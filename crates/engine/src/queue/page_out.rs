//! Moves parts of a long queue's index to the journal, and asks for them ahead of need. What is
//! read back is taken in by `page_in.rs`.

use super::Queue;
use super::blob::ENTRY_COST;
use super::entry::{Entry, Fetch};
use super::lane::Front;
use super::page::Page;
use crate::consumer::browsers::BrowserLoad;
use crate::consumer::read_beside::LoadBeside;
use crate::engine::Engine;
use crate::kept::LogLoad;
use crate::publish::held::DelayKey;
use crate::retained::ReplayLoad;
use crate::storage::moving_page::MovingPage;
use crate::storage::record::Record;
use crate::{DeathReason, Effects, Load, LoadId, Position};

/// Messages asked for in one load.
const LOAD_MESSAGES_MAX: usize = 2048;
/// Body bytes asked for in one load, beyond its first message.
const LOAD_BYTES_MAX: u64 = 512 << 10;
/// Bytes of a queue's head that are kept in memory ahead of need, where the limits allow as much.
const AHEAD_BYTES: u64 = 2 << 20;
/// The same while memory is scarce.
const AHEAD_BYTES_SCARCE: u64 = 64 << 10;
/// Queues whose pages, having had to wait, are written in one turn; more where more than
/// `PAGED_PART` times as many wait.
const PAGED_AT_ONCE: usize = 16;
/// One in this many of the queues that wait, at least: a turn adds far less than a page to each.
const PAGED_PART: usize = 64;
/// Loads of one queue at a time.
const LOADS_MAX: u32 = 2;

/// In place of a queue's slot: what is loaded is for none.
pub(crate) const NO_QUEUE: u32 = u32::MAX;

/// A load that was not answered yet.
#[derive(Debug)]
pub(crate) struct Loading {
    /// The slot and number of the queue it is for.
    pub(crate) queue: u32,
    pub(crate) number: u64,
    /// What was asked for will take up in memory, at least.
    pub(crate) bytes: u64,
    pub(crate) wanted: Wanted,
}

/// What was asked for.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// Messages of entries in a lane.
    Messages { lane: usize, seqs: Vec<u64> },
    /// A lane's first page.
    Page { lane: usize, position: Position },
    /// The messages of a lane's first page, whose record is lost; by a repair that gave it up, or not.
    LostPage { lane: usize, position: Position, is_given_up: bool },
    /// The message of an entry that has died.
    DeadLetter { entry: Box<Entry>, reason: DeathReason },
    /// Messages whose delay is over.
    Delayed { keys: Vec<DelayKey> },
    /// The messages of a segment that is to be given back.
    Relocation { segment: u32, positions: Vec<Position> },
    /// A page of such a segment, or the messages of a page.
    MovingPage(Box<MovingPage>),
    /// What a browser looks at.
    Browsed(Box<BrowserLoad>),
    /// What a replay shows.
    Replayed(Box<ReplayLoad>),
    /// What consumers that take only some messages look at.
    Beside(Box<LoadBeside>),
    /// A page of a log.
    Log(Box<LogLoad>),
}

impl Wanted {
    /// Whether it goes into memory for a queue's consumers; what else is read is appended again.
    pub(crate) fn is_for_consumers(&self) -> bool {
        matches!(self, Wanted::Messages { .. } | Wanted::Page { .. })
    }
}

impl Engine {
    /// Whether dead letters are being read, which are their queues' until they are there.
    #[must_use]
    pub fn is_reading_dead_letters(&self) -> bool {
        self.dying().next().is_some()
    }

    /// Leaves runs of cold entries at a queue's end to the journal, or has that done in a further turn:
    /// queues that a message goes to together have a page full together.
    #[inline]
    pub(crate) fn page_out<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        if self.storage.in_group {
            return;
        }
        let count = self.options.limits.page_entries;
        let Some(queue) = self.queues.get_mut(slot) else { return };
        if queue.is_unpaged || !queue.lanes.iter().any(|lane| lane.has_cold_run(count)) {
            return;
        }
        if self.work_budget.left() > 0 {
            self.write_pages(slot, fx);
        } else {
            queue.is_unpaged = true;
            self.agenda.unpaged.push_back(slot);
        }
    }

    /// Writes pages that had to wait, of as many queues as keep their number from growing.
    #[cold]
    #[inline(never)]
    pub(crate) fn page_some_out<F: Effects>(&mut self, fx: &mut F) {
        let count = PAGED_AT_ONCE.max(self.agenda.unpaged.len() / PAGED_PART);
        for _ in 0..count {
            let Some(slot) = self.agenda.unpaged.pop_front() else { return };
            if let Some(queue) = self.queues.get_mut(slot) {
                queue.is_unpaged = false;
                self.write_pages(slot, fx);
            }
        }
    }

    fn write_pages<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let count = self.options.limits.page_entries;
        // What was handed over may have to go to another session.
        let handed = self.last_handed(slot);
        let queue = &mut self.queues[slot];
        for lane in 0..queue.lanes.len() {
            let own = queue.lanes.get_mut(lane);
            let begins = own.as_ref().and_then(|lane| lane.cold_run_begins(count));
            if handed.is_some() && begins <= handed {
                continue;
            }
            let Some(entries) = own.and_then(|lane| lane.take_cold_run(count)) else { continue };
            self.work_budget.count_paged(count);
            let (number, durable) = (queue.number, queue.durable);
            if let Some(taking) = &mut self.storage.snapshot {
                for entry in entries.iter().filter(|entry| entry.durable) {
                    taking.take(number, &mut entry.clone());
                }
            }
            let page = Record::Page { queue: number, lane: lane as u8, durable, entries };
            page.write(&mut self.scratch.record);
            let position = fx.append(&[&self.scratch.record], false);
            fx.retain(position, 1);
            if !durable {
                *self.storage.transient_references.entry(position.segment()).or_default() += 1;
            }
            let Record::Page { entries, .. } = page else { unreachable!("it was made a page") };
            queue.note_gone_between(&entries);
            let page = Page::of(position, &entries);
            queue.lanes[lane].note_paged(page.last);
            queue.lanes[lane].pages.push_back(page);
        }
    }

    /// Reads ahead where a queue's head is running out of messages in memory.
    pub(crate) fn refill<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        loop {
            let Some(queue) = self.queues.get(slot) else { return };
            // Consumers that take only some messages read what they take themselves.
            let is_only_selected = queue.filtered.is_some() && !queue.wants_front();
            if queue.loads >= LOADS_MAX || is_only_selected || queue.options.is_log {
                return;
            }
            let (is_stuck, is_page) = match queue.front() {
                Front::Entry(entry) => (entry.is_cold() && entry.fetch == Fetch::Idle, false),
                Front::Page(page) => (page.fetch == Fetch::Idle, true),
                Front::Empty => return,
            };
            let room = self.room_ahead(queue, is_stuck);
            if room == 0 && !(is_stuck && is_page) {
                return;
            }
            let bytes_max = room.min(LOAD_BYTES_MAX);
            let lanes = &mut self.queues[slot].lanes;
            let asked = lanes.numbered_mut().rev().find_map(|(index, lane)| {
                let asked = lane.ask(LOAD_MESSAGES_MAX, bytes_max, is_stuck && !is_page);
                (!asked.is_empty()).then_some((index, asked))
            });
            let Some((lane, asked)) = asked else { return self.ask_page(slot, fx) };
            let bytes = asked.iter().map(|(_, bytes, _)| u64::from(*bytes) + ENTRY_COST).sum();
            let asked = asked.into_iter().map(|(seq, _, position)| (seq, position));
            let (seqs, positions) = asked.unzip();
            self.load(slot, bytes, Wanted::Messages { lane, seqs }, positions, fx);
        }
    }

    /// How many bytes a queue may read ahead, beyond what it has and asked for: within its own limit
    /// and that of all together. Where a consumer waits, a little more is read in any case.
    fn room_ahead(&self, queue: &Queue, is_stuck: bool) -> u64 {
        let most = AHEAD_BYTES.min(self.options.limits.queue_resident_bytes_max);
        let has = queue.resident + queue.loading_bytes;
        let mut own = most.saturating_sub(has);
        // Long reads are cheaper than many short ones, as long as there is enough to go on with.
        if !is_stuck && own < LOAD_BYTES_MAX.min(most / 4) {
            own = 0;
        }
        let room = own.min(self.memory_left());
        let is_wanted = queue.wants_front();
        if is_stuck && is_wanted {
            let little = AHEAD_BYTES_SCARCE.min(most).saturating_sub(has);
            room.max(little).max(1)
        } else {
            room
        }
    }

    fn ask_page<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let lanes = &mut self.queues[slot].lanes;
        let mut made = lanes.numbered_mut().rev();
        let asked = made.find_map(|(index, lane)| Some((index, lane.ask_page()?)));
        drop(made);
        if let Some((lane, position)) = asked {
            self.load(slot, 0, Wanted::Page { lane, position }, vec![position], fx);
        }
    }

    /// Asks the host for records, for a queue or for [`NO_QUEUE`].
    pub(crate) fn load<F: Effects>(
        &mut self,
        slot: u32,
        bytes: u64,
        wanted: Wanted,
        positions: Vec<Position>,
        fx: &mut F,
    ) {
        let (mut number, mut is_beside_others) = (0, false);
        if let Some(queue) = self.queues.get_mut(slot) {
            queue.loads += 1;
            queue.loading_bytes += bytes;
            (number, is_beside_others) = (queue.number, queue.share.is_paced);
        }
        self.storage.loading_bytes += bytes;
        let id = LoadId(self.storage.next_load);
        self.storage.next_load += 1;
        let reads_only = matches!(
            wanted,
            Wanted::Browsed(_)
                | Wanted::Beside(_)
                | Wanted::Log(_)
                | Wanted::LostPage { .. }
                | Wanted::Replayed(_)
        );
        let appends = !wanted.is_for_consumers() && !reads_only;
        let search = self.search_for(slot, &wanted);
        self.storage.loads.insert(id, Loading { queue: slot, number, bytes, wanted });
        fx.load(Load { id, positions, appends, is_beside_others, search });
    }

    /// A page's record is not needed any more. `durable`: its queue is.
    pub(super) fn release_page<F: Effects>(&mut self, durable: bool, page: &Page, fx: &mut F) {
        if durable {
            fx.release(page.position, 1);
        } else {
            self.release_transient(page.position, 1, fx);
        }
    }

    /// Messages that wait for being read to become dead letters, with the numbers of their queues.
    pub(crate) fn dying(&self) -> impl Iterator<Item = (u64, &Entry)> {
        self.storage.loads.values().filter_map(|loading| match &loading.wanted {
            Wanted::DeadLetter { entry, .. } => Some((loading.number, &**entry)),
            _ => None,
        })
    }

    /// One more reference to a record that does not outlive this process.
    pub(crate) fn retain_transient<F: Effects>(&mut self, position: Position, fx: &mut F) {
        fx.retain(position, 1);
        *self.storage.transient_references.entry(position.segment()).or_default() += 1;
    }

    /// References less to records that do not outlive this process.
    pub(crate) fn release_transient<F: Effects>(
        &mut self,
        position: Position,
        count: u32,
        fx: &mut F,
    ) {
        fx.release(position, count);
        if let Some(references) = self.storage.transient_references.get_mut(&position.segment()) {
            *references -= u64::from(count);
            if *references == 0 {
                self.storage.transient_references.remove(&position.segment());
            }
        }
    }

    /// Gives back everything that a page refers to, and the page. `durable`: its queue is.
    pub(crate) fn drop_page<F: Effects>(&mut self, durable: bool, page: &Page, fx: &mut F) {
        for count in &page.segments {
            let position = Position(u64::from(count.segment) << 32);
            if count.durable > 0 {
                fx.release(position, count.durable);
            }
            if count.transient > 0 {
                self.release_transient(position, count.transient, fx);
            }
        }
        self.release_page(durable, page, fx);
    }
}
