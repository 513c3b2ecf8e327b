//! The spill log of one shard: direct messages that wait on the disk for clients that are too slow,
//! each stored once for all of them, each client with a cursor of its own.
//!
//! A value without I/O: it hands out jobs ([`SpillJob`]) and takes their results. The log is a row of
//! chunks, of which the last one is being filled in memory; the others are stored, read back when a
//! cursor comes to them, and given back when the last cursor has left them. All shards share the store
//! ([`SpillStore`]); a message for clients of several shards is stored once per shard. Nothing of it
//! outlives the process. Why: `docs/decisions/0010-spill-log.md`.

mod chunk;
mod content;
mod disk;
mod job;
mod record;
mod slow_consumer;
mod store;
#[cfg(test)]
mod tests;

use self::chunk::{Chunk, ChunkWork, Owed};
use self::content::Filling;
use self::record::Recipient;
use crate::outbox::Whose;
use crate::spill::slow_consumer::SlowConsumer;
use angarium_engine::{
    Bytes, ChannelId, ConnectionId, DirectMessage, Lost, MessageView, ShardId, Time,
};
use angarium_protocol::amended;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use job::{SpillDone, SpillJob};
pub use store::{SpillStore, clear_spill};

/// Bytes that may wait to be written; messages that arrive while there are more are missed.
const UNWRITTEN_BYTES_MAX: usize = 32 << 20;
/// Full chunks that stay in memory: a consumer that catches up soon never waits for the disk. Chunks of a
/// single large message are written.
const KEPT: usize = 2;
/// Clients with something in the log; messages for one more are missed.
const SLOW_CONSUMERS_MAX: usize = 1_000;
/// A body is shared with its readers if it is at least this part of a chunk: it keeps all of the chunk in
/// memory.
const SHARED_PART: usize = 2;
/// Bytes of others' messages that a slow consumer's cursor passes at a time.
pub(crate) const PASSED_MAX: usize = 1 << 20;

/// The sizes of the spill logs of a broker's shards, each of which has a clone of this.
#[derive(Clone, Debug)]
pub struct SpillOptions {
    /// Bytes that they may have together on the disk; beyond, the oldest chunks go of those that have more
    /// than their part of it. 0: they take nothing.
    pub bytes_max: u64,
    /// Bytes of the files that hold their chunks.
    pub bytes: Arc<AtomicU64>,
    /// Bytes of a chunk; one with a single larger message has more.
    pub chunk_bytes: usize,
    /// Chunks that were written and are in memory nevertheless, for those who read them; at least 1.
    pub loaded_max: usize,
}

impl Default for SpillOptions {
    fn default() -> SpillOptions {
        let bytes = Arc::default();
        SpillOptions { bytes_max: 1 << 30, bytes, chunk_bytes: 1 << 20, loaded_max: 32 }
    }
}

/// What the log has done.
#[derive(Clone, Debug, Default)]
pub struct SpillStats {
    /// Messages stored.
    pub messages: u64,
    /// Clients with something in it now.
    pub slow_consumers: u64,
    /// Bytes in memory that are not stored yet; home's has those of all shards' files besides.
    pub bytes: u64,
    /// Chunks that could not be written or not be read.
    pub failures: u64,
    /// Why the last one could not.
    pub last_failure: Option<String>,
}

/// Why a message is missed that was to wait for a slow client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpillLoss {
    /// It was among the oldest, and there was more than there may be; or nothing may wait at all.
    Limit,
    /// Too many clients are slow.
    SlowConsumers,
    /// It could not be written, or not be read back.
    FailedDisk,
    /// Too much was to be written already: the disk did not keep up.
    SlowDisk,
    /// The journal had no room on the disk.
    FullJournal,
}

impl SpillLoss {
    /// All there are.
    pub const ALL: [SpillLoss; 5] = [
        SpillLoss::Limit,
        SpillLoss::SlowConsumers,
        SpillLoss::FailedDisk,
        SpillLoss::SlowDisk,
        SpillLoss::FullJournal,
    ];

