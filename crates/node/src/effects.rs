//! What engine and channels reach during one call: writers, journal, and what waits for the host.
//!
//! Effects are carried out the moment the engine calls them, in memory: a delivery is written into
//! its connection's output, a record into the journal's batch. The host moves bytes and blocks.

use crate::connection::in_process_events::InProcess;
use crate::flow::publisher_stall::{Publisher, PublisherStalls};
use crate::options::Options;
use crate::outbox::Outbox;
use crate::outbox::batch::LastBatch;
use crate::shard::links::ShardLinks;
use crate::shard::message::FromHome;
use crate::shard::remote_connection::RemoteConnection;
use crate::spill::Spill;
use angarium_engine as engine;
use angarium_engine::{
    Call, CancelReason, ChannelId, Confirm, ConnectionId, Delivery, DirectMessage, Effects,
    Forward, GetAnswer, Hints, Load, Lost, MessageView, Refusal, Reply, SendOutcome, SessionLoss,
    ShardId, Shards, Subscribe, Time,
};
use angarium_journal::{Journal, SharedRecord};
use angarium_protocol::{ConnectionQuery, Credentials, Host, ToldTopics, Writer};
use std::collections::{BTreeMap, VecDeque};

/// Bytes that a message of a batch takes beside its content and its names, or fewer.
const BATCH_FRAMING_BYTES: usize = 32;

/// Credentials that the host is to check, off the shard's thread.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The connection that waits for the answer.
    pub connection: ConnectionId,
    /// Tells this connection from an earlier one in the same slot.
    pub serial: u64,
    /// What the client said.
    pub credentials: Credentials,
    /// The user's stored password hash; `None` where there is no such user (the host takes as long
    /// to say no).
    pub password_hash: Option<String>,
    /// Where the client comes from, for the log and for back-off.
    pub address: String,
    /// Whether it comes from this very host.
    pub local: bool,
}

/// The answer to a request, on its way to its channel.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) channel: ChannelId,
    pub(crate) reply: Result<Reply, Refusal>,
    /// It waits until all shards know these news: what it allows may be done by way of any of them.
    pub(crate) after: u64,
}

/// Queues without all of their copies that are remembered for the log between two turns.
const LACKING_COPIES_MAX: usize = 16;

/// The effects of a call into the engine or a protocol handler, and what waits for the host.
#[derive(Debug, Default)]
pub(crate) struct NodeEffects {
    /// Home's; other shards have none.
    pub(crate) journal: Option<Journal>,
    pub(crate) links: ShardLinks,
    pub(crate) outbox: Vec<Outbox>,
    pub(crate) stalls: PublisherStalls,
    /// What was last written of several messages at once.
    pub(crate) last_batch: LastBatch,
    /// Connections that were too far behind and are to be ended, each once.
    pub(crate) given_up: Vec<ConnectionId>,
    /// Connections that have become too slow since the last turn.
    pub(crate) became_slow: Vec<ConnectionId>,
    /// What waits on the disk for connections that are too far behind.
    pub(crate) spill: Spill,
    /// Connections for which nothing waits there any more.
    pub(crate) caught_up: Vec<ConnectionId>,
    /// Dropped messages, by channel and tag of the subscription.
    pub(crate) lost: BTreeMap<(ChannelId, u64), Lost>,
    /// Connections with much unsent output, each once.
    pub(crate) large_outputs: Vec<ConnectionId>,
    /// Messages that others have taken the place of, which the engine does not know yet.
    pub(crate) conflated: u64,
    /// Connections with output, each once.
    pub(crate) dirty: Vec<ConnectionId>,
    /// Answers that were not handed to their connections yet.
    pub(crate) replies: VecDeque<Answer>,
    /// Channels of this shard that the engine has closed, and why; their handlers learn it within the call.
    pub(crate) failed_channels: Vec<(ChannelId, Refusal)>,
    /// Connections whose writers leave something to do for their handlers, perhaps several times.
    pub(crate) calling: Vec<ConnectionId>,
    /// Channels of this shard, by sessions that they do not hold any more; they learn it before any answer.
    pub(crate) lost_sessions: Vec<(ChannelId, String, SessionLoss)>,
    pub(crate) in_process: InProcess,
    /// The last news with which a channel of another shard was told that it lost a session.
    pub(crate) session_notices: u64,
    pub(crate) loads: VecDeque<Load>,
    /// Credentials that protocol handlers passed on; the node completes them to [`Verification`]s.
    pub(crate) credentials: Vec<(ConnectionId, Credentials)>,
    /// Connections that want to enter a virtual host.
    pub(crate) entering: Vec<(ConnectionId, String)>,
    /// Connections that have entered one, whose bounds do not hold for them yet.
    pub(crate) entered: Vec<ConnectionId>,
    /// Connection queries that the node has not begun yet.
    pub(crate) connection_queries: Vec<(ConnectionId, ConnectionQuery)>,
    /// Connections that may be lost, with their shards.
    pub(crate) doubted: Vec<(ShardId, ConnectionId)>,
    /// Virtual hosts and names of queues that were created with fewer copies than asked for; some of many.
    pub(crate) lacking_copies: Vec<(String, String)>,
    pub(crate) broker_topics: ToldTopics,
    /// Why logins were refused, except those whose credentials the host found wrong.
    pub(crate) refused_logins: VecDeque<String>,
    /// Something was stored in a queue during this call into a handler.
    pub(crate) has_stored: bool,
    /// More was put into a queue during this call than its consumers get.
    pub(crate) has_outrun: bool,
    /// The last news told during this call: its answer waits for all to know them.
    pub(crate) news_in_call: u64,
    /// Home was asked for something during this call.
    pub(crate) has_called: bool,
    /// Unsent bytes beyond which a connection gets no further deliveries.
    pub(crate) outbox_bytes_max: usize,
}

