//! Giving a sparsely used segment back: what is still live in it is appended anew.
//!
//! One load at a time: pages first, since they name messages too, then messages. Whatever is found
//! in the segment afterwards starts another round; a round that cannot read ends it.

use crate::consumer::unsettled::Unsettled;
use crate::engine::Engine;
use crate::foundation::shared_body::share;
use crate::publish::held::{DelayKey, Held};
use crate::queue::entry::{Entry, Fetch};
use crate::queue::page::Page;
use crate::queue::page_out::{NO_QUEUE, Wanted};
use crate::retained::Key;
use crate::storage::moving_page::MovingPage;
use crate::storage::record::{Place, Record, message_of};
use crate::{Effects, Loaded, Position, SharedRecord};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Messages moved by one load.
const MOVE_MESSAGES_MAX: usize = 256;

/// The record that a message was read from, and the message, which is its end.
type Moving<'a> = (&'a Arc<[u8]>, &'a [u8]);

/// Who refers to a message.
#[derive(Debug, Default)]
struct Users {
    places: Vec<Place>,
    delays: Vec<DelayKey>,
    retained: Vec<(u32, Key)>,
}

impl Engine {
    /// Appends anew whatever is still live in `segment`, so that it can be given back.
    pub fn compact_segment<F: Effects>(&mut self, segment: u32, fx: &mut F) {
        if let Some((slot, lane, position)) = self.page_in(segment) {
            let page = MovingPage { segment, lane, position, ..MovingPage::default() };
            let wanted = Wanted::MovingPage(Box::new(page));
            return self.load(slot, 0, wanted, vec![position], fx);
        }
        let positions: BTreeSet<Position> = self
            .durable_entries()
            .map(|(_, entry)| entry.position)
            .chain(self.delays.persistent().map(|(_, held)| held.position))
            .chain(self.retained.values.iter().map(|(_, _, value)| value.position))
            .filter(|position| position.segment() == segment)
            .collect();
        let positions: Vec<Position> = positions.into_iter().take(MOVE_MESSAGES_MAX).collect();
        if positions.is_empty() {
            return;
        }
        let wanted = Wanted::Relocation { segment, positions: positions.clone() };
        self.load(NO_QUEUE, 0, wanted, positions, fx);
    }

    /// A durable queue's page that is in the segment or has messages in it.
    fn page_in(&self, segment: u32) -> Option<(u32, usize, Position)> {
        let is_in = |page: &Page| {
            let mut counts = page.segments.iter();
            page.position.segment() == segment
                || counts.any(|count| count.segment == segment && count.durable > 0)
        };
        self.queues.iter().filter(|(_, queue)| queue.durable).find_map(|(slot, queue)| {
            queue.lanes.numbered().find_map(|(index, lane)| {
                // One that is being read for its queue leaves the page soon, or cannot be read.
                let page =
                    lane.pages.iter().find(|page| page.fetch == Fetch::Idle && is_in(page))?;
                Some((slot, index, page.position))
            })
        })
    }

    /// Durable entries in memory, with the numbers of their queues: ready, out, or dying.
    fn durable_entries(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let ready = self.queues.iter().flat_map(|(_, queue)| {
            let entries = queue.lanes.iter().flat_map(|lane| lane.entries());
            entries.map(|entry| (queue.number, entry))
        });
        ready.filter(|(_, entry)| entry.durable).chain(self.durable_out())
    }

    /// Appends what was read anew, and goes on with the segment.
    pub(crate) fn relocation_loaded<F: Effects>(
        &mut self,
        segment: u32,
        positions: &[Position],
        records: Loaded,
        fx: &mut F,
    ) {
        let Ok(records) = records else { return };
        let mut users: BTreeMap<Position, Users> = BTreeMap::new();
        for (queue, entry) in self.durable_entries() {
            if positions.binary_search(&entry.position).is_ok() {
                let place = Place { queue, seq: entry.seq, expires: entry.expires };
                users.entry(entry.position).or_default().places.push(place);
            }
        }
        for (key, held) in self.delays.persistent() {
            if positions.binary_search(&held.position).is_ok() {
                users.entry(held.position).or_default().delays.push(key);
            }
        }
        for (vhost, key, value) in self.retained.values.iter() {
            if positions.binary_search(&value.position).is_ok() {
                users.entry(value.position).or_default().retained.push((vhost, key.clone()));
            }
        }
        let mut moved = BTreeMap::new();
        for (position, record) in positions.iter().zip(&records) {
            let Some(users) = users.remove(position) else { continue };
            let Ok(message) = message_of(record) else { continue };
            for key in users.delays {
                self.move_delayed(key, (record, message), fx);
            }
            for (vhost, key) in users.retained {
                self.move_retained(vhost, &key, (record, message), fx);
            }
            if !users.places.is_empty() {
                let new = self.append_moved(users.places, *position, (record, message), fx);
                moved.insert(*position, new);
            }
        }
        if !moved.is_empty() {
            self.point_to(&moved);
        }
        if moved.len() == positions.len() {
            self.compact_segment(segment, fx);
        }
    }

