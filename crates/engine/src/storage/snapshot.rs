//! The whole durable state as bytes: topology, users, queues with their messages by position.

use crate::access::definitions::Definitions;
use crate::engine::{Engine, Topology};
use crate::publish::held::{DelayKey, Held};
use crate::queue::Queue;
use crate::queue::entry::Entry;
use crate::queue::lane::Lane;
use crate::queue::page;
use crate::routing::{BindingView, TargetView};
use crate::storage::codec::{Malformed, Reader, Varint, Writer};
use crate::storage::record::{BindingRecord, HeldRecord, SubscriptionRecord};
use crate::{
    BindingTarget, ExchangeOptions, ExchangeRules, PermissionListing, Policy, PolicyKind, Quota,
    SubjectPermissions, Time,
};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The version of the layout; another one is refused.
const VERSION: u8 = 18;

impl<'a> HeldRecord<'a> {
    pub(crate) fn of(
        key: DelayKey,
        held: &Held,
        topology: &'a Topology,
        definitions: &'a Definitions,
    ) -> HeldRecord<'a> {
        let (DelayKey { due, number }, Held { position, bytes, .. }) = (key, *held);
        let vhost = &topology.vhosts[held.vhost].name;
        HeldRecord { number, vhost, due, position, bytes, by: definitions.name(held.by) }
    }
}

