//! What happens to messages that leave a queue without having been accepted; which of them a limit
//! drops.

use super::blob::Blob;
use super::entry::Entry;
use super::lane::Front;
use super::stored::Incoming;
use crate::engine::Engine;
use crate::interface::limits::DEAD_LETTER_DEPTH_MAX;
use crate::publish::fanouts::{Extent, Then};
use crate::publish::taken::SizeInGroup;
use crate::queue::Queue;
use crate::queue::page_out::{Loading, Wanted};
use crate::routing::vhost::{Sender, Way};
use crate::routing::{Keys, QueueKey};
use crate::{
    Annotations, Content, Conventions, Death, DeathReason, DiscardReason, Effects, LoadId,
    Overflow, Time,
};

/// Why an entry leaves its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dying {
    pub(crate) reason: DeathReason,
    /// The same dead letter may have been delivered, unflushed, before the broker went down.
    pub(crate) redelivered: bool,
}

/// A message that a full queue refused in the middle of a group of records.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) queue: u32,
    /// With its message.
    pub(crate) entry: Entry,
    /// Dead letters that led to it.
    pub(crate) depth: u32,
}

impl Dying {
    pub(super) fn of(queue: &Queue, entry: &Entry, reason: DeathReason) -> Dying {
        Dying { reason, redelivered: entry.seq < queue.recovered_before }
    }
}

