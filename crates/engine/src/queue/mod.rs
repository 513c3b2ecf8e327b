//! Queues: how messages wait, leave, expire and die. One file for each rule.

pub(crate) mod blob;
pub(crate) mod dead_letter;
mod discard;
mod entries;
pub(crate) mod entry;
mod expiry;
mod given_up;
pub(crate) mod lane;
pub(crate) mod lanes;
mod lost_page;
pub(crate) mod notes;
pub(crate) mod page;
pub(crate) mod page_in;
pub(crate) mod page_out;
pub(crate) mod queues;
pub(crate) mod ranges;
pub(crate) mod reclaim;
pub(crate) mod stored;

use self::entry::Entry;
use self::lane::{Front, Lane};
use self::lanes::Lanes;
use self::notes::{Notes, Waiting};
use self::page::Page;
use self::ranges::Ranges;
use crate::access::definitions::Declarer;
use crate::access::stored::QueueBytes;
use crate::consumer::drain_pacing::Share;
use crate::consumer::filtered::Filtered;
use crate::consumer::message_groups::Groups;
use crate::interface::value::arguments_bytes;
use crate::lifetime::Held;
use crate::named_subscription::NamedSubscription;
use crate::policy::FollowedByQueue;
use crate::session::members::SharedQueue;
use crate::session::places::OwnQueue;
use crate::storage::codec::Malformed;
use crate::{
    ChannelId, ConnectionId, Discards, Durability, Position, QueueOptions, QueueType, Time,
};
use std::collections::{BTreeMap, VecDeque};

/// What a queue takes in the tables in which it is found.
const QUEUE_PLACES_BYTES: usize = 192;
/// Requeues of a message that a quorum queue takes by default.
const DELIVERY_LIMIT_QUORUM: u32 = 20;

/// A queue. Its rules are in the modules beside this one.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Names it in records; never used again.
    pub(crate) number: u64,
    pub(crate) vhost: u32,
    pub(crate) name: String,
    /// What holds: what it was declared with, and what policies make of that.
    pub(crate) options: QueueOptions,
    /// The policies it follows, if it follows any.
    pub(crate) followed: Option<Box<FollowedByQueue>>,
    /// It survives a restart: declared so, and not one connection's own.
    pub(crate) durable: bool,
    /// So do its persistent messages.
    pub(crate) stores: bool,
    /// And their publishers wait until they are flushed.
    pub(crate) flushes: bool,
    /// The connection that has it to itself.
    pub(crate) owner: Option<ConnectionId>,
    /// The user who declared it, or nobody.
    pub(crate) by: Declarer,
    /// When it goes by itself, and who holds it, if it is temporary.
    pub(crate) lifetime: Option<Box<Held>>,
    /// Which consumers its message groups have, where it heeds those.
    pub(crate) groups: Option<Box<Groups>>,
    /// What makes it a named subscription, if it is one.
    pub(crate) subscription: Option<Box<NamedSubscription>>,
    /// What makes it a session's own, if it is one.
    pub(crate) own: Option<Box<OwnQueue>>,
    /// What makes it one that sessions share, if it is one.
    pub(crate) shared: Option<Box<SharedQueue>>,
    pub(crate) lanes: Lanes,
    pub(crate) next_seq: u64,
    /// Messages that wait for a consumer.
    pub(crate) ready: u64,
    pub(crate) bytes: QueueBytes,
    /// Messages that were dropped from its head since the last delivery, which says so.
    pub(crate) dropped: u64,
    /// Messages that are out and not settled.
    pub(crate) unsettled: u64,
    /// Channels of which many messages are on their way back: until then nothing is handed out.
    pub(crate) holds: u32,
    /// What is in memory of it: blobs and entries of messages ready.
    pub(crate) resident: u64,
    /// What will take up memory once it is loaded.
    pub(crate) loading_bytes: u64,
    pub(crate) loads: u32,
    /// Every consumer to it, by priority and age.
    pub(crate) consumers: Vec<u32>,
    /// Those that take all messages and can take some, as far as is known, by priority and age.
    pub(crate) able: Vec<u32>,
    /// Where the round among equals goes on.
    pub(crate) turn: usize,
    /// Those that take only some messages, which are not in that list; few queues have any.
    pub(crate) filtered: Option<Box<Filtered>>,
    /// What it knows for its consumers, groups and filters, as counted for who declared it.
    pub(crate) known_bytes: u64,
    /// It has, or had, a consumer: auto-delete applies.
    pub(crate) was_used: bool,
    /// In the list of queues to be served.
    pub(crate) is_dirty: bool,
    /// In the list of queues that let go of messages in a further turn.
    pub(crate) is_overlong: bool,
    /// In the list of queues whose pages are still to be written.
    pub(crate) is_unpaged: bool,
    /// How much it hands out at once.
    pub(crate) share: Share,
    /// Channels that wait for one message, which is being loaded.
    pub(crate) gets: VecDeque<Get>,
    /// Settled since the last record that said so.
    pub(crate) settled: Ranges,
    pub(crate) settled_count: u32,
    /// Settles of messages that are in pages; known only to have happened, after a restart.
    pub(crate) settled_in_pages: Ranges,
    /// How often messages that are in pages went back, as far as their pages do not say so.
    pub(crate) requeued_in_pages: BTreeMap<u64, u32>,
    /// Messages before this one may have been handed out, as far as it was told to the host.
    pub(crate) handed_out: u64,
    /// Messages before this one may have been delivered before an unclean restart.
    pub(crate) recovered_before: u64,
    /// The record at which it was last found to have stopped.
    pub(crate) stopped_at: Option<Position>,
    /// When the timer for the head's expiry goes off.
    pub(crate) head_timer: Option<Time>,
    /// When it expires because it is not used.
    pub(crate) expires_at: Option<Time>,
    pub(crate) counters: QueueCounters,
    /// What is known of single messages; few queues have any of it.
    pub(crate) notes: Option<Box<Notes>>,
    /// What of its messages is gone for good; few queues ever lose one.
    pub(crate) discarded: Option<Box<Discards>>,
}

