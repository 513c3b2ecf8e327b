//! The way of a message in: checked, routed, placed in queues or handed straight to a consumer.

pub(crate) mod congestion;
pub(crate) mod delay;
pub(crate) mod fanouts;
pub(crate) mod held;
mod inbox;
mod placement;
mod route;
pub(crate) mod taken;
mod told;
pub(crate) mod wide;

use crate::engine::{Engine, Storage};
use crate::foundation::shared_body::copy_for_queues;
use crate::interface::limits::{FURTHER_KEYS_MAX, KEY_BYTES_MAX};
use crate::interface::refusal::refuse;
use crate::publish::fanouts::{Extent, Then};
pub(crate) use crate::publish::placement::Placement;
use crate::publish::taken::{PublishNumber, Route, Taken, Unwanted};
use crate::queue::blob::{Blob, ENTRY_COST, Encoded};
use crate::queue::dead_letter::Refused;
use crate::queue::entry::NOWHERE;
use crate::queue::stored::Incoming;
use crate::routing::QueueKey;
use crate::storage::record;
use crate::storage::record::{Kind, Place};
use crate::{
    Annotations, ChannelId, ConnectionId, DeathReason, DiscardReason, Effects, Overflow, Position,
    Publish, Refusal, Retain, StorageState, Time,
};

