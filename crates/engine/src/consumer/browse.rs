//! Browsing: a consumer is shown the messages that wait in a queue, in their order, and takes none. Nothing
//! changes by it: no count of deliveries, no place, no mark. What other consumers hold is not shown.

use super::browsers::{BROWSERS_MAX, BrowsedPage, Browser, BrowserLoad, BrowserWanted, NewBrowser};
use crate::engine::Engine;
use crate::interface::refusal::refuse;
use crate::queue::Queue;
use crate::queue::blob::{Blob, ENTRY_COST};
use crate::queue::entry::Entry;
use crate::queue::lane::Browsed;
use crate::queue::page_in::checked_message;
use crate::queue::page_out::{NO_QUEUE, Wanted};
use crate::selector::Filter;
use crate::storage::record::Record;
use crate::{
    CancelReason, ChannelId, Delivery, Effects, Loaded, MessageView, Position, Refusal, Time,
};

/// Messages that one browser is shown before others get their turn, or has read in one load.
const BROWSED_AT_ONCE: usize = 64;
/// Browsers that are served before others get their turn.
const SERVED_AT_ONCE: usize = 16;
/// Body bytes in one load, beyond its first message.
const LOAD_BYTES_MAX: u64 = 256 << 10;

/// What comes next for a browser.
enum Next {
    Message {
        lane: usize,
        entry: Entry,
        message: Blob,
    },
    Cold(BrowserWanted),
    /// A message that is not shown: expired, or gone.
    Skip {
        lane: usize,
        seq: u64,
    },
    Nothing,
}

impl Engine {
    /// A channel begins to look at a queue.
    pub(super) fn browse(
        &mut self,
        now: Time,
        channel: u32,
        queue: u32,
        name: String,
        is_granted: bool,
        filter: Option<Filter>,
    ) -> Result<(), Refusal> {
        if self.browsers.len() >= BROWSERS_MAX {
            refuse!(LimitExceeded, "more than {BROWSERS_MAX} browsers at once");
        }
        let filter_bytes = filter.as_ref().map_or(0, Filter::memory_bytes) as u64;
        let lanes = self.queues[queue].lanes.len();
        self.clients.channels[channel].filter_bytes += filter_bytes;
        let channel = self.clients.channels[channel].id;
        self.browsers.add(NewBrowser { channel, queue, name, filter, lanes, is_granted });
        self.queue_used(now, queue);
        Ok(())
    }

    /// Ends the browser of that name; false where the channel has none.
    pub(super) fn end_browser(&mut self, channel: ChannelId, name: &str) -> bool {
        let ended = self.browsers.which(|it| it.channel == channel && it.name == name);
        ended.into_iter().filter_map(|slot| self.remove_browser(slot)).next().is_some()
    }

    fn remove_browser(&mut self, slot: u32) -> Option<Browser> {
        let browser = self.browsers.remove(slot)?;
        let channel = self.clients.channel_slot(browser.channel);
        if let Some(channel) = channel.and_then(|slot| self.clients.channels.get_mut(slot)) {
            channel.filter_bytes -= browser.filter.as_ref().map_or(0, Filter::memory_bytes) as u64;
        }
        Some(browser)
    }

    pub(super) fn has_browser(&self, channel: ChannelId, name: &str) -> bool {
        let named = self.browsers.which(|it| it.channel == channel && it.name == name);
        !named.is_empty()
    }

    /// Ends the browsers of a channel that closes.
    pub(crate) fn end_browsers_of(&mut self, channel: ChannelId) {
        for slot in self.browsers.which(|it| it.channel == channel) {
            self.browsers.remove(slot);
        }
    }

    /// Ends the browsers of a queue that is deleted, and tells their clients.
    pub(crate) fn cancel_browsers(&mut self, queue: u32) {
        for slot in self.browsers.which(|it| it.queue == queue) {
            let browser = self.remove_browser(slot);
            let channel = browser.as_ref().and_then(|it| self.channel_slot(it.channel));
            if let (Some(browser), Some(channel)) = (browser, channel) {
                self.tell_cancelled(channel, browser.name, CancelReason::QueueDeleted);
            }
        }
    }

    /// Whether there is something to be shown, of queues or retained, that nobody takes by it.
    #[inline]
    pub(super) fn has_something_to_show(&self) -> bool {
        self.browsers.has_work() || self.retained.replays.has_work()
    }

    /// Shows some of it.
    pub(super) fn show_some<F: Effects>(&mut self, now: Time, fx: &mut F) {
        self.serve_browsers(now, fx);
        self.serve_replays(now, fx);
    }

