//! Messages that are in the journal only, for consumers that take only some: they are read beside the queue,
//! compared, and taken out of their place wherever that is, a page included.

use super::browsers::BrowserWanted;
use super::read_beside::{LoadBeside, Served};
use crate::engine::Engine;
use crate::interface::limits::MESSAGE_BYTES;
use crate::queue::Queue;
use crate::queue::blob::{Blob, ENTRY_COST};
use crate::queue::entry::Entry;
use crate::queue::lane::Browsed;
use crate::queue::page_in::checked_message;
use crate::queue::page_out::{NO_QUEUE, Wanted};
use crate::storage::record::Record;
use crate::{Effects, Loaded, MessageView, Position, Time};

/// Body bytes in one load, beyond its first message.
const LOAD_BYTES_MAX: u64 = 256 << 10;

/// Where a message waits in its queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) lane: usize,
    pub(super) seq: u64,
}

/// What a message that a group would take is at present.
pub(super) enum Known {
    /// It can be handed out.
    Here { bytes: u32 },
    /// It is gone, or cannot be handed out.
    Passed,
    /// It is in the journal only.
    Cold,
}

/// What waits next in a lane.
pub(super) enum NextWaiting {
    Entry(Entry),
    /// Whatever is from a number on in the page at that position, which has to be read.
    InPage {
        position: Position,
        from: u64,
    },
    End,
}

/// The first message of a lane from a number on, as far as what was read of pages tells.
pub(super) fn next_waiting(queue: &mut Queue, lane: usize, mut seq: u64) -> NextWaiting {
    loop {
        let position = match queue.lanes.browse(lane, seq) {
            None => return NextWaiting::End,
            Some(Browsed::Entry(entry)) => return NextWaiting::Entry(entry),
            Some(Browsed::Page(position)) => position,
        };
        let page = queue.lanes[lane].pages.iter().find(|page| page.position == position);
        let Some(page) = page else { return NextWaiting::End };
        let read = queue.filtered.as_ref().and_then(|filtered| filtered.reading.page(position));
        if read.is_none() && !page.is_unreadable() {
            return NextWaiting::InPage { position, from: seq };
        }
        let settled = &queue.settled_in_pages;
        let is_there = |entry: &&Entry| {
            entry.seq >= seq && page.holds(entry.seq) && !settled.contains(entry.seq)
        };
        let inside = read.unwrap_or_default().iter().find(is_there);
        let behind = inside.map_or(page.last + 1, |entry| entry.seq);
        match queue.lanes[lane].came_back_from(seq).filter(|back| back.seq < behind) {
            Some(back) => return NextWaiting::Entry(back.clone()),
            None => match inside {
                Some(entry) => return NextWaiting::Entry(entry.clone()),
                None => seq = page.last + 1,
            },
        }
    }
}

/// The entry of a message that waits; `None` where it is gone, `Some(None)` where its page has to be read.
fn waiting(queue: &mut Queue, lane: usize, seq: u64) -> Option<Option<Entry>> {
    if let Some(entry) = queue.lanes[lane].find(seq) {
        return Some(Some(entry.clone()));
    }
    let index = queue.lanes[lane].find_page(seq)?;
    if queue.settled_in_pages.contains(seq) {
        return None;
    }
    let position = queue.lanes[lane].pages[index].position;
    let filtered = queue.filtered.as_ref()?;
    let Some(entries) = filtered.reading.page(position) else { return Some(None) };
    let at = entries.binary_search_by_key(&seq, |entry| entry.seq).ok()?;
    Some(Some(entries[at].clone()))
}

/// What has become of a message that a group would take.
pub(super) fn known(queue: &mut Queue, lane: usize, seq: u64, now: Time) -> Known {
    let entry = match waiting(queue, lane, seq) {
        None => return Known::Passed,
        Some(None) => return Known::Cold,
        Some(Some(entry)) => entry,
    };
    let Some(filtered) = &queue.filtered else { return Known::Passed };
    if entry.expires <= now || entry.is_unreadable() || filtered.reading.is_given_up(&entry) {
        return Known::Passed;
    }
    if entry.is_cold() && filtered.reading.message(seq).is_none() {
        return Known::Cold;
    }
    Known::Here { bytes: entry.bytes }
}

impl Engine {
    /// Reads what a group would take next in a lane.
    pub(super) fn read_known<F: Effects>(
        &mut self,
        slot: u32,
        group: u32,
        lane: usize,
        fx: &mut F,
    ) -> Served {
        let queue = &mut self.queues[slot];
        let Some(filtered) = &queue.filtered else { return Served::Nothing };
        let most = filtered.reading.at_once();
        let seqs: Vec<u64> = filtered.known(group, lane).take(most).collect();
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for seq in seqs {
            match waiting(queue, lane, seq) {
                Some(Some(entry)) if entry.is_cold() => {
                    bytes += u64::from(entry.bytes) + ENTRY_COST;
                    if bytes > LOAD_BYTES_MAX && !entries.is_empty() {
                        break;
                    }
                    entries.push(entry);
                }
                Some(None) if entries.is_empty() => {
                    let Some(page) = queue.lanes[lane].find_page(seq) else { continue };
                    let position = queue.lanes[lane].pages[page].position;
                    let wanted = BrowserWanted::Page { lane, position, is_searched: false };
                    return self.read_beside(slot, group, wanted, fx);
                }
                Some(None) => break,
                _ => {}
            }
        }
        self.read_beside(slot, group, BrowserWanted::Messages { lane, entries }, fx)
    }