impl Engine {
    /// Drops from the head while more is ready than the queue's limits allow. What is next in a page
    /// goes once the page was read.
    pub(crate) fn enforce_limits<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        loop {
            let has_much = self.has_much_unasked();
            let Some(queue) = self.queues.get_mut(slot) else { return };
            // Where the new ones are refused, what was taken stays: a requeue may exceed the limit.
            if queue.options.overflow != Overflow::DropHead || !queue.is_over_limit() {
                return;
            }
            let has_letters = queue.options.dead_letter_exchange.is_some();
            if has_much || (has_letters && self.agenda.wide.has_many_letters()) {
                return self.put_off_limits(slot);
            }
            if queue.options.is_log && matches!(queue.front(), Front::Page(_)) {
                if self.drop_page_of_log(slot, fx) {
                    continue;
                }
                return;
            }
            if let Front::Page(page) = queue.front() {
                if !page.is_unreadable() {
                    return self.refill(slot, fx);
                }
                // Its messages cannot be told apart: they go together once all of them must.
                let page = page.clone();
                if !queue.is_over_limit_without(&page) {
                    return;
                }
                let count = u64::from(page.count);
                self.counters.dropped += count;
                queue.dropped += count;
                self.count_discarded(slot, DiscardReason::MaxLength, count);
                let queue = &self.queues[slot];
                let lane = queue.first_lane().expect("its front is in a lane");
                self.drop_page_at(slot, lane, page.position, fx);
                continue;
            }
            let Some(entry) = queue.pop().or_else(|| queue.pop_barred()) else { return };
            self.unasked_steps += 1;
            queue.dropped += 1;
            self.counters.dropped += 1;
            let has_exchange = self.queues[slot].options.dead_letter_exchange.is_some();
            self.counters.let_go += u64::from(!has_exchange);
            self.dead_letter(now, slot, entry, DeathReason::MaxLength, fx);
        }
    }

    /// A queue lets go of what exceeds its limits once there is time for it.
    #[cold]
    fn put_off_limits(&mut self, slot: u32) {
        let queue = &mut self.queues[slot];
        if !std::mem::replace(&mut queue.is_overlong, true) {
            self.agenda.overlong.push_back(slot);
        }
    }

    /// An entry has left its queue for `reason`: it goes where the queue says, or nowhere. One that
    /// cannot be read goes nowhere; only a full queue pushes such a one out.
    pub(crate) fn dead_letter<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        entry: Entry,
        reason: DeathReason,
        fx: &mut F,
    ) {
        let queue = &mut self.queues[slot];
        if queue.options.dead_letter_exchange.is_none() || entry.is_unreadable() {
            self.count_discarded(slot, reason.into(), 1);
            self.forget(slot, entry, fx);
            return;
        }
        queue.counters.dead_lettered += 1;
        self.counters.dead_lettered += 1;
        let Some(blob) = entry.message.clone() else {
            // It is still the queue's until its message is here.
            queue.went_out(entry.bytes);
            let position = entry.position;
            let wanted = Wanted::DeadLetter { entry: Box::new(entry), reason };
            return self.load(slot, 0, wanted, vec![position], fx);
        };
        let dying = Dying::of(queue, &entry, reason);
        self.dead_letter_blob(now, slot, &blob, dying, entry, fx);
    }

    /// What full queues refused while a group of records was made becomes dead letters now, each in a
    /// group of its own.
    #[cold]
    pub(crate) fn dead_letter_set_aside<F: Effects>(&mut self, now: Time, fx: &mut F) {
        for Refused { queue: slot, entry, depth } in std::mem::take(&mut self.agenda.refused) {
            self.queues[slot].counters.dead_lettered += 1;
            self.counters.dead_lettered += 1;
            self.storage.resident += entry.resident_cost();
            let blob = entry.message.clone().expect("it was set aside with its message");
            let dying = Dying { reason: DeathReason::MaxLength, redelivered: entry.redelivered };
            let before = std::mem::replace(&mut self.dead_letter_depth, depth);
            self.dead_letter_blob(now, slot, &blob, dying, entry, fx);
            self.dead_letter_depth = before;
        }
    }

    /// Publishes the dead letter and forgets its entry. Where that is durable, the records of both
    /// are one group: the message is never in neither queue.
    pub(crate) fn dead_letter_blob<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        blob: &Blob,
        dying: Dying,
        entry: Entry,
        fx: &mut F,
    ) {
        let stored = blob.stored();
        let annotations = self.annotations_of(slot, &stored, &entry);
        let also_to = stored.also_to();
        let incoming = stored.incoming(&also_to, dying.redelivered, &annotations);
        let mut opens_group = entry.durable && !self.storage.in_group;
        if opens_group {
            let SizeInGroup { bytes, queues, is_whole } = self.dead_letter_size(slot, blob);
            opens_group = !self.is_wide(is_whole, queues);
            if opens_group {
                self.record_settled_of(slot, false, fx);
                fx.reserve(bytes, 3);
                self.storage.in_group = true;
            }
        }
        let load = LoadId(self.storage.next_load);
        let then = Then::Leave(load);
        if self.dead_letter_incoming(now, slot, &incoming, dying.reason, then, fx) {
            self.keep_dying(slot, load, entry, dying.reason);
        } else {
            self.forget(slot, entry, fx);
        }
        if opens_group {
            self.record_settled_of(slot, false, fx);
            self.storage.in_group = false;
        }
    }

    /// A message has begun to become a dead letter in very many queues. It is its queue's until it is in all
    /// of them.
    #[cold]
    fn keep_dying(&mut self, slot: u32, load: LoadId, entry: Entry, reason: DeathReason) {
        let queue = &mut self.queues[slot];
        queue.went_out(entry.bytes);
        queue.loads += 1;
        let wanted = Wanted::DeadLetter { entry: Box::new(entry), reason };
        let loading = Loading { queue: slot, number: queue.number, bytes: 0, wanted };
        self.storage.loads.insert(load, loading);
        self.storage.next_load += 1;
    }

    /// A dead letter is in all of its queues, or has none: the message leaves the one that it was in.
    pub(crate) fn end_wide_letter<F: Effects>(
        &mut self,
        now: Time,
        load: LoadId,
        is_lost: bool,
        fx: &mut F,
    ) {
        let Some(loading) = self.storage.loads.remove(&load) else { return };
        let Wanted::DeadLetter { entry, .. } = loading.wanted else { return };
        let slot = loading.queue;
        let queue = self.queues.get_mut(slot).filter(|queue| queue.number == loading.number);
        let Some(queue) = queue else {
            self.snapshot_first(loading.number, &entry);
            return self.drop_entry(*entry, fx);
        };
        queue.loads -= 1;
        queue.ended(entry.bytes);
        if is_lost {
            self.count_lost_letter(slot, false);
        }
        self.forget(slot, *entry, fx);
        self.agenda.overdue.push(slot);
        self.run_overdue(now, fx);
        self.refill(slot, fx);
        self.watch_head(slot);
        self.mark_dirty(slot);
    }

    /// What a message of `slot`'s queue comes to as a dead letter.
    pub(crate) fn dead_letter_size(&mut self, slot: u32, blob: &Blob) -> SizeInGroup {
        let stored = blob.stored();
        let also_to = stored.also_to();
        let queue = &self.queues[slot];
        let vhost = queue.vhost;
        let exchange = queue.options.dead_letter_exchange.clone().unwrap_or_default();
        let own_key = queue.options.dead_letter_routing_key.clone();
        let keys = letter_keys(own_key.as_deref(), stored.routing_key, &also_to);
        let way = Way { exchange: &exchange, keys, sender: Sender::Unknown };
        self.size_in_group(vhost, way, &stored.content, blob.len())
    }

    /// Publishes a dead letter of `slot`'s queue. Says whether it goes to very many queues and has only begun
    /// to; `then` follows when all have it.
    pub(crate) fn dead_letter_incoming<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        incoming: &Incoming<'_>,
        reason: DeathReason,
        then: Then,
        fx: &mut F,
    ) -> bool {
        if self.dead_letter_depth >= DEAD_LETTER_DEPTH_MAX {
            self.counters.dead_letter_cycles += 1;
            self.count_discarded(slot, DiscardReason::DeadLetterCycle, 1);
            return false;
        }
        let queue = &self.queues[slot];
        let Some(exchange) = queue.options.dead_letter_exchange.clone() else { return false };
        let own_key = queue.options.dead_letter_routing_key.clone();
        let vhost = queue.vhost;
        let mut annotations = incoming.annotations.clone();
        let named = || routing_keys(incoming, self.options.conventions);
        died(&mut annotations, incoming, named, &queue.name, reason, now);
        let keys = letter_keys(own_key.as_deref(), incoming.routing_key, incoming.also_to);
        annotations.further_keys_removed |= own_key.is_some() && !incoming.also_to.is_empty();
        let content = Content {
            ttl: incoming.content.ttl.filter(|_| !annotations.ttl_removed),
            ..incoming.content
        };
        let mut targets = Vec::new();
        let way = Way { exchange: &exchange, keys, sender: Sender::Unknown };
        let steps_before = self.route_steps;
        let routed = self.find_queues(vhost, way, &content, &mut targets);
        self.unasked_steps += self.route_steps - steps_before;
        let Some(routed) = routed else {
            self.count_discarded(slot, DiscardReason::DeadLetterNotTaken, 1);
            return false;
        };
        let is_wide = self.is_wide(routed.is_whole, targets.len());
        let left = if is_wide { 0 } else { self.leave_cycles(&annotations, &mut targets) };
        let letter = Incoming {
            exchange: &exchange,
            routing_key: keys.routing_key,
            also_to: keys.also_to,
            content,
            annotations: &annotations,
            ..*incoming
        };
        self.dead_letter_depth += 1;
        if is_wide {
            let extent = Extent::of(targets.len(), routed.is_whole, true);
            self.place_wide(None, vhost, &letter, extent, false, then);
        }
        // Placing uses the list of placements, which an outer publish may be using.
        let outer = std::mem::take(&mut self.scratch.placements);
        let is_taken = is_wide || self.place(now, &letter, &targets, false, fx).queues > 0;
        self.scratch.placements = outer;
        // Declaring the queue took the right to answer where its own routing key says so, and none to
        // other subjects that the default exchange leads to.
        let answers = || {
            let own_key = own_key.as_deref();
            targets.is_empty() && own_key.is_some_and(|key| self.names().is_answer_address(key))
        };
        let is_heard = routed.is_whole
            && (routed.has_subjects || (exchange.is_empty() && answers()))
            && self.publish_to_subscribers(vhost, &letter, None, fx);
        if !is_taken && !is_heard {
            self.count_lost_letter(slot, left > 0);
        }
        self.dead_letter_depth -= 1;
        is_wide
    }

    /// A dead letter has reached nobody: it has been in all queues that it leads to, or in none.
    #[cold]
    fn count_lost_letter(&mut self, slot: u32, is_cycle: bool) {
        let reason = match is_cycle {
            true => DiscardReason::DeadLetterCycle,
            false => DiscardReason::DeadLetterNotTaken,
        };
        self.count_discarded(slot, reason, 1);
    }

    /// Takes out queues the message has already left in a cycle without anybody having rejected it:
    /// it would go round for ever. Says how many they were.
    pub(crate) fn leave_cycles(
        &mut self,
        annotations: &Annotations,
        targets: &mut Vec<QueueKey>,
    ) -> u64 {
        let (deaths, queues) = (&annotations.deaths, &self.queues);
        let before = targets.len();
        targets.retain(|key| {
            let queue = &queues[key.0];
            // The most recent death is first. The cycle is what happened since it was last there.
            let last = deaths.iter().position(|death| death.queue == queue.name);
            last.is_none_or(|last| {
                deaths[..=last].iter().any(|death| death.reason == DeathReason::Rejected)
            })
        });
        let left = (before - targets.len()) as u64;
        self.counters.dead_letter_cycles += left;
        left
    }
}

