//! A snapshot of one moment, written over several turns while messages go on coming and going.
//!
//! Its beginning is written in one turn: topology, counts, what memory keeps of pages. The messages in
//! memory follow, some in each turn, and say what was true at the beginning: one that is about to go,
//! to be in another record or in a page, or to return to where was looked already, is written before
//! that. Marks tell which ones are written. They change their meaning with each snapshot, so that
//! they need not be reset: a message that is written, or comes after the beginning, has the engine's mark.
//!
//! Looked at in this order: queues, what was purged or deleted, channels, transactions, settles under way,
//! dead letters under way, delayed messages, retained ones. All other ways of a message lead on in that
//! order, so that none is missed.
//!
//! Sessions follow, as they are when they are looked at: records say again what has changed by then. What is
//! lent to them was written when it was lent, or is with them.
//!
//! Of what a message knows, only how often it went back may be newer than the snapshot. Records say that
//! too, and saying it twice is harmless.

use crate::LoadId;
use crate::consumer::unsettled::Unsettled;
use crate::engine::{Engine, Topology};
use crate::publish::held::{DelayKey, Held};
use crate::queue::entry::Entry;
use crate::queue::lane::Part;
use crate::queue::page;
use crate::queue::page_out::Wanted;
use crate::retained::{Key, Value, subject_of};
use crate::storage::codec::{Malformed, Reader, Writer};
use crate::storage::record::{HeldRecord, SessionRecord};
use std::collections::BTreeMap;

/// Bytes of a piece, more or less: none is copied to grow.
const PIECE_BYTES: usize = 64 << 10;
/// Messages that are written as one run at most.
const RUN_MAX: usize = 1024;

/// What follows in the part of a snapshot that holds messages apart from their queues.
const END: u8 = 0;
const RUN: u8 = 1;
const HELD: u8 = 2;
const SESSION: u8 = 3;
pub(crate) const RETAINED: u8 = 4;

/// A snapshot that is not complete.
#[derive(Debug)]
pub(crate) struct IncrementalSnapshot {
    pieces: Vec<Vec<u8>>,
    run: Run,
    next: Next,
    /// The mark of the messages that it has.
    mark: bool,
    /// How many messages may still be looked at in this turn.
    left: usize,
}

/// Messages of one lane, in order, that are not written yet.
#[derive(Debug, Default)]
struct Run {
    queue: u64,
    lane: u8,
    entries: Vec<Entry>,
}

/// What is looked at next.
#[derive(Clone, Debug)]
enum Next {
    Lane(LanePart),
    Departed(DepartedPart),
    Channel { slot: u32, tag: u64 },
    Transaction { slot: u32, number: u64 },
    Settling { number: u64, tag: u64 },
    Dying(LoadId),
    Delays { unreadable: bool, behind: Option<DelayKey> },
    Retained { behind: Option<(u32, Key)> },
    Sessions { slot: usize },
    Nothing,
}

/// A part of a lane, from a number on.
#[derive(Clone, Copy, Debug)]
struct LanePart {
    slot: u32,
    lane: usize,
    part: Part,
    seq: u64,
}

/// A part of a lane that left its queue, from a number on.
#[derive(Clone, Copy, Debug)]
struct DepartedPart {
    serial: u64,
    part: Part,
    seq: u64,
}

impl DepartedPart {
    fn first(serial: u64) -> DepartedPart {
        DepartedPart { serial, part: Part::Returned, seq: 0 }
    }
}

impl LanePart {
    fn first(slot: u32, lane: usize) -> LanePart {
        LanePart { slot, lane, part: Part::Returned, seq: 0 }
    }
}

impl IncrementalSnapshot {
    /// Whether another message may be looked at in this turn.
    fn spend(&mut self) -> bool {
        let has = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has
    }

    /// Whether an entry is to be written, which marks it.
    fn lacks(&self, entry: &mut Entry) -> bool {
        entry.durable && std::mem::replace(&mut entry.mark, self.mark) != self.mark
    }

    /// Writes an entry down, unless that was done, and marks it.
    pub(crate) fn take(&mut self, number: u64, entry: &mut Entry) {
        if self.lacks(entry) {
            self.add(number, entry.without_message());
        }
    }

    /// As [`IncrementalSnapshot::take`], of one that is out of its queue.
    fn take_out(&mut self, number: u64, entry: &mut Entry) {
        if self.lacks(entry) {
            self.add(number, Entry { redelivered: true, ..entry.without_message() });
        }
    }

