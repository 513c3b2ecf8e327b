//! From records back to state: each record does what it did when it was first applied, less what the
//! host was told.

mod pages;
mod rescue;

use crate::engine::Engine;
use crate::publish::held::{DelayKey, Held};
use crate::queue::Queue;
use crate::queue::entry::{Entry, Fetch, NOWHERE};
use crate::queue::ranges::Ranges;
use crate::queue::stored::Stored;
use crate::routing::bindings::Terms;
use crate::routing::{QueueKey, Router};
use crate::storage::record::{BindingRecord, Place, Record, Requeued};
use crate::{Effects, Position, Refusal, Time};
use std::ops::RangeInclusive;

impl Engine {
    /// Applies one record appended after the snapshot.
    pub fn replay<F: Effects>(
        &mut self,
        position: Position,
        record: &[u8],
        fx: &mut F,
    ) -> Result<(), String> {
        match Record::parse(record)? {
            Record::Nothing | Record::Spooled { .. } => Ok(()),
            Record::Published { places, message } => {
                self.replay_published(position, &places, message, fx)
            }
            Record::PublishedOnce { session, number, places, message } => {
                self.replay_received(session, number);
                self.replay_published(position, &places, message, fx)
            }
            Record::Moved { places, .. } => {
                self.replay_moved(position, &places, fx);
                Ok(())
            }
            Record::Settled { queue, ranges } => {
                ranges.into_iter().try_for_each(|range| self.replay_settled(queue, range, fx))
            }
            Record::Requeued { messages } => {
                messages.into_iter().for_each(|message| self.replay_requeued(message));
                Ok(())
            }
            Record::Annotated { queue, seq, changed } => {
                if let Some(queue) = self.queues.numbered(queue) {
                    queue.notes.get_or_insert_default().restore_changed(seq, changed);
                }
                Ok(())
            }
            Record::Apart { queue, lane, entries } => {
                self.replay_apart(queue, lane, entries, fx);
                Ok(())
            }
            Record::Purged { queue, before, kept } => {
                self.replay_purged(queue, before, kept, fx);
                Ok(())
            }
            Record::Page { queue, lane, durable, entries } => {
                self.replay_page(position, queue, lane, durable, &entries, fx)
            }
            Record::Delayed { number, vhost, due, by, message } => {
                Stored::parse(message)?;
                let held = self.held_again(position, vhost, by, message.len())?;
                // It has been there before where its segment was given back.
                if let Some(before) = self.delays.restore(DelayKey { due, number }, held) {
                    fx.release(before.position, 1);
                }
                fx.retain(position, 1);
                Ok(())
            }
            Record::HandedOver { queue, seq, session, returns, to, entries } => {
                self.replay_settled(queue, seq..=seq, fx)?;
                self.replay_handed(session, returns, queue, to, entries, fx)
            }
            Record::DelayEnded { number } => {
                if let Some(held) = self.delays.forget(number) {
                    fx.release(held.position, 1);
                }
                Ok(())
            }
            record @ (Record::Retained { .. } | Record::RetainedGone { .. }) => {
                self.replay_retained(position, &record, fx)
            }
            record => self.replay_topology(record, fx),
        }
    }

    /// A delayed message, as its record says.
    fn held_again(
        &mut self,
        position: Position,
        vhost: &str,
        by: &str,
        bytes: usize,
    ) -> Result<Held, String> {
        let vhost = self.vhost_slot(vhost)?;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let (by, mark) = (self.definitions.declarer(by), self.storage.mark);
        Ok(Held { position, vhost, bytes, by, persistent: true, mark })
    }