    /// A channel can be shown more.
    #[inline]
    pub(super) fn wake_those_shown(&mut self, id: ChannelId) {
        if !self.browsers.is_empty() {
            self.browsers.wake_all(|browser| browser.channel == id);
        }
        self.wake_replays_of(id);
    }

    /// Shows browsers what they have not seen, each a bounded part of it.
    fn serve_browsers<F: Effects>(&mut self, now: Time, fx: &mut F) {
        for slot in self.browsers.take_awake(SERVED_AT_ONCE) {
            self.serve_browser(now, slot, fx);
        }
    }

    fn serve_browser<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        for _ in 0..BROWSED_AT_ONCE {
            let Some(browser) = self.browsers.get(slot).filter(|it| !it.is_loading) else { return };
            let channel = self.clients.channel(browser.channel);
            // It is woken again once there is room, or flow.
            if !channel.is_some_and(|it| it.flow) || !fx.has_room(browser.channel.connection) {
                if let Some(channel) = self.channel_slot(browser.channel) {
                    self.clients.channels[channel].is_held_up = true;
                }
                return;
            }
            if browser.shown >= browser.up_to {
                return self.end_drain(slot, fx);
            }
            match self.next_for(now, slot) {
                Next::Message { lane, entry, message } => {
                    self.show(now, slot, lane, &entry, &message, fx);
                }
                Next::Skip { lane, seq } => self.browser_passed(slot, lane, seq),
                Next::Cold(wanted) => return self.read_for_browser(slot, wanted, fx),
                Next::Nothing => return self.end_drain(slot, fx),
            }
        }
        self.browsers.wake(slot);
    }

    /// Tells a browser that drains that there is nothing more to see, or that it was shown all it may be.
    fn end_drain<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let Some(browser) = self.browsers.get_mut(slot) else { return };
        if std::mem::take(&mut browser.drains) {
            browser.up_to = browser.shown;
            fx.drained(browser.channel, &browser.name, browser.shown);
        }
    }

    fn browser_passed(&mut self, slot: u32, lane: usize, seq: u64) {
        if let Some(browser) = self.browsers.get_mut(slot) {
            browser.passed(lane, seq);
        }
    }

    fn next_for(&mut self, now: Time, slot: u32) -> Next {
        let Some(browser) = self.browsers.get(slot) else { return Next::Nothing };
        let Some(queue) = self.queues.get_mut(browser.queue) else { return Next::Nothing };
        if let Some(page) = &browser.page {
            let BrowsedPage { lane, ref entries, .. } = *page;
            let may_see = usize::try_from(browser.up_to - browser.shown).unwrap_or(usize::MAX);
            let most = if browser.reads_singly { 1 } else { BROWSED_AT_ONCE.min(may_see) };
            let first = entries.front().map_or(0, |entry| entry.seq);
            let mut bytes = 0;
            let mut wanted = Vec::new();
            for entry in entries.iter().take(most) {
                if entry.expires <= now || !is_waiting(queue, lane, entry.seq) {
                    break;
                }
                bytes += u64::from(entry.bytes) + ENTRY_COST;
                if bytes > LOAD_BYTES_MAX && !wanted.is_empty() {
                    break;
                }
                wanted.push(entry.clone());
            }
            if wanted.is_empty() {
                return Next::Skip { lane, seq: first };
            }
            return Next::Cold(BrowserWanted::Messages { lane, entries: wanted });
        }
        for lane in (0..queue.lanes.len()).rev() {
            let next = browser.next[lane];
            match queue.lanes.browse(lane, next) {
                Some(Browsed::Page(position)) => {
                    let is_searched = false;
                    return Next::Cold(BrowserWanted::Page { lane, position, is_searched });
                }
                Some(Browsed::Entry(entry)) => {
                    let seq = entry.seq;
                    if entry.expires <= now || entry.is_unreadable() {
                        return Next::Skip { lane, seq };
                    }
                    return match entry.message.clone() {
                        Some(message) => Next::Message { lane, entry, message },
                        None => Next::Cold(BrowserWanted::Messages { lane, entries: vec![entry] }),
                    };
                }
                None => {}
            }
        }
        Next::Nothing
    }

    /// Shows a browser one message.
    fn show<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        lane: usize,
        entry: &Entry,
        message: &Blob,
        fx: &mut F,
    ) {
        let Some(browser) = self.browsers.get_mut(slot) else { return };
        // Its grant may have been lowered while this was read.
        if browser.shown >= browser.up_to {
            return;
        }
        browser.passed(lane, entry.seq);
        let stored = message.stored();
        let conventions = self.options.conventions;
        if let Some(filter) = &browser.filter
            && !conventions.select(filter, &stored.selectable(entry.requeues))
        {
            return;
        }
        browser.shown += 1;
        let (channel, queue) = (browser.channel, browser.queue);
        let Some(channel_slot) = self.clients.channel_slot(channel) else { return };
        let tag = self.clients.channels[channel_slot].take_tag();
        let annotations = self.annotations_of(queue, &stored, entry);
        let ttl = entry.ttl_left(now, &stored);
        let message = &MessageView { ttl, ..stored.view(&annotations) };
        let Some(Browser { name: consumer, .. }) = self.browsers.get(slot) else { return };
        let (place, redelivered) = (entry.seq, entry.redelivered);
        fx.deliver(&Delivery { channel, consumer, tag, place, redelivered, group: None, message });
    }

    fn read_for_browser<F: Effects>(&mut self, slot: u32, wanted: BrowserWanted, fx: &mut F) {
        let Some(browser) = self.browsers.get_mut(slot) else { return };
        browser.is_loading = true;
        let number = browser.number;
        let (positions, bytes) = match &wanted {
            BrowserWanted::Page { position, .. } => (vec![*position], 0),
            BrowserWanted::Messages { entries, .. } => {
                let positions: Vec<Position> = entries.iter().map(|it| it.position).collect();
                (positions, entries.iter().map(|it| u64::from(it.bytes) + ENTRY_COST).sum())
            }
        };
        let load = Box::new(BrowserLoad { slot, number, wanted });
        self.load(NO_QUEUE, bytes, Wanted::Browsed(load), positions, fx);
    }

    /// What a browser has asked for was read.
    pub(crate) fn browsed_loaded<F: Effects>(
        &mut self,
        now: Time,
        load: BrowserLoad,
        records: Loaded,
        fx: &mut F,
    ) {
        let BrowserLoad { slot, number, wanted } = load;
        let browser = self.browsers.get_mut(slot).filter(|browser| browser.number == number);
        let Some(browser) = browser else { return };
        browser.is_loading = false;
        match wanted {
            wanted @ BrowserWanted::Page { .. } => self.page_browsed(slot, wanted, records, fx),
            BrowserWanted::Messages { lane, entries } => match records {
                Ok(records) => {
                    browser.reads_singly = false;
                    for (entry, record) in entries.iter().zip(&records) {
                        match checked_message(record, &self.options.limits) {
                            Some(message) => self.show(now, slot, lane, entry, &message, fx),
                            None => self.browser_passed(slot, lane, entry.seq),
                        }
                    }
                }
                // Which of them cannot be read shows when they are read singly.
                Err(_) if entries.len() > 1 => browser.reads_singly = true,
                Err(_) => browser.passed(lane, entries.first().map_or(0, |entry| entry.seq)),
            },
        }
        self.browsers.wake(slot);
    }

    fn page_browsed<F: Effects>(
        &mut self,
        slot: u32,
        wanted: BrowserWanted,
        records: Loaded,
        fx: &mut F,
    ) {
        let BrowserWanted::Page { lane, position, is_searched } = wanted else { return };
        let Some(browser) = self.browsers.get_mut(slot) else { return };
        let Some(queue) = self.queues.get(browser.queue) else { return };
        let page = queue.lanes[lane].pages.iter().find(|page| page.position == position);
        // It may have been read into memory meanwhile.
        let Some(page) = page else { return };
        let records = records.unwrap_or_default();
        let record = records.first().map(|record| Record::parse(record));
        let Some(Ok(Record::Page { queue: number, mut entries, .. })) = record else {
            if is_searched {
                return browser.passed(lane, page.last);
            }
            let wanted = BrowserWanted::Page { lane, position, is_searched: true };
            return self.read_for_browser(slot, wanted, fx);
        };
        if number != queue.number {
            return browser.passed(lane, page.last);
        }
        entries.retain(|entry| {
            entry.seq >= browser.next[lane]
                && (entry.durable || !page.recovered)
                && page.holds(entry.seq)
        });
        for entry in &mut entries {
            entry.redelivered |= entry.seq < queue.recovered_before;
            if let Some(requeues) = queue.requeued_in_pages.get(&entry.seq) {
                entry.went_back(*requeues);
            }
        }
        if entries.is_empty() {
            return browser.passed(lane, page.last);
        }
        let entries = entries.into();
        browser.page = Some(BrowsedPage { lane, last: page.last, entries });
    }
}

/// Whether a message waits in the queue still.
fn is_waiting(queue: &mut Queue, lane: usize, seq: u64) -> bool {
    let is_settled = queue.settled_in_pages.contains(seq);
    let Some(lane) = queue.lanes.get_mut(lane) else { return false };
    (lane.find_page(seq).is_some() && !is_settled) || lane.find(seq).is_some()
}
