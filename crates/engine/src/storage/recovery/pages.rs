//! Pages while records are replayed: they come, are settled in unread, and give way to newer ones.

use crate::engine::Engine;
use crate::queue::entry::Entry;
use crate::queue::lane::Lane;
use crate::queue::page::Page;
use crate::queue::ranges::Ranges;
use crate::{Effects, Position};

impl Engine {
    /// A message in a page is gone. Which record it was in is only known once the page is read: its
    /// reference stays until then, or until all in the page are gone.
    pub(super) fn settle_in_page<F: Effects>(&mut self, slot: u32, seq: u64, fx: &mut F) {
        let queue = &mut self.queues[slot];
        let Some((lane, page)) = queue.page_of(seq) else { return };
        if queue.settled_in_pages.contains(seq) {
            return;
        }
        queue.settled_in_pages.insert(seq);
        queue.requeued_in_pages.remove(&seq);
        if queue.lanes.len() > 1 {
            // Pages of several priorities overlap: which of them it is in is not known either.
            return;
        }
        queue.ready -= 1;
        let page = &mut queue.lanes[lane].pages[page];
        page.count -= 1;
        page.durable_count -= 1;
        if page.count == 0 {
            let position = page.position;
            self.drop_page_at(slot, lane, position, fx);
        }
    }

    /// Messages left the page that they are in; one that has been settled since is gone.
    pub(super) fn replay_apart<F: Effects>(
        &mut self,
        number: u64,
        lane: u8,
        entries: Vec<Entry>,
        fx: &mut F,
    ) {
        let Some(slot) = self.queues.slot_of(number) else { return };
        for entry in entries {
            let queue = &mut self.queues[slot];
            let Some(messages) = queue.lanes.get_mut(usize::from(lane)) else { return };
            let is_in_page = messages.find_page(entry.seq).is_some();
            let is_gone = queue.settled_in_pages.contains(entry.seq);
            if messages.find(entry.seq).is_some() || !is_in_page || is_gone {
                continue;
            }
            self.take_out_of_page(slot, lane.into(), &entry, fx);
            let mark = self.storage.mark;
            self.queues[slot].give_back(Entry { lane, mark, redelivered: true, ..entry });
        }
    }

    /// Gives a page back wherever in its lane it is.
    pub(crate) fn drop_page_at<F: Effects>(
        &mut self,
        slot: u32,
        lane: usize,
        at: Position,
        fx: &mut F,
    ) {
        let queue = &mut self.queues[slot];
        let Some(page) = queue.lanes[lane].remove_page(at) else { return };
        queue.ready -= u64::from(page.count);
        queue.bytes.take(page.bytes);
        queue.forget_settled_in(&page);
        let durable = queue.durable;
        self.drop_page(durable, &page, fx);
    }

    /// Leaves only those messages in a page that were out when the queue was purged.
    pub(super) fn purge_page<F: Effects>(
        &mut self,
        slot: u32,
        lane: usize,
        position: Position,
        kept: &Ranges,
        fx: &mut F,
    ) {
        let queue = &mut self.queues[slot];
        let is_only_lane = queue.lanes.len() == 1;
        let pages = &mut queue.lanes[lane].pages;
        let Some(page) = pages.iter_mut().find(|page| page.position == position) else { return };
        // Those that left the page before are not in it.
        let settled = &queue.settled_in_pages;
        let kept = kept.numbers(page.first..=page.last).filter(|seq| !settled.contains(*seq));
        let kept: Vec<u64> = kept.collect();
        if kept.is_empty() {
            self.drop_page_at(slot, lane, position, fx);
            return;
        }
        let mut next = page.first;
        for seq in kept.iter().copied().chain([page.last + 1]) {
            if seq > next {
                queue.settled_in_pages.insert_range(next, seq - 1);
            }
            next = seq + 1;
        }
        if is_only_lane {
            let count = page.count.min(kept.len() as u32);
            queue.ready -= u64::from(page.count - count);
            page.count = count;
            page.durable_count = count;
        }
    }

