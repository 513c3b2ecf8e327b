//! Messages held back until they are due, then published as if they had just come.
//!
//! They leave by due time, then by arrival. What memory has no room for is read back when its turn
//! has come, a bounded piece at a time; nothing behind it overtakes it.

use crate::access::definitions::Declarer;
use crate::channel::Channel;
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::publish::fanouts::{Extent, Then};
use crate::publish::held::{DelayKey, Held, HeldSums};
use crate::publish::taken::{Taken, Unwanted};
use crate::queue::blob::{Blob, ENTRY_COST};
use crate::queue::entry::NOWHERE;
use crate::queue::page_in::checked_message;
use crate::queue::page_out::{NO_QUEUE, Wanted};
use crate::queue::stored::Incoming;
use crate::routing::vhost::{Sender, Way};
use crate::routing::{Keys, QueueKey};
use crate::storage::record;
use crate::storage::record::{Kind, Record};
use crate::{Annotations, Content, Effects, Loaded, Publish, StorageState, Time};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

/// Messages asked for in one load.
const LOAD_MESSAGES_MAX: usize = 256;
/// Bytes asked for in one load, beyond its first message.
pub(crate) const LOAD_BYTES_MAX: u64 = 1 << 20;
/// Messages released before others get their turn.
const RELEASES_MAX: usize = 256;

/// The smallest time to live: of 0 is what a consumer has to take as it comes.
const MOMENT: Duration = Duration::from_micros(1);

/// How long messages that are due wait for space, where the disk is full, before the next look.
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    waiting: BTreeMap<DelayKey, Held>,
    /// Of those waiting, the messages that are in memory.
    messages: BTreeMap<DelayKey, Blob>,
    /// What memory is counted for those.
    resident: u64,
    /// Of all of them, whether or not they are in memory.
    pub(crate) sums: HeldSums,
    /// They are due and cannot be read. They stay, out of the way of the others; another start of
    /// the broker asks for them again.
    unreadable: BTreeMap<DelayKey, Held>,
    pub(crate) next_number: u64,
    /// Due times by number, while records are replayed: those that end a delay name nothing else.
    due: BTreeMap<u64, Time>,
    /// What came before this one was due by then before the broker went down uncleanly: it may have
    /// been published, and delivered, already.
    pub(crate) recovered: Option<DelayKey>,
    /// When the timer goes off.
    pub(crate) timer: Option<Time>,
    /// Some that are due have been asked for.
    is_loading: bool,
}

impl Delays {
    /// Takes one in that a record or a snapshot names; gives back what it takes the place of.
    pub(crate) fn restore(&mut self, key: DelayKey, held: Held) -> Option<Held> {
        self.next_number = self.next_number.max(key.number.saturating_add(1));
        let before = self.due.insert(key.number, key.due);
        let before = before.and_then(|due| self.waiting.remove(&DelayKey { due, ..key }));
        before.iter().for_each(|before| self.sums.went(before));
        self.add(key, held);
        before
    }

    /// Takes one out because a record says so.
    pub(crate) fn forget(&mut self, number: u64) -> Option<Held> {
        let due = self.due.remove(&number)?;
        let held = self.waiting.remove(&DelayKey { due, number })?;
        self.sums.went(&held);
        Some(held)
    }

    fn add(&mut self, key: DelayKey, held: Held) {
        self.sums.came(&held);
        self.waiting.insert(key, held);
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.unreadable.len()
    }

    /// Whether a user may have no further one, where there may be `most`: a quarter of them is for others.
    fn is_full_for(&self, user: Declarer, most: usize) -> bool {
        self.len() >= most || self.sums.messages_of_user(user) >= most - most / 4
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (DelayKey, &Held)> + Clone {
        self.waiting.iter().chain(&self.unreadable).map(|(key, held)| (*key, held))
    }

    /// Those that survive a restart.
    pub(crate) fn persistent(&self) -> impl Iterator<Item = (DelayKey, &Held)> + Clone {
        self.iter().filter(|(_, held)| held.persistent)
    }

    /// Those behind a key: of those waiting, or of those that cannot be read.
    pub(crate) fn behind(
        &mut self,
        is_unreadable: bool,
        key: Option<DelayKey>,
    ) -> impl Iterator<Item = (DelayKey, &mut Held)> {
        let delays = if is_unreadable { &mut self.unreadable } else { &mut self.waiting };
        let behind = key.map_or(Bound::Unbounded, Bound::Excluded);
        delays.range_mut((behind, Bound::Unbounded)).map(|(key, held)| (*key, held))
    }

    pub(crate) fn get_mut(&mut self, key: DelayKey) -> Option<&mut Held> {
        self.waiting.get_mut(&key).or_else(|| self.unreadable.get_mut(&key))
    }

    fn may_have_been_delivered(&self, key: DelayKey) -> bool {
        self.recovered.is_some_and(|before| key.due <= before.due && key.number < before.number)
    }
}

impl Engine {
    /// Whether a message that is to come no earlier than `due` is held back: also where that has passed, but
    /// others that are to come before it are not published yet.
    pub(super) fn is_held_back(&self, now: Time, due: Time) -> bool {
        let first = self.delays.waiting.first_key_value();
        due > now || first.is_some_and(|(first, _)| first.due <= due)
    }

