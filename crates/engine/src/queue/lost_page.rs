//! Pages whose record is lost: their messages are found again by their own records, wherever these are
//! whole. What is not found is gone if a repair of the journal gave the page up; otherwise the queue stops
//! there.

use super::entry::{Entry, Fetch};
use super::page::Page;
use super::page_out::Wanted;
use crate::consumer::browsers::BrowserWanted;
use crate::engine::Engine;
use crate::storage::record::Record;
use crate::{Effects, Loaded, PageSearch, Position};
use std::collections::BTreeMap;

impl Engine {
    /// Asks for the messages of a lane's first page, whose record cannot be read. `is_given_up`: by a
    /// repair.
    pub(super) fn search_page<F: Effects>(
        &mut self,
        slot: u32,
        lane: usize,
        position: Position,
        is_given_up: bool,
        fx: &mut F,
    ) {
        let wanted = Wanted::LostPage { lane, position, is_given_up };
        self.load(slot, 0, wanted, vec![position], fx);
    }

    /// What the host looks for to answer a load, if that is not just what lies at its positions.
    pub(super) fn search_for(&self, slot: u32, wanted: &Wanted) -> Option<Box<PageSearch>> {
        let (slot, lane, position) = match *wanted {
            Wanted::LostPage { lane, position, .. } => (slot, lane, position),
            Wanted::Browsed(ref load) => match load.wanted {
                BrowserWanted::Page { lane, position, is_searched: true } => {
                    (self.browsers.get(load.slot)?.queue, lane, position)
                }
                _ => return None,
            },
            Wanted::Beside(ref load) => match load.wanted {
                BrowserWanted::Page { lane, position, is_searched: true } => {
                    (load.queue, lane, position)
                }
                _ => return None,
            },
            Wanted::Log(ref load) if load.searched.is_some() => {
                (self.queues.slot_of(load.log)?, 0, load.position)
            }
            _ => return None,
        };
        let queue = self.queues.get(slot)?;
        let page = queue.lanes[lane].pages.iter().find(|page| page.position == position)?;
        let with_durable = page.segments.iter().filter(|count| count.durable > 0);
        Some(Box::new(PageSearch {
            queue: queue.number,
            lane: lane as u8,
            priority_max: queue.options.priority_max.unwrap_or(0),
            seqs: page.first..=page.last,
            segments: with_durable.map(|count| count.segment).collect(),
            found: BTreeMap::new(),
        }))
    }

    /// The messages of a lost page were searched.
    pub(super) fn page_searched<F: Effects>(
        &mut self,
        slot: u32,
        wanted: &Wanted,
        records: Loaded,
        fx: &mut F,
    ) {
        let Wanted::LostPage { lane, position, is_given_up } = *wanted else { return };
        let queue = &mut self.queues[slot];
        let Some(messages) = queue.lanes.get_mut(lane) else { return };
        if messages.pages.front().is_none_or(|page| page.position != position) {
            return;
        }
        let record = records.as_ref().ok().and_then(|records| records.first());
        let Some(Ok(Record::Page { mut entries, .. })) = record.map(|it| Record::parse(it)) else {
            return self.stop_at_page(slot, lane);
        };
        entries.retain(|entry| messages.find(entry.seq).is_none());
        let settled = &queue.settled_in_pages;
        let (gone, live): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| settled.contains(entry.seq));
        // With several priorities a page counts what was settled in it until it is read.
        let told = if queue.lanes.len() == 1 { live.len() } else { live.len() + gone.len() };
        let page = &queue.lanes[lane].pages[0];
        let missing = u64::from(page.count).saturating_sub(told as u64);
        if missing > 0 && !is_given_up {
            return self.stop_at_page(slot, lane);
        }
        if missing > 0 {
            self.note_given_up(slot, position, missing);
        }
        for entry in &live {
            fx.retain(entry.position, 1);
        }
        let page = self.take_page_in(slot, lane, position, live);
        let durable = self.queues[slot].durable;
        self.drop_page(durable, &page, fx);
    }

    /// A lane's first page can neither be read nor made anew as a whole.
    fn stop_at_page(&mut self, slot: u32, lane: usize) {
        if let Some(page) = self.queues[slot].lanes[lane].pages.front_mut() {
            page.fetch = Fetch::Failed;
            self.counters.unreadable += 1;
        }
    }

    /// Puts what is live of a lane's first page in its place; returns the page, with its references.
    pub(super) fn take_page_in(
        &mut self,
        slot: u32,
        lane: usize,
        position: Position,
        mut live: Vec<Entry>,
    ) -> Page {
        let queue = &mut self.queues[slot];
        for entry in &mut live {
            (entry.lane, entry.mark) = (lane as u8, self.storage.mark);
            entry.redelivered |= entry.seq < queue.recovered_before;
            if let Some(requeues) = queue.requeued_in_pages.remove(&entry.seq) {
                entry.went_back(requeues);
            }
        }
        let bytes: u64 = live.iter().map(|entry| u64::from(entry.bytes)).sum();
        let count = live.len() as u64;
        let page = queue.lanes[lane].open_page(position, live).expect("the caller found it");
        // Which of its messages are settled, and their bytes, was not known until now.
        queue.ready = queue.ready + count - u64::from(page.count);
        queue.bytes.add(bytes);
        queue.bytes.take(page.bytes);
        queue.forget_settled_in(&page);
        page
    }
}