impl NodeEffects {
    pub(crate) fn new(journal: Option<Journal>, options: &Options) -> NodeEffects {
        NodeEffects {
            journal,
            links: ShardLinks::new(options),
            spill: Spill::new(options.spill.clone(), options.shard, options.shards),
            outbox_bytes_max: options.outbox_bytes_max,
            ..NodeEffects::default()
        }
    }

    /// The journal, where something is stored.
    fn stored(&mut self) -> &mut Journal {
        self.journal.as_mut().expect("queues, users and virtual hosts are home's alone to change")
    }

    /// Notes that `bytes` of the connection's output were sent; says whether the engine waits for the
    /// room that made.
    pub(crate) fn sent(&mut self, connection: ConnectionId, bytes: usize) -> bool {
        let outbox = &mut self.outbox[connection.0 as usize];
        let has_ended_piece = match &mut outbox.framing {
            None => outbox.advance(bytes),
            Some(framing) => {
                let bytes = framing.sent(bytes);
                outbox.advance(bytes)
            }
        };
        let mut has_room = outbox.unsent() <= self.outbox_bytes_max / 2;
        if has_room {
            let waiting = outbox.waiting.take();
            if outbox.writer.output.held > 0 {
                has_room = self.send_held(connection);
            }
            self.end_stalls(waiting);
            self.refill(connection);
            self.refill_conflated(connection);
        }
        let begins_frame = self.outbox[connection.0 as usize].begin_frame();
        if has_ended_piece || begins_frame {
            // The host sends what comes next as it does other output.
            self.touch(connection);
        }
        has_room && self.outbox[connection.0 as usize].wants_room.replace(false)
    }

    /// Writes what is kept until there is room for it; says whether there is room for more.
    #[cold]
    fn send_held(&mut self, connection: ConnectionId) -> bool {
        self.touch(connection).send_held();
        let outbox = &self.outbox[connection.0 as usize];
        outbox.unsent_and_held() <= self.outbox_bytes_max / 2
    }

    /// Begins a call into a protocol handler.
    #[inline]
    pub(crate) fn begin_call(&mut self, now: Time) {
        self.spill.now = now;
        self.stalls.clear_slow();
        self.has_stored = false;
        self.has_outrun = false;
        self.news_in_call = 0;
        self.has_called = false;
    }

    /// Makes the connection's outbox new, for the next connection in this slot.
    pub(crate) fn reset(&mut self, connection: ConnectionId) {
        let slot = connection.0 as usize;
        if slot >= self.outbox.len() {
            self.outbox.resize_with(slot + 1, Outbox::default);
        }
        self.end_spooling(connection);
        let waiting = self.outbox[slot].waiting.take();
        self.end_stalls(waiting);
        self.links.reset(connection);
        self.stalls.reset(connection);
        self.broker_topics.watching.remove(&connection);
        self.outbox[slot].renew();
    }

    /// Marks the connection as one with output, and returns its writer.
    #[inline]
    pub(crate) fn touch(&mut self, connection: ConnectionId) -> &mut Writer {
        let outbox = &mut self.outbox[connection.0 as usize];
        if !outbox.is_dirty {
            outbox.is_dirty = true;
            self.dirty.push(connection);
        }
        &mut outbox.writer
    }