    fn add(&mut self, queue: u64, entry: Entry) {
        let (run, lane) = (&self.run, entry.lane);
        let is_next = (run.queue, run.lane) == (queue, lane)
            && run.entries.len() < RUN_MAX
            && run.entries.last().is_some_and(|last| last.seq < entry.seq);
        if !is_next {
            self.end_run();
            (self.run.queue, self.run.lane) = (queue, lane);
        }
        self.run.entries.push(entry);
    }

    fn end_run(&mut self) {
        if self.run.entries.is_empty() {
            return;
        }
        let mut run = std::mem::take(&mut self.run);
        let mut writer = self.writer();
        writer.u8(RUN);
        writer.varint(run.queue);
        writer.u8(run.lane);
        page::write_entries(&mut writer, &run.entries);
        run.entries.clear();
        self.run = run;
    }

    fn add_held(&mut self, held: &HeldRecord<'_>) {
        let mut writer = self.writer();
        writer.u8(HELD);
        writer.put(held);
    }

    fn add_retained(&mut self, vhost: u32, key: &[u8], value: &Value, topology: &Topology) {
        let mut writer = self.writer();
        writer.u8(RETAINED);
        writer.put(&value.record(vhost, &subject_of(key), topology));
    }

    fn writer(&mut self) -> Writer<'_> {
        if self.pieces.last().is_none_or(|piece| piece.len() >= PIECE_BYTES) {
            self.pieces.push(Vec::with_capacity(2 * PIECE_BYTES));
        }
        Writer(self.pieces.last_mut().expect("there is one now"))
    }

    /// Deliveries from a tag on; says where the turn ended, if it did.
    fn unsettled(&mut self, unsettled: &mut Unsettled, from: u64) -> Option<u64> {
        for (tag, delivered) in unsettled.iter_from(from) {
            if !self.spend() {
                return Some(tag);
            }
            self.take_out(delivered.queue_number, &mut delivered.entry);
        }
        None
    }
}

impl Engine {
    /// Whether a snapshot was begun and is not complete.
    #[must_use]
    pub fn is_taking_snapshot(&self) -> bool {
        self.storage.snapshot.is_some()
    }

    /// Forgets the snapshot that was begun, if there is one.
    pub fn give_up_snapshot(&mut self) {
        // What it did not come to has to be marked all the same.
        while self.storage.snapshot.is_some() {
            self.take_snapshot();
        }
    }

    /// Begins a snapshot of the state as it is now, to be written over several turns by
    /// [`Engine::take_snapshot`]. One that is not complete is forgotten.
    pub fn begin_snapshot(&mut self) {
        self.give_up_snapshot();
        self.agenda.departures.disown();
        let mut first = Vec::new();
        self.write_snapshot(&mut first, true);
        // The end mark of no messages.
        first.pop();
        self.storage.mark = !self.storage.mark;
        self.storage.snapshot = Some(Box::new(IncrementalSnapshot {
            pieces: vec![first],
            run: Run::default(),
            next: Next::Lane(LanePart::first(0, 0)),
            mark: self.storage.mark,
            left: 0,
        }));
    }

    /// Writes a part of the snapshot that was begun; gives it out, in pieces, once it is complete.
    pub fn take_snapshot(&mut self) -> Option<Vec<Vec<u8>>> {
        let mut taking = self.storage.snapshot.take()?;
        taking.left = self.options.limits.snapshot_at_once;
        while taking.left > 0 {
            taking.next = match std::mem::replace(&mut taking.next, Next::Nothing) {
                Next::Lane(part) => self.take_lane(&mut taking, part),
                Next::Departed(part) => self.take_departed(&mut taking, part),
                Next::Channel { slot, tag } => self.take_channel(&mut taking, slot, tag),
                Next::Transaction { slot, number } => {
                    self.take_transaction(&mut taking, slot, number)
                }
                Next::Settling { number, tag } => self.take_settling(&mut taking, number, tag),
                Next::Dying(from) => self.take_dying(&mut taking, from),
                Next::Delays { unreadable, behind } => {
                    self.take_delays(&mut taking, unreadable, behind)
                }
                Next::Retained { behind } => self.take_retained(&mut taking, behind),
                Next::Sessions { slot } => self.take_sessions(&mut taking, slot),
                Next::Nothing => {
                    taking.end_run();
                    taking.writer().u8(END);
                    return Some(taking.pieces);
                }
            };
            // Where there was nothing, that is something too.
            taking.spend();
        }
        self.storage.snapshot = Some(taking);
        None
    }