    /// Cold messages that follow each other in a lane, from one on.
    pub(super) fn messages_from(
        &mut self,
        slot: u32,
        lane: usize,
        first: Entry,
        now: Time,
    ) -> BrowserWanted {
        let queue = &mut self.queues[slot];
        let most = queue.filtered.as_ref().map_or(1, |filtered| filtered.reading.at_once());
        let (mut next, mut bytes) = (first.seq + 1, u64::from(first.bytes));
        let mut entries = vec![first];
        while entries.len() < most
            && let NextWaiting::Entry(entry) = next_waiting(queue, lane, next)
            && entry.is_cold()
        {
            next = entry.seq + 1;
            bytes += u64::from(entry.bytes) + ENTRY_COST;
            if bytes > LOAD_BYTES_MAX {
                break;
            }
            if entry.expires > now {
                entries.push(entry);
            }
        }
        BrowserWanted::Messages { lane, entries }
    }

    /// Asks the journal for what a group waits for, unless something else is on its way.
    pub(super) fn read_beside<F: Effects>(
        &mut self,
        slot: u32,
        group: u32,
        wanted: BrowserWanted,
        fx: &mut F,
    ) -> Served {
        let queue = &mut self.queues[slot];
        let Some(filtered) = &mut queue.filtered else { return Served::Nothing };
        if std::mem::replace(&mut filtered.reading.is_loading, true) {
            return Served::Nothing;
        }
        let number = queue.number;
        let (positions, bytes) = match &wanted {
            BrowserWanted::Page { position, .. } => (vec![*position], 0),
            BrowserWanted::Messages { entries, .. } => {
                let positions = entries.iter().map(|entry| entry.position).collect();
                (positions, entries.iter().map(|it| u64::from(it.bytes) + ENTRY_COST).sum())
            }
        };
        let load = Box::new(LoadBeside { queue: slot, number, group, wanted });
        self.load(NO_QUEUE, bytes, Wanted::Beside(load), positions, fx);
        Served::Nothing
    }

    /// What was asked for was read.
    pub(crate) fn loaded_beside<F: Effects>(
        &mut self,
        load: LoadBeside,
        records: Loaded,
        fx: &mut F,
    ) {
        let LoadBeside { queue: slot, number, group, wanted } = load;
        let limits = &self.options.limits;
        let Some(queue) = self.queues.get_mut(slot).filter(|it| it.number == number) else {
            return;
        };
        let Some(filtered) = &mut queue.filtered else { return };
        let reading = &mut filtered.reading;
        reading.is_loading = false;
        match wanted {
            BrowserWanted::Page { lane, position, is_searched } => {
                let record = records.ok().and_then(|records| records.into_iter().next());
                let entries = record.and_then(|record| match Record::parse(&record) {
                    Ok(Record::Page { queue, entries, .. }) if queue == number => Some(entries),
                    _ => None,
                });
                if entries.is_none() && !is_searched {
                    let wanted = BrowserWanted::Page { lane, position, is_searched: true };
                    self.read_beside(slot, group, wanted, fx);
                    return;
                }
                // What cannot be read is passed over: the queue stops there once it is first.
                self.page_read(slot, lane, position, entries.unwrap_or_default());
            }
            BrowserWanted::Messages { entries, .. } => match records {
                Ok(records) => {
                    reading.reads_singly = false;
                    reading.forget_messages();
                    for (entry, record) in entries.iter().zip(&records) {
                        match checked_message(record, limits) {
                            Some(message) => {
                                reading.keep_message(entry.seq, message);
                            }
                            None => reading.give_up(entry),
                        }
                    }
                }
                Err(_) if entries.len() > 1 => reading.reads_singly = true,
                Err(_) => entries.iter().for_each(|entry| reading.give_up(entry)),
            },
        }
        if let Some(filtered) = &mut self.queues[slot].filtered {
            filtered.wake_all();
            filtered.wake_first(group);
            self.mark_dirty(slot);
        }
        self.count_known(slot);
    }

    /// A page was read: keeps what is known of its messages.
    fn page_read(&mut self, slot: u32, lane: usize, position: Position, mut entries: Vec<Entry>) {
        let queue = &mut self.queues[slot];
        let page = queue.lanes[lane].pages.iter().find(|page| page.position == position);
        let Some(page) = page else { return };
        entries.retain(|entry| entry.durable || !page.recovered);
        for entry in &mut entries {
            entry.lane = lane as u8;
            entry.redelivered |= entry.seq < queue.recovered_before;
            if let Some(requeues) = queue.requeued_in_pages.get(&entry.seq) {
                entry.went_back(*requeues);
            }
        }
        if let Some(filtered) = &mut queue.filtered {
            filtered.reading.keep_page(position, entries);
        }
    }