    /// Appends the record that has been begun, with that message as its end.
    fn append_behind_head<F: Effects>(
        &self,
        (record, message): Moving<'_>,
        fx: &mut F,
    ) -> Position {
        if message.len() < self.options.limits.large_body_bytes {
            return fx.append(&[&self.scratch.record, message], false);
        }
        let message = share(Arc::clone(record)).slice(record.len() - message.len()..);
        let record = SharedRecord { before: &[&self.scratch.record], shared: &message, after: &[] };
        fx.append_shared(record, false)
    }

    fn append_moved<F: Effects>(
        &mut self,
        places: Vec<Place>,
        from: Position,
        moved: Moving<'_>,
        fx: &mut F,
    ) -> Position {
        let count = u32::try_from(places.len()).expect("queues are counted in 32 bits");
        Record::Moved { places, message: &[] }.write(&mut self.scratch.record);
        let to = self.append_behind_head(moved, fx);
        fx.retain(to, count);
        fx.release(from, count);
        to
    }

    fn move_delayed<F: Effects>(&mut self, key: DelayKey, moved: Moving<'_>, fx: &mut F) {
        let Some(held) = self.delays.get_mut(key).copied() else { return };
        self.snapshot_held_first(key, held);
        let DelayKey { due, number } = key;
        let vhost = &self.topology.vhosts[held.vhost].name;
        let by = self.definitions.name(held.by);
        Record::Delayed { number, vhost, due, by, message: &[] }.write(&mut self.scratch.record);
        let to = self.append_behind_head(moved, fx);
        fx.retain(to, 1);
        if let Some(before) = self.delays.get_mut(key) {
            *before = Held { position: to, mark: self.storage.mark, ..held };
        }
        fx.release(held.position, 1);
    }

    fn move_retained<F: Effects>(&mut self, vhost: u32, key: &[u8], moved: Moving<'_>, fx: &mut F) {
        let Some(value) = self.retained.values.get(vhost, key).cloned() else { return };
        self.snapshot_retained_first(vhost, key, &value);
        let (number, expires) = (value.number, value.expires);
        let vhost_name = &self.topology.vhosts[vhost].name;
        Record::Retained { vhost: vhost_name, number, expires, message: &[] }
            .write(&mut self.scratch.record);
        let to = self.append_behind_head(moved, fx);
        fx.retain(to, 1);
        if let Some(value) = self.retained.values.get_mut(vhost, key) {
            (value.position, value.mark) = (to, self.storage.mark);
        }
        fx.release(value.position, 1);
    }

    /// Entries in memory learn where their messages are now.
    fn point_to(&mut self, moved: &BTreeMap<Position, Position>) {
        let ready = self.queues.iter_mut().flat_map(|(_, queue)| {
            let entries = queue.lanes.iter_mut().flat_map(|lane| lane.entries_mut());
            entries.map(|entry| (queue.number, entry))
        });
        let settling = self.agenda.settling.iter_mut().map(|settling| &mut settling.deliveries);
        let unsettled = self.clients.channels.iter_mut().map(|(_, channel)| &mut channel.unsettled);
        let held = self.clients.transactions.iter_mut().map(|(_, open)| &mut open.held.deliveries);
        let out = unsettled.chain(held).chain(settling).flat_map(Unsettled::durable_mut);
        let out = out.map(|delivered| (delivered.queue_number, &mut delivered.entry));
        let dying =
            self.storage.loads.values_mut().filter_map(|loading| match &mut loading.wanted {
                Wanted::DeadLetter { entry, .. } => Some((loading.number, &mut **entry)),
                _ => None,
            });
        let lent = self.sessions.iter_mut().flat_map(|(_, session)| session.lent_mut());
        let all = ready.chain(out).chain(dying).chain(lent);
        for (number, entry) in all.filter(|(_, entry)| entry.durable) {
            if let Some(to) = moved.get(&entry.position) {
                if let Some(taking) = &mut self.storage.snapshot {
                    taking.take(number, entry);
                }
                entry.position = *to;
            }
        }
    }