    fn take_lane(&mut self, taking: &mut IncrementalSnapshot, part: LanePart) -> Next {
        if part.slot as usize >= self.queues.slots() {
            return Next::Departed(DepartedPart::first(0));
        }
        let queue = self.queues.get_mut(part.slot).filter(|queue| queue.durable);
        let made = queue.and_then(|queue| Some((queue.number, queue.lanes.from(part.lane)?)));
        let Some((number, (at, lane))) = made else {
            return Next::Lane(LanePart::first(part.slot + 1, 0));
        };
        let part = if at == part.lane { part } else { LanePart::first(part.slot, at) };
        for entry in lane.entries_from(part.part, part.seq) {
            if !taking.spend() {
                return Next::Lane(LanePart { seq: entry.seq, ..part });
            }
            taking.take(number, entry);
        }
        Next::Lane(match part.part {
            Part::Returned => LanePart { part: Part::Barred, seq: 0, ..part },
            Part::Barred => LanePart { part: Part::InOrder, seq: 0, ..part },
            Part::InOrder => LanePart::first(part.slot, part.lane + 1),
        })
    }

    fn take_departed(&mut self, taking: &mut IncrementalSnapshot, part: DepartedPart) -> Next {
        let Some((serial, number, lane)) = self.agenda.departures.lane_from(part.serial) else {
            return Next::Channel { slot: 0, tag: 0 };
        };
        let part = if serial == part.serial { part } else { DepartedPart::first(serial) };
        for entry in lane.entries_from(part.part, part.seq) {
            if !taking.spend() {
                return Next::Departed(DepartedPart { seq: entry.seq, ..part });
            }
            taking.take(number, entry);
        }
        Next::Departed(match part.part {
            Part::Returned => DepartedPart { part: Part::Barred, seq: 0, ..part },
            Part::Barred => DepartedPart { part: Part::InOrder, seq: 0, ..part },
            Part::InOrder => DepartedPart::first(serial + 1),
        })
    }

    fn take_channel(&mut self, taking: &mut IncrementalSnapshot, slot: u32, tag: u64) -> Next {
        if slot as usize >= self.clients.channels.slots() {
            return Next::Transaction { slot: 0, number: 0 };
        }
        let rest = self
            .clients
            .channels
            .get_mut(slot)
            .and_then(|channel| taking.unsettled(&mut channel.unsettled, tag));
        match rest {
            Some(tag) => Next::Channel { slot, tag },
            None => Next::Channel { slot: slot + 1, tag: 0 },
        }
    }

    fn take_transaction(
        &mut self,
        taking: &mut IncrementalSnapshot,
        slot: u32,
        number: u64,
    ) -> Next {
        if slot as usize >= self.clients.transactions.slots() {
            return Next::Settling { number: 0, tag: 0 };
        }
        let open = self.clients.transactions.get_mut(slot);
        match open.and_then(|open| taking.unsettled(&mut open.held.deliveries, number)) {
            Some(number) => Next::Transaction { slot, number },
            None => Next::Transaction { slot: slot + 1, number: 0 },
        }
    }

    fn take_settling(&mut self, taking: &mut IncrementalSnapshot, number: u64, tag: u64) -> Next {
        let Some(settling) = self.agenda.settling.first_from_mut(number) else {
            return Next::Dying(LoadId(0));
        };
        let from = if settling.number == number { tag } else { 0 };
        let number = settling.number;
        match taking.unsettled(&mut settling.deliveries, from) {
            Some(tag) => Next::Settling { number, tag },
            None => Next::Settling { number: number + 1, tag: 0 },
        }
    }

    fn take_dying(&mut self, taking: &mut IncrementalSnapshot, from: LoadId) -> Next {
        for (id, loading) in self.storage.loads.range_mut(from..) {
            if !taking.spend() {
                return Next::Dying(*id);
            }
            if let Wanted::DeadLetter { entry, .. } = &mut loading.wanted {
                taking.take_out(loading.number, entry);
            }
        }
        Next::Delays { unreadable: false, behind: None }
    }

    fn take_delays(
        &mut self,
        taking: &mut IncrementalSnapshot,
        unreadable: bool,
        mut behind: Option<DelayKey>,
    ) -> Next {
        for (key, held) in self.delays.behind(unreadable, behind) {
            if !taking.spend() {
                return Next::Delays { unreadable, behind };
            }
            behind = Some(key);
            if held.persistent && held.mark != self.storage.mark {
                held.mark = self.storage.mark;
                taking.add_held(&HeldRecord::of(key, held, &self.topology, &self.definitions));
            }
        }
        match unreadable {
            true => Next::Retained { behind: None },
            false => Next::Delays { unreadable: true, behind: None },
        }
    }

    fn take_retained(
        &mut self,
        taking: &mut IncrementalSnapshot,
        mut behind: Option<(u32, Key)>,
    ) -> Next {
        while taking.spend() {
            let Some((vhost, key, value)) = self.retained.values.behind(behind.as_ref()) else {
                return Next::Sessions { slot: 0 };
            };
            let key = key.clone();
            if std::mem::replace(&mut value.mark, self.storage.mark) != self.storage.mark {
                taking.add_retained(vhost, &key, value, &self.topology);
            }
            behind = Some((vhost, key));
        }
        Next::Retained { behind }
    }