    /// Has `write` write a message into a connection's output.
    #[inline(always)]
    fn write(
        &mut self,
        connection: ConnectionId,
        message: &MessageView<'_>,
        write: impl FnOnce(&mut Writer),
    ) {
        write(self.touch(connection));
        if message.shared.is_some() {
            self.outbox[connection.0 as usize].end_with_large();
        }
    }

    #[inline(always)]
    pub(crate) fn write_delivery(&mut self, delivery: &Delivery<'_>) {
        let connection = delivery.channel.connection;
        self.write(connection, delivery.message, |writer| writer.deliver(delivery));
        self.note_call(connection);
    }

    #[inline(always)]
    pub(crate) fn write_direct_message(&mut self, direct: &DirectMessage<'_>) {
        let connection = direct.channel.connection;
        self.write(connection, &direct.message, |writer| writer.send_direct(direct));
    }

    pub(crate) fn write_get_answer(&mut self, answer: &GetAnswer<'_>) {
        let connection = answer.channel.connection;
        self.write(connection, &answer.message, |writer| writer.answer_get(answer));
    }

    /// Writes a message that no queue took into its publisher's output.
    pub(crate) fn return_here(&mut self, channel: ChannelId, message: &MessageView<'_>) {
        let write = |writer: &mut Writer| writer.return_unroutable(channel, message);
        self.write(channel.connection, message, write);
    }
}

impl NodeEffects {
    /// Lets publishers go on: a subscriber of theirs has drained or gone, or is silent.
    pub(crate) fn end_stalls(&mut self, publishers: impl Iterator<Item = Publisher>) {
        for publisher in publishers {
            match publisher {
                Publisher::Here(connection) => self.stalls.end(connection),
                Publisher::There(shard, publisher) => self.links.tell_drained(shard, publisher),
            }
        }
    }

    /// Called twice a second: nobody waits any longer for subscribers that take nothing.
    pub(crate) fn sweep_stalls(&mut self, now: Time) {
        for slot in 0..self.outbox.len() {
            let publishers = self.outbox[slot].waiting.sweep();
            self.end_stalls(publishers);
        }
        self.links.sweep_slow_subscribers(now);
    }
}

impl Hints for NodeEffects {
    fn fanned_out(&mut self, now: Time, publisher: ConnectionId, is_slow: bool) {
        if is_slow {
            self.stall_here(now, publisher);
        } else {
            self.stalls.note_quick(publisher);
        }
    }
    fn send_direct_batch(
        &mut self,
        message: &DirectMessage<'_>,
        bodies: &[&[u8]],
    ) -> Option<SendOutcome> {
        let connection = message.channel.connection;
        let slot = connection.0 as usize;
        let outbox = &self.outbox[slot];
        let names = message.message.routing_key.len() + message.subscription.len();
        let payload: usize = bodies.iter().map(|body| body.len()).sum();
        let bytes = payload + bodies.len() * (names + BATCH_FRAMING_BYTES);
        let unsent = outbox.unsent() + bytes;
        if outbox.remote.is_some() || unsent >= outbox.plain_max {
            return None;
        }
        let same = self.last_batch.same(message).filter(|(other, _)| {
            outbox.writer.writes_batches_like(&self.outbox[other.0 as usize].writer)
        });
        if let Some((other, range)) = same {
            self.touch(connection);
            let both = self.outbox.get_disjoint_mut([other.0 as usize, slot]);
            let [from, to] = both.expect("two connections have two places");
            to.writer.output.bytes.extend_from_slice(&from.writer.output.bytes[range]);
            to.writer.output.messages += bodies.len() as u64;
        } else {
            let writer = self.touch(connection);
            let start = writer.output.bytes.len();
            writer.output.bytes.reserve(bytes);
            writer.send_direct_batch(message, bodies);
            let range = start..writer.output.bytes.len();
            self.last_batch.keep(message, range);
        }
        let last = message.emission + bodies.len() as u64 - 1;
        let last_bytes = bodies.last().map_or(0, |body| body.len() + names + BATCH_FRAMING_BYTES);
        Some(self.has_written(connection, last, unsent - last_bytes))
    }

    #[inline]
    fn write_soon(&mut self) {
        self.stored().write_soon();
    }

    #[inline]
    fn consumers_outrun(&mut self) {
        self.has_outrun = true;
    }
}