impl Engine {
    /// Appends the whole durable state to `out`; messages by position, not by content.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        self.write_snapshot(out, false);
    }

    /// `apart`: without the messages in memory and the delayed ones, which are to follow instead of the
    /// last byte; see `incremental_snapshot`.
    pub(crate) fn write_snapshot(&self, out: &mut Vec<u8>, apart: bool) {
        let mut writer = Writer(out);
        writer.u8(VERSION);
        writer.u64(self.queues.next_number());
        writer.u64(self.delays.next_number);
        writer.u64(self.retained.next_number);
        self.write_access(&mut writer);
        let mut out: BTreeMap<u64, Vec<&Entry>> = BTreeMap::new();
        let in_place = (!apart).then(|| self.durable_out());
        for (number, entry) in in_place.into_iter().flatten() {
            out.entry(number).or_default().push(entry);
        }
        let durable = self.queues.iter().map(|(_, queue)| queue).filter(|queue| queue.durable);
        writer.varint(durable.clone().count() as u64);
        for queue in durable.clone() {
            let out = out.get(&queue.number).map_or(&[][..], Vec::as_slice);
            self.write_queue(&mut writer, queue, (!apart).then_some(out));
        }
        self.write_bindings(&mut writer);
        let subscribed =
            durable.clone().filter_map(|it| Some((it.number, it.subscription.as_ref()?)));
        writer.list(subscribed, |(number, subscription)| (number, subscription.record()));
        let shared = durable.clone().filter_map(|it| Some((it.number, it.shared.as_ref()?)));
        writer.list(shared, |(number, shared)| (number, &*shared.group));
        let delays = (!apart).then(|| self.delays.persistent()).into_iter().flatten();
        writer.list(delays, |(key, held)| {
            HeldRecord::of(key, held, &self.topology, &self.definitions)
        });
        self.write_transient_references(&mut writer, apart);
        writer.each(self.access.subject_permissions(), |writer, (user, vhost, subjects)| {
            writer.put(&(user, vhost));
            writer.put(subjects);
        });
        let rules = self.access.permissions().flat_map(|it| {
            let rules = self.access.exchange_rules_of(it.user, it.vhost);
            rules.map(move |(exchange, rules)| (it, exchange, rules))
        });
        writer.each(rules, |writer, (of, exchange, rules)| {
            writer.put(&(of.user, of.vhost, exchange));
            writer.put(rules);
        });
        writer.list(self.access.quotas(), |(user, quota)| (user, *quota));
        writer.list(self.access.vhost_quotas(), |(vhost, quota)| (vhost, *quota));
        // What may have been delivered before the last crash: an orderly end does not clear it up.
        writer.put(&self.delays.recovered.map(|before| (before.due, before.number)));
        let recovered = durable.filter(|queue| queue.recovered_before > 0);
        writer.list(recovered, |queue| (queue.number, queue.recovered_before));
        writer.u64(self.sessions.next_number);
        if !apart {
            self.write_sessions(&mut writer);
            self.write_retained(&mut writer);
        }
        // Nothing else is apart.
        writer.u8(0);
    }

    pub(crate) fn restore_held(&mut self, record: &HeldRecord<'_>) -> Result<(), Malformed> {
        let HeldRecord { number, due, position, bytes, .. } = *record;
        let vhost = self.vhost_slot(record.vhost)?;
        let (by, mark) = (self.definitions.declarer(record.by), self.storage.mark);
        let held = Held { position, vhost, bytes, by, persistent: true, mark };
        self.delays.restore(DelayKey { due, number }, held);
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
        let pages =
            durable.flat_map(|(_, queue)| queue.lanes.iter()).flat_map(|lane| lane.pages.iter());
        for page in pages.filter(|page| page.durable_count == 0) {
            *references.entry(page.position.segment()).or_default() += 1;
        }
        writer.list(references.iter(), |(segment, count)| (*segment, *count));
    }

    fn write_access(&self, writer: &mut Writer<'_>) {
        writer.varint(self.topology.vhosts.len() as u64);
        for (_, vhost) in self.topology.vhosts.iter() {
            writer.text(&vhost.name);
            let durable = vhost.router.exchanges().filter(|(_, options)| options.durable);
            writer.each(durable, |writer, (name, options)| {
                writer.text(name);
                writer.put(options);
                writer.text(self.definitions.name(vhost.router.declarer_of(name)));
            });
            writer.list(vhost.policies.iter(), |(kind, name, policy)| {
                (kind == PolicyKind::Operator, name, policy.clone())
            });
        }
        writer.list(self.access.users(), |(name, user)| {
            (name, user.password_hash.as_str(), user.administrator)
        });
        writer.list(self.access.permissions(), |permissions| permissions);
    }

    /// `out`: its durable messages that are out of it; nothing where those in memory are not to be here.
    fn write_queue(&self, writer: &mut Writer<'_>, queue: &Queue, out: Option<&[&Entry]>) {
        writer.u64(queue.number);
        writer.text(&self.topology.vhosts[queue.vhost].name);
        writer.text(&queue.name);
        writer.put(queue.declared());
        writer.text(self.definitions.name(queue.by));
        writer.u64(queue.next_seq);
        writer.varint(queue.lanes.len() as u64);
        for index in (0_u8..=u8::MAX).take(queue.lanes.len()) {
            let lane = &queue.lanes[usize::from(index)];
            let mut entries = out.map_or_else(Vec::new, |out| in_memory(index, lane, out));
            let first_page = lane.pages.iter().next().map_or(u64::MAX, |page| page.first);
            let tail = entries.split_off(entries.partition_point(|entry| entry.seq < first_page));
            page::write_entries(writer, &entries);
            let pages = || lane.pages.iter().filter(|page| page.durable_count > 0);
            writer.varint(pages().count() as u64);
            for page in pages() {
                page::write_page(writer, page);
            }
            page::write_entries(writer, &tail);
        }
        writer.list(queue.settled_in_pages.iter(), |(first, last)| first..=last);
        writer.list(queue.requeued_in_pages.iter(), |(seq, count)| (Varint(*seq), *count));
        let changed = queue.notes.iter().flat_map(|notes| notes.durable_changed());
        writer.list(changed, |(seq, changed)| (Varint(seq), changed));
    }

    fn write_bindings(&self, writer: &mut Writer<'_>) {
        for (_, vhost) in self.topology.vhosts.iter() {
            let durable = vhost.router.bindings().filter(|binding| binding.durable);
            writer.list(durable, |view| {
                let BindingView { source, target, key, arguments, condition, by, .. } = view;
                let target = match target {
                    TargetView::Queue(name, _) => BindingTarget::Queue(name.to_owned()),
                    TargetView::Exchange(name) => BindingTarget::Exchange(name.to_owned()),
                };
                let arguments = arguments.cloned().unwrap_or_default();
                let vhost = vhost.name.as_str();
                let filter = condition.and_then(|condition| condition.filter.clone());
                let not_from = condition.and_then(|condition| condition.not_from.as_deref());
                let binding =
                    BindingRecord { vhost, source, target, key, arguments, filter, not_from };
                (binding, self.definitions.name(by))
            });
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
        self.retained.next_number = reader.u64()?;
        let vhosts = self.read_access(&mut reader)?;
        for _ in 0..reader.count()? {
            self.read_queue(&mut reader)?;
        }
        for _ in 0..vhosts {
            for binding in reader.items::<(BindingRecord<'_>, &str)>()? {
                let (binding, by) = binding?;
                self.restore_binding(binding, by)?;
            }
        }
        for (number, subscription) in reader.get::<Vec<(u64, SubscriptionRecord<'_>)>>()? {
            self.restore_subscription(number, subscription)?;
        }
        for (number, group) in reader.get::<Vec<(u64, &str)>>()? {
            self.restore_shared(number, group);
        }
        for held in reader.items::<HeldRecord<'_>>()? {
            self.restore_held(&held?)?;
        }
        self.storage.transient_references.extend(reader.get::<Vec<(u32, u64)>>()?);
        for (user, vhost, subjects) in reader.get::<Vec<(_, _, SubjectPermissions)>>()? {
            self.access.set_subject_permissions(user, vhost, &subjects)?;
        }
        for ((user, vhost, exchange), rules) in reader.get::<Vec<(_, ExchangeRules)>>()? {
            self.access.set_exchange_rules(user, vhost, exchange, &rules)?;
        }
        for (user, quota) in reader.get::<Vec<(_, Quota)>>()? {
            self.access.set_quota(user, quota)?;
        }
        for (vhost, quota) in reader.get::<Vec<(&str, Quota)>>()? {
            self.vhost_slot(vhost)?;
            self.access.set_vhost_quota(vhost, quota);
        }
        let recovered = reader.get::<Option<(Time, u64)>>()?;
        self.delays.recovered = recovered.map(|(due, number)| DelayKey { due, number });
        for (number, before) in reader.get::<Vec<(u64, u64)>>()? {
            let queue = self.queues.numbered(number);
            let queue = queue.ok_or_else(|| format!("there is no queue of number {number}"))?;
            queue.recovered_before = before;
        }
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
            let vhost = reader.text()?;
            self.add_vhost(vhost);
            for (name, options, by) in reader.get::<Vec<(&str, ExchangeOptions, &str)>>()? {
                self.replay_router(vhost, by, |router| {
                    if router.exchange(name).is_err() {
                        router.declare_exchange(name, &options)?;
                    }
                    Ok(())
                })?;
            }
            for (operator, name, policy) in reader.get::<Vec<(bool, &str, Policy)>>()? {
                self.replay_policy(vhost, operator, name, Some(&policy))?;
            }
        }
        for (name, password_hash, administrator) in reader.get::<Vec<(_, _, bool)>>()? {
            self.access.put_user(name, password_hash, administrator);
        }
        for permissions in reader.get::<Vec<PermissionListing<'_>>>()? {
            self.access.set_permissions(permissions)?;
        }
        Ok(vhosts)
    }

    fn read_queue(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let number = reader.u64()?;
        let vhost = self.vhost_slot(reader.text()?)?;
        let mut queue = Queue::new(number, vhost, reader.get()?, reader.get()?);
        queue.by = self.definitions.declarer(reader.text()?);
        queue.next_seq = reader.u64()?;
        if reader.count()? != queue.lanes.len() {
            return Err(format!("queue '{}' has another number of priorities", queue.name));
        }
        for lane in 0..queue.lanes.len() {
            for entry in page::read_entries(reader)? {
                queue.restore(Entry { lane: lane as u8, mark: self.storage.mark, ..entry });
            }
            for _ in 0..reader.count()? {
                let page = page::read_page(reader)?;
                queue.ready += u64::from(page.count);
                queue.bytes.add(page.bytes);
                queue.lanes[lane].restore_page(page);
            }
            for entry in page::read_entries(reader)? {
                queue.restore(Entry { lane: lane as u8, mark: self.storage.mark, ..entry });
            }
        }
        for settled in reader.get::<Vec<RangeInclusive<u64>>>()? {
            queue.settled_in_pages.insert_range(*settled.start(), *settled.end());
        }
        let requeued = reader.get::<Vec<(Varint, u32)>>()?;
        queue.requeued_in_pages.extend(requeued.into_iter().map(|(seq, count)| (seq.0, count)));
        for changed in reader.items::<(Varint, &[u8])>()? {
            let (seq, changed) = changed?;
            queue.notes.get_or_insert_default().restore_changed(seq.0, changed);
        }
        self.restore_queue(queue).map(|_| ())
    }
}

/// A lane's durable messages in memory, in order, with those of them that are out.
fn in_memory(index: u8, lane: &Lane, out: &[&Entry]) -> Vec<Entry> {
    let lane_out = out.iter().copied().filter(|entry| entry.lane == index);
    let mut entries: Vec<Entry> = lane_out
        .map(|entry| Entry { redelivered: true, ..entry.without_message() })
        .chain(lane.entries().map(Entry::without_message))
        .filter(|entry| entry.durable)
        .collect();
    entries.sort_unstable_by_key(|entry| entry.seq);
    entries
}
