//! What logs let go of: messages that all of their sessions have passed, and themselves. How logs are found
//! again after a restart.

use super::{Log, LogCursor};
use crate::control::deletion::NOBODY;
use crate::engine::Engine;
use crate::queue::lane::Front;
use crate::routing::QueueKey;
use crate::storage::record::Record;
use crate::{Binding, DiscardReason, Effects};

impl Engine {
    /// A queue is a log from now on.
    pub(super) fn take_log(&mut self, number: u64, key: Vec<u8>) {
        self.logs.by_key.insert(key.clone(), number);
        self.logs.all.insert(number, Log { key, ..Log::default() });
    }

    /// A session is in these logs no longer.
    pub(crate) fn leave_logs<F: Effects>(&mut self, session: u64, cursor: &LogCursor, fx: &mut F) {
        for part in &cursor.parts {
            self.logs.remove_member(session, cursor.at, part);
        }
        for part in &cursor.parts {
            self.review_log(part.log, fx);
        }
    }

    /// A queue is purged: if it is a session's, that wants nothing of what waits for it in logs.
    pub(crate) fn pass_logs<F: Effects>(&mut self, queue: u32, fx: &mut F) {
        let Some(slot) = self.owner_of_queue(queue) else { return };
        let session = &mut self.sessions[slot];
        let (number, Some(mut cursor)) = (session.number, session.cursor.take()) else { return };
        let before = LogCursor::clone(&cursor);
        cursor.at = self.logs.next_arrival;
        cursor.parts.retain(|part| part.until == u64::MAX);
        let after = LogCursor::clone(&cursor);
        session.cursor = Some(cursor).filter(|cursor| !cursor.parts.is_empty());
        self.record_cursor(slot, fx);
        self.move_members(number, &before, &after, fx);
    }

    /// Lets go of what all sessions of a log have passed, and of the log where there are none.
    pub(super) fn review_log<F: Effects>(&mut self, number: u64, fx: &mut F) {
        let Some(log) = self.logs.all.get(&number) else { return };
        let Some((lowest, ..)) = log.members.first().copied() else {
            return self.delete_log(number, fx);
        };
        if let Some(slot) = self.queues.slot_of(number)
            && self.trim_log(slot, lowest, fx)
        {
            Record::Trimmed { log: number, before: lowest }.write(&mut self.scratch.record);
            fx.append(&[&self.scratch.record], false);
        }
    }

    fn delete_log<F: Effects>(&mut self, number: u64, fx: &mut F) {
        if let Some(log) = self.logs.all.remove(&number) {
            self.logs.by_key.remove(&log.key);
        }
        if let Some(slot) = self.queues.slot_of(number) {
            self.delete_queue(slot, fx);
        }
    }

    /// Takes out of a log what arrived before a number, no page in part; says whether there was any.
    pub(crate) fn trim_log<F: Effects>(&mut self, slot: u32, before: u64, fx: &mut F) -> bool {
        let mut has_any = false;
        loop {
            let queue = &mut self.queues[slot];
            let number = queue.number;
            match queue.front() {
                Front::Entry(entry) if entry.seq < before => {
                    let Some(entry) = queue.pop() else { return has_any };
                    self.snapshot_first(number, &entry);
                    self.drop_entry(entry, fx);
                }
                Front::Page(page) if page.last < before => {
                    let position = page.position;
                    self.drop_page_at(slot, 0, position, fx);
                }
                _ => return has_any,
            }
            has_any = true;
        }
    }

    /// A log that drops its head has a page there: the page goes once as much as it holds is too much. Says
    /// whether it went.
    #[cold]
    pub(crate) fn drop_page_of_log<F: Effects>(&mut self, slot: u32, fx: &mut F) -> bool {
        let queue = &mut self.queues[slot];
        let Front::Page(page) = queue.front() else { return false };
        let page = page.clone();
        if !queue.is_over_limit_without(&page) {
            return false;
        }
        let (log, count) = (queue.number, u64::from(page.count));
        queue.dropped += count;
        self.counters.dropped += count;
        self.count_discarded(slot, DiscardReason::MaxLength, count);
        self.drop_page_at(slot, 0, page.position, fx);
        Record::Trimmed { log, before: page.last + 1 }.write(&mut self.scratch.record);
        fx.append(&[&self.scratch.record], false);
        true
    }

    /// All records are replayed: finds the logs again, and has the bindings suspended that they stand in for.
    /// Sessions that were held when the broker went down go to logs like others that are detached.
    pub(crate) fn logs_recovered<F: Effects>(&mut self, fx: &mut F) {
        self.find_logs();
        let sessions: Vec<u32> = self.sessions.iter().map(|(slot, _)| slot).collect();
        for slot in sessions {
            self.session_recovered_in_logs(slot);
        }
        let logs = self.queues.iter().filter(|(_, queue)| queue.options.is_log);
        for number in logs.map(|(_, queue)| queue.number).collect::<Vec<_>>() {
            match self.logs.all.contains_key(&number) {
                true => self.review_log(number, fx),
                false => self.delete_log(number, fx),
            }
        }
    }

    fn find_logs(&mut self) {
        let logs = self.queues.iter().filter(|(_, queue)| queue.options.is_log);
        let found: Vec<_> = logs
            .filter_map(|(slot, queue)| {
                let router = &self.topology.vhosts[queue.vhost].router;
                let binding = router.bindings_to(QueueKey(slot)).next()?.to_binding();
                let by = self.definitions.name(queue.by);
                Some((queue.number, self.log_key(queue.vhost, &binding, &queue.options, by)))
            })
            .collect();
        for (number, key) in found {
            self.take_log(number, key);
        }
        for (_, queue) in self.queues.iter_mut().filter(|(_, queue)| queue.options.is_log) {
            queue.owner = Some(NOBODY);
            self.logs.next_arrival = self.logs.next_arrival.max(queue.next_seq);
        }
    }

    fn session_recovered_in_logs(&mut self, slot: u32) {
        let session = &mut self.sessions[slot];
        let number = session.number;
        if let Some(cursor) = &mut session.cursor {
            cursor.parts.retain(|part| self.logs.all.contains_key(&part.log));
            for part in &cursor.parts {
                self.logs.add_member(number, cursor.at, part);
                self.logs.next_arrival = self.logs.next_arrival.max(part.from).max(cursor.at);
            }
            if cursor.parts.is_empty() {
                session.cursor = None;
            }
        }
        self.logs.session_detached(number);
        let Some(queue) = self.queues.slot_of(self.sessions[slot].queue) else { return };
        if self.sessions[slot].cursor.is_some() {
            for (binding, vhost) in self.bindings_in_logs(slot, queue) {
                self.topology.vhosts[vhost].router.suspend(QueueKey(queue), &binding, true);
            }
        }
    }

    /// The bindings of a session's queue that logs stand in for.
    fn bindings_in_logs(&self, session: u32, queue: u32) -> Vec<(Binding, u32)> {
        let vhost = self.queues[queue].vhost;
        let bindings = self.topology.vhosts[vhost].router.bindings_to(QueueKey(queue));
        let bindings = bindings.map(|view| view.to_binding());
        let in_logs = bindings.filter(|binding| self.log_of(session, binding).is_some());
        in_logs.map(|binding| (binding, vhost)).collect()
    }
}