    fn replay_topology<F: Effects>(
        &mut self,
        record: Record<'_>,
        fx: &mut F,
    ) -> Result<(), String> {
        match record {
            Record::QueueDeclared { number, vhost, name, options, by } => {
                let vhost = self.vhost_slot(vhost)?;
                let by = self.definitions.declarer(by);
                let queue = Queue::new(number, vhost, name.to_owned(), options);
                self.restore_queue(Queue { by, ..queue })?;
            }
            Record::QueueDeleted { number } => {
                if let Some(slot) = self.queues.slot_of(number) {
                    self.forget_queue(slot, fx);
                }
            }
            Record::ExchangeDeclared { vhost, name, options, by } => {
                self.replay_router(vhost, by, |router| {
                    router.declare_exchange(name, &options).map(|_| ())
                })?;
            }
            Record::ExchangeDeleted { vhost, name } => {
                self.replay_router(vhost, "", |router| {
                    router.delete_exchange(name, false).map(|_| ())
                })?;
            }
            Record::Bound { binding, by } => self.restore_binding(binding, by)?,
            Record::Unbound(binding) => {
                let BindingRecord { vhost, source, target, key, .. } = binding;
                let terms = Terms::new(binding.arguments, binding.filter, binding.not_from);
                self.replay_router(vhost, "", |router| {
                    router.unbind(source, &target, key, terms).map(|_| ())
                })?;
            }
            Record::Trimmed { log, before } => {
                if let Some(slot) = self.queues.slot_of(log) {
                    self.trim_log(slot, before, fx);
                }
            }
            Record::Subscribed { queue, subscription } => {
                self.restore_subscription(queue, subscription)?;
            }
            Record::SessionPut(session) => self.restore_session(&session)?,
            Record::SessionChanged { .. }
            | Record::SessionDetached { .. }
            | Record::SessionEnded { .. }
            | Record::Received { .. }
            | Record::ReceivedForgotten { .. }
            | Record::Released { .. }
            | Record::ReleasedForgotten { .. }
            | Record::WillSet { .. }
            | Record::WillGone { .. }
            | Record::SharedJoined { .. }
            | Record::SharedLeft { .. }
            | Record::CursorSet { .. }
            | Record::Drained { .. } => self.replay_session(&record, fx)?,
            Record::SharedQueue { queue, group } => self.restore_shared(queue, group),
            record => self.replay_access(&record, fx)?,
        }
        Ok(())
    }

    pub(crate) fn replay_access<F: Effects>(
        &mut self,
        record: &Record<'_>,
        fx: &mut F,
    ) -> Result<(), String> {
        match record {
            Record::VhostCreated { name } => {
                if !self.topology.vhost_slots.contains_key(*name) {
                    self.add_vhost(name);
                }
            }
            Record::VhostDeleted { name } => {
                let slot = self.vhost_slot(name)?;
                let queues = self.queues.iter().filter(|(_, queue)| queue.vhost == slot);
                for queue in queues.map(|(queue, _)| queue).collect::<Vec<_>>() {
                    self.forget_queue(queue, fx);
                }
                self.drop_delays_of(slot, fx);
                self.forget_retained_of(slot, fx);
                self.drop_sessions(|session| session.vhost == slot, fx);
                self.remove_vhost(slot);
            }
            Record::UserPut { name, password_hash, administrator } => {
                self.access.put_user(name, password_hash, *administrator);
            }
            Record::UserDeleted { name } => {
                self.access.delete_user(name);
                self.drop_sessions(|session| *session.user == **name, fx);
            }
            Record::PermissionsSet(permissions) => self.access.set_permissions(*permissions)?,
            Record::SubjectPermissionsSet { user, vhost, subjects } => {
                self.access.set_subject_permissions(user, vhost, subjects)?;
            }
            Record::ExchangeRulesSet { user, vhost, exchange, rules } => {
                self.access.set_exchange_rules(user, vhost, exchange, rules)?;
            }
            Record::QuotaSet { user, quota } => {
                self.access.set_quota(user, *quota)?;
            }
            Record::VhostQuotaSet { vhost, quota } => {
                self.vhost_slot(vhost)?;
                self.access.set_vhost_quota(vhost, *quota);
            }
            Record::PolicySet { vhost, operator, name, policy } => {
                self.replay_policy(vhost, *operator, name, Some(policy))?;
            }
            Record::PolicyCleared { vhost, operator, name } => {
                self.replay_policy(vhost, *operator, name, None)?;
            }
            Record::PermissionsCleared { user, vhost } => {
                self.access.clear_permissions(user, vhost);
            }
            _ => unreachable!("all other records were dealt with before"),
        }
        Ok(())
    }

    /// Changes a virtual host's router as a record or a snapshot says, on behalf of the user `by`. The router
    /// decides nothing by itself meanwhile.
    pub(crate) fn replay_router(
        &mut self,
        vhost: &str,
        by: &str,
        change: impl FnOnce(&mut Router) -> Result<(), Refusal>,
    ) -> Result<(), String> {
        let slot = self.vhost_slot(vhost)?;
        let router = &mut self.topology.vhosts[slot].router;
        router.hold_auto_delete(true);
        router.tally.by = self.definitions.declarer(by);
        change(router)?;
        self.definitions.take(&mut router.tally);
        Ok(())
    }