    /// Its name, for metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["limit", "slow_consumers", "failed_disk", "slow_disk", "full_journal"][self as usize]
    }
}

/// The spill log of one shard.
#[derive(Debug, Default)]
pub struct Spill {
    options: SpillOptions,
    /// It reports the bytes on the disk for all shards.
    is_home: bool,
    /// When the call at hand began.
    pub(crate) now: Time,
    /// The part of the disk space that is its own.
    own_max: u64,
    slow_consumers: BTreeMap<u32, SlowConsumer>,
    next_slow_consumer: u32,
    /// The number of the oldest chunk.
    first: u64,
    chunks: VecDeque<Chunk>,
    /// What is being filled: the chunk after those.
    open: Filling,
    /// Bytes of the files of its chunks.
    stored: u64,
    /// Bytes of chunks that are still to be written.
    unwritten: usize,
    /// The oldest chunk that may have to be written.
    next_write: u64,
    /// Chunks to be read, and how many are being.
    wanted: VecDeque<u64>,
    reads: usize,
    /// Chunks that were put into memory, oldest first.
    loaded: VecDeque<u64>,
    /// The numbers of those that are stored and no longer needed.
    passed: Vec<u64>,
    /// Chunks being written.
    writes: usize,
    /// Others need the disk more: nothing is written.
    yields: bool,
    /// Stored messages that subscriptions have missed: channel, tag and count.
    pub(crate) lost: Vec<(ChannelId, u64, Lost)>,
    /// Connections at whose cursors something has changed.
    pub(crate) stirred: VecDeque<ConnectionId>,
    /// The body of the message that a slow consumer found last, where it is shared.
    handed: Option<Bytes>,
    stats: SpillStats,
    /// Messages missed for each reason.
    missed: [u64; SpillLoss::ALL.len()],
}

/// Why a slow consumer finds no message at its place.
#[derive(Debug)]
pub(crate) enum NoMessage {
    /// It is on the disk, and has been asked for.
    Waits,
    /// Many are for others: it is stirred, to look further when others have had their turn.
    Rests,
    /// It has read everything.
    CaughtUp,
}

/// Where a slow consumer's next message is.
struct NextPlace {
    chunk: u64,
    offset: usize,
    recipient: Recipient,
}

impl Spill {
    /// An empty log, of one of `shards` shards.
    pub(crate) fn new(options: SpillOptions, shard: ShardId, shards: usize) -> Spill {
        Spill {
            is_home: shard == ShardId::HOME,
            own_max: options.bytes_max / shards as u64,
            options,
            next_slow_consumer: 1,
            ..Spill::default()
        }
    }

    /// Bytes in memory that are not stored yet.
    pub(crate) fn unwritten_bytes(&self) -> u64 {
        (self.open.len() + self.unwritten) as u64
    }

    /// What it has done.
    pub fn stats(&self) -> SpillStats {
        let all = || self.options.bytes.load(Ordering::Relaxed);
        let in_memory = self.unwritten_bytes();
        SpillStats {
            slow_consumers: self.slow_consumers.len() as u64,
            bytes: in_memory + if self.is_home { all() } else { 0 },
            ..self.stats.clone()
        }
    }

    /// Messages that were to wait here and that subscriptions have missed for that reason.
    #[inline]
    pub fn missed(&self, loss: SpillLoss) -> u64 {
        self.missed[loss as usize]
    }

    /// Stores a message for a slow consumer, or for one who becomes one with it (`None`). Returns its number,
    /// by which it reads on; `None`: there is no room.
    pub(crate) fn store(
        &mut self,
        slow_consumer: Option<u32>,
        message: &DirectMessage<'_>,
    ) -> Option<u32> {
        if let Err(loss) = self.prepare(slow_consumer, message) {
            self.missed[loss as usize] += 1;
            return None;
        }
        let id = slow_consumer.unwrap_or_else(|| self.add(message.channel.connection));
        let slow_consumer =
            self.slow_consumers.get_mut(&id).expect("a slow consumer stays until it ends");
        let subscription = slow_consumer.subscription(message);
        let missed = u32::try_from(message.missed).unwrap_or(u32::MAX);
        slow_consumer.subscriptions[subscription as usize].owed += Lost::one(missed.into());
        let recipient = Recipient { slow_consumer: id, subscription, missed };
        self.open.add_recipient(recipient);
        Some(id)
    }