impl Engine {
    /// Routes a message to queues and consumers. Refused: no such exchange, no permission, body too
    /// large: the message is not taken and, in confirm mode, its number is not used, unless confirms are
    /// explained: then this is a confirm, too.
    #[inline]
    pub fn publish<F: Effects>(
        &mut self,
        now: Time,
        id: ChannelId,
        publish: &Publish<'_>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        if self.is_away() {
            return self.publish_at_home(id, publish, fx);
        }
        let slot = self.channel_slot(id).ok_or_else(|| Engine::no_channel(id))?;
        if let Err(why) = self.try_publish(now, slot, publish, fx) {
            return self.refuse_publish(slot, publish, why, fx);
        }
        self.run_overdue(now, fx);
        Ok(())
    }

    #[inline]
    fn try_publish<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        publish: &Publish<'_>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        self.check_publish(slot, publish)?;
        if let Some(transaction) = self.transaction_of(slot, publish.transaction)? {
            Engine::check_retained_in_transaction(publish)?;
            return self.hold_publish(now, slot, transaction, publish, fx);
        }
        if publish.retain != Retain::No {
            return self.carry_out_retained(now, slot, publish, true, fx).map(drop);
        }
        self.carry_out_publish(now, slot, publish, None, fx)?;
        Ok(())
    }

    /// Whether it may be published at all.
    #[inline]
    pub(crate) fn check_publish(
        &mut self,
        slot: u32,
        publish: &Publish<'_>,
    ) -> Result<(), Refusal> {
        let (bytes, most) = (publish.content.body.len() as u64, self.options.limits.body_bytes_max);
        if bytes > most {
            refuse!(LimitExceeded, "a message of {bytes} bytes is larger than the limit of {most}");
        }
        let most = KEY_BYTES_MAX;
        if publish.routing_key.len() > most {
            refuse!(LimitExceeded, "a routing key of more than {most} bytes");
        }
        if publish.also_to.len() > FURTHER_KEYS_MAX {
            refuse!(LimitExceeded, "more than {FURTHER_KEYS_MAX} further routing keys");
        }
        if publish.also_to.iter().any(|key| key.len() > most) {
            refuse!(LimitExceeded, "a further routing key of more than {most} bytes");
        }
        let connection = self.clients.channels[slot].id.connection;
        let Some(grant) = self.clients.grant(connection) else { return Ok(()) };
        grant.check_exchange(&self.access, publish.exchange)?;
        let may_reach = if publish.exchange == self.options.conventions.names.subject_exchange {
            publish.keys().try_for_each(|key| grant.check_subject(key))?;
            grant.narrows_exchanges()
        } else {
            // The default exchange leads to queues, and is checked where it leads to subjects.
            !publish.exchange.is_empty()
                && (grant.subjects().is_some() || grant.narrows_exchanges())
        };
        if may_reach { self.check_reached(slot, publish) } else { Ok(()) }
    }

    /// Routes and places a message, and has its publisher told. `sent`: when it was sent, where it is part of
    /// a transaction, whose end tells.
    #[inline(always)]
    pub(crate) fn carry_out_publish<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        publish: &Publish<'_>,
        sent: Option<Time>,
        fx: &mut F,
    ) -> Result<Taken, Refusal> {
        let (in_transaction, since) = (sent.is_some(), sent.unwrap_or(now));
        let is_late = || Incoming { sent, ..Incoming::of(publish) }.is_late(now);
        let channel = &self.clients.channels[slot];
        let vhost_slot = channel.vhost;
        let wants_flush = channel.confirms.is_some() || in_transaction;
        let mut targets = std::mem::take(&mut self.scratch.targets);
        let by = Some(channel.id.connection);
        let routed = self.route(now, vhost_slot, by, publish, &mut targets).and_then(|route| {
            self.check_room(by, vhost_slot, publish, route, &targets, wants_flush)
        });
        let (taken, is_routed) = match routed {
            Err(refusal) => {
                self.scratch.targets = targets;
                return Err(refusal);
            }
            Ok(Route::Delayed(due)) => {
                let due = due.min(now.plus(self.options.limits.delay_max));
                (self.delay(slot, due, since, publish, wants_flush, fx), true)
            }
            Ok(Route::Inbox(owner)) => {
                (Taken::default(), is_late() || self.deliver_to_inbox(owner, publish, fx))
            }
            Ok(Route::Refused) => {
                (Taken { refused: Some(Unwanted::NotStored), ..Taken::default() }, true)
            }
            Ok(Route::Queues { is_whole, has_subjects })
                if self.is_wide(is_whole, targets.len()) =>
            {
                let extent = Extent::of(targets.len(), is_whole, has_subjects);
                self.scratch.targets = targets;
                self.begin_wide_publish(slot, since, publish, has_subjects, extent, fx);
                return Ok(Taken { is_underway: true, ..Taken::default() });
            }
            Ok(Route::Queues { has_subjects, .. }) => {
                let mut incoming = Incoming { sent, ..Incoming::of(publish) };
                let copy = copy_for_queues(&publish.content, targets.len());
                incoming.content.shared = copy.as_ref().or(incoming.content.shared);
                let taken = match targets.is_empty() {
                    true => Taken::default(),
                    false => self.place(now, &incoming, &targets, wants_flush, fx),
                };
                // A key of the default exchange that names no queue may be a subject.
                let is_subject = publish.exchange.is_empty() && targets.is_empty();
                let is_heard = (has_subjects || is_subject)
                    && self.may_be_delivered(slot, publish)
                    && (is_late() || self.publish_to_subscribers(vhost_slot, &incoming, by, fx));
                (taken, is_heard || !targets.is_empty())
            }
        };
        self.scratch.targets = targets;
        self.counters.published += 1;
        if !is_routed {
            self.give_back_unroutable(slot, publish, fx)?;
        }
        if !in_transaction {
            self.count_confirm(slot, taken, fx);
        }
        if let Some(queue) = taken.outran {
            self.outran(now, slot, queue, fx);
        }
        Ok(taken)
    }

    /// Routes and places a direct message, which subscribers have; returns how many queues and inboxes took
    /// it. `by`: the connection that published it, if it is on this shard.
    pub(crate) fn place_caught<F: Effects>(
        &mut self,
        now: Time,
        vhost: u32,
        by: Option<ConnectionId>,
        publish: &Publish<'_>,
        fx: &mut F,
    ) -> u32 {
        let mut targets = std::mem::take(&mut self.scratch.targets);
        let mut caught = 0;
        let routed = self.route(now, vhost, by, publish, &mut targets);
        if self.topology.vhosts[vhost].interest.has_shared() {
            // Its members subscribe to what is emitted.
            targets.retain(|key| self.queues[key.0].shared.is_none());
        }
        let routed =
            routed.and_then(|route| self.check_room(by, vhost, publish, route, &targets, true));
        match routed {
            Ok(Route::Inbox(owner)) => {
                caught = u32::from(self.deliver_to_inbox(owner, publish, fx));
            }
            Ok(Route::Queues { is_whole, .. }) if self.is_wide(is_whole, targets.len()) => {
                let extent = Extent::of(targets.len(), is_whole, false);
                let incoming = Incoming { sent: Some(now), ..Incoming::of(publish) };
                self.place_wide(by, vhost, &incoming, extent, false, Then::Nothing);
                caught = u32::try_from(targets.len()).unwrap_or(u32::MAX).max(1);
            }
            Ok(Route::Queues { .. }) if !targets.is_empty() => {
                let taken = self.place(now, &Incoming::of(publish), &targets, false, fx);
                caught = taken.queues;
                if taken.outran.is_some() {
                    fx.consumers_outrun();
                }
            }
            _ => {}
        }
        self.scratch.targets = targets;
        self.run_overdue(now, fx);
        caught
    }

    /// Puts a message into queues, or hands it to their consumers. `wants_flush`: its publisher waits
    /// until it is safe.
    #[inline(always)]
    pub(crate) fn place<F: Effects>(
        &mut self,
        now: Time,
        incoming: &Incoming<'_>,
        targets: &[QueueKey],
        wants_flush: bool,
        fx: &mut F,
    ) -> Taken {
        let mut taken = Taken::default();
        if !self.agenda.departures.is_empty() {
            // What comes does not make what has left more: each message may leave a lane behind, too.
            self.give_back_some(2 * targets.len(), fx);
        }
        let mut placements = std::mem::take(&mut self.scratch.placements);
        placements.clear();
        let mut refused = Vec::new();
        for key in targets {
            if self.choose_place(now, incoming, key.0, &mut placements, fx) {
                taken.queues += 1;
            } else {
                taken.refused = Some(Unwanted::QueueFull(key.0));
                let options = &self.queues[key.0].options;
                if options.overflow != Overflow::RejectPublishDeadLetter
                    || options.dead_letter_exchange.is_none()
                {
                    self.count_discarded(key.0, DiscardReason::QueueFull, 1);
                }
                if self.storage.in_group {
                    self.choose_refused_place(now, incoming, key.0, &mut placements);
                } else {
                    refused.push(key.0);
                }
            }
        }
        self.logs.end_arrival();
        if targets.len() > 1 {
            let waiting = placements.iter().filter(|it| it.taker.is_none()).count();
            self.work_budget.count_placed(incoming.content.body.len(), targets.len(), waiting);
        }
        if !placements.is_empty() {
            let stored = self.store(now, incoming, &placements, wants_flush, fx);
            taken.position = stored.position;
            taken.outran = stored.outran;
            taken.is_numbered = stored.is_numbered;
            if stored.refused.is_some() {
                taken.refused = stored.refused;
                taken.queues = taken.queues.saturating_sub(placements.len() as u32);
            }
        }
        self.scratch.placements = placements;
        // After the message itself: it may be for one of its own queues, whose numbers come in order.
        for slot in refused {
            // The number is not that of a dead letter.
            self.storage.publish_number = None;
            if self.queues[slot].options.overflow == Overflow::RejectPublishDeadLetter {
                let (reason, then) = (DeathReason::MaxLength, Then::Nothing);
                self.dead_letter_incoming(now, slot, incoming, reason, then, fx);
            }
        }
        taken
    }

    /// A full queue refuses a message in the middle of a group, where there is room for its place and
    /// not for a dead letter. So it takes the message, which leaves it when the group is complete; a
    /// broker that goes down in between finds it in the queue.
    #[cold]
    fn choose_refused_place(
        &mut self,
        now: Time,
        incoming: &Incoming<'_>,
        slot: u32,
        placements: &mut Vec<Placement>,
    ) {
        let queue = &mut self.queues[slot];
        if queue.options.overflow == Overflow::RejectPublishDeadLetter
            && queue.options.dead_letter_exchange.is_some()
        {
            let placement = Placement::new(queue, slot, now, incoming);
            placements.push(Placement { flushes: false, refused: true, ..placement });
        }
    }

    /// Keeps what a full queue refused until the group is complete. It stays in memory, which has it
    /// anyway.
    #[cold]
    fn set_aside(
        &mut self,
        placement: Placement,
        durable: Option<Position>,
        message: Blob,
        incoming: &Incoming<'_>,
    ) {
        let queue = &self.queues[placement.queue];
        let position = durable.filter(|_| placement.durable).unwrap_or(NOWHERE);
        let entry = placement.entry(queue, position, Some(message), incoming, self.storage.mark);
        let (queue, depth) = (placement.queue, self.dead_letter_depth);
        self.agenda.refused.push(Refused { queue, entry, depth });
        self.agenda.overdue.push(queue);
    }

    /// Decides what one queue does with a message; false where it refuses it. A consumer that
    /// takes it for settled gets it here.
    #[inline]
    fn choose_place<F: Effects>(
        &mut self,
        now: Time,
        incoming: &Incoming<'_>,
        slot: u32,
        placements: &mut Vec<Placement>,
        fx: &mut F,
    ) -> bool {
        let content = &incoming.content;
        let bytes = content.body.len() as u32;
        if self.access.bounds_stored()
            && self.is_published_now(incoming)
            && self.is_users_quota_reached(slot)
        {
            self.counters.not_stored += 1;
            return true;
        }
        let Some(queue) = self.queues.get_mut(slot) else { return true };
        let is_late = incoming.is_late(now);
        let is_filtered = queue.filtered.is_some() && !is_late;
        let mut taker = None;
        if is_filtered {
            taker = self.choose_selecting(slot, incoming, fx);
        } else if queue.ready == 0 && !queue.able.is_empty() && !is_late {
            taker = match queue.groups {
                None if queue.own.is_some() => self.taker_of_own(slot, bytes, fx),
                None => self.taker(slot, None, bytes, fx),
                Some(_) => self.taker_of_group(slot, content, fx),
            };
        }
        if let Some(taker) = taker
            && self.clients.consumers[taker].presettled
        {
            self.send(taker, 0, incoming.redelivered, &incoming.view(), fx);
            let counters = &mut self.queues[slot].counters;
            counters.published += 1;
            counters.accepted += 1;
            self.counters.accepted += 1;
            return true;
        }
        let queue = &mut self.queues[slot];
        if taker.is_none()
            && queue.options.overflow != Overflow::DropHead
            && queue.is_full_for(bytes.into())
        {
            return false;
        }
        queue.counters.published += 1;
        if queue.options.is_log {
            queue.next_seq = self.logs.next_arrival;
            self.logs.has_taken = true;
        }
        let placement = Placement::new(queue, slot, now, incoming);
        let (lane, seq) = (queue.lane_of(content.priority), placement.seq);
        placements.push(Placement { taker, ..placement });
        if is_filtered && taker.is_none() {
            self.note_match(slot, lane, seq);
        }
        true
    }

    /// Whether a message has just been published, by itself: others are in the broker's hands already, and
    /// no quota takes them away.
    fn is_published_now(&self, incoming: &Incoming<'_>) -> bool {
        let Annotations { deaths, delayed, .. } = incoming.annotations;
        deaths.is_empty() && !delayed && !self.storage.in_group
    }

    /// Writes the message to the journal where it must be, and to memory where it may be. Refused
    /// where one of its queues can have it in neither.
    fn store<F: Effects>(
        &mut self,
        now: Time,
        incoming: &Incoming<'_>,
        placements: &[Placement],
        wants_flush: bool,
        fx: &mut F,
    ) -> Taken {
        let mut room = std::mem::take(&mut self.scratch.blob);
        room.clear();
        let encoded = incoming.encode(&mut room);
        let flushes = placements.iter().any(|placement| placement.flushes);
        let is_awaited = placements.iter().any(|placement| placement.waits_for_flush);
        let flushed = wants_flush && flushes || is_awaited;
        let once = self.storage.publish_number.take().filter(|it| it.is_stored);
        let durable = self.append_published(placements, encoded, once, flushed, fx);
        // All its queues have it before one of them drops another message for it: that may be a dead
        // letter for the next of them, whose numbers come in order.
        let is_several = placements.len() > 1 && !self.storage.in_group;
        self.storage.in_group |= is_several;
        let (mut refused, mut outran) = (None, None);
        let mut spooled = None;
        let mut blob: Option<Blob> = None;
        for placement in placements {
            if placement.refused {
                let blob = blob.get_or_insert_with(|| encoded.to_blob()).clone();
                self.set_aside(*placement, durable, blob, incoming);
                continue;
            }
            let position = if placement.durable { durable } else { spooled };
            let fits = self.fits(placement.queue, incoming.content.priority, encoded.len())
                && !placement.taker.is_some_and(|taker| self.leaves_to_journal(taker));
            let mut position = position.unwrap_or(NOWHERE);
            if !fits && position == NOWHERE {
                if self.storage.state != StorageState::Ready {
                    self.counters.not_stored += 1;
                    refused = Some(Unwanted::NotStored);
                    continue;
                }
                position = self.append_spooled(encoded, fx);
                spooled = Some(position);
            }
            if position != NOWHERE && !placement.durable {
                self.retain_transient(position, fx);
            }
            let message = fits.then(|| blob.get_or_insert_with(|| encoded.to_blob()).clone());
            // What its other queues handed out may be more than the taker can still take.
            let bytes = incoming.content.body.len() as u32;
            let taker = placement
                .taker
                .filter(|taker| placements.len() == 1 || self.held_up(*taker, bytes, fx).is_none());
            if placement.taker.is_some() && taker.is_none() {
                self.compare_and_note(placement.queue, incoming, placement.seq);
            }
            let placement = Placement { taker, ..*placement };
            if self.enter(now, placement, position, message, incoming, fx) {
                outran = Some(placement.queue);
            }
        }
        self.scratch.keep_blob(room);
        if is_several {
            self.storage.in_group = false;
            self.run_overdue(now, fx);
        }
        let position = durable.filter(|_| flushes);
        let is_numbered = once.is_some() && durable.is_some();
        Taken { position, refused, outran, is_numbered, ..Taken::default() }
    }

    fn append_published<F: Effects>(
        &mut self,
        placements: &[Placement],
        message: Encoded<'_>,
        once: Option<PublishNumber>,
        wants_flush: bool,
        fx: &mut F,
    ) -> Option<Position> {
        let count = placements.iter().filter(|placement| placement.durable).count();
        if count == 0 {
            return None;
        }
        let mut writer = match once {
            None => record::start(&mut self.scratch.record, Kind::Published),
            Some(PublishNumber { session, number, .. }) => {
                let mut writer = record::start(&mut self.scratch.record, Kind::PublishedOnce);
                writer.put(&(session, number));
                writer
            }
        };
        writer.varint(count as u64);
        for placement in placements.iter().filter(|placement| placement.durable) {
            let queue = &self.queues[placement.queue];
            let Placement { seq, expires, .. } = *placement;
            writer.put(&Place { queue: queue.number, seq, expires });
        }
        let position = message.append(&self.scratch.record, wants_flush, fx);
        fx.write_soon();
        fx.retain(position, u32::try_from(count).expect("queues are counted in 32 bits"));
        Some(position)
    }

    pub(super) fn append_spooled<F: Effects>(
        &mut self,
        message: Encoded<'_>,
        fx: &mut F,
    ) -> Position {
        record::start(&mut self.scratch.record, Kind::Spooled);
        self.counters.spooled += 1;
        message.append(&self.scratch.record, false, fx)
    }

    /// Whether a message for that queue may stay in memory.
    pub(crate) fn fits(&self, slot: u32, priority: u8, blob_bytes: usize) -> bool {
        let queue = &self.queues[slot];
        let lane = usize::from(queue.lane_of(priority));
        let cost = blob_bytes as u64 + ENTRY_COST;
        !queue.lanes[lane].is_spooling()
            && queue.resident + cost <= self.options.limits.queue_resident_bytes_max
            && cost <= self.memory_left()
    }

    /// Bytes that may still be read or put into memory, of all queues together.
    pub(crate) fn memory_left(&self) -> u64 {
        let Storage { resident, loading_bytes, .. } = &self.storage;
        self.options.limits.resident_bytes_max.saturating_sub(resident + loading_bytes)
    }

    /// Makes the message an entry of its queue, or of the consumer that takes it. Says whether more comes
    /// than consumers keep up with.
    #[inline]
    fn enter<F: Effects>(
        &mut self,
        now: Time,
        placement: Placement,
        position: Position,
        message: Option<Blob>,
        incoming: &Incoming<'_>,
        fx: &mut F,
    ) -> bool {
        let queue = &mut self.queues[placement.queue];
        let entry = placement.entry(queue, position, message, incoming, self.storage.mark);
        let is_cold = entry.is_cold();
        self.storage.resident += entry.resident_cost();
        if placement.waits_for_flush {
            self.note_unflushed(placement.queue, position, placement.seq);
        }
        if let Some(taker) = placement.taker {
            let is_outrun = self.holds_much(taker);
            let (tag, _) = self.send(taker, entry.seq, entry.redelivered, &incoming.view(), fx);
            self.after_sending(now, taker, entry, tag, fx);
            return is_outrun;
        }
        let queue = &mut self.queues[placement.queue];
        let is_first = queue.ready == 0;
        queue.push(entry);
        let is_outrun = self.is_outrun(placement.queue, is_cold);
        self.after_push(now, placement.queue, is_first, placement.expires, fx);
        is_outrun
    }

    /// Whether more comes into a queue than its consumers take: it drops others for what comes, it fills
    /// more than half of its memory, or it is read from disk while a consumer could take more. A queue
    /// without consumers, or one with room whose consumers cannot take more, takes messages as fast as
    /// they come.
    #[inline]
    fn is_outrun(&self, slot: u32, is_cold: bool) -> bool {
        let queue = &self.queues[slot];
        let is_consumed = !queue.consumers.is_empty();
        if is_consumed && queue.options.overflow == Overflow::DropHead && queue.is_over_limit() {
            return true;
        }
        if is_cold {
            return !queue.able.is_empty();
        }
        let limits = &self.options.limits;
        let others = self.storage.resident.saturating_sub(queue.resident);
        let rest = limits.resident_bytes_max.saturating_sub(others);
        let most = limits.queue_resident_bytes_max.min(rest);
        is_consumed && queue.resident > most / 2
    }
}