    /// Binds as a record or a snapshot says.
    pub(crate) fn restore_binding(
        &mut self,
        binding: BindingRecord<'_>,
        by: &str,
    ) -> Result<(), String> {
        let BindingRecord { vhost, source, target, key, .. } = binding;
        let terms = Terms::new(binding.arguments, binding.filter, binding.not_from);
        self.replay_router(vhost, by, |router| router.bind(source, &target, key, terms).map(|_| ()))
    }

    /// Takes a queue in that a record or a snapshot names.
    pub(crate) fn restore_queue(&mut self, queue: Queue) -> Result<u32, String> {
        let vhost = self.topology.vhosts.get(queue.vhost).ok_or("a queue in no virtual host")?;
        if vhost.router.queue(&queue.name).is_some() {
            return Err(format!("queue '{}' is declared twice", queue.name));
        }
        if self.queues.slot_of(queue.number).is_some() {
            return Err(format!("queue number {} is used twice", queue.number));
        }
        Ok(self.add_queue(queue))
    }

    /// Deletes a queue because a record says so.
    fn forget_queue<F: Effects>(&mut self, slot: u32, fx: &mut F) {
        self.drop_messages(slot, false);
        self.give_all_back(fx);
        let queue = self.queues.remove(slot).expect("the caller looked it up");
        self.forget_declarer(&queue);
        let vhost = &mut self.topology.vhosts[queue.vhost];
        vhost.router.hold_auto_delete(true);
        vhost.router.queue_removed(QueueKey(slot));
        vhost.router.tally.went(queue.by, queue.definition_bytes());
        self.definitions.take(&mut vhost.router.tally);
    }

    fn replay_published<F: Effects>(
        &mut self,
        position: Position,
        places: &[Place],
        message: &[u8],
        fx: &mut F,
    ) -> Result<(), String> {
        let stored = Stored::parse(message)?;
        let bytes = stored.content.body.len() as u32;
        let priority = stored.content.priority;
        for place in places {
            let Some(slot) = self.queue_of_message(place.queue, || stored.queue_name())? else {
                continue;
            };
            let queue = &mut self.queues[slot];
            if place.seq < queue.next_seq {
                return Err(format!("message {} of queue '{}' again", place.seq, queue.name));
            }
            queue.next_seq = place.seq + 1;
            let lane = queue.lane_of(priority);
            queue.push(Entry {
                seq: place.seq,
                position,
                expires: place.expires,
                message: None,
                bytes,
                requeues: 0,
                durable: true,
                redelivered: false,
                fetch: Fetch::Idle,
                lane,
                mark: self.storage.mark,
            });
            fx.retain(position, 1);
        }
        Ok(())
    }

    /// Messages of logs are in a session's queue, too.
    pub(crate) fn replay_drained<F: Effects>(
        &mut self,
        queue: u64,
        entries: &[Entry],
        fx: &mut F,
    ) -> Result<(), String> {
        let mark = self.storage.mark;
        let Some(queue) = self.queues.numbered(queue) else { return Ok(()) };
        for entry in entries {
            if entry.seq < queue.next_seq {
                return Err(format!("message {} of queue '{}' again", entry.seq, queue.name));
            }
            queue.next_seq = entry.seq + 1;
            fx.retain(entry.position, 1);
            queue.push(Entry { lane: 0, mark, ..entry.without_message() });
        }
        Ok(())
    }

    fn replay_moved<F: Effects>(&mut self, position: Position, places: &[Place], fx: &mut F) {
        for place in places {
            let Some(queue) = self.queues.numbered(place.queue) else { continue };
            let found = queue.lanes.iter_mut().find_map(|lane| lane.find(place.seq));
            if let Some(entry) = found {
                let before = std::mem::replace(&mut entry.position, position);
                fx.retain(position, 1);
                fx.release(before, 1);
            }
        }
    }

    fn replay_settled<F: Effects>(
        &mut self,
        number: u64,
        range: RangeInclusive<u64>,
        fx: &mut F,
    ) -> Result<(), String> {
        let Some(slot) = self.queues.slot_of(number) else { return Ok(()) };
        let queue = &self.queues[slot];
        let (first, last, next) = (*range.start(), *range.end(), queue.next_seq);
        let name = (last >= next).then(|| queue.name.clone());
        for seq in first..=last.min(next.saturating_sub(1)) {
            let queue = &mut self.queues[slot];
            queue.forget_note(seq);
            if let Some(entry) = queue.remove(seq) {
                self.drop_entry(entry, fx);
            } else {
                self.settle_in_page(slot, seq, fx);
            }
        }
        match name {
            None => Ok(()),
            Some(name) => Err(format!("message {last} of queue '{name}' settled before {next}")),
        }
    }

