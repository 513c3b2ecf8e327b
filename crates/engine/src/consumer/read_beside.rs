//! What is read of a queue beside it, for consumers that take only some of its messages: one page, and a few
//! messages, which take nothing of the queue's own memory.

use crate::Position;
use crate::consumer::browsers::BrowserWanted;
use crate::queue::blob::Blob;
use crate::queue::entry::Entry;
use std::collections::BTreeMap;

/// Messages that are read at once, or one where some of them cannot be read.
const READ_AT_ONCE: usize = 64;

/// What was read last.
#[derive(Debug, Default)]
pub(crate) struct ReadBeside {
    /// More is on its way.
    pub(crate) is_loading: bool,
    /// A load failed: what follows is read singly.
    pub(crate) reads_singly: bool,
    page: Option<ReadPage>,
    /// By number.
    messages: BTreeMap<u64, Blob>,
    /// What these take in memory.
    bytes: u64,
    /// Messages that cannot be read, by number, and where they are.
    unreadable: BTreeMap<u64, Position>,
}

#[derive(Debug)]
struct ReadPage {
    position: Position,
    entries: Vec<Entry>,
}

/// What was asked for.
#[derive(Debug)]
pub(crate) struct LoadBeside {
    /// The slot and number of the queue.
    pub(crate) queue: u32,
    pub(crate) number: u64,
    /// The group that waits for it.
    pub(crate) group: u32,
    pub(crate) wanted: BrowserWanted,
}

impl ReadBeside {
    /// How many messages are read at once.
    pub(crate) fn at_once(&self) -> usize {
        if self.reads_singly { 1 } else { READ_AT_ONCE }
    }

    pub(crate) fn keep_page(&mut self, position: Position, entries: Vec<Entry>) {
        self.page = Some(ReadPage { position, entries });
    }

    /// The entries of a page, if it was read last.
    pub(crate) fn page(&self, position: Position) -> Option<&[Entry]> {
        let page = self.page.as_ref().filter(|page| page.position == position)?;
        Some(&page.entries)
    }

    /// A message that was read.
    pub(crate) fn message(&self, seq: u64) -> Option<&Blob> {
        self.messages.get(&seq)
    }

    /// Takes a message that was read.
    pub(crate) fn take_message(&mut self, seq: u64) -> Option<Blob> {
        let message = self.messages.remove(&seq)?;
        self.bytes -= message.cost();
        Some(message)
    }

    /// Others are about to be read.
    pub(crate) fn forget_messages(&mut self) {
        self.messages.clear();
        self.bytes = 0;
    }

    pub(crate) fn keep_message(&mut self, seq: u64, message: Blob) {
        self.bytes += message.cost();
        self.messages.insert(seq, message);
    }

    /// Everything has been seen.
    pub(crate) fn forget(&mut self) {
        self.page = None;
        self.forget_messages();
    }

    /// What it takes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        let entries = self.page.as_ref().map_or(0, |page| page.entries.len());
        self.bytes + (entries * size_of::<Entry>()) as u64
    }

    /// A message cannot be read.
    pub(crate) fn give_up(&mut self, entry: &Entry) {
        self.unreadable.insert(entry.seq, entry.position);
    }

    /// Whether a message could not be read where it is.
    pub(crate) fn is_given_up(&self, entry: &Entry) -> bool {
        self.unreadable.get(&entry.seq) == Some(&entry.position)
    }
}

/// What a group has done in its turn.
pub(crate) enum Served {
    /// It was handed a message, or has looked at some, which counts for this in bytes. It may go on.
    Something(u64),
    /// It waits until something happens.
    Nothing,
}
