//! The whole durable state as bytes: topology, users, queues with their messages by position.

use crate::access::PermissionView;
use crate::engine::Engine;
use crate::publish::held::{Held, Turn};
use crate::queue::Queue;
use crate::queue::entry::Entry;
use crate::queue::lane::Lane;
use crate::queue::page::{self, PageEntry};
use crate::routing::TargetView;
use crate::storage::codec::{Malformed, Reader, Writer};
use crate::storage::record;
use crate::{Arguments, BindingTarget, Position, Time};
use std::collections::BTreeMap;

/// The version of the layout; another one is refused.
const VERSION: u8 = 8;

impl Engine {
    /// Appends the whole durable state to `out`; messages by position, not by content.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        self.write_snapshot(out, false);
    }

    /// `apart`: without the messages in memory and the delayed ones, which are to follow instead of the
    /// last byte; see `taking`.
    pub(crate) fn write_snapshot(&self, out: &mut Vec<u8>, apart: bool) {
        let mut writer = Writer(out);
        writer.u8(VERSION);
        writer.u64(self.queues.next_number());
        writer.u64(self.delays.next_number);
        self.write_access(&mut writer);
        writer.varint(self.queues.iter().filter(|(_, queue)| queue.durable).count() as u64);
        let mut out: BTreeMap<u64, Vec<&Entry>> = BTreeMap::new();
        let in_place = (!apart).then(|| self.durable_out());
        for (number, entry) in in_place.into_iter().flatten() {
            out.entry(number).or_default().push(entry);
        }
        for (_, queue) in self.queues.iter().filter(|(_, queue)| queue.durable) {
            let out = out.get(&queue.number).map_or(&[][..], Vec::as_slice);
            self.write_queue(&mut writer, queue, (!apart).then_some(out));
        }
        self.write_bindings(&mut writer);
        self.write_delays(&mut writer, apart);
        self.write_transient_references(&mut writer, apart);
        writer.varint(self.access.subject_permissions().count() as u64);
        for (user, vhost, subjects) in self.access.subject_permissions() {
            writer.text(user);
            writer.text(vhost);
            record::write_subjects(&mut writer, subjects);
        }
        writer.varint(self.access.quotas().count() as u64);
        for (user, quota) in self.access.quotas() {
            writer.text(user);
            record::write_quota(&mut writer, quota);
        }
        self.write_recovered(&mut writer);
        writer.u64(self.sessions.next_number);
        if !apart {
            self.write_sessions(&mut writer);
        }
        // Nothing else is apart.
        writer.u8(0);
    }

    /// What may have been delivered before a crash, of which an orderly end knows no more than the start
    /// after that crash did.
    fn write_recovered(&self, writer: &mut Writer<'_>) {
        writer.bool(self.delays.recovered.is_some());
        if let Some(before) = self.delays.recovered {
            writer.u64(before.due.0);
            writer.u64(before.number);
        }
        let recovered =
            || self.queues.iter().filter(|(_, queue)| queue.durable && queue.recovered_before > 0);
        writer.varint(recovered().count() as u64);
        for (_, queue) in recovered() {
            writer.u64(queue.number);
            writer.u64(queue.recovered_before);
        }
    }

    fn read_recovered(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        if reader.bool()? {
            let due = Time(reader.u64()?);
            self.delays.recovered = Some(Turn { due, number: reader.u64()? });
        }
        for _ in 0..reader.count()? {
            let number = reader.u64()?;
            let slot = self.queues.slot_of(number);
            let queue = slot.and_then(|slot| self.queues.get_mut(slot));
            let queue = queue.ok_or_else(|| format!("there is no queue of number {number}"))?;
            queue.recovered_before = reader.u64()?;
        }
        Ok(())
    }

    /// Counts of references that end with this process. Those to pages of durable queues in which
    /// nothing is durable are among them, and those of what was purged or deleted and of messages that are
    /// out of queues that are gone.
    fn write_transient_references(&self, writer: &mut Writer<'_>, apart: bool) {
        let mut references = self.storage.transient_references.clone();
        self.agenda.departures.count_durable(&mut references, !apart);
        let in_place = (!apart).then(|| self.durable_out()).into_iter().flatten();
        for (_, entry) in in_place.filter(|(number, _)| self.queues.slot_of(*number).is_none()) {
            *references.entry(entry.position.segment()).or_default() += 1;
        }
        let durable = self.queues.iter().filter(|(_, queue)| queue.durable);
        let pages = durable.flat_map(|(_, queue)| &queue.lanes).flat_map(|lane| lane.pages());
        for page in pages.filter(|page| page.durable_count == 0) {
            *references.entry(page.position.segment()).or_default() += 1;
        }
        writer.varint(references.len() as u64);
        for (segment, count) in &references {
            writer.u32(*segment);
            writer.u64(*count);
        }
    }

    fn write_access(&self, writer: &mut Writer<'_>) {
        writer.varint(self.topology.vhosts.len() as u64);
        for (_, vhost) in self.topology.vhosts.iter() {
            writer.text(&vhost.name);
            let durable = || vhost.router.exchanges().filter(|(_, options)| options.durable);
            writer.varint(durable().count() as u64);
            for (name, options) in durable() {
                writer.text(name);
                record::write_exchange_options(writer, options);
            }
        }
        writer.varint(self.access.users().count() as u64);
        for (name, user) in self.access.users() {
            writer.text(name);
            writer.text(&user.password_hash);
            writer.bool(user.administrator);
        }
        writer.varint(self.access.permissions().count() as u64);
        for permission in self.access.permissions() {
            let PermissionView { user, vhost, configure, write, read } = permission;
            for text in [user, vhost, configure, write, read] {
                writer.text(text);
            }
        }
    }

    /// `out`: its durable messages that are out of it; nothing where those in memory are not to be here.
    fn write_queue(&self, writer: &mut Writer<'_>, queue: &Queue, out: Option<&[&Entry]>) {
        writer.u64(queue.number);
        let vhost = self.topology.vhosts.get(queue.vhost).expect("queues have a virtual host");
        writer.text(&vhost.name);
        writer.text(&queue.name);
        record::write_queue_options(writer, &queue.options);
        writer.u64(queue.next_seq);
        writer.varint(queue.lanes.len() as u64);
        for (index, lane) in (0_u8..=u8::MAX).zip(&queue.lanes) {
            let mut entries = out.map_or_else(Vec::new, |out| in_memory(index, lane, out));
            let first_page = lane.pages().next().map_or(u64::MAX, |page| page.first);
            let tail = entries.split_off(entries.partition_point(|entry| entry.seq < first_page));
            page::write_entries(writer, &entries);
            let pages = || lane.pages().filter(|page| page.durable_count > 0);
            writer.varint(pages().count() as u64);
            for page in pages() {
                page::write_page(writer, page);
            }
            page::write_entries(writer, &tail);
        }
        writer.varint(queue.settled_in_pages.len() as u64);
        for (first, last) in queue.settled_in_pages.iter() {
            writer.varint(first);
            writer.varint(last - first);
        }
        writer.varint(queue.requeued_in_pages.len() as u64);
        for (seq, requeues) in &queue.requeued_in_pages {
            writer.varint(*seq);
            writer.u32(*requeues);
        }
    }

    fn write_bindings(&self, writer: &mut Writer<'_>) {
        for (_, vhost) in self.topology.vhosts.iter() {
            let durable = || vhost.router.bindings().filter(|binding| binding.durable);
            writer.varint(durable().count() as u64);
            for binding in durable() {
                let target = match binding.target {
                    TargetView::Queue(name, _) => BindingTarget::Queue(name.to_owned()),
                    TargetView::Exchange(name) => BindingTarget::Exchange(name.to_owned()),
                };
                let arguments = binding.arguments.cloned().unwrap_or_else(Arguments::new);
                let binding = record::BindingRecord {
                    vhost: &vhost.name,
                    source: binding.source,
                    target,
                    key: binding.key,
                    arguments,
                };
                record::write_binding(writer, &binding);
            }
        }
    }

    fn write_delays(&self, writer: &mut Writer<'_>, apart: bool) {
        let here = || (!apart).then(|| self.delays.persistent()).into_iter().flatten();
        writer.varint(here().count() as u64);
        for (turn, held) in here() {
            writer.u64(turn.number);
            let vhost = self.topology.vhosts.get(held.vhost).expect("delays have a virtual host");
            writer.text(&vhost.name);
            writer.u64(turn.due.0);
            writer.u64(held.position.0);
            writer.u32(held.bytes);
        }
    }

    /// Puts back what [`Engine::snapshot`] wrote. Does not call `retain`: the host keeps the counts.
    /// Errors: the text says what is wrong with the snapshot.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<(), String> {
        let mut reader = Reader(snapshot);
        let version = reader.u8()?;
        if version != VERSION {
            return Err(format!(
                "the store has format {version}; this program reads format {VERSION} only: start \
                 with an empty data folder, or with the program that wrote this one"
            ));
        }
        self.queues.start_numbers_at(reader.u64()?);
        self.delays.next_number = reader.u64()?;
        let vhosts = self.read_access(&mut reader)?;
        for _ in 0..reader.count()? {
            self.read_queue(&mut reader)?;
        }
        for _ in 0..vhosts {
            for _ in 0..reader.count()? {
                let binding = record::read_binding(&mut reader)?;
                let slot = self.vhost_slot(binding.vhost).map_err(|refusal| refusal.text)?;
                let router =
                    &mut self.topology.vhosts.get_mut(slot).expect("it was found just now").router;
                router
                    .bind(binding.source, &binding.target, binding.key, binding.arguments)
                    .map_err(|refusal| refusal.text)?;
            }
        }
        for _ in 0..reader.count()? {
            let number = reader.u64()?;
            let vhost = self.vhost_slot(reader.text()?).map_err(|refusal| refusal.text)?;
            let due = Time(reader.u64()?);
            let position = Position(reader.u64()?);
            let bytes = reader.u32()?;
            let held = Held { position, vhost, bytes, persistent: true, mark: self.storage.mark };
            self.delays.restore(Turn { due, number }, held);
        }
        for _ in 0..reader.count()? {
            let segment = reader.u32()?;
            let count = reader.u64()?;
            self.storage.transient_references.insert(segment, count);
        }
        for _ in 0..reader.count()? {
            let (user, vhost) = (reader.text()?, reader.text()?);
            let subjects = record::read_subjects(&mut reader)?;
            self.access
                .set_subject_permissions(user, vhost, &subjects)
                .map_err(|refusal| refusal.text)?;
        }
        for _ in 0..reader.count()? {
            let user = reader.text()?;
            let quota = record::read_quota(&mut reader)?;
            self.access.set_quota(user, quota).map_err(|refusal| refusal.text)?;
        }
        self.read_recovered(&mut reader)?;
        self.sessions.next_number = reader.u64()?;
        self.read_apart(&mut reader)?;
        reader.end()
    }

    fn read_access(&mut self, reader: &mut Reader<'_>) -> Result<usize, Malformed> {
        let default: Vec<String> = self.topology.vhost_slots.keys().cloned().collect();
        for name in default {
            let slot = self.topology.vhost_slots.remove(&name).expect("it was listed just now");
            self.topology.vhosts.remove(slot);
        }
        let vhosts = reader.count()?;
        for _ in 0..vhosts {
            let slot = self.add_vhost(reader.text()?);
            let router =
                &mut self.topology.vhosts.get_mut(slot).expect("it was added just now").router;
            router.hold_auto_delete(true);
            for _ in 0..reader.count()? {
                let name = reader.text()?;
                let options = record::read_exchange_options(reader)?;
                if router.exchange(name).is_err() {
                    router.declare_exchange(name, &options).map_err(|refusal| refusal.text)?;
                }
            }
        }
        for _ in 0..reader.count()? {
            let (name, password_hash) = (reader.text()?, reader.text()?);
            self.access.put_user(name, password_hash, reader.bool()?);
        }
        for _ in 0..reader.count()? {
            let (user, vhost, configure) = (reader.text()?, reader.text()?, reader.text()?);
            let (write, read) = (reader.text()?, reader.text()?);
            let set = PermissionView { user, vhost, configure, write, read };
            self.access.set_permissions(set).map_err(|refusal| refusal.text)?;
        }
        Ok(vhosts)
    }

    fn read_queue(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let number = reader.u64()?;
        let vhost = self.vhost_slot(reader.text()?).map_err(|refusal| refusal.text)?;
        let name = reader.text()?.to_owned();
        let options = record::read_queue_options(reader)?;
        let mut queue = Queue::new(number, vhost, name, options);
        queue.next_seq = reader.u64()?;
        if reader.count()? != queue.lanes.len() {
            return Err(format!("queue '{}' has another number of priorities", queue.name));
        }
        for lane in 0..queue.lanes.len() {
            for entry in page::read_entries(reader)? {
                queue.restore(Entry::from_page(&entry, lane as u8, self.storage.mark));
            }
            for _ in 0..reader.count()? {
                let page = page::read_page(reader)?;
                queue.ready += u64::from(page.count);
                queue.ready_bytes += page.bytes;
                queue.lanes[lane].restore_page(page);
            }
            for entry in page::read_entries(reader)? {
                queue.restore(Entry::from_page(&entry, lane as u8, self.storage.mark));
            }
        }
        for _ in 0..reader.count()? {
            let first = reader.varint()?;
            let last = first.checked_add(reader.varint()?).ok_or("a range beyond 64 bits")?;
            queue.settled_in_pages.insert_range(first, last);
        }
        for _ in 0..reader.count()? {
            let seq = reader.varint()?;
            queue.requeued_in_pages.insert(seq, reader.u32()?);
        }
        self.restore_queue(queue).map(|_| ())
    }
}

/// A lane's durable messages in memory, in order, with those of them that are out.
fn in_memory(index: u8, lane: &Lane, out: &[&Entry]) -> Vec<PageEntry> {
    let lane_out = out.iter().copied().filter(|entry| entry.lane == index);
    let mut entries: Vec<PageEntry> = lane_out
        .map(|entry| PageEntry { redelivered: true, ..PageEntry::of(entry) })
        .chain(lane.entries().map(PageEntry::of))
        .filter(|entry| entry.durable)
        .collect();
    entries.sort_unstable_by_key(|entry| entry.seq);
    entries
}
