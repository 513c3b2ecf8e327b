//! The messages of one priority in one queue, oldest first: a head in memory, pages in the journal,
//! a tail in memory, and what came back.

use super::blob::{Blob, ENTRY_COST};
use super::entries::{Cursor, Entries};
use super::entry::{Entry, Fetch};
use super::page::Page;
use crate::Position;
use std::collections::{BTreeMap, VecDeque};

/// See the module. In order: `head`, `pages`, `tail`; `returned` is apart and goes where its numbers
/// belong. Without pages the tail is empty, and the head takes new messages.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    returned: BTreeMap<u64, Entry>,
    /// What came back and some consumers do not get: it is apart from all else and not at the front.
    barred: BTreeMap<u64, Entry>,
    head: Entries,
    /// Oldest first.
    pub(crate) pages: VecDeque<Page>,
    tail: Entries,
    /// Entries in memory whose message is not.
    cold: usize,
    /// How many entries at the newest end are cold, at most.
    cold_back: usize,
    /// Entries of the head before this sequence number are loaded or asked for.
    asked: u64,
    /// The highest number in a page that ever was.
    paged_up_to: u64,
}

/// Some of a lane's entries in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What came back.
    Returned,
    /// What came back and some consumers do not get.
    Barred,
    /// All else.
    InOrder,
}