impl Effects for NodeEffects {
    fn answer_get(&mut self, answer: &GetAnswer<'_>) {
        let channel = answer.channel;
        if let Some(remote) = &mut self.outbox[channel.connection.0 as usize].remote {
            let name = remote.name(channel.number);
            remote.underway += self.links.answer_get(remote.shard, name, answer) as u64;
            return;
        }
        self.write_get_answer(answer);
    }

    #[inline]
    fn deliver(&mut self, delivery: &Delivery<'_>) {
        let channel = delivery.channel;
        if let Some(remote) = &mut self.outbox[channel.connection.0 as usize].remote {
            let name = remote.name(channel.number);
            remote.underway += self.links.deliver(remote.shard, name, delivery) as u64;
            return;
        }
        self.write_delivery(delivery);
    }

    fn call_home(&mut self, call: Call<'_>) {
        self.carry_home(call);
    }

    #[inline]
    fn send_direct(&mut self, message: &DirectMessage<'_>) -> SendOutcome {
        let connection = message.channel.connection;
        let outbox = &self.outbox[connection.0 as usize];
        if outbox.remote.is_some() {
            return self.send_to_guest(message);
        }
        let unsent = outbox.unsent();
        if unsent >= outbox.plain_max || message.slow_consumer_policy.is_some() {
            return self.send_by_policy(message, unsent);
        }
        self.write_direct(message, unsent)
    }

    fn forward_to_shards(
        &mut self,
        to: Shards,
        forward: &Forward<'_>,
        bodies: &[&[u8]],
    ) -> SendOutcome {
        // The shard that a forwarded message came from answers its publisher.
        if forward.asks
            && let Some(publisher) =
                forward.publisher.filter(|_| forward.origin == self.links.shard)
        {
            self.outbox[publisher.0 as usize].is_owed = true;
        }
        let (is_slow, awaited) = self.links.forward(to, forward, bodies);
        if !is_slow {
            return SendOutcome::Sent;
        }
        self.stalls.slow_shards = self.stalls.slow_shards.and(awaited);
        SendOutcome::Congested
    }

    fn broadcast(&mut self, by: Option<ConnectionId>, news: &[u8]) {
        self.links.send_news(by, news);
        self.news_in_call = self.links.last_news;
    }

    fn await_broadcasts(&mut self, by: ConnectionId) {
        self.links.note_news_of(by);
        self.news_in_call = self.links.last_news;
    }

    fn confirm(&mut self, channel: ChannelId, confirm: Confirm<'_>) {
        if let Some((shard, name)) = self.name_of(channel) {
            return self.links.say(shard, FromHome::Confirm { name, confirm });
        }
        self.touch(channel.connection).confirm(channel, confirm);
        self.note_call(channel.connection);
    }

    fn congested(&mut self, channel: ChannelId, publish: u64, queue: u64) {
        if let Some((shard, name)) = self.name_of(channel) {
            return self.links.say(shard, FromHome::QueueCongested { name, publish, queue });
        }
        self.touch(channel.connection).congested(channel, publish, queue);
    }

    fn eased(&mut self, channel: ChannelId, queue: u64) {
        if let Some((shard, name)) = self.name_of(channel) {
            return self.links.say(shard, FromHome::QueueEased { name, queue });
        }
        self.touch(channel.connection).eased(channel, queue);
    }

    fn return_unroutable(&mut self, channel: ChannelId, message: &MessageView<'_>) {
        match self.name_of(channel) {
            Some((shard, name)) => self.links.return_to(shard, name, message),
            None => self.return_here(channel, message),
        }
    }

    fn consumer_cancelled(&mut self, channel: ChannelId, consumer: &str, why: CancelReason) {
        if let Some((shard, name)) = self.name_of(channel) {
            return self.links.say(shard, FromHome::Cancelled { name, why, consumer });
        }
        self.touch(channel.connection).consumer_cancelled(channel, consumer, why);
        self.note_call(channel.connection);
    }

    fn drained(&mut self, channel: ChannelId, consumer: &str, delivered: u64) {
        if let Some((shard, name)) = self.name_of(channel) {
            return self.links.say(shard, FromHome::Drained { name, delivered, consumer });
        }
        self.touch(channel.connection).drained(channel, consumer, delivered);
    }

    fn subscription_revoked(&mut self, channel: ChannelId, subscribed: &Subscribe<'_>) {
        self.touch(channel.connection).subscription_revoked(subscribed);
        self.note_call(channel.connection);
    }

    fn channel_failed(&mut self, channel: ChannelId, why: Refusal) {
        if self.name_of(channel).is_some() {
            return self.fail_remote_channel(channel, why);
        }
        self.failed_channels.push((channel, why));
    }

