//! Makes the durable state anew from whatever records are whole, where no snapshot is left.
//!
//! Sequence numbers, and the numbers of queues and delayed messages, are never used twice. So it does not
//! matter in which order it is known that a message was there and that it is gone. What nothing says to be
//! gone is kept: some of it may come again.

use crate::engine::Engine;
use crate::interface::page_search::FoundMessage;
use crate::publish::held::{DelayKey, Held};
use crate::queue::entry::Entry;
use crate::queue::ranges::Ranges;
use crate::queue::stored::Stored;
use crate::retained::restore::RetainedRemains;
use crate::storage::record::{BindingRecord, Place, Record};
use crate::{Effects, Position, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Most errors that are named one by one.
const ERRORS_NAMED_MAX: usize = 20;

/// What the whole records of a log say.
#[derive(Debug, Default)]
pub struct Rebuild {
    queues: BTreeMap<u64, QueueRemains>,
    delays: BTreeMap<u64, DelayRemains>,
    ended_delays: BTreeSet<u64>,
    retained: RetainedRemains,
    /// Where the records of messages are.
    positions: BTreeSet<Position>,
    /// Records of definitions, in order.
    definitions: Vec<(Position, Vec<u8>)>,
    /// Virtual hosts that are named, and those whose creation is recorded.
    named_vhosts: BTreeSet<String>,
    created_vhosts: BTreeSet<String>,
    /// Records that cannot be understood.
    malformed: u64,
}

/// What is known of one queue's messages.
#[derive(Debug, Default)]
struct QueueRemains {
    messages: BTreeMap<u64, FoundMessage>,
    gone: Ranges,
    requeues: BTreeMap<u64, u32>,
    /// What consumers have added to messages.
    changed: BTreeMap<u64, Vec<u8>>,
    is_declared: bool,
    is_deleted: bool,
    /// The key of a message that was published to the queue by its name.
    name: Option<String>,
}

#[derive(Debug)]
struct DelayRemains {
    position: Position,
    vhost: String,
    due: Time,
    bytes: u32,
    by: String,
}

impl Rebuild {
    /// Takes the next record of the log in.
    pub fn look(&mut self, position: Position, record: &[u8]) {
        match Record::parse(record) {
            Ok(parsed) => self.take(position, parsed, record),
            Err(_) => self.malformed += 1,
        }
    }

    fn take(&mut self, position: Position, parsed: Record<'_>, record: &[u8]) {
        match parsed {
            Record::Nothing | Record::Spooled { .. } | Record::Page { .. } => {}
            Record::Published { places, message } | Record::Moved { places, message } => {
                self.take_message(position, places, message);
            }
            Record::PublishedOnce { session, number, places, message } => {
                self.take_definition(position, &Record::Received { session, number });
                self.take_message(position, places, message);
            }
            Record::Released { queue, place, .. } => {
                self.queues.entry(queue).or_default().gone.insert_range(place, place);
                self.definitions.push((position, record.to_vec()));
            }
            Record::HandedOver { queue, seq, to, entries, .. } => {
                self.queues.entry(queue).or_default().gone.insert_range(seq, seq);
                self.take_references(to, entries);
            }
            Record::Settled { queue, ranges } => {
                let gone = &mut self.queues.entry(queue).or_default().gone;
                ranges.iter().for_each(|range| gone.insert_range(*range.start(), *range.end()));
            }
            Record::Purged { queue, before, kept } => self.take_purged(queue, before, kept),
            Record::Requeued { messages } => {
                for message in messages {
                    let queue = self.queues.entry(message.queue).or_default();
                    queue.requeues.insert(message.seq, message.requeues);
                }
            }
            Record::Annotated { queue, seq, changed } => {
                self.queues.entry(queue).or_default().changed.insert(seq, changed.to_vec());
            }
            Record::Delayed { number, vhost, due, by, message } => {
                let bytes = u32::try_from(message.len()).unwrap_or(u32::MAX);
                self.named_vhosts.insert(vhost.to_owned());
                let (vhost, by) = (vhost.to_owned(), by.to_owned());
                self.delays.insert(number, DelayRemains { position, vhost, due, bytes, by });
            }
            Record::Trimmed { log, before } => {
                let gone = &mut self.queues.entry(log).or_default().gone;
                gone.insert_range(0, before.saturating_sub(1));
            }
            Record::Drained { session, at, queue, entries } => {
                self.take_references(queue, entries);
                let drained = Record::Drained { session, at, queue, entries: Vec::new() };
                self.take_definition(position, &drained);
            }
            Record::DelayEnded { number } => drop(self.ended_delays.insert(number)),
            Record::Retained { vhost, .. } | Record::RetainedGone { vhost, .. } => {
                self.take_retained(position, vhost, &parsed);
            }
            Record::QueueDeleted { number } => {
                self.queues.entry(number).or_default().is_deleted = true;
                self.definitions.push((position, record.to_vec()));
            }
            definition => {
                match definition {
                    Record::VhostCreated { name } => {
                        self.created_vhosts.insert(name.to_owned());
                    }
                    Record::QueueDeclared { number, .. } => {
                        self.queues.entry(number).or_default().is_declared = true;
                    }
                    _ => {}
                }
                self.named_vhosts.extend(vhost_of(&definition).map(str::to_owned));
                self.definitions.push((position, record.to_vec()));
            }
        }
    }

    fn take_definition(&mut self, position: Position, definition: &Record<'_>) {
        let mut record = Vec::new();
        definition.write(&mut record);
        self.definitions.push((position, record));
    }

    fn take_retained(&mut self, position: Position, vhost: &str, record: &Record<'_>) {
        self.named_vhosts.insert(vhost.to_owned());
        self.malformed += u64::from(self.retained.look(position, record).is_err());
    }

    fn take_purged(&mut self, queue: u64, before: u64, kept: Vec<RangeInclusive<u64>>) {
        let gone = &mut self.queues.entry(queue).or_default().gone;
        let mut next = 0;
        for stays in kept.into_iter().chain([before..=before]) {
            let first = (*stays.start()).min(before);
            if first > next {
                gone.insert_range(next, first - 1);
            }
            next = stays.end().saturating_add(1);
        }
    }

    /// Messages have come into a queue by reference, as far as their records are whole.
    fn take_references(&mut self, queue: u64, entries: Vec<Entry>) {
        let messages = &mut self.queues.entry(queue).or_default().messages;
        for entry in entries.into_iter().filter(|it| self.positions.contains(&it.position)) {
            let Entry { seq, position, expires, bytes, lane: priority, .. } = entry;
            // A record that the message was moved to later says where it is now.
            let found = FoundMessage { position, expires, bytes, priority };
            messages.entry(seq).or_insert(found);
        }
    }

    fn take_message(&mut self, position: Position, places: Vec<Place>, message: &[u8]) {
        let Ok(stored) = Stored::parse(message) else {
            self.malformed += 1;
            return;
        };
        self.positions.insert(position);
        for place in places {
            let Ok(found) = FoundMessage::of(position, place.expires, message) else {
                return;
            };
            let queue = self.queues.entry(place.queue).or_default();
            queue.name = queue.name.take().or_else(|| stored.queue_name());
            queue.messages.insert(place.seq, found);
        }
    }

    /// Puts what was found into an engine that has nothing yet. Says, in sentences, what is there and what is
    /// not known.
    pub fn restore<F: Effects>(mut self, engine: &mut Engine, fx: &mut F) -> Vec<String> {
        engine.expect_gaps();
        let mut notes = Vec::new();
        for name in self.named_vhosts.difference(&self.created_vhosts) {
            if !engine.topology.vhost_slots.contains_key(name) {
                engine.add_vhost(name);
                notes.push(format!("the virtual host '{name}' was made anew: records name it"));
            }
        }
        let numbers = self.queues.keys().next_back().map_or(0, |highest| highest.saturating_add(1));
        engine.queues.start_numbers_at(numbers);
        let mut errors = Vec::new();
        for (position, record) in std::mem::take(&mut self.definitions) {
            if let Err(why) = engine.replay(position, &record, fx) {
                errors.push(format!("the record in {:#x}: {why}", position.0));
                if let Ok(Record::QueueDeclared { number, .. }) = Record::parse(&record) {
                    self.queues.entry(number).or_default().is_declared = false;
                }
            }
        }
        let (mut messages, mut delayed) = (0, 0);
        for (number, remains) in std::mem::take(&mut self.queues) {
            messages += remains.restore(number, engine, fx, &mut errors);
        }
        for (number, delay) in std::mem::take(&mut self.delays) {
            let is_held = !self.ended_delays.contains(&number);
            delayed += u64::from(is_held && delay.restore(number, engine, fx));
        }
        let retained = std::mem::take(&mut self.retained).restore(engine, fx);
        notes.push(format!(
            "rebuilt from the records that are whole: {} queues with {messages} messages, {delayed} delayed \
             messages, {retained} retained messages, {} users; messages may be among them that were \
             acknowledged before",
            engine.queues.iter().count(),
            engine.access.users().count(),
        ));
        notes.extend(engine.take_rescued());
        notes.push(
            "every other definition (user, permission, quota, virtual host, exchange, binding, queue without \
             messages, session) of which no record is whole is lost: make it again"
                .to_owned(),
        );
        if self.malformed > 0 {
            notes.push(format!("{} records cannot be understood and are lost", self.malformed));
        }
        if !errors.is_empty() {
            notes.push(format!(
                "{} records could not be applied, since they refer to what is lost: {}",
                errors.len(),
                errors[..errors.len().min(ERRORS_NAMED_MAX)].join("; ")
            ));
        }
        notes
    }
}

impl QueueRemains {
    /// Puts the messages that are not gone into their queue; returns how many.
    fn restore<F: Effects>(
        self,
        number: u64,
        engine: &mut Engine,
        fx: &mut F,
        errors: &mut Vec<String>,
    ) -> u64 {
        // One that was declared and is not there went with its virtual host.
        if self.is_deleted || self.is_declared && engine.queues.slot_of(number).is_none() {
            return 0;
        }
        let mark = engine.storage.mark;
        let last = self.gone.iter().last().map_or(0, |(_, last)| last);
        let mut count = 0;
        for (seq, message) in self.messages.into_iter().filter(|it| !self.gone.contains(it.0)) {
            let slot = match engine.queue_of_message(number, || self.name.clone()) {
                Ok(Some(slot)) => slot,
                Ok(None) => return count,
                Err(why) => {
                    errors.push(why);
                    return count;
                }
            };
            let queue = &mut engine.queues[slot];
            let lane = queue.lane_of(message.priority);
            let requeues = self.requeues.get(&seq).copied().unwrap_or(0);
            queue.next_seq = seq.saturating_add(1);
            queue.push(Entry { requeues, mark, ..message.entry(seq, lane) });
            if let Some(changed) = self.changed.get(&seq) {
                queue.notes.get_or_insert_default().restore_changed(seq, changed);
            }
            fx.retain(message.position, 1);
            count += 1;
        }
        if let Some(queue) = engine.queues.numbered(number) {
            queue.next_seq = queue.next_seq.max(last.saturating_add(1));
        }
        count
    }
}

impl DelayRemains {
    /// Whether its virtual host is there.
    fn restore<F: Effects>(self, number: u64, engine: &mut Engine, fx: &mut F) -> bool {
        let DelayRemains { position, vhost, due, bytes, by } = self;
        let Ok(vhost) = engine.vhost_slot(&vhost) else { return false };
        let (by, mark) = (engine.definitions.declarer(&by), engine.storage.mark);
        let held = Held { position, vhost, bytes, by, persistent: true, mark };
        engine.delays.restore(DelayKey { due, number }, held);
        fx.retain(position, 1);
        true
    }
}

/// The virtual host that a definition is in.
fn vhost_of<'a>(definition: &Record<'a>) -> Option<&'a str> {
    match *definition {
        Record::QueueDeclared { vhost, .. }
        | Record::ExchangeDeclared { vhost, .. }
        | Record::ExchangeDeleted { vhost, .. }
        | Record::SubjectPermissionsSet { vhost, .. }
        | Record::VhostQuotaSet { vhost, .. }
        | Record::PolicySet { vhost, .. }
        | Record::PolicyCleared { vhost, .. }
        | Record::Bound { binding: BindingRecord { vhost, .. }, .. }
        | Record::Unbound(BindingRecord { vhost, .. }) => Some(vhost),
        Record::PermissionsSet(ref permissions) => Some(permissions.vhost),
        Record::SessionPut(ref session) => Some(session.vhost),
        _ => None,
    }
}