    /// A message was settled whose place stays in use; it may have been settled by another record, too.
    pub(crate) fn replay_released<F: Effects>(
        &mut self,
        queue: u64,
        place: u64,
        fx: &mut F,
    ) -> Result<(), String> {
        let next = self.queues.numbered(queue).map_or(0, |queue| queue.next_seq);
        if place < next { self.replay_settled(queue, place..=place, fx) } else { Ok(()) }
    }

    fn replay_requeued(&mut self, message: Requeued) {
        let Requeued { queue, seq, requeues } = message;
        let Some(queue) = self.queues.numbered(queue) else { return };
        if let Some(entry) = queue.lanes.iter_mut().find_map(|lane| lane.find(seq)) {
            entry.went_back(requeues);
        } else if queue.page_of(seq).is_some() && !queue.settled_in_pages.contains(seq) {
            queue.requeued_in_pages.insert(seq, requeues);
        }
    }

    fn replay_purged<F: Effects>(
        &mut self,
        number: u64,
        before: u64,
        ranges: Vec<RangeInclusive<u64>>,
        fx: &mut F,
    ) {
        let Some(slot) = self.queues.slot_of(number) else { return };
        let mut kept = Ranges::default();
        ranges.into_iter().for_each(|range| kept.insert_range(*range.start(), *range.end()));
        let queue = &mut self.queues[slot];
        let seqs = queue.lanes.iter().flat_map(|lane| lane.entries()).map(|entry| entry.seq);
        let gone = seqs.filter(|seq| *seq < before && !kept.contains(*seq));
        for seq in gone.collect::<Vec<_>>() {
            let queue = &mut self.queues[slot];
            if let Some(entry) = queue.remove(seq) {
                self.drop_entry(entry, fx);
            }
        }
        let queue = &mut self.queues[slot];
        if let Some(notes) = &mut queue.notes {
            notes.forget_gone(0..before, usize::MAX, |seq| !kept.contains(seq));
        }
        let mut pages = Vec::new();
        for (index, lane) in queue.lanes.numbered() {
            let purged = lane.pages.iter().filter(|page| page.first < before);
            pages.extend(purged.map(|page| (index, page.position)));
        }
        for (lane, position) in pages {
            self.purge_page(slot, lane, position, &kept, fx);
        }
    }

    /// What a full queue had dropped is back where the record of that was not flushed.
    fn drop_what_is_too_much<F: Effects>(&mut self, now: Time, fx: &mut F) {
        let slots: Vec<u32> = self.queues.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            self.enforce_limits(now, slot, fx);
        }
        self.run_overdue(now, fx);
    }

    /// Ends recovery: forgets what was not durable; every message that may have been delivered before is
    /// marked redelivered. Unless `clean`, that is all of them, or those up to the marks that are known.
    pub fn end_recovery<F: Effects>(&mut self, now: Time, clean: bool, fx: &mut F) {
        for (segment, count) in std::mem::take(&mut self.storage.transient_references) {
            let position = Position(u64::from(segment) << 32);
            fx.release(position, u32::try_from(count).unwrap_or(u32::MAX));
        }
        for (_, vhost) in self.topology.vhosts.iter_mut() {
            vhost.router.hold_auto_delete(false);
        }
        let slots: Vec<u32> = self.queues.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            let knows = self.storage.knows_handed_out;
            let queue = &mut self.queues[slot];
            if !clean {
                if !knows && queue.durable {
                    // The next start has to know it too.
                    queue.handed_out = queue.next_seq;
                    self.storage.handed_out.insert(queue.number, queue.handed_out);
                }
                queue.mark_redelivered(queue.handed_out);
            }
            self.queue_used(now, slot);
            self.watch_head(slot);
            self.refill(slot, fx);
        }
        self.delays_recovered(now, clean);
        self.watch_retained();
        self.sessions_recovered(now);
        self.drop_memberless(fx);
        self.logs_recovered(fx);
        self.policies_recovered(now, fx);
        self.drop_what_is_too_much(now, fx);
        let lanes = self.queues.iter().flat_map(|(_, queue)| queue.lanes.iter());
        let mut entries = lanes.flat_map(|lane| lane.entries());
        debug_assert!(entries.all(|entry| entry.position != NOWHERE));
    }
}