    /// Makes the record of a message the last one of the log, where there is room for it.
    fn prepare(
        &mut self,
        slow_consumer: Option<u32>,
        message: &DirectMessage<'_>,
    ) -> Result<(), SpillLoss> {
        if self.options.bytes_max == 0 {
            return Err(SpillLoss::Limit);
        }
        if slow_consumer.is_none() && self.slow_consumers.len() >= SLOW_CONSUMERS_MAX {
            return Err(SpillLoss::SlowConsumers);
        }
        if self.open.ends_with(message.emission) {
            return Ok(());
        }
        self.begin(message)
    }

    /// Begins the record of a message, as the broker has changed it by now.
    fn begin(&mut self, direct: &DirectMessage<'_>) -> Result<(), SpillLoss> {
        let properties = &amended(&direct.message);
        let message = MessageView { properties, ..direct.message };
        let size = record::size(&message);
        // It would push out all there is, and be given up itself.
        if size as u64 > self.options.bytes_max {
            return Err(SpillLoss::Limit);
        }
        if self.unwritten + self.open.len() + size > UNWRITTEN_BYTES_MAX && self.unwritten > 0 {
            return Err(if self.yields { SpillLoss::FullJournal } else { SpillLoss::SlowDisk });
        }
        if !self.open.is_empty() && self.open.len() + size > self.options.chunk_bytes {
            self.seal();
        }
        let is_alone = size > self.options.chunk_bytes;
        if !self.open.begin(self.now, &message, direct.emission, is_alone) {
            return Err(SpillLoss::Limit);
        }
        self.stats.messages += 1;
        Ok(())
    }

    fn add(&mut self, connection: ConnectionId) -> u32 {
        let id = self.next_slow_consumer;
        self.next_slow_consumer = self.next_slow_consumer.wrapping_add(1).max(1);
        let (chunk, offset) = (self.open_number(), self.open.record);
        let slow_consumer = SlowConsumer { connection, chunk, offset, ..SlowConsumer::default() };
        self.slow_consumers.insert(id, slow_consumer);
        id
    }

    /// The number of the chunk that is being filled.
    fn open_number(&self) -> u64 {
        self.first + self.chunks.len() as u64
    }

    /// Ends the chunk that is being filled, and begins another one.
    fn seal(&mut self) {
        let mut owed = Vec::new();
        for (id, slow_consumer) in &mut self.slow_consumers {
            for (at, subscription) in (0..).zip(&mut slow_consumer.subscriptions) {
                let count = std::mem::take(&mut subscription.owed);
                if !count.is_none() {
                    owed.push(Owed { slow_consumer: *id, subscription: at, count });
                }
            }
        }
        let full = self.open.close();
        let bytes = full.len();
        self.unwritten += bytes;
        self.chunks.push_back(Chunk { bytes, owed, content: Some(full), ..Chunk::default() });
    }

    /// Gives up the oldest chunks while there is too much on the disk and this log has more than its part.
    pub(crate) fn give_way(&mut self) {
        while !self.chunks.is_empty() && self.has_too_much() {
            self.lose_first(SpillLoss::Limit);
        }
    }

    /// Called twice a second: other shards may have stored more since.
    pub(crate) fn sweep(&mut self) {
        self.handed = None;
        self.give_way();
    }

    fn has_too_much(&self) -> bool {
        let all = self.options.bytes.load(Ordering::Relaxed);
        all > self.options.bytes_max && self.stored > self.own_max
    }