    /// A run of entries left memory: it leaves it again.
    ///
    /// No record says that a page was read back, or that this one takes the place of another whose
    /// segment was given back. So pages may be known here that were gone when this one was written,
    /// and that overlap it. What they still hold is certain nevertheless: nothing from this page's
    /// first number on.
    /// - In a running broker the pages of a lane never overlap. An overlapping page had been read
    ///   back, or was the one that this record replaces. In the latter case everything live in it is
    ///   in this one.
    /// - When it was read back its entries joined the end of the lane's head. From there they leave
    ///   at the front only, so that whatever is out, settled or requeued of them has a lower number
    ///   than all that stayed. A page is cut without a gap, off the end of the head or, where
    ///   there are pages, off the beginning of the tail, which is newer than all of them. Hence
    ///   what is live of the older page from this page's first number on is in this page, whole.
    /// - What is below stayed in memory then. Unless a record settles it, it is live, and the older
    ///   page still says where it is: a segment with live references goes only after a snapshot,
    ///   and a snapshot holds the entries as they were in memory.
    ///
    /// A torn end of the log changes nothing: what is recovered is a beginning of the log, so each
    /// page is met by the same records as when it was written. The next process goes on from what was
    /// recovered, by the same rules.
    pub(super) fn replay_page<F: Effects>(
        &mut self,
        position: Position,
        number: u64,
        lane: u8,
        durable: bool,
        entries: &[Entry],
        fx: &mut F,
    ) -> Result<(), String> {
        let Some(slot) = self.queues.slot_of(number) else { return Ok(()) };
        let queue = &mut self.queues[slot];
        let lane = usize::from(lane);
        let Some(target) = queue.lanes.make(lane) else {
            return Err(format!("queue '{}' has no priority {lane}", queue.name));
        };
        let all = entries;
        let entries: Vec<Entry> = all.iter().filter(|entry| entry.durable).cloned().collect();
        if !durable || entries.is_empty() {
            return Ok(());
        }
        let mut page = Page::of(position, &entries);
        page.recovered = true;
        let mut settled = Vec::new();
        // From the newest end, where taking one out moves no others.
        for entry in entries.iter().rev() {
            if target.remove(entry.seq).is_some() {
                continue;
            }
            fx.retain(entry.position, 1);
            if !take_from_page(target, entry) {
                // Settled already. The page counts on a reference to it until it is read.
                settled.push(entry.seq);
                page.count -= 1;
                page.durable_count -= 1;
                queue.bytes.add(u64::from(entry.bytes));
            }
        }
        self.cut_pages(slot, lane, page.first, page.last, fx);
        fx.retain(position, 1);
        let is_used_up = page.count == 0;
        let queue = &mut self.queues[slot];
        queue.note_gone_between(all);
        for seq in settled {
            queue.settled_in_pages.insert(seq);
        }
        queue.lanes[lane].restore_page(page);
        if is_used_up {
            self.drop_page_at(slot, lane, position, fx);
        }
        Ok(())
    }

    /// A new page has the numbers from `first` to `last`: those before it keep what is below.
    fn cut_pages<F: Effects>(&mut self, slot: u32, lane: usize, first: u64, last: u64, fx: &mut F) {
        let queue = &mut self.queues[slot];
        let is_only_lane = queue.lanes.len() == 1;
        let mut used_up = Vec::new();
        let pages = queue.lanes[lane].pages.iter_mut();
        for page in pages.filter(|page| page.first <= last && page.last >= first) {
            if is_only_lane {
                queue.settled_in_pages.remove_range(page.first.max(first), page.last);
            }
            let is_lost = page.count > 0 && page.first >= first;
            debug_assert!(!is_lost || !is_only_lane, "{page:?} goes for one from {first} on");
            if page.count == 0 || page.first >= first {
                used_up.push(page.position);
            } else {
                page.last = first - 1;
            }
        }
        for position in used_up {
            self.drop_page_at(slot, lane, position, fx);
        }
    }
}

/// Takes a message out of the page that has its number, whose record names it still; false where
/// there is none.
fn take_from_page(lane: &mut Lane, entry: &Entry) -> bool {
    let Some(index) = lane.find_page(entry.seq) else { return false };
    let page = &mut lane.pages[index];
    let bytes = u64::from(entry.bytes);
    if page.count == 0 || page.bytes < bytes {
        return false;
    }
    page.count -= 1;
    page.durable_count -= 1;
    page.bytes -= bytes;
    page.durable_bytes -= bytes;
    true
}
