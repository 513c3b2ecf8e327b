//! Sessions go to logs once they are detached, and bindings that their queues get meanwhile do.

use super::{LogCursor, LogPart, PARTS_MAX};
use crate::control::deletion::NOBODY;
use crate::engine::Engine;
use crate::queue::Queue;
use crate::routing::QueueKey;
use crate::routing::bindings::Terms;
use crate::session::Session;
use crate::storage::codec::Writer;
use crate::storage::record::{BindingRecord, Record};
use crate::{Binding, BindingTarget, Bound, Durability, Effects, Overflow, QueueOptions};

/// Sessions that go to logs before others get their turn.
const SUSPENDED_AT_ONCE: usize = 64;

impl Engine {
    /// Has sessions that were detached go to logs. Nothing is on its way to very many queues: no message
    /// reaches a session by both ways, or by none.
    pub(super) fn suspend_some<F: Effects>(&mut self, fx: &mut F) {
        for _ in 0..SUSPENDED_AT_ONCE {
            let Some(number) = self.logs.detached.pop_front() else { return };
            if let Some(slot) = self.sessions.numbered(number) {
                self.suspend_session(slot, fx);
            }
        }
    }

    fn suspend_session<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let session = &self.sessions[slot];
        let (number, at) = (session.number, self.logs.next_arrival);
        if session.holder.is_some() || session.cursor.is_some() || !session.is_stored {
            return;
        }
        let Some(queue) = self.queues.slot_of(session.queue) else { return };
        let Some(options) = log_options(&self.queues[queue]) else { return };
        let by = self.log_counted_for(&session.user);
        let (vhost, key) = (self.queues[queue].vhost, QueueKey(queue));
        let router = &self.topology.vhosts[vhost].router;
        let Some(bindings) = router.topic_bindings_to(key, PARTS_MAX) else { return };
        let count = self.options.limits.log_shared_by;
        let is_shared = |binding: &Binding| {
            router.is_shared(key, binding, count)
                || self.logs.by_key.contains_key(&self.log_key(vhost, binding, &options, &by))
        };
        if !bindings.iter().any(is_shared) {
            return;
        }
        let mut cursor = LogCursor { at, parts: Vec::with_capacity(bindings.len()) };
        for binding in &bindings {
            let Some(log) = self.log_for(vhost, binding, &options, &by, fx) else { break };
            let part = self.log_part(log);
            self.logs.add_member(number, at, &part);
            cursor.parts.push(part);
        }
        if cursor.parts.len() < bindings.len() {
            return self.leave_logs(number, &cursor, fx);
        }
        for binding in &bindings {
            self.topology.vhosts[vhost].router.suspend(key, binding, true);
        }
        self.sessions[slot].cursor = Some(Box::new(cursor));
        self.record_cursor(slot, fx);
    }

    /// What arrives in a log from now on.
    fn log_part(&self, log: u64) -> LogPart {
        let queue = self.queues.slot_of(log).and_then(|slot| self.queues.get(slot));
        let dropped = queue.map_or(0, |queue| queue.dropped);
        LogPart { log, from: self.logs.next_arrival, until: u64::MAX, dropped }
    }

    /// Records where a session is in its logs.
    pub(super) fn record_cursor<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        let session = &self.sessions[slot];
        let cursor = session.cursor.as_deref().cloned();
        Record::CursorSet { session: session.number, cursor }.write(&mut self.scratch.record);
        fx.append(&[&self.scratch.record], false);
        self.account_session(slot);
    }

    /// For whom the bytes count of logs that a user's sessions are in: for the user where its quota bounds
    /// them. Other users share logs, which are nobody's.
    fn log_counted_for(&self, user: &str) -> String {
        let is_bounded = self.access.quota(user).get(Bound::StoredBytes).is_some();
        if is_bounded { user.to_owned() } else { String::new() }
    }

    /// What a log is found by that stands in for a binding. `by`: whose bytes it has.
    pub(super) fn log_key(
        &self,
        vhost: u32,
        binding: &Binding,
        options: &QueueOptions,
        by: &str,
    ) -> Vec<u8> {
        let target = BindingTarget::Queue(String::new());
        let binding = Binding { target, ..binding.clone() };
        let mut key = Vec::new();
        let mut writer = Writer(&mut key);
        writer.put(&BindingRecord::of(&self.topology.vhosts[vhost].name, &binding));
        writer.put(options);
        key.extend_from_slice(by.as_bytes());
        key
    }

    /// The log that stands in for a binding of a session, if one does, whatever the options of the session's
    /// queue and the quota of its user are by now.
    pub(super) fn log_of(&self, session: u32, binding: &Binding) -> Option<u64> {
        let Session { vhost, ref cursor, .. } = self.sessions[session];
        let router = &self.topology.vhosts[vhost].router;
        let stands_in = |part: &&LogPart| {
            let slot = self.queues.slot_of(part.log);
            let found = slot.and_then(|slot| router.bindings_to(QueueKey(slot)).next());
            let target = || binding.target.clone();
            found.is_some_and(|it| Binding { target: target(), ..it.to_binding() } == *binding)
        };
        let mut open = cursor.as_ref()?.parts.iter().filter(|part| part.until == u64::MAX);
        open.find(stands_in).map(|part| part.log)
    }

    /// The number of the log that stands in for a binding; `None`: there may be no such one.
    fn log_for<F: Effects>(
        &mut self,
        vhost: u32,
        binding: &Binding,
        options: &QueueOptions,
        by: &str,
        fx: &mut F,
    ) -> Option<u64> {
        let key = self.log_key(vhost, binding, options, by);
        if let Some(log) = self.logs.by_key.get(&key) {
            return Some(*log);
        }
        let prefix = format!("{}log-", self.names().reserved_prefix);
        let mut name = self.make_up(&prefix);
        while self.topology.vhosts[vhost].router.queue(&name).is_some() {
            name = self.make_up(&prefix);
        }
        let target = BindingTarget::Queue(name.clone());
        let binding = Binding { target, ..binding.clone() };
        let number = self.queues.next_number();
        let vhost_name = self.topology.vhosts[vhost].name.clone();
        let vhost_name = vhost_name.as_str();
        let declared = options.clone();
        let record =
            Record::QueueDeclared { number, vhost: vhost_name, name: &name, options: declared, by };
        self.append_record(&record, fx);
        let mut queue = Queue::new(number, vhost, name.clone(), options.clone());
        queue.owner = Some(NOBODY);
        queue.by = self.definitions.declarer(by);
        let slot = self.add_queue(queue);
        let router = &mut self.topology.vhosts[vhost].router;
        router.tally.by = self.definitions.declarer(by);
        let Binding { source, target, key: pattern, .. } = &binding;
        let Ok(change) = router.bind(source, target, pattern, Terms::of(&binding)) else {
            self.delete_queue(slot, fx);
            return None;
        };
        let record = Record::Bound { binding: BindingRecord::of(vhost_name, &binding), by };
        self.append_record(&record, fx);
        self.end_change(vhost, &change, fx);
        self.take_log(number, key);
        Some(number)
    }

    /// A session's queue was bound. As long as others of its bindings are suspended, so is this one.
    pub(crate) fn own_queue_bound<F: Effects>(
        &mut self,
        binding: &Binding,
        vhost: u32,
        fx: &mut F,
    ) {
        let Some((slot, queue)) = self.session_in_logs(binding, vhost) else { return };
        let Some(options) = log_options(&self.queues[queue]) else { return };
        let by = self.log_counted_for(&self.sessions[slot].user);
        let router = &self.topology.vhosts[vhost].router;
        let is_topic = router.is_shared(QueueKey(queue), binding, 1);
        let parts = self.sessions[slot].cursor.as_ref().map_or(0, |cursor| cursor.parts.len());
        if !is_topic || parts >= PARTS_MAX || !self.agenda.wide.is_empty() {
            return;
        }
        let Some(log) = self.log_for(vhost, binding, &options, &by, fx) else { return };
        let part = self.log_part(log);
        let session = &mut self.sessions[slot];
        let Some(cursor) = &mut session.cursor else { return };
        cursor.parts.push(part);
        self.logs.add_member(session.number, cursor.at, &part);
        self.topology.vhosts[vhost].router.suspend(QueueKey(queue), binding, true);
        self.record_cursor(slot, fx);
    }

    /// A session's queue was unbound: it gets what arrived by now, or nothing where it may not have it.
    pub(crate) fn own_queue_unbound<F: Effects>(
        &mut self,
        binding: &Binding,
        vhost: u32,
        is_forbidden: bool,
        fx: &mut F,
    ) {
        let Some((slot, _)) = self.session_in_logs(binding, vhost) else { return };
        let Some(log) = self.log_of(slot, binding) else { return };
        let now = self.logs.next_arrival;
        let session = &mut self.sessions[slot];
        let (number, Some(cursor)) = (session.number, &mut session.cursor) else { return };
        let is_its = |part: &LogPart| part.log == log && (is_forbidden || part.until == u64::MAX);
        let mut left = LogCursor { at: cursor.at, parts: Vec::new() };
        for part in cursor.parts.iter_mut().filter(|part| is_its(part)) {
            part.until = part.until.min(now);
            left.parts.push(*part);
        }
        if is_forbidden {
            cursor.parts.retain(|part| part.log != log);
            if cursor.parts.is_empty() {
                session.cursor = None;
            }
            self.leave_logs(number, &left, fx);
        }
        self.record_cursor(slot, fx);
    }

    /// The session, and the slot of its queue, that a binding leads to, where logs stand in for it.
    fn session_in_logs(&self, binding: &Binding, vhost: u32) -> Option<(u32, u32)> {
        let BindingTarget::Queue(name) = &binding.target else { return None };
        let QueueKey(queue) = self.topology.vhosts[vhost].router.queue(name)?;
        let session = self.owner_of_queue(queue)?;
        self.sessions[session].cursor.as_ref()?;
        Some((session, queue))
    }
}

/// What a log is declared with that stands in for a session's queue; `None`: there is none for such a queue.
pub(super) fn log_options(own: &Queue) -> Option<QueueOptions> {
    let QueueOptions { length_max, bytes_max, overflow, message_ttl, .. } = own.options;
    let may = own.stores
        && own.options.dead_letter_exchange.is_none()
        && own.options.durability == Durability::Flushed
        && matches!(overflow, Overflow::DropHead | Overflow::RejectPublish);
    may.then(|| QueueOptions {
        durable: true,
        is_log: true,
        length_max,
        bytes_max,
        overflow,
        message_ttl,
        delivery_limit: Some(u32::MAX),
        ..QueueOptions::default()
    })
}
