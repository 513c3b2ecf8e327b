//! What must hold between calls; looked at by tests after every step.

use crate::Overflow;
use crate::engine::Engine;
use crate::queue::Queue;
use crate::queue::entry::{Entry, NOWHERE};
use crate::queue::page_out::{Loading, Wanted};
use std::collections::{BTreeMap, BTreeSet};

impl Engine {
    /// Compares every count with what it counts, and the references with the host's.
    pub(crate) fn check_invariants(&self, references: &BTreeMap<u32, i64>) {
        self.sessions.check_invariants();
        self.check_subscriptions();
        let mut expected: BTreeMap<u32, i64> = BTreeMap::new();
        let mut transient: BTreeMap<u32, u64> = BTreeMap::new();
        let mut resident = 0;
        let is_left = !(self.agenda.refused.is_empty() && self.agenda.overdue.is_empty());
        assert!(!is_left, "left over from a group");
        for (slot, queue) in self.queues.iter() {
            assert!(
                !queue.is_unpaged || self.agenda.unpaged.contains(&slot),
                "its pages are forgotten"
            );
            let (mut ready, mut bytes, mut queue_resident) = (0, 0, 0);
            check_barred(queue);
            for lane in queue.lanes.iter() {
                let mut cold = 0;
                for entry in lane.entries() {
                    ready += 1;
                    bytes += u64::from(entry.bytes);
                    queue_resident += entry.resident_cost();
                    cold += usize::from(entry.is_cold());
                }
                cold -= lane.barred().filter(|entry| entry.is_cold()).count();
                lane.check(cold);
                for page in lane.pages.iter() {
                    ready += u64::from(page.count);
                    bytes += page.bytes;
                    *expected.entry(page.position.segment()).or_default() += 1;
                    for count in &page.segments {
                        *expected.entry(count.segment).or_default() +=
                            i64::from(count.durable) + i64::from(count.transient);
                        *transient.entry(count.segment).or_default() += u64::from(count.transient);
                    }
                    if !queue.durable {
                        *transient.entry(page.position.segment()).or_default() += 1;
                    }
                }
            }
            assert_eq!(queue.ready, ready, "ready in {}", queue.name);
            assert_eq!(queue.bytes.ready(), bytes, "ready bytes in {}", queue.name);
            assert_eq!(queue.resident, queue_resident, "resident in {}", queue.name);
            resident += queue_resident;
            self.check_unsettled(queue);
            check_limit(queue);
        }
        let ready = self.queues.iter().flat_map(|(_, queue)| queue.lanes.iter());
        let ready = ready.flat_map(|lane| lane.entries());
        let out: Vec<_> = self.out().map(|(_, entry)| entry).collect();
        resident += out.iter().map(|entry| entry.resident_cost()).sum::<u64>();
        for entry in ready.chain(out).chain(self.lent()).filter(|entry| entry.is_stored()) {
            *expected.entry(entry.position.segment()).or_default() += 1;
            if !entry.durable {
                *transient.entry(entry.position.segment()).or_default() += 1;
            }
        }
        self.check_departures(&mut expected, &mut transient);
        resident += self.check_delays(&mut expected, &mut transient);
        self.check_marks();
        expected.retain(|_, count| *count > 0);
        transient.retain(|_, count| *count > 0);
        assert_eq!(self.storage.resident, resident, "resident bytes");
        let loading: u64 = self.loadings().map(|loading| loading.bytes).sum();
        assert_eq!(self.storage.loading_bytes, loading, "bytes asked for");
        self.check_loads();
        assert_eq!(&expected, references, "references by segment");
        assert_eq!(transient, self.storage.transient_references, "transient references by segment");
        self.check_credit();
        self.check_subscribing();
    }