/// What a lane begins with.
#[derive(Debug)]
pub(crate) enum Front<'a> {
    /// An entry, whose message may have to be loaded.
    Entry(&'a Entry),
    /// A page that has to be loaded.
    Page(&'a Page),
    /// Nothing.
    Empty,
}

/// What a browser sees next.
#[derive(Debug)]
pub(crate) enum Browsed {
    Entry(Entry),
    /// The position of a page.
    Page(Position),
}

impl Lane {
    pub(super) const fn new() -> Lane {
        Lane {
            returned: BTreeMap::new(),
            barred: BTreeMap::new(),
            head: Entries::new(),
            pages: VecDeque::new(),
            tail: Entries::new(),
            cold: 0,
            cold_back: 0,
            asked: 0,
            paged_up_to: 0,
        }
    }

    /// The first message from a number on, or the page that has it.
    pub(crate) fn browse(&mut self, seq: u64) -> Option<Browsed> {
        let page = self.pages.get(self.pages.partition_point(|page| page.last < seq));
        let (next, found) = if let Some(entry) = self.head.next_from(seq) {
            (entry.seq, Some(Browsed::Entry(entry.clone())))
        } else if let Some(page) = page {
            (page.first.max(seq), Some(Browsed::Page(page.position)))
        } else if let Some(entry) = self.tail.next_from(seq) {
            (entry.seq, Some(Browsed::Entry(entry.clone())))
        } else {
            (u64::MAX, None)
        };
        match self.came_back_from(seq) {
            Some(entry) if entry.seq < next => Some(Browsed::Entry(entry.clone())),
            _ => found,
        }
    }

    /// The first of those that came back, from a number on.
    pub(crate) fn came_back_from(&self, seq: u64) -> Option<&Entry> {
        let came_back = [&self.returned, &self.barred].into_iter();
        let came_back = came_back.filter_map(|some| some.range(seq..).next());
        came_back.map(|(_, entry)| entry).min_by_key(|entry| entry.seq)
    }

    /// A page is made of its messages up to a number.
    pub(crate) fn note_paged(&mut self, last: u64) {
        self.paged_up_to = self.paged_up_to.max(last);
    }

    /// Whether the message of that number may be in a page, or have been in one, as far as records tell.
    pub(crate) fn may_have_paged(&self, seq: u64) -> bool {
        seq <= self.paged_up_to
    }

    /// What it begins with.
    #[inline]
    pub(crate) fn front(&self) -> Front<'_> {
        if let Some(entry) = self.first_returned() {
            return Front::Entry(entry);
        }
        match (self.head.front(), self.pages.front()) {
            (Some(entry), _) => Front::Entry(entry),
            (None, Some(page)) => Front::Page(page),
            (None, None) => Front::Empty,
        }
    }

    /// The first of what came back, where it is before all else.
    #[inline]
    fn first_returned(&self) -> Option<&Entry> {
        let (seq, entry) = self.returned.first_key_value()?;
        let head = self.head.front().map(|entry| entry.seq);
        let next = head.or_else(|| self.pages.front().map(|page| page.first));
        next.is_none_or(|next| *seq < next).then_some(entry)
    }

    /// Whether there is a front.
    #[inline]
    pub(crate) fn has_front(&self) -> bool {
        !(self.head.is_empty() && self.returned.is_empty() && self.pages.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.has_front() && self.barred.is_empty()
    }

    /// Whether any of its messages is in the journal only, so that newer ones go there too.
    #[inline]
    pub(crate) fn is_spooling(&self) -> bool {
        self.cold > 0 || !self.pages.is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) {
        if entry.is_cold() {
            self.cold += 1;
            self.cold_back += 1;
        } else {
            self.cold_back = 0;
        }
        if self.pages.is_empty() { &mut self.head } else { &mut self.tail }.push_back(entry);
    }

    /// Takes the first entry; not one in a page.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let entry = if self.first_returned().is_some() {
            self.returned.pop_first()?.1
        } else {
            let entry = self.head.pop_front()?;
            self.settle_tail();
            entry
        };
        self.cold -= usize::from(entry.is_cold());
        Some(entry)
    }

    /// Takes an entry back to its place.
    pub(crate) fn give_back(&mut self, entry: Entry) {
        self.cold += usize::from(entry.is_cold());
        self.returned.insert(entry.seq, entry);
    }

    /// Takes an entry back that some consumers do not get.
    pub(crate) fn bar(&mut self, entry: Entry) {
        self.barred.insert(entry.seq, entry);
    }

    /// Entries that some consumers do not get.
    pub(crate) fn barred(&self) -> impl Iterator<Item = &Entry> {
        self.barred.values()
    }

    /// Without pages, what is in the tail belongs to the head.
    fn settle_tail(&mut self) {
        if self.pages.is_empty() && !self.tail.is_empty() {
            self.head.append(&mut self.tail);
        }
    }

    /// Whether [`Lane::take_cold_run`] may find that many.
    #[inline]
    pub(crate) fn has_cold_run(&self, count: usize) -> bool {
        self.cold_back >= count
    }

    /// The first of the `count` entries that [`Lane::take_cold_run`] would cut out.
    pub(crate) fn cold_run_begins(&self, count: usize) -> Option<u64> {
        let newest = if self.pages.is_empty() { &self.head } else { &self.tail };
        newest.iter().rev().nth(count.checked_sub(1)?).map(|entry| entry.seq)
    }

    /// Cuts `count` cold entries out for a page, which comes after all others: the newest of the head
    /// where there are no pages, else the oldest of the tail, which is all newer than they are.
    pub(crate) fn take_cold_run(&mut self, count: usize) -> Option<Vec<Entry>> {
        if !self.has_cold_run(count) {
            return None;
        }
        let is_first = self.pages.is_empty();
        let newest = if is_first { &mut self.head } else { &mut self.tail };
        let run = newest
            .iter()
            .rev()
            .take(self.cold_back)
            .take_while(|entry| entry.is_cold() && entry.fetch == Fetch::Idle)
            .count();
        self.cold_back = run;
        // What is older than the page may stay in the head, and not behind the page.
        if run < count || (!is_first && run < newest.count()) {
            return None;
        }
        self.cold_back = run - count;
        self.cold -= count;
        Some(newest.take(count, is_first))
    }

    /// Adds a page that a record or a snapshot names, and that overlaps no other. Older entries may
    /// be left in the tail, which had been in the head when the page was written.
    pub(crate) fn restore_page(&mut self, page: Page) {
        self.note_paged(page.last);
        while self.tail.front().is_some_and(|entry| entry.seq < page.last) {
            let entry = self.tail.pop_front().expect("it was seen just now");
            self.returned.insert(entry.seq, entry);
        }
        while self.head.back().is_some_and(|entry| entry.seq > page.first) {
            let entry = self.head.pop_back().expect("it was seen just now");
            self.returned.insert(entry.seq, entry);
        }
        let index = self.pages.partition_point(|known| known.first < page.first);
        self.pages.insert(index, page);
    }

    /// Takes an entry that a snapshot names; older ones than the last page may follow it.
    pub(crate) fn restore(&mut self, entry: Entry) {
        if self.pages.back().is_some_and(|page| entry.seq < page.last) {
            self.give_back(entry);
        } else {
            self.push(entry);
        }
    }

    /// Puts back the entries of the first page, in place of it.
    pub(crate) fn open_page(&mut self, position: Position, entries: Vec<Entry>) -> Option<Page> {
        if self.pages.front()?.position != position {
            return None;
        }
        let page = self.pages.pop_front()?;
        self.cold += entries.len();
        let is_newest = self.pages.is_empty() && self.tail.is_empty();
        self.cold_back = if is_newest { entries.len() } else { self.cold_back };
        entries.into_iter().for_each(|entry| self.head.push_back(entry));
        self.settle_tail();
        Some(page)
    }

    /// The entry of that number, if it is in memory.
    pub(crate) fn find(&mut self, seq: u64) -> Option<&mut Entry> {
        let returned = self.returned.get_mut(&seq).or_else(|| self.barred.get_mut(&seq));
        returned.or_else(|| self.head.find(seq)).or_else(|| self.tail.find(seq))
    }

    /// Takes the entry of that number out, if it is in memory.
    pub(crate) fn remove(&mut self, seq: u64) -> Option<Entry> {
        if let Some(barred) = self.barred.remove(&seq) {
            return Some(barred);
        }
        let returned = self.returned.remove(&seq);
        let entry = returned.or_else(|| self.head.remove(seq)).or_else(|| self.tail.remove(seq))?;
        self.cold -= usize::from(entry.is_cold());
        self.settle_tail();
        Some(entry)
    }

    /// Gives an entry its message, where it is there without; returns what that costs. `next` is where
    /// such entries go on, kept from call to call: most follow each other.
    pub(crate) fn warm(&mut self, seq: u64, message: Blob, next: &mut Cursor) -> u64 {
        let entry = match self.head.find_next(seq, next) {
            Some(entry) => Some(entry),
            None => self.find(seq),
        };
        let Some(entry) = entry else { return 0 };
        entry.fetch = Fetch::Idle;
        if !entry.is_cold() {
            return 0;
        }
        let cost = message.cost();
        entry.message = Some(message);
        self.cold -= usize::from(!self.barred.contains_key(&seq));
        cost
    }

    /// The next cold entries to be asked for: at most `count_max`, which will take up `bytes_max` in
    /// sum. `needs_first`: the first one however large it is.
    pub(crate) fn ask(
        &mut self,
        count_max: usize,
        bytes_max: u64,
        needs_first: bool,
    ) -> Vec<(u64, u32, Position)> {
        let mut asked = Vec::new();
        if self.cold == 0 {
            return asked;
        }
        let mut bytes = 0;
        // False once it is enough.
        let mut consider = |entry: &mut Entry| {
            let cost = u64::from(entry.bytes) + ENTRY_COST;
            let is_first = needs_first && asked.is_empty();
            if (!is_first && bytes + cost > bytes_max) || asked.len() == count_max {
                return false;
            }
            if entry.is_cold() && entry.fetch == Fetch::Idle {
                entry.fetch = Fetch::Asked;
                bytes += cost;
                asked.push((entry.seq, entry.bytes, entry.position));
            }
            true
        };
        if !self.returned.values_mut().take(count_max).all(&mut consider) {
            return asked;
        }
        for entry in self.head.onward_mut(self.asked) {
            if !consider(entry) {
                break;
            }
            self.asked = entry.seq + 1;
        }
        asked
    }

    /// The page that comes next, once the head has been asked for.
    pub(crate) fn ask_page(&mut self) -> Option<Position> {
        let is_asked = self.head.back().is_none_or(|entry| entry.seq < self.asked);
        let page = self.pages.front_mut()?;
        if !is_asked || page.fetch != Fetch::Idle {
            return None;
        }
        page.fetch = Fetch::Asked;
        Some(page.position)
    }

    /// Everything in memory, oldest first within each part.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        let came_back = self.returned.values().chain(self.barred.values());
        came_back.chain(self.head.iter()).chain(self.tail.iter())
    }

    pub(crate) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        let came_back = self.returned.values_mut().chain(self.barred.values_mut());
        came_back.chain(self.head.iter_mut()).chain(self.tail.iter_mut())
    }

    /// A part of those in memory, from a number on.
    pub(crate) fn entries_from(
        &mut self,
        part: Part,
        seq: u64,
    ) -> impl Iterator<Item = &mut Entry> {
        let came_back = match part {
            Part::Returned => Some(&mut self.returned),
            Part::Barred => Some(&mut self.barred),
            Part::InOrder => None,
        };
        let came_back = came_back.map(|some| some.range_mut(seq..).map(|(_, entry)| entry));
        let others = (part == Part::InOrder)
            .then(|| self.head.onward_mut(seq).chain(self.tail.onward_mut(seq)));
        came_back.into_iter().flatten().chain(others.into_iter().flatten())
    }

    /// Takes entries that a snapshot names apart from the pages, in order; nothing else is in memory.
    pub(crate) fn restore_apart(&mut self, entries: impl Iterator<Item = Entry>) {
        let mut pages = std::mem::take(&mut self.pages);
        let first_page = pages.front().map_or(u64::MAX, |page| page.first);
        for entry in entries {
            if entry.seq > first_page && !pages.is_empty() {
                self.pages = std::mem::take(&mut pages);
            }
            self.restore(entry);
        }
        if !pages.is_empty() {
            self.pages = pages;
        }
    }

    /// Which page has that number among its own, if it is still in it.
    pub(crate) fn find_page(&self, seq: u64) -> Option<usize> {
        let after = self.pages.partition_point(|page| page.first <= seq);
        let index = after.checked_sub(1)?;
        (self.pages[index].last >= seq).then_some(index)
    }

    /// Takes the page out whose record is at that position.
    pub(crate) fn remove_page(&mut self, position: Position) -> Option<Page> {
        let index = self.pages.iter().position(|page| page.position == position)?;
        let page = self.pages.remove(index);
        self.settle_tail();
        page
    }

    /// Takes some entry out of a lane that nothing is served from any more.
    pub(crate) fn take_any(&mut self) -> Option<Entry> {
        let came_back = self.returned.pop_first().or_else(|| self.barred.pop_first());
        came_back
            .map(|(_, entry)| entry)
            .or_else(|| self.head.pop_front())
            .or_else(|| self.tail.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::Lane;

    impl Lane {
        /// Checks its order and its count of cold entries.
        pub(crate) fn check(&self, cold: usize) {
            assert_eq!(self.cold, cold, "cold entries");
            assert!(self.tail.is_empty() || !self.pages.is_empty(), "a tail without pages");
            let pages = self.pages.iter().flat_map(|page| [page.first, page.last]);
            let seqs = self.head.iter().map(|entry| entry.seq).chain(pages);
            let seqs: Vec<u64> = seqs.chain(self.tail.iter().map(|entry| entry.seq)).collect();
            assert!(seqs.is_sorted(), "out of order: {seqs:?}");
            self.head.check();
            self.tail.check();
        }
    }
}