    /// Holds a message back until `due` that was sent at `sent`.
    pub(crate) fn delay<F: Effects>(
        &mut self,
        slot: u32,
        due: Time,
        sent: Time,
        publish: &Publish<'_>,
        wants_flush: bool,
        fx: &mut F,
    ) -> Taken {
        let Channel { id, vhost, .. } = self.clients.channels[slot];
        let by = self.declarer(id.connection);
        let persistent = publish.content.persistent;
        let mut room = Vec::new();
        // So it will be when it leaves.
        let annotations = Annotations { delayed: true, ..Annotations::default() };
        let from = self.clients.connection(id.connection).and_then(|it| it.client.clone());
        let mut incoming =
            Incoming { annotations: &annotations, from: from.as_deref(), ..Incoming::of(publish) };
        if self.lives_from_sending(&publish.content) {
            incoming.content.ttl = publish.content.ttl.map(|ttl| left_of(ttl, sent, due));
        }
        let message = incoming.encode(&mut room);
        let cost = message.len() as u64 + ENTRY_COST;
        let limits = &self.options.limits;
        let fits = self.delays.resident + cost <= limits.queue_resident_bytes_max
            && cost <= self.memory_left();
        let is_stored = persistent || !fits;
        let is_full = self.delays.is_full_for(by, limits.delayed_max);
        if is_full
            || (is_stored && self.storage.state != StorageState::Ready)
            || self.storage.state == StorageState::NoMemory
        {
            self.counters.not_stored += 1;
            let why = if is_full { Unwanted::TooManyDelayed } else { Unwanted::NotStored };
            return Taken { refused: Some(why), ..Taken::default() };
        }
        let key = DelayKey { due, number: self.delays.next_number };
        self.delays.next_number += 1;
        let mut position = NOWHERE;
        if persistent {
            let (vhost, by) = (&self.topology.vhosts[vhost].name, self.definitions.name(by));
            let mut writer = record::start(&mut self.scratch.record, Kind::Delayed);
            writer.u64(key.number);
            writer.text(vhost);
            writer.u64(due.0);
            writer.text(by);
            position = message.append(&self.scratch.record, wants_flush, fx);
            fx.write_soon();
            fx.retain(position, 1);
        } else if is_stored {
            position = self.append_spooled(message, fx);
            self.retain_transient(position, fx);
        }
        let bytes = u32::try_from(message.len()).unwrap_or(u32::MAX);
        let held = Held { position, vhost, bytes, by, persistent, mark: self.storage.mark };
        self.delays.add(key, held);
        if fits {
            self.delays.resident += cost;
            self.storage.resident += cost;
            self.delays.messages.insert(key, message.to_blob());
        }
        self.watch_delays();
        Taken { position: persistent.then_some(position), ..Taken::default() }
    }

    /// Whether the delay of a message is a part of its life.
    fn lives_from_sending(&self, content: &Content<'_>) -> bool {
        content.ttl.is_some_and(|ttl| !ttl.is_zero())
            && (self.options.conventions.lives_from_sending)(content.format)
    }

    /// Sets the timer for the first message.
    pub(crate) fn watch_delays(&mut self) {
        if let Some((key, _)) = self.delays.waiting.first_key_value() {
            self.set_delay_timer(key.due);
        }
    }

    fn set_delay_timer(&mut self, at: Time) {
        if !self.delays.is_loading {
            self.timers.bring_forward(&mut self.delays.timer, at, Timer::Delay);
        }
    }

