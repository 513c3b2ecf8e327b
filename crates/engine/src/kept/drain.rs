//! A session that is claimed takes what it missed out of its logs into its own queue, in the order of
//! arrival.

use super::{LogCursor, LogLoad, LogPart, ReadPage, Searched};
use crate::engine::Engine;
use crate::queue::entry::{Entry, Fetch};
use crate::queue::lane::Browsed;
use crate::queue::page_out::{NO_QUEUE, Wanted};
use crate::routing::{Change, QueueKey};
use crate::storage::record::Record;
use crate::{Effects, Loaded, Position, StorageState, Time};

/// Messages that a session's queue has of what it missed, at most.
const WINDOW: u64 = 256;
/// Sessions that take what they missed before others get their turn.
const DRAINED_AT_ONCE: usize = 16;

/// What a log has next for a session.
enum Next {
    Message(Entry),
    /// The page at this position has to be read first.
    Page(u64, Position),
    /// A page of it cannot be read.
    Unreadable,
    Nothing,
}

/// What came of looking for the next message of a session.
enum Step {
    Taken(Entry),
    /// It waits for a page, or has to stop at one.
    Waits,
    AtEnd,
}

impl Engine {
    /// Goes on with sessions that go to logs or come back.
    #[inline]
    pub(crate) fn serve_logs<F: Effects>(&mut self, now: Time, fx: &mut F) {
        if !self.logs.has_work() || self.storage.state != StorageState::Ready {
            return;
        }
        if self.agenda.wide.is_empty() {
            self.suspend_some(fx);
        }
        for _ in 0..DRAINED_AT_ONCE.min(self.logs.draining.len()) {
            let Some(number) = self.logs.draining.pop_front() else { return };
            let Some(slot) = self.sessions.numbered(number) else { continue };
            self.set_draining(slot, false);
            self.drain_session(now, slot, fx);
        }
    }

    /// A session can go on with what it missed.
    pub(crate) fn drain_logs_of(&mut self, slot: u32) {
        let session = &self.sessions[slot];
        if session.holder.is_some() && session.cursor.is_some() && !session.is_draining {
            self.logs.draining.push_back(session.number);
            self.set_draining(slot, true);
        }
    }

    fn set_draining(&mut self, slot: u32, is_draining: bool) {
        self.sessions[slot].is_draining = is_draining;
    }

    /// A session's queue has been served.
    #[inline]
    pub(crate) fn own_queue_served(&mut self, queue: u32) {
        let served = self.queues.get(queue).filter(|it| it.own.is_some());
        if served.is_some_and(|it| it.ready < WINDOW / 2)
            && let Some(session) = self.owner_of_queue(queue)
        {
            self.drain_logs_of(session);
        }
    }

