//! Browsers as data: who looks at which queue, and how far each has come.

use crate::foundation::slab::Slab;
use crate::queue::entry::Entry;
use crate::selector::Filter;
use crate::{ChannelId, Grant, Position};
use std::collections::VecDeque;

/// Browsers of one broker: each message that comes to a queue looks for those of the queue.
pub(crate) const BROWSERS_MAX: usize = 1_000;

/// A consumer that is shown the messages of a queue and takes none.
#[derive(Debug)]
pub(crate) struct Browser {
    /// Tells it from others that had its slot.
    pub(crate) number: u64,
    pub(crate) channel: ChannelId,
    /// The slot of its queue.
    pub(crate) queue: u32,
    pub(crate) name: String,
    /// It is shown only what this selects.
    pub(crate) filter: Option<Filter>,
    /// By lane: it has seen all messages before this number.
    pub(crate) next: Vec<u64>,
    /// What is left of a page that it looks through.
    pub(crate) page: Option<BrowsedPage>,
    /// It waits for the journal.
    pub(crate) is_loading: bool,
    /// A load failed: what follows is read singly.
    pub(crate) reads_singly: bool,
    pub(crate) is_awake: bool,
    /// How many messages it may have been shown, and how many it has been.
    pub(crate) up_to: u64,
    pub(crate) shown: u64,
    /// It is to be told when there is nothing more to be shown.
    pub(crate) drains: bool,
}

/// What a browser begins as.
#[derive(Debug)]
pub(crate) struct NewBrowser {
    pub(crate) channel: ChannelId,
    pub(crate) queue: u32,
    pub(crate) name: String,
    pub(crate) filter: Option<Filter>,
    /// How many its queue has.
    pub(crate) lanes: usize,
    /// It is shown only what it was granted.
    pub(crate) is_granted: bool,
}

/// A page that was read for a browser.
#[derive(Debug)]
pub(crate) struct BrowsedPage {
    pub(crate) lane: usize,
    /// The number of its last message.
    pub(crate) last: u64,
    pub(crate) entries: VecDeque<Entry>,
}

/// What a browser has asked the journal for.
#[derive(Debug)]
pub(crate) struct BrowserLoad {
    pub(crate) slot: u32,
    pub(crate) number: u64,
    pub(crate) wanted: BrowserWanted,
}

#[derive(Debug)]
pub(crate) enum BrowserWanted {
    /// `is_searched`: its record is lost, so its messages are looked for.
    Page {
        lane: usize,
        position: Position,
        is_searched: bool,
    },
    Messages {
        lane: usize,
        entries: Vec<Entry>,
    },
}

impl Browser {
    /// It has seen a message.
    pub(crate) fn passed(&mut self, lane: usize, seq: u64) {
        self.next[lane] = seq + 1;
        if let Some(page) = self.page.as_mut().filter(|page| page.lane == lane) {
            while page.entries.front().is_some_and(|entry| entry.seq <= seq) {
                page.entries.pop_front();
            }
            if page.entries.is_empty() {
                self.next[lane] = self.next[lane].max(page.last + 1);
                self.page = None;
            }
        }
    }
}

/// All browsers.
#[derive(Debug, Default)]
pub(crate) struct Browsers {
    all: Slab<Browser>,
    /// Those that may have something to see, each once.
    awake: VecDeque<u32>,
    next_number: u64,
}

impl Browsers {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.all.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether one of them may have something to see.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        !self.awake.is_empty()
    }

    /// Takes those that have been awake for longest, at most `most`.
    pub(crate) fn take_awake(&mut self, most: usize) -> Vec<u32> {
        let count = self.awake.len().min(most);
        let awake: Vec<u32> = self.awake.drain(..count).collect();
        for slot in &awake {
            if let Some(browser) = self.all.get_mut(*slot) {
                browser.is_awake = false;
            }
        }
        awake
    }

    /// Adds one that has seen nothing.
    pub(crate) fn add(&mut self, browser: NewBrowser) {
        let NewBrowser { channel, queue, name, filter, lanes, is_granted } = browser;
        let number = self.next_number;
        self.next_number += 1;
        let slot = self.all.insert(Browser {
            number,
            channel,
            queue,
            name,
            filter,
            next: vec![0; lanes],
            page: None,
            is_loading: false,
            reads_singly: false,
            is_awake: false,
            up_to: if is_granted { 0 } else { u64::MAX },
            shown: 0,
            drains: false,
        });
        self.wake(slot);
    }

    /// Sets how many messages the browser of that name may have been shown.
    pub(crate) fn grant(&mut self, channel: ChannelId, name: &str, grant: Grant) {
        for slot in self.which(|it| it.channel == channel && it.name == name) {
            if let Some(browser) = self.all.get_mut(slot) {
                (browser.up_to, browser.drains) = (grant.up_to, grant.drain);
            }
            self.wake(slot);
        }
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Browser> {
        self.all.get(slot)
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut Browser> {
        self.all.get_mut(slot)
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Option<Browser> {
        self.all.remove(slot)
    }

    /// The slots of those for which it holds.
    pub(crate) fn which(&self, which: impl Fn(&Browser) -> bool) -> Vec<u32> {
        self.all.iter().filter(|(_, browser)| which(browser)).map(|(slot, _)| slot).collect()
    }

    /// One of them may have something to see.
    pub(crate) fn wake(&mut self, slot: u32) {
        let Some(browser) = self.all.get_mut(slot) else { return };
        if !std::mem::replace(&mut browser.is_awake, true) {
            self.awake.push_back(slot);
        }
    }

    /// The same of all for which it holds.
    #[cold]
    pub(crate) fn wake_all(&mut self, which: impl Fn(&Browser) -> bool) {
        for (slot, browser) in self.all.iter_mut().filter(|(_, browser)| !browser.is_awake) {
            if which(browser) {
                browser.is_awake = true;
                self.awake.push_back(slot);
            }
        }
    }
}
