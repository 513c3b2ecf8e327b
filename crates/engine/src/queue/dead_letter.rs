//! What happens to messages that leave a queue without having been accepted.

use super::blob::Blob;
use super::entry::Entry;
use super::stored::Incoming;
use crate::engine::Engine;
use crate::interface::limits::DEAD_LETTER_DEPTH_MAX;
use crate::queue::page_out::{Loading, Wanted};
use crate::routing::vhost::Way;
use crate::routing::{Keys, QueueKey};
use crate::storage::record;
use crate::{Annotations, Content, Conventions, Death, DeathReason, Effects, Time};

/// Why an entry leaves its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dying {
    pub(crate) reason: DeathReason,
    /// The same dead letter may have been delivered before.
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

impl Engine {
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
        let queue = self.queues.get_mut(slot).expect("entries come from living queues");
        if queue.options.dead_letter_exchange.is_none() || entry.is_unreadable() {
            self.forget(slot, entry, fx);
            return;
        }
        queue.counters.dead_lettered += 1;
        self.counters.dead_lettered += 1;
        let Some(blob) = entry.message.clone() else {
            // It is still the queue's until its message is here.
            let number = queue.number;
            queue.unsettled += 1;
            let position = entry.position;
            let wanted = Wanted::DeadLetter { entry: Box::new(entry), reason };
            self.load(slot, Loading { queue: slot, number, bytes: 0, wanted }, vec![position], fx);
            return;
        };
        let dying = self.dying_for(slot, &entry, reason);
        self.dead_letter_blob(now, slot, &blob, dying, entry, fx);
    }

    /// The same dead letter may have been delivered, unflushed, before the broker went down.
    pub(crate) fn dying_for(&self, slot: u32, entry: &Entry, reason: DeathReason) -> Dying {
        let queue = self.queues.get(slot).expect("entries come from living queues");
        Dying { reason, redelivered: entry.seq < queue.recovered_before }
    }

    /// What full queues refused while a group of records was made becomes dead letters now, each in a
    /// group of its own.
    #[cold]
    pub(crate) fn dead_letter_set_aside<F: Effects>(&mut self, now: Time, fx: &mut F) {
        for Refused { queue: slot, entry, depth } in std::mem::take(&mut self.agenda.refused) {
            let queue = self.queues.get_mut(slot).expect("no queue goes while a group is made");
            queue.counters.dead_lettered += 1;
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
        let stored = blob.stored().expect("messages in memory were checked");
        let annotations = stored.annotations(0).expect("messages in memory were checked");
        let also_to = stored.also_to().expect("messages in memory were checked");
        let opens_group = entry.durable && !self.storage.in_group;
        if opens_group {
            self.record_settled_of(slot, fx);
            fx.reserve(self.dead_letter_bytes(slot, blob), 3);
            self.storage.in_group = true;
        }
        let incoming = stored.incoming(&also_to, dying.redelivered, &annotations);
        self.dead_letter_incoming(now, slot, &incoming, dying.reason, fx);
        self.forget(slot, entry, fx);
        if opens_group {
            self.record_settled_of(slot, fx);
            self.storage.in_group = false;
        }
    }

    /// At most how many bytes the records take that make a message of `slot`'s queue a dead letter.
    pub(crate) fn dead_letter_bytes(&mut self, slot: u32, blob: &Blob) -> usize {
        let stored = blob.stored().expect("messages in memory were checked");
        let also_to = stored.also_to().expect("messages in memory were checked");
        let queue = self.queues.get(slot).expect("entries come from living queues");
        let exchange = queue.options.dead_letter_exchange.as_deref().unwrap_or_default();
        let (key, also_to): (&str, &[&str]) = match &queue.options.dead_letter_routing_key {
            Some(key) => (key, &[]),
            None => (stored.routing_key, &also_to),
        };
        let way = Way { exchange, keys: Keys { routing_key: key, also_to } };
        let vhost = self.topology.vhosts.get_mut(queue.vhost).expect("queues end first");
        let mut targets = Vec::new();
        vhost.route(self.options.conventions.read_headers, way, &stored.content, &mut targets);
        record::bytes_max(blob.len(), targets.len())
    }

    /// Publishes a dead letter of `slot`'s queue.
    pub(crate) fn dead_letter_incoming<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        incoming: &Incoming<'_>,
        reason: DeathReason,
        fx: &mut F,
    ) {
        if self.dead_letter_depth >= DEAD_LETTER_DEPTH_MAX {
            self.counters.dead_letter_cycles += 1;
            return;
        }
        let queue = self.queues.get(slot).expect("entries come from living queues");
        let Some(exchange) = queue.options.dead_letter_exchange.clone() else { return };
        let own_key = queue.options.dead_letter_routing_key.clone();
        let vhost = queue.vhost;
        let mut annotations = incoming.annotations.clone();
        if annotations.deaths.is_empty() {
            annotations.deaths = (self.options.conventions.read_deaths)(&incoming.content);
        }
        let keys = || routing_keys(incoming, self.options.conventions);
        died(&mut annotations, incoming, keys, &queue.name, reason, now);
        let (key, also_to): (&str, &[&str]) = match &own_key {
            Some(key) => (key, &[]),
            None => (incoming.routing_key, incoming.also_to),
        };
        annotations.further_keys_removed |= own_key.is_some() && !incoming.also_to.is_empty();
        let content = Content {
            ttl: incoming.content.ttl.filter(|_| !annotations.ttl_removed),
            ..incoming.content
        };
        let mut targets = Vec::new();
        let way = Way { exchange: &exchange, keys: Keys { routing_key: key, also_to } };
        let Conventions { read_headers: read, ref names, .. } = *self.options.conventions;
        let routing = self.topology.vhosts.get_mut(vhost).expect("queues end first");
        let Some(routed) = routing.route(read, way, &content, &mut targets) else { return };
        self.leave_cycles(&annotations, &mut targets);
        let letter = Incoming {
            exchange: &exchange,
            routing_key: key,
            also_to,
            content,
            redelivered: incoming.redelivered,
            annotations: &annotations,
        };
        self.dead_letter_depth += 1;
        // Placing uses the list of placements, which an outer publish may be using.
        let outer = std::mem::take(&mut self.scratch.placements);
        self.place(now, &letter, &targets, false, fx);
        self.scratch.placements = outer;
        // Declaring the queue did not take the right to the subjects that its default
        // exchange leads to.
        let answers =
            || targets.is_empty() && letter.keys().all(|key| names.is_answer_address(key));
        if routed.has_subjects || (exchange.is_empty() && answers()) {
            self.publish_to_subscribers(vhost, &letter, fx);
        }
        self.dead_letter_depth -= 1;
    }

    /// Takes out queues the message has already left in a cycle without anybody having rejected it:
    /// it would go round for ever.
    fn leave_cycles(&mut self, annotations: &Annotations, targets: &mut Vec<QueueKey>) {
        let deaths = &annotations.deaths;
        let queues = &self.queues;
        let before = targets.len();
        targets.retain(|key| {
            let Some(queue) = queues.get(key.0) else { return false };
            // The most recent death is first. The cycle is what happened since it was last there.
            match deaths.iter().position(|death| death.queue == queue.name) {
                None => true,
                Some(last) => {
                    deaths[..=last].iter().any(|death| death.reason == DeathReason::Rejected)
                }
            }
        });
        self.counters.dead_letter_cycles += (before - targets.len()) as u64;
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
    let expired_own = reason == DeathReason::Expired && incoming.content.ttl.is_some();
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
            original_ttl: incoming.content.ttl.filter(|_| expired_own),
        },
    };
    annotations.deaths.insert(0, death);
    annotations.ttl_removed |= incoming.content.ttl.is_some();
}