    fn lacks_copies(&mut self, vhost: &str, queue: &str) {
        if self.lacking_copies.len() < LACKING_COPIES_MAX {
            self.lacking_copies.push((vhost.to_owned(), queue.to_owned()));
        }
    }

    fn client_doubted(&mut self, connection: ConnectionId) {
        let remote = self.outbox[connection.0 as usize].remote.as_ref();
        let doubted = remote.map_or((self.links.shard, connection), |it| (it.shard, it.connection));
        if !self.doubted.contains(&doubted) {
            self.doubted.push(doubted);
        }
    }

    fn session_lost(&mut self, channel: ChannelId, session: &str, why: SessionLoss) {
        self.lose_session(channel, session, why);
    }

    fn reply(&mut self, channel: ChannelId, reply: Result<Reply, Refusal>) {
        let after = self.news_before(&reply);
        self.replies.push_back(Answer { channel, reply, after });
    }

    #[inline]
    fn has_room(&self, connection: ConnectionId) -> bool {
        let outbox = &self.outbox[connection.0 as usize];
        if let Some(remote) = &outbox.remote {
            let most = RemoteConnection::underway_max(self.outbox_bytes_max);
            let has_room = remote.underway < most && !outbox.is_short;
            remote.wants_room.set(remote.wants_room.get() || !has_room);
            return has_room;
        }
        let has_room = outbox.unsent_and_held() < self.outbox_bytes_max && !outbox.is_short;
        if !has_room {
            outbox.wants_room.set(true);
        }
        has_room
    }

    #[inline]
    fn append(&mut self, parts: &[&[u8]], durable: bool) -> engine::Position {
        engine::Position(self.stored().append(parts, durable).0)
    }

    fn append_shared(
        &mut self,
        record: engine::SharedRecord<'_>,
        durable: bool,
    ) -> engine::Position {
        let engine::SharedRecord { before, shared, after } = record;
        let record = SharedRecord { before, shared, after };
        engine::Position(self.stored().append_shared(record, durable).0)
    }

    fn reserve(&mut self, bytes: usize, records: usize) {
        self.stored().reserve(bytes, records);
    }

    #[inline]
    fn retain(&mut self, position: engine::Position, count: u32) {
        self.has_stored = true;
        self.stored().retain(angarium_journal::Position(position.0), count);
    }

    #[inline]
    fn release(&mut self, position: engine::Position, count: u32) {
        self.stored().release(angarium_journal::Position(position.0), count);
    }

    fn load(&mut self, load: Load) {
        self.loads.push_back(load);
    }
}

impl Host for NodeEffects {
    #[inline]
    fn writer(&mut self, connection: ConnectionId) -> &mut Writer {
        self.touch(connection)
    }

    fn has_spilled_messages(&self, connection: ConnectionId) -> bool {
        let outbox = &self.outbox[connection.0 as usize];
        outbox.spooled.is_some() || outbox.conflated.is_some()
    }

    #[inline]
    fn note_quick(&mut self, publisher: ConnectionId) {
        self.stalls.note_quick(publisher);
    }

    fn stall(&mut self, now: Time, publisher: ConnectionId) {
        self.stall_here(now, publisher);
    }

    #[inline]
    fn is_known_to_shards(&self, connection: ConnectionId) -> bool {
        self.links.is_settled(connection)
    }

    fn are_requests_complete(&mut self, connection: ConnectionId) -> bool {
        if std::mem::take(&mut self.outbox[connection.0 as usize].is_owed) {
            self.links.sync(Some(connection));
        }
        self.links.is_settled(connection)
    }

    #[inline]
    fn may_broadcast_more(&self, connection: ConnectionId) -> bool {
        !self.links.is_far_ahead(connection)
    }

    fn begins_anew(&mut self, connection: ConnectionId) {
        self.end_spooling(connection);
    }

    fn authenticate(&mut self, connection: ConnectionId, credentials: Credentials) {
        self.credentials.push((connection, credentials));
    }

    fn ask_to_enter(&mut self, connection: ConnectionId, vhost: &str) {
        self.entering.push((connection, vhost.to_owned()));
    }

    fn has_entered(&mut self, connection: ConnectionId) {
        self.entered.push(connection);
    }

    fn query_connections(&mut self, connection: ConnectionId, query: ConnectionQuery) {
        self.connection_queries.push((connection, query));
    }

    fn broker_topics(&mut self) -> Option<&mut ToldTopics> {
        Some(&mut self.broker_topics)
    }

    fn login_refused(&mut self, why: String) {
        self.refused_logins.push_back(why);
    }
}