    /// Gives up what is on the disk and writes nothing until the journal has space again; what fits memory
    /// waits there.
    pub(crate) fn set_yields(&mut self, yields: bool) {
        self.yields = yields;
        // What has no file yet is behind all that has.
        while yields && self.chunks.front().is_some_and(|chunk| !chunk.is_to_be_written()) {
            self.lose_first(SpillLoss::FullJournal);
        }
    }

    /// Gives up the oldest chunk because space is missing: the consumers furthest behind miss it.
    fn lose_first(&mut self, why: SpillLoss) {
        let passed = self.first;
        self.lose(passed, why);
        let there = self.slow_consumers.values_mut().filter(|it| it.chunk == passed);
        there.for_each(|slow_consumer| slow_consumer.enter(passed + 1));
        self.give_back_first();
    }

    /// A slow consumer's next message. The same one is not given twice.
    pub(crate) fn next(&mut self, id: u32) -> Result<DirectMessage<'_>, NoMessage> {
        let NextPlace { chunk, offset, recipient } = self.step(id)?;
        let slow_consumer = &self.slow_consumers[&id];
        let subscription = &slow_consumer.subscriptions[recipient.subscription as usize];
        let record = match chunk.checked_sub(self.first).map(|at| self.chunks.get(at as usize)) {
            Some(Some(chunk)) => {
                let content = chunk.content.as_ref().expect("it was looked at just now");
                let record = content.record(offset).expect("it was read just now");
                self.handed = content.share(&record, self.options.chunk_bytes / SHARED_PART);
                record
            }
            _ => {
                self.handed = None;
                self.open.read(offset).expect("it was read just now")
            }
        };
        Ok(DirectMessage {
            channel: ChannelId {
                connection: slow_consumer.connection,
                number: subscription.whose.channel,
            },
            subscription: &subscription.name,
            tag: subscription.whose.tag,
            missed: recipient.missed.into(),
            slow_consumer_policy: None,
            emission: 0,
            route: 0,
            message: MessageView {
                shared: self.handed.as_ref(),
                ttl: record.ttl(self.now),
                ..record.message
            },
        })
    }

    /// Moves a slow consumer's cursor to its next message and past it, or says why there is none.
    fn step(&mut self, id: u32) -> Result<NextPlace, NoMessage> {
        loop {
            let open = self.open_number();
            let slow_consumer = self.slow_consumers.get_mut(&id).ok_or(NoMessage::CaughtUp)?;
            let number = slow_consumer.chunk;
            let (record, bytes) = if number == open {
                if slow_consumer.offset >= self.open.len() {
                    return Err(NoMessage::CaughtUp);
                }
                // Nothing is read of a large message before the chunk is full.
                if self.open.apart.is_some() {
                    self.seal();
                    continue;
                }
                (self.open.read(slow_consumer.offset), self.open.len())
            } else {
                let chunk = &mut self.chunks[(number - self.first) as usize];
                let is_passed = slow_consumer.offset >= chunk.bytes || chunk.owed_to(id).is_empty();
                if is_passed {
                    slow_consumer.enter(number + 1);
                    self.give_back_passed();
                    continue;
                }
                match &chunk.content {
                    Some(content) => (content.record(slow_consumer.offset), chunk.bytes),
                    None => {
                        self.want(number);
                        return Err(NoMessage::Waits);
                    }
                }
            };
            let Some(record) = record else {
                // Its checksum was right, so this cannot be; whatever it is, the client goes on.
                slow_consumer.offset = bytes;
                continue;
            };
            let is_expired = record.is_expired(self.now);
            match record.recipient(id, slow_consumer.recipient) {
                Some((at, recipient)) => {
                    slow_consumer.recipient = at + 1;
                    let offset = slow_consumer.offset;
                    let subscriptions = &mut slow_consumer.subscriptions;
                    let subscription = subscriptions.get_mut(recipient.subscription as usize);
                    let Some(subscription) = subscription else { continue };
                    let count = Lost::one(recipient.missed.into());
                    subscription.read += count;
                    if is_expired {
                        let Whose { channel, tag } = subscription.whose;
                        let connection = slow_consumer.connection;
                        self.lost.push((ChannelId { connection, number: channel }, tag, count));
                        continue;
                    }
                    return Ok(NextPlace { chunk: number, offset, recipient });
                }
                None => {
                    slow_consumer.offset += record.bytes;
                    slow_consumer.recipient = 0;
                    slow_consumer.passed += record.bytes;
                    if slow_consumer.passed > PASSED_MAX {
                        slow_consumer.passed = 0;
                        self.stirred.push_back(slow_consumer.connection);
                        return Err(NoMessage::Rests);
                    }
                }
            }
        }
    }

    /// A slow consumer has caught up, or is gone.
    pub(crate) fn end(&mut self, id: u32) {
        self.slow_consumers.remove(&id);
        self.give_back_passed();
    }

    /// Asks for a chunk to be read.
    fn want(&mut self, number: u64) {
        let Some(chunk) = self.chunk_mut(number) else { return };
        if chunk.stored.is_some() && chunk.work == ChunkWork::None {
            chunk.work = ChunkWork::Wanted;
            self.wanted.push_back(number);
        }
    }

    /// The chunk of that number, unless it was given back; not the one that is being filled.
    fn chunk_mut(&mut self, number: u64) -> Option<&mut Chunk> {
        self.chunks.get_mut(number.checked_sub(self.first)? as usize)
    }

    /// Gives chunks back that no cursor will come to.
    fn give_back_passed(&mut self) {
        let needed = self.slow_consumers.values().map(|slow_consumer| slow_consumer.chunk).min();
        let needed = needed.unwrap_or_else(|| self.open_number());
        while self.first < needed {
            self.give_back_first();
        }
        if self.slow_consumers.is_empty() {
            self.open = Filling::default();
        }
    }

    fn give_back_first(&mut self) {
        let Some(chunk) = self.chunks.pop_front() else { return };
        self.first += 1;
        self.give_room_back(&chunk);
    }

    /// Gives back the memory or disk space of a chunk.
    fn give_room_back(&mut self, chunk: &Chunk) {
        if let Some(stored) = &chunk.stored {
            self.stored -= stored.file_bytes;
            self.passed.push(stored.number);
        } else if chunk.content.is_some() {
            self.unwritten -= chunk.bytes;
        }
    }

    /// Stirs the slow consumers whose cursors are in a chunk.
    fn stir_at(&mut self, number: u64) {
        let there = self.slow_consumers.values().filter(|it| it.chunk == number);
        self.stirred.extend(there.map(|slow_consumer| slow_consumer.connection));
    }

    /// Gives up a chunk: consumers that have not read it miss its messages.
    fn lose(&mut self, number: u64, why: SpillLoss) {
        let Some(chunk) = self.chunk_mut(number) else { return };
        let lost = Chunk { bytes: chunk.bytes, ..Chunk::default() };
        let chunk = std::mem::replace(chunk, lost);
        self.give_room_back(&chunk);
        self.stir_at(number);
        for owed in &chunk.owed {
            let slow_consumer = self.slow_consumers.get(&owed.slow_consumer);
            let Some(slow_consumer) = slow_consumer else { continue };
            let subscription = slow_consumer.subscriptions.get(owed.subscription as usize);
            let Some(subscription) = subscription else { continue };
            let missed = match slow_consumer.chunk.cmp(&number) {
                std::cmp::Ordering::Less => owed.count,
                std::cmp::Ordering::Equal => owed.count.without(subscription.read),
                std::cmp::Ordering::Greater => Lost::default(),
            };
            if !missed.is_none() {
                self.missed[why as usize] += missed.messages;
                let Whose { channel: number, tag } = subscription.whose;
                let channel = ChannelId { connection: slow_consumer.connection, number };
                self.lost.push((channel, tag, missed));
            }
        }
    }
}