    fn drain_session<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let session = &mut self.sessions[slot];
        let number = session.number;
        if session.holder.is_none() {
            return;
        }
        let Some(queue) = self.queues.slot_of(session.queue) else { return };
        let Some(mut cursor) = session.cursor.take() else { return };
        self.count_missed(queue, &mut cursor);
        let before = LogCursor::clone(&cursor);
        let own = &self.queues[queue];
        let most = own.options.length_max.map_or(WINDOW, |most| most.min(WINDOW));
        let room = most.saturating_sub(own.ready);
        let bytes_max = own.options.bytes_max.unwrap_or(u64::MAX);
        let (mut bytes, is_empty) = (own.bytes.ready(), own.ready == 0);
        let mut taken = Vec::new();
        let mut is_at_end = false;
        while (taken.len() as u64) < room {
            match self.next_of_logs(now, number, &mut cursor, fx) {
                Step::Taken(entry) => {
                    bytes += u64::from(entry.bytes);
                    if bytes > bytes_max && !(is_empty && taken.is_empty()) {
                        // It would have others dropped.
                        cursor.at = entry.seq;
                        break;
                    }
                    taken.push(entry);
                }
                Step::Waits => break,
                Step::AtEnd => {
                    is_at_end = true;
                    break;
                }
            }
        }
        let after = LogCursor::clone(&cursor);
        self.sessions[slot].cursor = Some(cursor);
        if after.at > before.at {
            self.place_drained(now, slot, queue, taken, fx);
        }
        if after != before {
            self.move_members(number, &before, &after, fx);
        }
        // What is on its way to very many queues may have found the logs, or is going to find the queue.
        if is_at_end && self.agenda.wide.is_empty() {
            self.resume_bindings(slot, queue, fx);
        } else if is_at_end {
            self.drain_logs_of(slot);
        }
    }

    /// Takes what arrived next in the logs of a session.
    fn next_of_logs<F: Effects>(
        &mut self,
        now: Time,
        session: u64,
        cursor: &mut LogCursor,
        fx: &mut F,
    ) -> Step {
        loop {
            let mut first: Option<Entry> = None;
            for part in &mut cursor.parts {
                match self.next_in_log(part, cursor.at) {
                    Next::Message(entry) if entry.seq < part.until => {
                        if first.as_ref().is_none_or(|first| entry.seq < first.seq) {
                            first = Some(entry);
                        }
                    }
                    Next::Page(first, _) if first >= part.until => {}
                    Next::Page(_, position) => {
                        self.await_log_page(part.log, position, session, fx);
                        return Step::Waits;
                    }
                    Next::Unreadable => return Step::Waits,
                    Next::Message(_) | Next::Nothing => {}
                }
            }
            let Some(entry) = first else { return Step::AtEnd };
            cursor.at = entry.seq + 1;
            if entry.expires > now {
                return Step::Taken(entry);
            }
        }
    }

    /// What comes next in a log, of what arrived from `at` on. Pages that have nothing more are passed for
    /// good: what they lack is lost.
    fn next_in_log(&mut self, part: &mut LogPart, at: u64) -> Next {
        let number = part.log;
        let Some(slot) = self.queues.slot_of(number) else { return Next::Nothing };
        loop {
            let from = part.from.max(at);
            let queue = &mut self.queues[slot];
            let position = match queue.lanes.browse(0, from) {
                None => return Next::Nothing,
                Some(Browsed::Entry(entry)) => return Next::Message(entry),
                Some(Browsed::Page(position)) => position,
            };
            let mut pages = queue.lanes[0].pages.iter();
            let Some(page) = pages.find(|page| page.position == position) else {
                return Next::Nothing;
            };
            let read = self.logs.all.get(&number).and_then(|log| log.page.as_ref());
            let Some(read) = read.filter(|read| read.position == position) else {
                return Next::Page(page.first, position);
            };
            let Some(entries) = &read.entries else { return Next::Unreadable };
            let next = entries.partition_point(|entry| entry.seq < from);
            if let Some(entry) = entries.get(next) {
                return Next::Message(entry.clone());
            }
            part.from = page.last + 1;
        }
    }

    /// Has a session wait for a page of a log.
    fn await_log_page<F: Effects>(
        &mut self,
        number: u64,
        position: Position,
        session: u64,
        fx: &mut F,
    ) {
        let Some(log) = self.logs.all.get_mut(&number) else { return };
        match &mut log.waiting {
            Some(waiting) => waiting.push(session),
            None => {
                log.waiting = Some(vec![session]);
                self.read_log_page(LogLoad { log: number, position, searched: None }, fx);
            }
        }
    }

    fn read_log_page<F: Effects>(&mut self, load: LogLoad, fx: &mut F) {
        let position = load.position;
        self.load(NO_QUEUE, 0, Wanted::Log(Box::new(load)), vec![position], fx);
    }

    /// A page of a log was read.
    pub(crate) fn log_page_loaded<F: Effects>(
        &mut self,
        load: LogLoad,
        records: Loaded,
        fx: &mut F,
    ) {
        let records = records.unwrap_or_default();
        let record = records.first();
        let entries = match record.map(|record| Record::parse(record)) {
            Some(Ok(Record::Page { queue, entries, .. })) if queue == load.log => Some(entries),
            _ if load.searched.is_none() => {
                let is_given_up = record.is_some_and(|record| record.is_empty());
                let searched = Some(Searched { is_given_up });
                return self.read_log_page(LogLoad { searched, ..load }, fx);
            }
            _ => None,
        };
        self.keep_log_page(&load, entries);
        let log = self.logs.all.get_mut(&load.log);
        for session in log.and_then(|log| log.waiting.take()).unwrap_or_default() {
            if let Some(slot) = self.sessions.numbered(session) {
                self.drain_logs_of(slot);
            }
        }
    }

    /// Keeps a page of a log that was read, or made anew, for the sessions that come to it.
    fn keep_log_page(&mut self, load: &LogLoad, entries: Option<Vec<Entry>>) {
        let LogLoad { log: number, position, searched } = *load;
        let Some(slot) = self.queues.slot_of(number) else { return };
        let Some(log) = self.logs.all.get_mut(&number) else { return };
        let queue = &self.queues[slot];
        let page = queue.lanes[0].pages.iter().find(|page| page.position == position);
        let Some(page) = page else { return };
        let mut entries = entries.unwrap_or_default();
        entries.retain(|it| (it.durable || !page.recovered) && page.holds(it.seq));
        let missing = u64::from(page.count).saturating_sub(entries.len() as u64);
        let is_given_up = searched.is_some_and(|it| it.is_given_up);
        let is_stopped = searched.is_some() && missing > 0 && !is_given_up;
        let is_lost = is_given_up && missing > 0 && log.lost.insert(position);
        log.page = Some(ReadPage { position, entries: (!is_stopped).then_some(entries) });
        if is_stopped {
            self.counters.unreadable += 1;
        }
        if is_lost {
            self.note_given_up(slot, position, missing);
        }
    }

    /// Counts what a session has missed for good, since its logs had to drop it, for its consumer to learn.
    fn count_missed(&mut self, queue: u32, cursor: &mut LogCursor) {
        for part in &mut cursor.parts {
            let Some(slot) = self.queues.slot_of(part.log) else { continue };
            let log = &self.queues[slot];
            let missed = log.dropped.saturating_sub(part.dropped);
            let is_behind = log.front_place().is_none_or(|it| it.seq > part.from.max(cursor.at));
            part.dropped = log.dropped;
            if is_behind {
                self.queues[queue].dropped += missed;
            }
        }
    }

    /// Puts messages of logs into a session's queue, which refers to them where they are stored.
    fn place_drained<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        queue: u32,
        taken: Vec<Entry>,
        fx: &mut F,
    ) {
        let (session, at) = (&self.sessions[slot], self.sessions[slot].log_position());
        let session = session.number;
        let own = &mut self.queues[queue];
        let (number, first) = (own.number, own.next_seq);
        own.next_seq += taken.len() as u64;
        own.counters.published += taken.len() as u64;
        let next = own.next_seq;
        if let Some(own) = &mut own.own {
            // Rights may have changed since they arrived.
            own.judge_before(next);
        }
        let waits = own.own.as_ref().is_some_and(|own| own.waits_for_flush);
        let mark = self.storage.mark;
        let places = (first..).zip(taken);
        // It has had none of them yet.
        let here =
            |(seq, entry)| Entry { seq, lane: 0, mark, requeues: 0, redelivered: false, ..entry };
        let entries: Vec<Entry> = places.map(here).collect();
        let durable = entries.iter().filter(|entry| entry.durable).map(Entry::without_message);
        let record = Record::Drained { session, at, queue: number, entries: durable.collect() };
        record.write(&mut self.scratch.record);
        let position = fx.append(&[&self.scratch.record], waits);
        for entry in entries {
            self.enter_drained(now, queue, entry, waits.then_some(position), fx);
        }
        self.refill(queue, fx);
    }

    /// `waits_for`: the record whose flush it waits for.
    fn enter_drained<F: Effects>(
        &mut self,
        now: Time,
        queue: u32,
        mut entry: Entry,
        waits_for: Option<Position>,
        fx: &mut F,
    ) {
        entry.fetch = Fetch::Idle;
        let bytes = entry.message.as_ref().map_or(0, |message| message.len());
        if entry.is_stored() && !self.fits(queue, 0, bytes) {
            entry.message = None;
        }
        if entry.durable {
            fx.retain(entry.position, 1);
            if let Some(position) = waits_for {
                self.note_unflushed(queue, position, entry.seq);
            }
        } else if entry.is_stored() {
            self.retain_transient(entry.position, fx);
        }
        self.storage.resident += entry.resident_cost();
        let (own, expires) = (&mut self.queues[queue], entry.expires);
        let is_first = own.ready == 0;
        own.push(entry);
        self.after_push(now, queue, is_first, expires, fx);
    }

    /// A session has come further in its logs, or has left some.
    pub(super) fn move_members<F: Effects>(
        &mut self,
        session: u64,
        before: &LogCursor,
        after: &LogCursor,
        fx: &mut F,
    ) {
        before.parts.iter().for_each(|part| self.logs.remove_member(session, before.at, part));
        after.parts.iter().for_each(|part| self.logs.add_member(session, after.at, part));
        for part in &before.parts {
            self.review_log(part.log, fx);
        }
    }

    /// A session has all that it missed: its bindings lead to its queue from now on.
    fn resume_bindings<F: Effects>(&mut self, slot: u32, queue: u32, fx: &mut F) {
        let vhost = self.queues[queue].vhost;
        let router = &mut self.topology.vhosts[vhost].router;
        let bindings: Vec<_> =
            router.bindings_to(QueueKey(queue)).map(|view| view.to_binding()).collect();
        for binding in &bindings {
            router.suspend(QueueKey(queue), binding, false);
        }
        let session = &mut self.sessions[slot];
        let number = session.number;
        let Some(cursor) = session.cursor.take() else { return };
        self.record_cursor(slot, fx);
        self.leave_logs(number, &cursor, fx);
        self.end_change(vhost, &Change::default(), fx);
    }
}