    /// A page, or those of its messages that are in the segment, was read.
    pub(crate) fn moving_page_loaded<F: Effects>(
        &mut self,
        slot: u32,
        mut page: MovingPage,
        records: Loaded,
        fx: &mut F,
    ) {
        let Ok(records) = records else { return };
        let queue = &self.queues[slot];
        let known =
            queue.lanes[page.lane].pages.iter().find(|known| known.position == page.position);
        // Where its queue is about to need it, what is in it goes soon by itself.
        let Some(known) = known.filter(|known| known.fetch == Fetch::Idle) else {
            return self.compact_segment(page.segment, fx);
        };
        if page.entries.is_empty() {
            let Some(Ok(Record::Page { entries, .. })) =
                records.first().map(|record| Record::parse(record))
            else {
                return;
            };
            let (live, gone): (Vec<Entry>, Vec<Entry>) =
                entries.into_iter().filter(|entry| entry.durable || !known.recovered).partition(
                    |entry| known.holds(entry.seq) && !queue.settled_in_pages.contains(entry.seq),
                );
            page.gone = gone;
            page.messages = live
                .iter()
                .filter(|entry| entry.durable && entry.position.segment() == page.segment)
                .map(|entry| entry.position)
                .collect();
            page.entries = live;
            if page.entries.is_empty() {
                // With several priorities nothing else finds that out before it is first.
                self.drop_page_at(slot, page.lane, page.position, fx);
                return self.compact_segment(page.segment, fx);
            }
            if !page.messages.is_empty() {
                let positions = page.messages.clone();
                let wanted = Wanted::MovingPage(Box::new(page));
                return self.load(slot, 0, wanted, positions, fx);
            }
        }
        let segment = page.segment;
        if self.move_page(slot, page, &records, fx) {
            self.compact_segment(segment, fx);
        }
    }

    /// Appends a page's messages, then the page, anew. False where a message cannot be read.
    fn move_page<F: Effects>(
        &mut self,
        slot: u32,
        mut page: MovingPage,
        records: &[Arc<[u8]>],
        fx: &mut F,
    ) -> bool {
        let number = self.queues[slot].number;
        for (position, record) in page.messages.iter().zip(records) {
            let Ok(message) = message_of(record) else { return false };
            let index = page.entries.iter().position(|entry| entry.position == *position);
            let entry = &mut page.entries[index.expect("its entries named it")];
            let place = Place { queue: number, seq: entry.seq, expires: entry.expires };
            entry.position = self.append_moved(vec![place], *position, (record, message), fx);
        }
        let lane = u8::try_from(page.lane).expect("priorities are bytes");
        let record = Record::Page { queue: number, lane, durable: true, entries: page.entries };
        record.write(&mut self.scratch.record);
        let position = fx.append(&[&self.scratch.record], false);
        let Record::Page { entries, .. } = record else { unreachable!("it was made a page") };
        let queue = &mut self.queues[slot];
        let pages = &mut queue.lanes[page.lane].pages;
        let known = pages
            .iter_mut()
            .find(|known| known.position == page.position)
            .expect("the caller looked it up");
        let recovered = known.recovered;
        let old = std::mem::replace(known, Page { recovered, ..Page::of(position, &entries) });
        let new = &*known;
        queue.ready = queue.ready + u64::from(new.count) - u64::from(old.count);
        queue.bytes.add(new.bytes);
        queue.bytes.take(old.bytes);
        queue.forget_settled_in(&old);
        queue.note_gone_between(&entries);
        fx.retain(position, 1);
        fx.release(page.position, 1);
        for entry in page.gone {
            self.release_entry(&entry, fx);
        }
        true
    }
}