    /// Publishes what is due, as far as it is in memory, and asks for what is not.
    pub(crate) fn release_delayed<F: Effects>(&mut self, now: Time, fx: &mut F) {
        if self.delays.is_loading {
            return;
        }
        for _ in 0..RELEASES_MAX {
            let Some((key, _)) = self.delays.waiting.first_key_value() else { return };
            let key = *key;
            if key.due > now {
                return self.watch_delays();
            }
            if self.has_much_unasked() {
                break;
            }
            let Some(blob) = self.delays.messages.get(&key).cloned() else {
                return self.ask_delayed(now, LOAD_MESSAGES_MAX, fx);
            };
            if !self.publish_delayed(now, key, &blob, fx) {
                return;
            }
        }
        // Just after now: what else is due now comes first.
        self.set_delay_timer(now.plus(Duration::from_micros(1)));
    }

    /// Asks for the first messages that are due, at most `messages_max` of them. As they take
    /// up no memory before they are published, the first of them is asked for even where memory
    /// is scarce.
    fn ask_delayed<F: Effects>(&mut self, now: Time, messages_max: usize, fx: &mut F) {
        let most = self.options.limits.queue_resident_bytes_max;
        let room = LOAD_BYTES_MAX.min(most).min(self.memory_left());
        let (mut keys, mut positions, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (key, held) in self.delays.waiting.iter().take(messages_max) {
            let more = u64::from(held.bytes) + ENTRY_COST;
            let is_cold = !self.delays.messages.contains_key(key);
            if key.due > now || !is_cold || (!keys.is_empty() && bytes + more > room) {
                break;
            }
            keys.push(*key);
            positions.push(held.position);
            bytes += more;
        }
        self.delays.is_loading = true;
        self.load(NO_QUEUE, bytes, Wanted::Delayed { keys }, positions, fx);
    }

    /// Messages that are due were read back.
    pub(crate) fn delayed_loaded<F: Effects>(
        &mut self,
        now: Time,
        keys: &[DelayKey],
        records: Loaded,
        fx: &mut F,
    ) {
        self.delays.is_loading = false;
        if records.is_err() && keys.len() > 1 {
            // One of them cannot be read, which says nothing about the others.
            return self.ask_delayed(now, keys.len() / 2, fx);
        }
        let records = records.unwrap_or_default();
        for (index, key) in keys.iter().enumerate() {
            let record = records.get(index);
            match record.and_then(|record| checked_message(record, &self.options.limits)) {
                Some(blob) if self.publish_delayed(now, *key, &blob, fx) => {}
                Some(_) => return,
                None if record.is_some_and(|record| record.is_empty()) => {
                    // A repair of the journal had to give it up.
                    if let Some(held) = self.take_delayed(*key) {
                        self.counters.given_up += 1;
                        self.release_held(held, fx);
                    }
                }
                None => {
                    if let Some(held) = self.delays.waiting.remove(key) {
                        self.delays.unreadable.insert(*key, held);
                        self.counters.unreadable += 1;
                    }
                }
            }
        }
        self.run_overdue(now, fx);
        self.release_delayed(now, fx);
    }

    /// Publishes a message whose delay is over; false where all wait until there is space for it. Its
    /// record and that which ends the delay are one group.
    fn publish_delayed<F: Effects>(
        &mut self,
        now: Time,
        key: DelayKey,
        blob: &Blob,
        fx: &mut F,
    ) -> bool {
        let Some(held) = self.delays.waiting.get(&key).copied() else { return true };
        let stored = blob.stored();
        let also_to = stored.also_to();
        let content = stored.content;
        let keys = Keys { routing_key: stored.routing_key, also_to: &also_to };
        let mut targets = Vec::new();
        // Where the exchange was deleted meanwhile, the message has nowhere to go.
        let sender = Sender::of(None, stored.from);
        let way = Way { exchange: stored.exchange, keys, sender };
        let steps_before = self.route_steps;
        let routed = self.find_queues(held.vhost, way, &content, &mut targets);
        self.unasked_steps += self.route_steps - steps_before;
        let fits = |key: &QueueKey| self.fits(key.0, content.priority, blob.len());
        use StorageState::{Exhausted, Full, NoMemory};
        let is_full = matches!(self.storage.state, Full | Exhausted | NoMemory);
        if is_full && !held.persistent && !targets.iter().all(fits) {
            // It was confirmed, and could only be dropped now.
            self.set_delay_timer(now.plus(FULL_PAUSE));
            return false;
        }
        let redelivered = self.delays.may_have_been_delivered(key);
        let annotations = stored.annotations(0);
        // From then on counts what its time to live was stored as.
        let sent = match self.lives_from_sending(&content) {
            true => Time(key.due.0.saturating_sub(MOMENT.as_micros() as u64)),
            false => now,
        };
        let incoming =
            Incoming { sent: Some(sent), ..stored.incoming(&also_to, redelivered, &annotations) };
        let is_whole = routed.is_none_or(|routed| routed.is_whole);
        let is_wide = self.is_wide(is_whole, targets.len());
        if is_wide {
            let then = Then::EndDelay(key);
            let extent = Extent::of(targets.len(), is_whole, true);
            let incoming = Incoming { from: stored.from, ..incoming };
            self.place_wide(None, held.vhost, &incoming, extent, false, then);
            // The others wait for it.
            self.delays.is_loading = true;
        } else {
            if held.persistent {
                fx.reserve(record::bytes_max(blob.len(), targets.len()), 3);
            }
            self.storage.in_group = true;
            self.place(now, &incoming, &targets, false, fx);
        }
        let is_heard = routed.is_some_and(|routed| routed.has_subjects && routed.is_whole)
            && (incoming.is_late(now)
                || self.publish_to_subscribers(held.vhost, &incoming, None, fx));
        self.counters.unroutable += u64::from(targets.is_empty() && !is_heard && is_whole);
        if is_wide {
            return false;
        }
        self.end_delay(key, fx);
        self.storage.in_group = false;
        self.run_overdue(now, fx);
        true
    }

    /// A delayed message is where it was to go.
    pub(crate) fn end_delay<F: Effects>(&mut self, key: DelayKey, fx: &mut F) {
        let Some(held) = self.take_delayed(key) else { return };
        if held.persistent {
            Record::DelayEnded { number: key.number }.write(&mut self.scratch.record);
            fx.append(&[&self.scratch.record], false);
        }
        self.release_held(held, fx);
    }

    /// A delayed message is in all of its very many queues.
    pub(crate) fn end_wide_delayed<F: Effects>(&mut self, now: Time, key: DelayKey, fx: &mut F) {
        self.delays.is_loading = false;
        self.end_delay(key, fx);
        self.set_delay_timer(now.plus(Duration::from_micros(1)));
    }

    /// Takes one out, its message included.
    fn take_delayed(&mut self, key: DelayKey) -> Option<Held> {
        if let Some(blob) = self.delays.messages.remove(&key) {
            self.delays.resident -= blob.cost();
            self.storage.resident -= blob.cost();
        }
        let delays = &mut self.delays;
        let held = delays.waiting.remove(&key).or_else(|| delays.unreadable.remove(&key))?;
        delays.sums.went(&held);
        self.snapshot_held_first(key, held);
        Some(held)
    }

    fn release_held<F: Effects>(&mut self, held: Held, fx: &mut F) {
        if held.persistent {
            fx.release(held.position, 1);
        } else if held.is_stored() {
            self.release_transient(held.position, 1, fx);
        }
    }

    /// Forgets what a virtual host holds back; its own record says that all in it is gone.
    pub(crate) fn drop_delays_of<F: Effects>(&mut self, vhost: u32, fx: &mut F) {
        let of_vhost = self.delays.iter().filter(|(_, held)| held.vhost == vhost);
        let keys: Vec<DelayKey> = of_vhost.map(|(key, _)| key).collect();
        for key in keys {
            self.delays.due.remove(&key.number);
            let held = self.take_delayed(key).expect("it was found just now");
            self.release_held(held, fx);
        }
    }

    /// All records were replayed.
    pub(crate) fn delays_recovered(&mut self, now: Time, clean: bool) {
        self.delays.due = BTreeMap::new();
        let number = self.delays.next_number;
        if !clean {
            // A clock may have been set back since a crash before this one.
            let due = self.delays.recovered.map_or(now, |before| before.due.max(now));
            self.delays.recovered = Some(DelayKey { due, number });
        }
        self.watch_delays();
    }
}

/// What is left at `due`, and the moment before that, of the life of a message that was sent at `sent`.
fn left_of(ttl: Duration, sent: Time, due: Time) -> Duration {
    ttl.saturating_sub(due.since(sent)) + MOMENT
}

#[cfg(test)]
mod tests {
    use super::{Blob, Delays};

    impl Delays {
        /// What those in memory are counted for, and ought to be.
        pub(crate) fn resident(&self) -> (u64, u64) {
            (self.resident, self.messages.values().map(Blob::cost).sum())
        }
    }
}