    /// Named subscriptions are found, and nothing else is.
    fn check_subscriptions(&self) {
        self.check_logs();
        let named = self.queues.iter().filter(|(_, queue)| queue.subscription.is_some());
        let mut expected: Vec<u64> = named.map(|(_, queue)| queue.number).collect();
        let mut found: Vec<u64> = self.subscriptions.numbers().collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "named subscriptions");
    }

    /// What is out of a queue and not settled.
    fn check_unsettled(&self, queue: &Queue) {
        let out = self.out().filter(|(number, _)| *number == queue.number);
        let (out, bytes) = out
            .fold((0, 0), |(count, bytes), (_, entry)| (count + 1, bytes + u64::from(entry.bytes)));
        assert_eq!((queue.unsettled, queue.bytes.out()), (out, bytes), "out of {}", queue.name);
    }

    /// What was asked for and is not in memory yet.
    fn loadings(&self) -> impl Iterator<Item = &Loading> {
        let arrived = self.storage.arrivals.iter().map(|arrival| &arrival.loading);
        self.storage.loads.values().chain(arrived)
    }

    /// What was asked for is counted where it is wanted, and what is taken in by parts is what was asked for.
    fn check_loads(&self) {
        for (slot, queue) in self.queues.iter() {
            let own = |it: &&Loading| (it.queue, it.number) == (slot, queue.number);
            let (mut loads, mut bytes) = (0, 0);
            for loading in self.loadings().filter(own) {
                loads += 1;
                bytes += loading.bytes;
            }
            assert_eq!((queue.loads, queue.loading_bytes), (loads, bytes), "{}", queue.name);
        }
        for arrival in &self.storage.arrivals {
            let asked = match &arrival.loading.wanted {
                Wanted::Messages { seqs, .. } => seqs.len(),
                Wanted::Page { .. } => 1,
                other => panic!("{other:?} is not taken in by turns"),
            };
            assert_eq!(arrival.messages.len(), asked, "messages that are left of a load");
        }
    }

    /// Each user's subscribers are counted.
    fn check_subscribing(&self) {
        let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
        for (_, channel) in self.clients.channels.iter() {
            let connection = self.clients.connections[channel.id.connection.0 as usize].as_ref();
            let grant = connection.and_then(|connection| connection.grant.as_ref());
            if let Some(grant) = grant {
                *expected.entry(&grant.user).or_default() += channel.subscribers.len() as u64;
            }
        }
        for (user, count) in expected {
            assert_eq!(self.access.subscribing.here(user), count, "subscribers of {user}");
        }
    }

    /// Adds what refers to records of what was purged or deleted.
    fn check_departures(
        &self,
        expected: &mut BTreeMap<u32, i64>,
        transient: &mut BTreeMap<u32, u64>,
    ) {
        for entry in self.agenda.departures.entries().filter(|entry| entry.is_stored()) {
            *expected.entry(entry.position.segment()).or_default() += 1;
            if !entry.durable {
                *transient.entry(entry.position.segment()).or_default() += 1;
            }
        }
        for (page, durable) in self.agenda.departures.pages() {
            *expected.entry(page.position.segment()).or_default() += 1;
            if !durable {
                *transient.entry(page.position.segment()).or_default() += 1;
            }
            for count in &page.segments {
                *expected.entry(count.segment).or_default() +=
                    i64::from(count.durable) + i64::from(count.transient);
                *transient.entry(count.segment).or_default() += u64::from(count.transient);
            }
        }
    }

    /// Adds what delayed messages refer to; returns what they take up in memory.
    fn check_delays(
        &self,
        expected: &mut BTreeMap<u32, i64>,
        transient: &mut BTreeMap<u32, u64>,
    ) -> u64 {
        let (counted, resident) = self.delays.resident();
        assert_eq!(counted, resident, "resident bytes of delayed messages");
        for (_, held) in self.delays.iter().filter(|(_, held)| held.position != NOWHERE) {
            *expected.entry(held.position.segment()).or_default() += 1;
            if !held.persistent {
                *transient.entry(held.position.segment()).or_default() += 1;
            }
        }
        resident + self.check_retained(expected)
    }

    /// The same of retained messages.
    fn check_retained(&self, expected: &mut BTreeMap<u32, i64>) -> u64 {
        let values = &self.retained.values;
        values.check_invariants();
        for (_, _, value) in values.iter() {
            *expected.entry(value.position.segment()).or_default() += 1;
        }
        values.resident()
    }

    /// Where no snapshot is being taken, all that is durable is marked alike.
    fn check_marks(&self) {
        if self.storage.snapshot.is_some() {
            return;
        }
        let ready = self.queues.iter().flat_map(|(_, queue)| queue.lanes.iter());
        let ready = ready.flat_map(|lane| lane.entries());
        let durable = ready.chain(self.out().map(|(_, entry)| entry));
        let durable = durable.chain(self.lent());
        let durable = durable.chain(self.agenda.departures.entries()).filter(|it| it.durable);
        let missed = durable.filter(|entry| entry.mark != self.storage.mark).count();
        let held =
            self.delays.persistent().filter(|(_, held)| held.mark != self.storage.mark).count();
        let retained = self.retained.values.iter();
        let retained = retained.filter(|(_, _, value)| value.mark != self.storage.mark).count();
        assert_eq!((missed, held, retained), (0, 0, 0), "missed by a snapshot");
    }

    /// Messages that are lent to sessions.
    fn lent(&self) -> impl Iterator<Item = &Entry> {
        self.sessions.lent().map(|(_, entry)| entry)
    }

    /// Messages that are out of their queues, with the numbers of these.
    fn out(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let delivered = self.unsettled().flat_map(|unsettled| unsettled.iter());
        delivered.map(|(_, it)| (it.queue_number, &it.entry)).chain(self.dying())
    }

    fn check_credit(&self) {
        for (slot, channel) in self.clients.channels.iter() {
            let settling = self.agenda.settling.iter().filter(|it| it.channel == Some(slot));
            let settling = settling.flat_map(|settling| settling.deliveries.iter());
            let held = self.clients.transactions.iter().flat_map(|(_, open)| {
                let settles = open.held.settles().zip(open.held.deliveries.iter());
                settles.filter(|(settle, _)| self.clients.channel_at(settle.channel) == Some(slot))
            });
            let held = held.map(|(_, delivered)| delivered);
            let out = channel.unsettled.iter().chain(settling).chain(held);
            let counted = out.filter(|(_, out)| out.taker.is_some());
            assert_eq!(channel.account.messages as usize, counted.count(), "channel credit");
            let gets = self.queues.iter().flat_map(|(_, queue)| &queue.gets);
            let gets = gets.filter(|get| get.channel == channel.id).count();
            assert_eq!(channel.gets.len(), gets, "messages that it waits for");
        }
    }

    /// Bytes of messages in memory.
    pub(crate) fn resident(&self) -> u64 {
        self.storage.resident
    }

    /// Entries in memory.
    pub(crate) fn entries_in_memory(&self) -> usize {
        let lanes = self.queues.iter().flat_map(|(_, queue)| queue.lanes.iter());
        lanes.map(|lane| lane.entries().count()).sum()
    }

    /// Who refers to a segment, in words.
    pub(crate) fn uses_of(&self, segment: u32) -> Vec<String> {
        let mut uses = Vec::new();
        for lane in self.queues.iter().flat_map(|(_, queue)| queue.lanes.iter()) {
            for entry in lane.entries().filter(|it| it.position.segment() == segment) {
                uses.push(format!("ready {} durable={}", entry.seq, entry.durable));
            }
            for page in lane.pages.iter() {
                let counts = page.segments.iter().filter(|count| count.segment == segment);
                uses.extend(counts.map(|count| format!("page {} {count:?}", page.first)));
            }
        }
        for (_, channel) in self.clients.channels.iter() {
            let out = channel.unsettled.iter().map(|(_, delivered)| &delivered.entry);
            let out = out.filter(|it| it.position.segment() == segment);
            uses.extend(out.map(|it| format!("out {} durable={}", it.seq, it.durable)));
        }
        uses
    }
}

/// What waits apart from the others is what some consumers do not get.
fn check_barred(queue: &Queue) {
    let barred = queue.lanes.iter().flat_map(|lane| lane.barred()).map(|entry| entry.seq);
    let waiting = queue.notes.as_ref().map(|notes| notes.waiting()).unwrap_or_default();
    assert_eq!(waiting, barred.collect::<BTreeSet<_>>(), "not for all in {}", queue.name);
}

/// A queue that drops its head is within its limit, unless that waits for its turn or for a page, or stays
/// with one that cannot be read.
fn check_limit(queue: &Queue) {
    // A log lets go of whole pages.
    let has_page = queue.options.is_log && queue.lanes.iter().any(|lane| !lane.pages.is_empty());
    let waits = has_page || queue.is_overlong || queue.loads > 0 || queue.unreadable().is_some();
    let drops = queue.options.overflow == Overflow::DropHead && !waits;
    assert!(!drops || !queue.is_over_limit(), "{} is over its limit", queue.name);
}