    /// Looks at messages that came back and are in the journal only, before a group is served. `None`: there
    /// are none.
    pub(super) fn look_again<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        group: u32,
        fx: &mut F,
    ) -> Option<Served> {
        let queue = &mut self.queues[slot];
        let at = queue.filtered.as_ref()?.first_again()?;
        let entry = queue.lanes[at.lane()].find(at.seq).cloned();
        let filtered = queue.filtered.as_mut()?;
        let reading = &filtered.reading;
        let is_there =
            |it: &Entry| it.expires > now && !it.is_unreadable() && !reading.is_given_up(it);
        let Some(entry) = entry.filter(is_there) else {
            filtered.looked_again_at(at);
            return Some(Served::Something(MESSAGE_BYTES));
        };
        let read = || filtered.reading.message(at.seq).cloned();
        let Some(message) = entry.message.clone().or_else(read) else {
            let wanted = BrowserWanted::Messages { lane: at.lane(), entries: vec![entry] };
            return Some(self.read_beside(slot, group, wanted, fx));
        };
        filtered.looked_again_at(at);
        self.find_groups(slot, &message.stored().selectable(entry.requeues));
        let filtered = self.queues[slot].filtered.as_mut()?;
        filtered.came_back(&self.scratch.matched, at.lane(), at.seq);
        Some(Served::Something(MESSAGE_BYTES))
    }

    /// Hands a consumer a message that its filter selects, wherever that waits.
    pub(super) fn hand_out_selected<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        at: Place,
        taker: u32,
        fx: &mut F,
    ) {
        let filtered = self.queues[slot].filtered.as_mut();
        let read = filtered.and_then(|filtered| filtered.reading.take_message(at.seq));
        let Some(entry) = self.take_out(slot, at, fx) else { return };
        match (entry.message.is_some(), read) {
            (true, _) => self.hand_out_stored(now, taker, entry, fx),
            (false, Some(message)) => self.hand_out_read(now, taker, entry, &message, fx),
            (false, None) => unreachable!("only messages that are here are handed out"),
        }
    }

    /// Hands out an entry whose message was read beside its queue, and leaves that to the journal.
    fn hand_out_read<F: Effects>(
        &mut self,
        now: Time,
        taker: u32,
        entry: Entry,
        message: &Blob,
        fx: &mut F,
    ) {
        let stored = message.stored();
        let slot = self.clients.consumers[taker].queue;
        let annotations = self.annotations_of(slot, &stored, &entry);
        let view = MessageView { ttl: entry.ttl_left(now, &stored), ..stored.view(&annotations) };
        let (tag, _) = self.send(taker, entry.seq, entry.redelivered, &view, fx);
        self.after_sending(now, taker, entry, tag, fx);
    }

    /// Takes a message out of its queue from wherever it waits.
    fn take_out<F: Effects>(&mut self, slot: u32, at: Place, fx: &mut F) -> Option<Entry> {
        let queue = &mut self.queues[slot];
        let entry = match queue.remove(at.seq) {
            Some(entry) => entry,
            None => {
                let entry = waiting(queue, at.lane, at.seq)??;
                self.take_out_of_page(slot, at.lane, &entry, fx);
                // A snapshot that is being taken has it with its page.
                Entry { mark: self.storage.mark, ..entry }
            }
        };
        let queue = &self.queues[slot];
        if entry.durable && queue.durable && queue.lanes[at.lane].may_have_paged(at.seq) {
            // A later page may have numbers around this one, as if it were gone.
            let (queue, lane) = (queue.number, at.lane as u8);
            Record::Apart { queue, lane, entries: vec![entry.without_message()] }
                .write(&mut self.scratch.record);
            fx.append(&[&self.scratch.record], false);
        }
        Some(entry)
    }

    /// A message leaves the page that it is in, whose record names it still: the reference that the page has
    /// to it stays until the page is read or empty, and the entry has one of its own.
    pub(crate) fn take_out_of_page<F: Effects>(
        &mut self,
        slot: u32,
        lane: usize,
        entry: &Entry,
        fx: &mut F,
    ) {
        let queue = &mut self.queues[slot];
        let Some(index) = queue.lanes[lane].find_page(entry.seq) else { return };
        let page = &mut queue.lanes[lane].pages[index];
        let bytes = u64::from(entry.bytes).min(page.bytes);
        page.count = page.count.saturating_sub(1);
        page.bytes -= bytes;
        if entry.durable {
            page.durable_count = page.durable_count.saturating_sub(1);
            page.durable_bytes -= bytes.min(page.durable_bytes);
        }
        let emptied = (page.count == 0).then_some(page.position);
        queue.ready -= 1;
        queue.bytes.take(bytes);
        queue.settled_in_pages.insert_range(entry.seq, entry.seq);
        queue.requeued_in_pages.remove(&entry.seq);
        if entry.durable {
            fx.retain(entry.position, 1);
        } else {
            self.retain_transient(entry.position, fx);
        }
        if let Some(position) = emptied {
            self.drop_page_at(slot, lane, position, fx);
        }
    }
}