    fn take_sessions(&mut self, taking: &mut IncrementalSnapshot, slot: usize) -> Next {
        for (at, session) in self.sessions.iter_mut_in(slot..usize::MAX) {
            if !taking.spend() {
                return Next::Sessions { slot: at as usize };
            }
            for (queue, lent) in session.lent_mut() {
                taking.take_out(queue, lent);
            }
            if session.is_stored {
                taking.end_run();
                let mut writer = taking.writer();
                writer.u8(SESSION);
                writer.put(&session.record(&self.topology));
            }
        }
        Next::Nothing
    }

    /// Writes all sessions into a snapshot of one turn.
    pub(crate) fn write_sessions(&self, writer: &mut Writer<'_>) {
        for (_, session) in self.sessions.iter().filter(|(_, session)| session.is_stored) {
            writer.u8(SESSION);
            writer.put(&session.record(&self.topology));
        }
    }

    /// An entry of the queue with that number is about to change: the snapshot says how it was.
    #[inline]
    pub(crate) fn snapshot_first(&mut self, number: u64, entry: &Entry) {
        if entry.mark != self.storage.mark && entry.durable {
            self.snapshot_now(number, entry);
        }
    }

    /// As [`Engine::snapshot_first`], for the queue in that slot.
    #[inline]
    pub(crate) fn snapshot_first_in_slot(&mut self, slot: u32, entry: &Entry) {
        if entry.mark != self.storage.mark
            && entry.durable
            && let Some(queue) = self.queues.get(slot)
        {
            self.snapshot_now(queue.number, entry);
        }
    }

    #[cold]
    fn snapshot_now(&mut self, number: u64, entry: &Entry) {
        if let Some(taking) = &mut self.storage.snapshot {
            taking.add(number, entry.without_message());
        }
    }

    /// A delayed message is about to change.
    pub(crate) fn snapshot_held_first(&mut self, key: DelayKey, held: Held) {
        if let Some(taking) = &mut self.storage.snapshot
            && held.persistent
            && held.mark != self.storage.mark
        {
            taking.add_held(&HeldRecord::of(key, &held, &self.topology, &self.definitions));
        }
    }

    /// A retained message is about to change or go: the snapshot says how it was.
    pub(crate) fn snapshot_retained_first(&mut self, vhost: u32, key: &[u8], value: &Value) {
        if let Some(taking) = &mut self.storage.snapshot
            && value.mark != self.storage.mark
        {
            taking.add_retained(vhost, key, value, &self.topology);
        }
    }

    /// Bytes of the snapshot that is being taken, so far.
    #[cfg(test)]
    pub(crate) fn written_of_snapshot(&self) -> usize {
        let pieces = self.storage.snapshot.iter().flat_map(|taking| &taking.pieces);
        pieces.map(Vec::len).sum()
    }

    /// Puts back what a snapshot holds apart from the queues.
    pub(crate) fn read_apart(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let mut lanes: BTreeMap<(u64, u8), Vec<Entry>> = BTreeMap::new();
        loop {
            match reader.u8()? {
                END => break,
                RUN => {
                    let lane = (reader.varint()?, reader.u8()?);
                    lanes.entry(lane).or_default().append(&mut page::read_entries(reader)?);
                }
                HELD => self.restore_held(&reader.get()?)?,
                RETAINED => self.restore_retained(&reader.get()?)?,
                SESSION => {
                    let record: SessionRecord<'_> = reader.get()?;
                    // A virtual host that is not there was created after the snapshot's beginning: the
                    // records that follow make it, and the session in it.
                    if self.topology.vhost_slots.contains_key(record.vhost) {
                        self.restore_session(&record)?;
                    }
                }
                other => return Err(format!("{other} is nothing that a snapshot holds apart")),
            }
        }
        for ((number, lane), mut entries) in lanes {
            entries.sort_unstable_by_key(|entry| entry.seq);
            if let Some(twice) = entries.windows(2).find(|pair| pair[0].seq == pair[1].seq) {
                return Err(format!("message {} of queue number {number} twice", twice[0].seq));
            }
            let Some(queue) = self.queues.numbered(number) else {
                // It was deleted, and they were out: the references go with those who had them.
                for entry in entries {
                    let segment = entry.position.segment();
                    *self.storage.transient_references.entry(segment).or_default() += 1;
                }
                continue;
            };
            queue.restore_apart(lane, entries, self.storage.mark)?;
        }
        Ok(())
    }
}