/// Consumers that can take messages, as far as is known, by priority and age, and where the round among
/// equals goes on.
pub(crate) struct Takers<'a> {
    pub(crate) able: &'a mut Vec<u32>,
    pub(crate) turn: &'a mut usize,
}

/// A channel that waits for one message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Get {
    pub(crate) channel: ChannelId,
    pub(crate) presettled: bool,
}

/// What happened to a queue's messages since it exists or was recovered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Came in.
    pub published: u64,
    /// Went out, redeliveries included.
    pub delivered: u64,
    /// Settled as accepted, presettled ones included.
    pub accepted: u64,
    /// Came back.
    pub requeued: u64,
    /// Left as dead letters or were dropped as such.
    pub dead_lettered: u64,
    /// Their time to live passed.
    pub expired: u64,
}

impl Queue {
    pub(crate) fn new(number: u64, vhost: u32, name: String, options: QueueOptions) -> Queue {
        let lanes = usize::from(options.priority_max.unwrap_or(0)) + 1;
        let durable = options.durable && !options.exclusive;
        Queue {
            number,
            vhost,
            name,
            durable,
            stores: durable && options.durability != Durability::Memory,
            flushes: durable && options.durability == Durability::Flushed,
            groups: options.message_groups.then(|| Box::new(Groups::new(lanes))),
            options,
            lanes: Lanes::new(lanes),
            next_seq: 1,
            ..Queue::default()
        }
    }

    /// What it was declared with.
    pub(crate) fn declared(&self) -> &QueueOptions {
        self.followed.as_ref().map_or(&self.options, |it| &it.declared)
    }

    /// About how much memory it takes without messages and bindings.
    pub(crate) fn definition_bytes(&self) -> u64 {
        let own = size_of::<Queue>() + self.lanes.len() * size_of::<Option<Box<Lane>>>();
        let options = self.declared();
        let names = [&options.dead_letter_exchange, &options.dead_letter_routing_key];
        let names = names.into_iter().flatten().map(String::len).sum::<usize>();
        let arguments = arguments_bytes(&options.other);
        let subscription = self.subscription.as_ref().map_or(0, |it| it.bytes());
        let definition = own + QUEUE_PLACES_BYTES + 2 * self.name.len() + names + arguments;
        definition as u64 + subscription + self.known_bytes
    }

    /// How often its messages may go back: as it says itself, else as `default` says, else by its type.
    pub(crate) fn delivery_limit(&self, default: Option<u32>) -> Option<u32> {
        let quorum =
            (self.options.queue_type == QueueType::Quorum).then_some(DELIVERY_LIMIT_QUORUM);
        self.options.delivery_limit.or(default).or(quorum)
    }

