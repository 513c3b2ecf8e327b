//! A shard's links to the other shards of its broker: what is to be sent there, which news they have, and
//! which publishers wait for them.
//!
//! Independent of what is in a message or in news.

use crate::flow::publisher_stall::{Pace, SHARED_STALL_MAX};
use crate::options::Options;
use crate::shard::message::{ChannelName, FromHome, ShardBatch, ShardMessage, ToHome, Value};
use angarium_engine::{
    Bound, ChannelId, ConnectionId, Delivery, Forward, GetAnswer, MessageView, Publish, ShardId,
    Shards, Time,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Bytes of messages on their way to a shard beyond which publishers wait for it.
pub const UNDERWAY_BYTES_MAX: u64 = 4 << 20;
/// Weight at which a batch is complete; its last message may go beyond. Its receiver processes it in one go,
/// before it serves its clients again.
pub const SHARD_BATCH_BYTES: usize = 64 << 10;
/// Room that a batch begins with, at most: what is read from a client at once, and its messages' heads.
const ROOM_BYTES_MAX: usize = SHARD_BATCH_BYTES + (16 << 10);
/// News that other shards may not know yet before a connection that has more of them waits.
const NEWS_UNDERWAY_MAX: u64 = 4_096;
/// Publishers of direct messages wait once this part of a subscriber's unsent bytes is on its way to its
/// shard: the rest is room for what arrives until they stall.
const UNDERWAY_PART: u64 = 4;
/// Receipt is acknowledged after this part of what may be on its way.
const TAKEN_PART: u64 = 8;

/// How long it is remembered that another shard was told of slow subscribers.
const TOLD_MAX: Duration = Duration::from_secs(60);

/// One other shard.
#[derive(Debug, Default)]
struct Link {
    /// Batches that are complete and not on their way yet.
    complete: VecDeque<ShardBatch>,
    /// The batch that is being filled, after those.
    batch: ShardBatch,
    /// The cached route of the last batch in it; zero: there is none.
    row: u64,
    /// How many bytes of messages the last batch had: the next one begins with as much room.
    last_bytes: usize,
    /// Bytes of messages for it that it has not taken yet.
    underway: u64,
    /// The last news that it knows.
    knows: u64,
    /// Our publishers all of whose subscribers there are slow.
    slow_for: BTreeMap<ConnectionId, Slow>,
    /// Its publishers all of whose subscribers here are slow: what it was told about them, and when.
    told_slow: BTreeMap<ConnectionId, (Pace, Time)>,
    /// Our publishers that wait for it.
    waiting: BTreeSet<ConnectionId>,
    /// How many of its news arrived, and how many of these were acknowledged.
    news: u64,
    news_taken: u64,
    /// Bytes of its messages that arrived and were not acknowledged.
    taken: u64,
    /// At home: the slots of its connections that use queues, by their slot there.
    remotes: Vec<Option<ConnectionId>>,
}

/// All subscribers of a publisher on a shard are slow.
#[derive(Clone, Copy, Debug)]
struct Slow {
    /// The publisher is to wait for them.
    are_awaited: bool,
    /// The shard has said so since the last sweep.
    is_new: bool,
}

impl Link {
    /// Takes what has been said, and begins a new batch.
    fn take_batch(&mut self) -> ShardBatch {
        self.last_bytes = self.batch.messages.len().min(ROOM_BYTES_MAX);
        self.row = 0;
        std::mem::take(&mut self.batch)
    }
}

/// All links of one shard.
#[derive(Debug, Default)]
pub(crate) struct ShardLinks {
    pub(crate) shard: ShardId,
    pub(crate) others: Shards,
    /// Bytes on their way to a shard beyond which publishers of direct messages wait for it.
    direct_max: u64,
    /// Shards for which there are messages to send.
    talking: Shards,
    /// By shard; the own one is not used.
    links: Vec<Link>,
    /// The number of the last news.
    pub(crate) last_news: u64,
    /// The last news that all others know.
    known: u64,
    /// By connection: the last news that it caused. What it does next waits until all know them.
    news_by: Vec<u64>,
    /// Connections with messages that have not reached all of their very many recipients on other shards, and
    /// on how many.
    fanning_out: BTreeMap<ConnectionId, u32>,
    /// Connections whose news not all know, with the last of these, in their order.
    unsettled: VecDeque<(u64, ConnectionId)>,
}

impl ShardLinks {
    pub(crate) fn new(options: &Options) -> ShardLinks {
        let Options { shard, shards: count, .. } = *options;
        let unsent_max = options.quota.get(Bound::UnsentBytes).unwrap_or(u64::MAX);
        ShardLinks {
            shard,
            others: Shards::others(shard, count),
            direct_max: UNDERWAY_BYTES_MAX.min(unsent_max / UNDERWAY_PART),
            links: (0..count).map(|_| Link::default()).collect(),
            ..ShardLinks::default()
        }
    }

    fn link(&mut self, shard: ShardId) -> &mut Link {
        &mut self.links[usize::from(shard.0)]
    }

    // ---- what is sent ----

    pub(crate) fn next_batch(&mut self) -> Option<(ShardId, ShardBatch)> {
        let shard = self.talking.into_iter().next()?;
        let link = self.link(shard);
        if let Some(complete) = link.complete.pop_front() {
            return Some((shard, complete));
        }
        let last = link.take_batch();
        self.talking = self.talking.without(shard);
        Some((shard, last))
    }

    /// The link on which something is about to be said.
    #[inline]
    fn open(&mut self, to: ShardId) -> &mut Link {
        self.talking = self.talking.and(Shards::one(to));
        let link = self.link(to);
        if link.batch.weight() >= SHARD_BATCH_BYTES {
            let batch = link.take_batch();
            link.complete.push_back(batch);
        }
        if link.batch.messages.capacity() == 0 {
            link.batch.messages.reserve(link.last_bytes);
        }
        link
    }

    /// Says a message to one shard.
    pub(crate) fn say<'a>(&mut self, to: ShardId, message: impl Into<ShardMessage<'a>>) {
        self.open(to).batch.push(message.into());
    }

    /// Says a message with its value to one shard.
    pub(crate) fn say_with<'a>(
        &mut self,
        to: ShardId,
        message: impl Into<ShardMessage<'a>>,
        value: Value,
    ) {
        self.say(to, message);
        self.link(to).batch.values.push_back(value);
    }

    /// Says a message to all.
    pub(crate) fn say_to_all<'a>(&mut self, message: impl Into<ShardMessage<'a>>) {
        let message = message.into();
        self.others.for_each(|shard| self.say(shard, message));
    }

    pub(crate) fn ask_home(&mut self, request: ToHome<'_>) {
        self.say(ShardId::HOME, request);
    }

    /// Sends some shards a message, or several of a batch with these payloads. Returns whether all of them,
    /// or all their subscribers, are slow, and for which of them the publisher may wait.
    pub(crate) fn forward(
        &mut self,
        to: Shards,
        forward: &Forward<'_>,
        bodies: &[&[u8]],
    ) -> (bool, Shards) {
        debug_assert!(forward.cached_route != 0 || bodies.len() == 1, "a row is a cached_route's");
        let (mut is_slow, mut awaited) = (true, Shards::NONE);
        // Another shard's publisher is not ours to wait.
        let publisher = forward.publisher.filter(|_| forward.origin == self.shard);
        let direct_max = self.direct_max;
        for shard in to {
            let link = self.open(shard);
            let shared = forward.message.shared;
            let bytes = if forward.cached_route == 0 || shared.is_some() {
                let message = ShardMessage::Forward { message: &[] };
                link.batch.push_with(message, shared, |out| forward.write(out))
            } else {
                link.batch.push_batch_items(forward, bodies, &mut link.row)
            };
            link.underway += bytes as u64;
            match publisher.and_then(|publisher| link.slow_for.get(&publisher)) {
                Some(Slow { are_awaited: true, .. }) => awaited = awaited.and(Shards::one(shard)),
                _ if link.underway > direct_max => awaited = awaited.and(Shards::one(shard)),
                Some(_) => {}
                None => is_slow = false,
            }
        }
        (is_slow, awaited)
    }

    #[inline]
    pub(crate) fn publish(&mut self, channel: ChannelId, publish: &Publish<'_>) {
        let link = self.open(ShardId::HOME);
        let message = ToHome::Publish { channel, message: &[] };
        let shared = publish.content.shared;
        link.underway += link.batch.push_with(message, shared, |out| publish.write(out)) as u64;
    }

    pub(crate) fn publish_once(&mut self, channel: ChannelId, number: u64, publish: &Publish<'_>) {
        let link = self.open(ShardId::HOME);
        let message = ToHome::PublishOnce { channel, number, message: &[] };
        let shared = publish.content.shared;
        link.underway += link.batch.push_with(message, shared, |out| publish.write(out)) as u64;
    }

    /// Sends a delivery to the shard of its channel; returns how many bytes that took.
    #[inline]
    pub(crate) fn deliver(
        &mut self,
        to: ShardId,
        name: ChannelName,
        delivery: &Delivery<'_>,
    ) -> usize {
        let Delivery { tag, place, redelivered, consumer, group, message, .. } = *delivery;
        let head =
            FromHome::Deliver { name, tag, place, redelivered, consumer, group, message: &[] };
        self.open(to).batch.push_with(head, message.shared, |out| message.write(out))
    }

    /// Sends the answer to a get to the shard of its channel; returns how many bytes that took.
    pub(crate) fn answer_get(
        &mut self,
        to: ShardId,
        name: ChannelName,
        answer: &GetAnswer<'_>,
    ) -> usize {
        let GetAnswer { tag, redelivered, messages_left, message, .. } = *answer;
        let head = FromHome::GetAnswer { name, tag, redelivered, messages_left, message: &[] };
        self.open(to).batch.push_with(head, message.shared, |out| message.write(out))
    }

    /// Returns a message that no queue took to the shard of its channel.
    pub(crate) fn return_to(&mut self, to: ShardId, name: ChannelName, message: &MessageView<'_>) {
        let head = FromHome::Returned { name, message: &[] };
        self.open(to).batch.push_with(head, message.shared, |out| message.write(out));
    }

    /// Whether connections that send to a shard wait, because too much is on its way there.
    pub(crate) fn is_behind(&self, shard: ShardId) -> bool {
        let link = self.links.get(usize::from(shard.0));
        link.is_some_and(|link| link.underway > UNDERWAY_BYTES_MAX)
    }

    // ---- remote connections ----

    /// Where a connection of another shard is at home.
    pub(crate) fn remote(&self, shard: ShardId, connection: ConnectionId) -> Option<ConnectionId> {
        *self.links[usize::from(shard.0)].remotes.get(connection.0 as usize)?
    }

    /// Notes where it is at home; `None`: it has gone.
    pub(crate) fn set_remote(
        &mut self,
        shard: ShardId,
        connection: ConnectionId,
        slot: Option<ConnectionId>,
    ) {
        let remotes = &mut self.link(shard).remotes;
        let at = connection.0 as usize;
        if at >= remotes.len() {
            remotes.resize(at + 1, None);
        }
        remotes[at] = slot;
    }

    // ---- news ----

    /// Sends news to all others, caused by a connection or by none.
    pub(crate) fn send_news(&mut self, by: Option<ConnectionId>, news: &[u8]) {
        self.send_numbered(by, ShardMessage::News { news });
        for shard in self.others {
            self.link(shard).batch.news += 1;
        }
    }

    /// Says nothing to all shards: once they know that, they have done all that was said before. What the
    /// connection does next, if any, waits for that.
    pub(crate) fn sync(&mut self, by: Option<ConnectionId>) {
        self.send_numbered(by, ShardMessage::Sync);
    }

    fn send_numbered(&mut self, by: Option<ConnectionId>, message: ShardMessage<'_>) {
        self.last_news += 1;
        self.say_to_all(message);
        if let Some(by) = by {
            self.note_news_of(by);
        }
    }

    /// What a connection does next waits until all know all news up to now.
    pub(crate) fn note_news_of(&mut self, by: ConnectionId) {
        if self.is_known(self.last_news) {
            return;
        }
        let slot = by.0 as usize;
        if slot >= self.news_by.len() {
            self.news_by.resize(slot + 1, 0);
        }
        self.news_by[slot] = self.last_news;
        match self.unsettled.back_mut() {
            Some((number, last)) if *last == by => *number = self.last_news,
            _ => self.unsettled.push_back((self.last_news, by)),
        }
    }

    /// Whether all know the news of that number.
    pub(crate) fn is_known(&self, number: u64) -> bool {
        number <= self.known
    }

    /// Whether all know the news of the connection.
    #[inline]
    pub(crate) fn is_settled(&self, connection: ConnectionId) -> bool {
        self.news_by.get(connection.0 as usize).is_none_or(|told| *told <= self.known)
    }

    /// Whether a connection waits even with more news, because too many of it are not known to all yet.
    #[inline]
    pub(crate) fn is_far_ahead(&self, connection: ConnectionId) -> bool {
        let told = self.news_by.get(connection.0 as usize);
        told.is_some_and(|told| told.saturating_sub(self.known) > NEWS_UNDERWAY_MAX)
    }

    /// News came from a shard.
    pub(crate) fn learned(&mut self, from: ShardId) {
        self.link(from).news += 1;
    }

    /// A shard knows our news up to a number and has taken some messages. Returns publishers that may
    /// go on.
    pub(crate) fn taken(&mut self, by: ShardId, news: u64, bytes: u64) -> Vec<ConnectionId> {
        let go_on_at = self.direct_max / 2;
        let link = self.link(by);
        link.knows = news;
        link.underway = link.underway.saturating_sub(bytes);
        let mut go_on = Vec::new();
        if link.underway <= go_on_at {
            let is_awaited = |it| link.slow_for.get(it).is_some_and(|slow| slow.are_awaited);
            go_on.extend(link.waiting.iter().filter(|it| !is_awaited(it)));
        }
        go_on.iter().for_each(|publisher| self.wait_no_more(*publisher));
        let knows = self.others.map(|shard| self.links[usize::from(shard.0)].knows);
        self.known = knows.min().unwrap_or(self.last_news);
        go_on
    }

    /// The next connection whose news all know by now: it goes on.
    pub(crate) fn next_settled(&mut self) -> Option<ConnectionId> {
        let (_, connection) = *self.unsettled.front().filter(|(told, _)| *told <= self.known)?;
        self.unsettled.pop_front();
        Some(connection)
    }

    /// Bytes of messages that came from a shard and are not acknowledged.
    pub(crate) fn taken_from(&self, shard: ShardId) -> u64 {
        self.links.get(usize::from(shard.0)).map_or(0, |link| link.taken)
    }

    /// Sets how many these are.
    pub(crate) fn set_taken_from(&mut self, shard: ShardId, bytes: u64) {
        self.link(shard).taken = bytes;
    }

    /// Counts bytes of messages that came from a shard.
    pub(crate) fn took(&mut self, from: ShardId, bytes: usize) {
        self.link(from).taken += bytes as u64;
    }

    /// Acknowledges what was taken from other shards, where they wait for it or it is much.
    pub(crate) fn acknowledge(&mut self) {
        let much = self.direct_max / TAKEN_PART;
        for shard in self.others {
            let link = self.link(shard);
            if link.news == link.news_taken && link.taken < much {
                continue;
            }
            link.news_taken = link.news;
            let taken =
                ShardMessage::Taken { news: link.news, bytes: std::mem::take(&mut link.taken) };
            self.say(shard, taken);
        }
    }

    // ---- publishers that wait ----

    /// Whether a connection's last message has not reached all of its very many recipients on another shard.
    #[inline]
    pub(crate) fn is_fanning_out(&self, connection: ConnectionId) -> bool {
        !self.fanning_out.is_empty() && self.fanning_out.contains_key(&connection)
    }

    /// A connection's message has begun to reach very many on another shard, or has reached all there. Says
    /// whether the connection goes on.
    pub(crate) fn note_wide_fanout(&mut self, connection: ConnectionId, is_over: bool) -> bool {
        if !is_over {
            *self.fanning_out.entry(connection).or_default() += 1;
            return false;
        }
        let Some(count) = self.fanning_out.get_mut(&connection) else { return false };
        *count -= 1;
        let goes_on = *count == 0;
        if goes_on {
            self.fanning_out.remove(&connection);
        }
        goes_on
    }

    /// A publisher waits until one of these shards has drained.
    pub(crate) fn wait_for(&mut self, shards: Shards, publisher: ConnectionId) {
        for shard in shards {
            self.link(shard).waiting.insert(publisher);
        }
    }

    /// A publisher goes on, and waits for no shard.
    fn wait_no_more(&mut self, publisher: ConnectionId) {
        for shard in self.others {
            self.link(shard).waiting.remove(&publisher);
        }
    }

    /// A shard has said how fast a publisher's subscribers there are. Says whether that lets the publisher go
    /// on.
    pub(crate) fn note_pace(&mut self, on: ShardId, publisher: ConnectionId, pace: Pace) -> bool {
        let link = self.link(on);
        if pace != Pace::Drained {
            let slow = Slow { are_awaited: pace == Pace::Slow, is_new: true };
            link.slow_for.insert(publisher, slow);
            return false;
        }
        link.slow_for.remove(&publisher);
        let goes_on = link.waiting.contains(&publisher);
        if goes_on {
            self.wait_no_more(publisher);
        }
        goes_on
    }

    /// Called twice a second: forgets slow subscribers that a shard has not reported again: the publisher
    /// reaches others there, or its slot is another connection's.
    pub(crate) fn sweep_slow_subscribers(&mut self, now: Time) {
        for link in &mut self.links {
            link.told_slow.retain(|_, (_, since)| now.since(*since) < TOLD_MAX);
            link.slow_for.retain(|_, slow| std::mem::take(&mut slow.is_new));
        }
    }

    /// Tells another shard that all subscribers here of its publisher are slow, unless that was said less
    /// than a stall ago.
    pub(crate) fn tell_slow(
        &mut self,
        now: Time,
        shard: ShardId,
        publisher: ConnectionId,
        pace: Pace,
    ) {
        let told = self.link(shard).told_slow.insert(publisher, (pace, now));
        match told {
            Some((before, since)) if before == pace && now.since(since) < SHARED_STALL_MAX => {
                self.link(shard).told_slow.insert(publisher, (pace, since));
            }
            _ => self.say(shard, ShardMessage::SubscriberPace { publisher, pace }),
        }
    }

    /// Tells another shard that a subscriber here of its publisher has drained, if all were reported slow.
    pub(crate) fn tell_drained(&mut self, shard: ShardId, publisher: ConnectionId) {
        if self.link(shard).told_slow.remove(&publisher).is_some() {
            self.say(shard, ShardMessage::SubscriberPace { publisher, pace: Pace::Drained });
        }
    }

    /// A connection has gone, or has not begun.
    pub(crate) fn reset(&mut self, connection: ConnectionId) {
        self.fanning_out.remove(&connection);
        for shard in self.others {
            let link = self.link(shard);
            link.waiting.remove(&connection);
            link.slow_for.remove(&connection);
        }
        if let Some(told) = self.news_by.get_mut(connection.0 as usize) {
            *told = 0;
        }
    }
}