/// The keys that a dead letter is routed by: the queue's own one in place of all that the message has.
fn letter_keys<'a>(own: Option<&'a str>, key: &'a str, also_to: &'a [&'a str]) -> Keys<'a> {
    match own {
        Some(routing_key) => Keys { routing_key, also_to: &[] },
        None => Keys { routing_key: key, also_to },
    }
}

/// The routing keys that a history may name: those that the message itself does.
fn routing_keys(incoming: &Incoming<'_>, conventions: &Conventions) -> Vec<String> {
    let mut keys = vec![incoming.routing_key.to_owned()];
    if !incoming.also_to.is_empty() {
        keys.extend((conventions.read_further_keys)(&incoming.content));
    }
    keys
}

/// Adds one death to a message's history.
fn died(
    annotations: &mut Annotations,
    incoming: &Incoming<'_>,
    routing_keys: impl FnOnce() -> Vec<String>,
    queue: &str,
    reason: DeathReason,
    now: Time,
) {
    annotations.delivery_count = 0;
    let known =
        annotations.deaths.iter().position(|death| death.queue == queue && death.reason == reason);
    let death = match known {
        Some(index) => {
            let mut death = annotations.deaths.remove(index);
            death.count += 1;
            death
        }
        None => Death {
            reason,
            queue: queue.to_owned(),
            exchange: incoming.exchange.to_owned(),
            routing_keys: routing_keys(),
            count: 1,
            time: now,
            original_ttl: incoming.content.ttl,
        },
    };
    annotations.deaths.insert(0, death);
    annotations.ttl_removed |= incoming.content.ttl.is_some();
}