    /// Which lane a message of that priority belongs to.
    #[inline]
    pub(crate) fn lane_of(&self, priority: u8) -> u8 {
        self.options.priority_max.map_or(0, |highest| priority.min(highest))
    }

    #[inline]
    pub(crate) fn first_lane(&self) -> Option<usize> {
        self.lanes.first()
    }

    /// The consumers of a group, or (`None`) those that take all messages, that are able to take some.
    #[inline]
    pub(crate) fn takers(&mut self, group: Option<u32>) -> Option<Takers<'_>> {
        let Some(group) = group else {
            return Some(Takers { able: &mut self.able, turn: &mut self.turn });
        };
        let group = self.filtered.as_mut()?.get_mut(group)?;
        Some(Takers { able: &mut group.able, turn: &mut group.turn })
    }

    /// Whether somebody takes what is first, as far as is known.
    #[inline]
    pub(crate) fn wants_front(&self) -> bool {
        !self.gets.is_empty() || !self.able.is_empty() || self.shared.is_some()
    }

    /// What is served next.
    #[inline]
    pub(crate) fn front(&self) -> Front<'_> {
        self.first_lane().map_or(Front::Empty, |lane| self.lanes[lane].front())
    }

    /// Where that is.
    pub(crate) fn front_place(&self) -> Option<Waiting> {
        let lane = self.first_lane()?;
        let seq = match self.lanes[lane].front() {
            Front::Entry(entry) => entry.seq,
            Front::Page(page) => page.first,
            Front::Empty => return None,
        };
        Some(Waiting::new(lane as u8, seq))
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) {
        self.came(&entry).push(entry);
    }

    /// Takes an entry that a snapshot names, in order.
    pub(crate) fn restore(&mut self, entry: Entry) {
        self.came(&entry).restore(entry);
    }

    /// Counts an entry that is ready from now on; its lane takes it.
    #[inline]
    fn came(&mut self, entry: &Entry) -> &mut Lane {
        self.ready += 1;
        self.bytes.add(u64::from(entry.bytes));
        self.resident += entry.resident_cost();
        if let Some(groups) = &mut self.groups {
            groups.came(entry.lane.into(), entry.seq);
        }
        &mut self.lanes[usize::from(entry.lane)]
    }

    /// Takes entries that a snapshot names apart from the queue, in order.
    pub(crate) fn restore_apart(
        &mut self,
        lane: u8,
        entries: Vec<Entry>,
        mark: bool,
    ) -> Result<(), Malformed> {
        let Some(into) = self.lanes.make(lane.into()) else {
            return Err(format!("queue '{}' has no priority {lane}", self.name));
        };
        if into.entries().next().is_some() {
            return Err(format!("queue '{}' has messages in two places", self.name));
        }
        self.ready += entries.len() as u64;
        self.bytes.add(entries.iter().map(|entry| u64::from(entry.bytes)).sum());
        into.restore_apart(entries.into_iter().map(|entry| Entry { lane, mark, ..entry }));
        Ok(())
    }

    /// Takes what is served next, where it is in memory.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let lane = self.first_lane()?;
        let entry = self.lanes[lane].pop()?;
        self.left(&entry);
        Some(entry)
    }

    /// Takes an entry back to its place.
    pub(crate) fn give_back(&mut self, entry: Entry) {
        if let Some(notes) = self.notes.as_mut().filter(|notes| notes.is_barred(entry.seq)) {
            notes.came(Waiting::new(entry.lane, entry.seq));
            return self.came(&entry).bar(entry);
        }
        self.came(&entry).give_back(entry);
    }

    /// Takes the entry of that number out, wherever in memory it is ready.
    pub(crate) fn remove(&mut self, seq: u64) -> Option<Entry> {
        let entry = self.lanes.iter_mut().find_map(|lane| lane.remove(seq))?;
        if let Some(notes) = &mut self.notes {
            notes.left(Waiting::new(entry.lane, seq));
        }
        self.left(&entry);
        Some(entry)
    }

    /// Takes the first of those that some consumers do not get.
    pub(crate) fn pop_barred(&mut self) -> Option<Entry> {
        let first = self.notes.as_ref()?.first()?;
        self.remove(first.seq)
    }

    /// A message is gone for good: so is what is known of it.
    #[cold]
    pub(crate) fn forget_note(&mut self, seq: u64) {
        if let Some(notes) = &mut self.notes {
            notes.forget(seq);
            if notes.is_empty() {
                self.notes = None;
            }
        }
    }

    /// A message that does not wait is out from now on.
    #[inline]
    pub(crate) fn went_out(&mut self, bytes: u32) {
        self.unsettled += 1;
        self.bytes.went_out(bytes.into());
    }

    /// A message is out no longer.
    #[inline]
    pub(crate) fn ended(&mut self, bytes: u32) {
        self.unsettled -= 1;
        self.bytes.ended(bytes.into());
    }

    #[inline]
    fn left(&mut self, entry: &Entry) {
        self.ready -= 1;
        self.bytes.take(u64::from(entry.bytes));
        self.resident -= entry.resident_cost();
    }

    /// Whether its limits are below that many messages ready, with that many payload bytes.
    fn exceeds_limits(&self, messages: u64, bytes: u64) -> bool {
        self.options.length_max.is_some_and(|most| messages > most)
            || self.options.bytes_max.is_some_and(|most| bytes > most)
    }

    /// Whether another message of `bytes` is more than its limits allow.
    pub(crate) fn is_full_for(&self, bytes: u64) -> bool {
        self.exceeds_limits(self.ready + 1, self.bytes.ready() + bytes)
    }

    /// Whether that many more messages, of `bytes` in sum, are more than its limits allow.
    pub(crate) fn is_full_with(&self, messages: u64, bytes: u64) -> bool {
        self.exceeds_limits(self.ready + messages, self.bytes.ready() + bytes)
    }

    /// Whether more is ready than its limits allow.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.exceeds_limits(self.ready, self.bytes.ready())
    }

    /// Whether as much or more would be ready than its limits allow if a page were gone.
    pub(crate) fn is_over_limit_without(&self, page: &Page) -> bool {
        let messages = (self.ready + 1).saturating_sub(page.count.into());
        let bytes = (self.bytes.ready() + 1).saturating_sub(page.bytes);
        self.exceeds_limits(messages, if page.bytes > 0 { bytes } else { 0 })
    }

    /// Whether it hands anything out now: one that rests only answers gets, which are no drain.
    #[inline]
    pub(crate) fn is_served(&self) -> bool {
        !self.share.is_resting || !self.gets.is_empty()
    }

    /// Where the record is at which it has stopped because that cannot be read back.
    pub(crate) fn unreadable(&self) -> Option<Position> {
        match self.front() {
            Front::Entry(entry) => entry.is_unreadable().then_some(entry.position),
            Front::Page(page) => page.is_unreadable().then_some(page.position),
            Front::Empty => None,
        }
    }

    /// Marks every message before that one as perhaps delivered before.
    pub(crate) fn mark_redelivered(&mut self, before: u64) {
        let before = before.min(self.next_seq).max(self.recovered_before);
        for entry in self.lanes.iter_mut().flat_map(Lane::entries_mut) {
            entry.redelivered |= entry.seq < before;
        }
        self.recovered_before = before;
    }

    /// A page is gone: which of its messages were settled need not be known any more. Pages of several
    /// priorities overlap, so there it stays.
    pub(crate) fn forget_settled_in(&mut self, page: &Page) {
        if self.lanes.len() == 1 {
            self.settled_in_pages.remove_range(page.first, page.last);
        }
    }

    /// A page of these entries was made: the numbers between them are of messages that are gone, so that a
    /// search for its messages does not bring them back. With several priorities they may be in other lanes.
    pub(crate) fn note_gone_between(&mut self, entries: &[Entry]) {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return };
        let is_dense = last.seq - first.seq == entries.len() as u64 - 1;
        // Nothing leaves a log from the middle: what it lacks was never there.
        if is_dense || !self.durable || self.lanes.len() > 1 || self.options.is_log {
            return;
        }
        for pair in entries.windows(2).filter(|pair| pair[1].seq > pair[0].seq + 1) {
            self.settled_in_pages.insert_range(pair[0].seq + 1, pair[1].seq - 1);
        }
    }

    /// The lane and the page that hold the message of that number, if one may.
    pub(crate) fn page_of(&self, seq: u64) -> Option<(usize, usize)> {
        let mut lanes = self.lanes.numbered();
        lanes.find_map(|(index, lane)| Some((index, lane.find_page(seq)?)))
    }
}
