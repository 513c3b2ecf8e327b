//! The engine's state and its entry points: dispatch only, each rule lives in the module named
//! after it.

use crate::access::Access;
use crate::channel::{Channel, Connection};
use crate::consumer::Consumer;
use crate::consumer::deferred_settle::Settlings;
use crate::foundation::random::Random;
use crate::foundation::slab::Slab;
use crate::foundation::timers::Timers;
use crate::foundation::work_budget::WorkBudget;
use crate::interface::counters::Counters;
use crate::interface::limits::Limits;
use crate::publish::Placement;
use crate::publish::delay::Delays;
use crate::pubsub::Direct;
use crate::queue::Queue;
use crate::queue::dead_letter::Refused;
use crate::queue::page_in::Arrivals;
use crate::queue::page_out::Loading;
use crate::queue::reclaim::Departures;
use crate::routing::QueueKey;
use crate::routing::vhost::Vhost;
use crate::session::Sessions;
use crate::storage::incremental_snapshot::Taking;
use crate::storage::record::Requeued;
use crate::{
    ChannelId, ConnectionId, Content, Conventions, Effects, Emit, Forward, LoadId, Loaded, Lost,
    Names, Position, Publish, Reached, Refusal, RefusalKind, Request, Settle, ShardId, Shards,
    Streak, SubjectPermissions, Subscribe, Time,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What an engine is made with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seeds every random choice: made-up names, inbox addresses, hash functions. Addresses are only
    /// as hard to guess as this is.
    pub seed: [u8; 32],
    /// The limits.
    pub limits: Limits,
    /// What the protocols define.
    pub conventions: &'static Conventions,
    /// Which of the broker's shards this is.
    pub shard: ShardId,
    /// The others; none where it is the only one.
    pub others: Shards,
}

impl Options {
    /// Those of a broker's only shard, with the limits that an operator would not change.
    #[must_use]
    pub fn alone(seed: [u8; 32], conventions: &'static Conventions) -> Options {
        let (shard, others) = (ShardId::HOME, Shards::NONE);
        Options { seed, limits: Limits::default(), conventions, shard, others }
    }
}

/// Letters of a made-up name: six random bits each.
const MADE_UP_LETTERS: usize = 22;

/// Whether the journal can take records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageState {
    /// It can.
    Ready,
    /// No space: persistent publishes are refused (negative confirm), settles go on.
    Full,
    /// A write or flush failed: as `Full`, and for good.
    Failed,
}

/// One shard's messaging state.
#[derive(Debug)]
pub struct Engine {
    pub(crate) options: Options,
    pub(crate) access: Access,
    pub(crate) vhosts: Slab<Vhost>,
    pub(crate) vhost_slots: BTreeMap<String, u32>,
    pub(crate) queues: Slab<Queue>,
    /// Slots of queues by their number.
    pub(crate) queue_slots: BTreeMap<u64, u32>,
    pub(crate) next_queue_number: u64,
    pub(crate) connections: Vec<Option<Connection>>,
    /// Connections that home has refused to count in.
    pub(crate) not_admitted: BTreeSet<ConnectionId>,
    pub(crate) channels: Slab<Channel>,
    pub(crate) consumers: Slab<Consumer>,
    pub(crate) next_incarnation: u32,
    /// Channels that home was told of, where this is another shard.
    pub(crate) openings: u32,
    pub(crate) sessions: Sessions,
    pub(crate) delays: Delays,
    pub(crate) direct: Direct,
    pub(crate) work_budget: WorkBudget,

    /// Queues to be served.
    pub(crate) dirty: Vec<u32>,
    /// Messages that were handed out of queues which had more.
    pub(crate) drained: u64,
    /// Queues with settles that no record has yet.
    pub(crate) unrecorded: Vec<u32>,
    /// Durable messages that went back, which no record says yet.
    pub(crate) requeued: Vec<Requeued>,
    /// Channels with confirms, or a commit, to tell or to wait for.
    pub(crate) confirming: Vec<u32>,
    /// Consumers that begin with the next dispatch.
    pub(crate) starting: Vec<u32>,
    /// Settles that are carried out over several turns.
    pub(crate) settling: Settlings,
    pub(crate) next_settling: u64,
    /// What was purged or deleted and is not given back yet.
    pub(crate) departures: Departures,
    /// A snapshot that is written over several turns.
    pub(crate) taking: Option<Box<Taking>>,
    /// What durable messages are marked with that it has, or that came since it began: all of them, where
    /// none is being taken.
    pub(crate) mark: bool,
    pub(crate) timers: Timers,
    pub(crate) loads: BTreeMap<LoadId, Loading>,
    pub(crate) arrivals: Arrivals,
    pub(crate) next_load: u64,
    /// What will take up memory once it is loaded, all queues together.
    pub(crate) loading_bytes: u64,
    /// What messages take up in memory, all queues together.
    pub(crate) resident: u64,
    /// Live references to records that will not survive a restart, by segment.
    pub(crate) transient_references: BTreeMap<u32, u64>,
    pub(crate) storage: StorageState,
    /// Dead letters that led to dead letters, so far in this call.
    pub(crate) dead_letter_depth: u32,
    /// Records are being appended that have to be recovered all or none, with nothing in between.
    pub(crate) in_group: bool,
    /// The last record of the request at hand about what has to survive a restart.
    pub(crate) changed_at: Option<Position>,
    /// Queues whose limits and pages are looked at once the group is complete.
    pub(crate) overdue: Vec<u32>,
    /// Queues that have a page to be written in a further turn.
    pub(crate) unpaged: VecDeque<u32>,
    /// What full queues refused meanwhile; each one's queue is among those.
    pub(crate) refused: Vec<Refused>,
    pub(crate) random: Random,
    pub(crate) counters: Counters,

    // Kept between calls for their memory.
    pub(crate) targets: Vec<QueueKey>,
    pub(crate) placements: Vec<Placement>,
    pub(crate) record: Vec<u8>,
    pub(crate) blob: Vec<u8>,
}

impl Engine {
    /// An engine with the virtual host `/` and nothing else.
    pub fn new(options: Options) -> Engine {
        let mut random = Random::new(options.seed);
        let direct = Direct::new(random.next());
        let work_budget = WorkBudget::new(options.limits.handed_at_once);
        let access = Access::new(&options.conventions.names);
        let mut engine = Engine {
            options,
            access,
            vhosts: Slab::default(),
            vhost_slots: BTreeMap::new(),
            queues: Slab::default(),
            queue_slots: BTreeMap::new(),
            next_queue_number: 1,
            connections: Vec::new(),
            not_admitted: BTreeSet::new(),
            channels: Slab::default(),
            consumers: Slab::default(),
            next_incarnation: 1,
            openings: 0,
            sessions: Sessions::default(),
            delays: Delays::default(),
            direct,
            work_budget,
            dirty: Vec::new(),
            drained: 0,
            unrecorded: Vec::new(),
            requeued: Vec::new(),
            confirming: Vec::new(),
            starting: Vec::new(),
            settling: Settlings::new(),
            next_settling: 0,
            departures: Departures::default(),
            taking: None,
            mark: false,
            timers: Timers::default(),
            loads: BTreeMap::new(),
            arrivals: Arrivals::default(),
            next_load: 1,
            loading_bytes: 0,
            resident: 0,
            transient_references: BTreeMap::new(),
            storage: StorageState::Ready,
            dead_letter_depth: 0,
            in_group: false,
            changed_at: None,
            overdue: Vec::new(),
            unpaged: VecDeque::new(),
            refused: Vec::new(),
            random,
            counters: Counters::default(),
            targets: Vec::new(),
            placements: Vec::new(),
            record: Vec::new(),
            blob: Vec::new(),
        };
        engine.add_vhost("/");
        engine
    }

    // ---- recovery: restore, then replay in order, then recovered ----

    /// Puts back what [`Engine::snapshot`] wrote. Does not call `retain`: the host keeps the counts.
    /// Errors: the text says what is wrong with the snapshot.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<(), String> {
        self.restore_snapshot(snapshot)
    }
    /// Applies one record appended after the snapshot.
    pub fn replay<F: Effects>(
        &mut self,
        position: Position,
        record: &[u8],
        fx: &mut F,
    ) -> Result<(), String> {
        self.replay_record(position, record, fx)
    }
    /// Ends recovery: forgets what was not durable; every message that may have been delivered
    /// before is marked redelivered, all of them unless `clean`.
    pub fn recovered<F: Effects>(&mut self, now: Time, clean: bool, fx: &mut F) {
        self.end_recovery(now, clean, fx);
    }
    /// Appends the whole durable state to `out`; messages by position, not by content.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        self.write_snapshot(out, false);
    }
    /// Begins a snapshot of the state as it is now, to be written over several turns by
    /// [`Engine::take_snapshot`]. One that is not complete is forgotten.
    pub fn begin_snapshot(&mut self) {
        self.begin_taking();
    }
    /// Whether a snapshot was begun and is not complete.
    #[must_use]
    pub fn is_taking_snapshot(&self) -> bool {
        self.taking.is_some()
    }
    /// Forgets the snapshot that was begun, if there is one.
    pub fn give_up_snapshot(&mut self) {
        self.give_up_taking();
    }
    /// Writes a part of the snapshot that was begun; gives it out, in pieces, once it is complete.
    pub fn take_snapshot(&mut self) -> Option<Vec<Vec<u8>>> {
        self.take_part()
    }

    // ---- who is there ----

    /// A connection by `user` to `vhost` begins. Refused: unknown vhost (`NotFound`), no permission
    /// (`AccessRefused`), too many of the user's (`LimitExceeded`): home counts them, others were told by
    /// [`Engine::admitted`].
    pub fn connect(
        &mut self,
        connection: ConnectionId,
        user: &str,
        vhost: &str,
    ) -> Result<(), Refusal> {
        let slot = self.vhost_slot(vhost)?;
        let grant = self.access.grant(user, vhost)?;
        let admitted = if !self.is_away() {
            self.admit(user)
        } else if self.not_admitted.contains(&connection) {
            Err(self.access.too_many(user, self.options.limits.user_connections_max))
        } else {
            Ok(())
        };
        self.counters.not_admitted += u64::from(admitted.is_err());
        admitted?;
        self.add_connection(connection, slot, Some(grant), !self.is_away());
        Ok(())
    }
    /// The same at home, for a connection of another shard that was admitted there.
    pub fn connect_guest(
        &mut self,
        connection: ConnectionId,
        user: &str,
        vhost: &str,
    ) -> Result<(), Refusal> {
        let slot = self.vhost_slot(vhost)?;
        let grant = self.access.grant_as_it_is(user, vhost);
        self.add_connection(connection, slot, Some(grant), false);
        Ok(())
    }
    /// At home: counts a connection of the user to another shard in. Refused: it has as many as it may.
    pub fn admit(&mut self, user: &str) -> Result<(), Refusal> {
        self.access.admit(user, self.options.limits.user_connections_max)
    }
    /// At home: one that was counted in has ended.
    pub fn left(&mut self, user: &str) {
        self.access.left(user);
    }
    /// On another shard: home has counted a connection in, or found that there are too many of its
    /// user's.
    pub fn admitted(&mut self, connection: ConnectionId, is_admitted: bool) {
        if is_admitted {
            self.not_admitted.remove(&connection);
        } else {
            self.not_admitted.insert(connection);
        }
    }
    /// A connection of the host itself to `vhost` begins; it may do everything. Refused: unknown
    /// vhost (`NotFound`).
    pub fn connect_internal(
        &mut self,
        connection: ConnectionId,
        vhost: &str,
    ) -> Result<(), Refusal> {
        let slot = self.vhost_slot(vhost)?;
        self.add_connection(connection, slot, None, false);
        Ok(())
    }
    /// It ends: channels closed, exclusive queues deleted.
    pub fn disconnect<F: Effects>(&mut self, now: Time, connection: ConnectionId, fx: &mut F) {
        self.end_connection(now, connection, fx);
    }
    /// Opens a channel; the host has made sure it is not open.
    pub fn open(&mut self, channel: ChannelId) {
        self.open_channel(channel);
    }
    /// Closes it: consumers end, unsettled deliveries are requeued, a transaction is forgotten.
    pub fn close<F: Effects>(&mut self, now: Time, channel: ChannelId, fx: &mut F) {
        self.close_channel(now, channel, fx);
    }

    // ---- messages ----

    /// Routes a message to queues and consumers. Refused: no such exchange, no permission, body too
    /// large: the message is not taken and, in confirm mode, its number is not used.
    #[inline]
    pub fn publish<F: Effects>(
        &mut self,
        now: Time,
        channel: ChannelId,
        publish: &Publish<'_>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        if self.is_away() {
            return self.publish_at_home(channel, publish, fx);
        }
        self.take_publish(now, channel, publish, fx)
    }
    /// Settles deliveries. Refused: unknown tag (`PreconditionFailed`).
    #[inline]
    pub fn settle<F: Effects>(
        &mut self,
        now: Time,
        channel: ChannelId,
        settle: Settle,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        if self.is_away() {
            return self.settle_at_home(channel, settle, fx);
        }
        self.take_settle(now, channel, settle, fx)
    }
    /// Hands a direct message to all who subscribe to its subject now, and to queues that catch it.
    /// Refused: no permission, too large.
    #[inline]
    pub fn emit<F: Effects>(
        &mut self,
        now: Time,
        channel: ChannelId,
        emit: &Emit<'_>,
        fx: &mut F,
    ) -> Result<Reached, Refusal> {
        self.take_emit(now, channel, emit, &mut None, fx)
    }
    /// The same for one of several in a row. `streak` spares the next one what this one had to look up:
    /// it is set to `None` before the channel emits to another subject, or with other wishes, and before
    /// anything else is asked of the engine.
    #[inline]
    pub fn emit_next<F: Effects>(
        &mut self,
        now: Time,
        channel: ChannelId,
        emit: &Emit<'_>,
        streak: &mut Option<Streak>,
        fx: &mut F,
    ) -> Result<Reached, Refusal> {
        self.take_emit(now, channel, emit, streak, fx)
    }
    /// Hands what the host itself answers to a channel to its own subscribers of `subject`, and to nobody
    /// else, whatever that channel may publish.
    pub fn emit_to_self<F: Effects>(
        &mut self,
        channel: ChannelId,
        subject: &str,
        content: Content<'_>,
        fx: &mut F,
    ) {
        self.take_emit_to_self(channel, subject, content, fx);
    }
    /// Begins to subscribe to direct messages; a name that subscribes already goes on as it is. Refused: no
    /// permission, not a pattern of subjects, limits.
    pub fn subscribe<F: Effects>(
        &mut self,
        channel: ChannelId,
        subscribe: Subscribe<'_>,
        fx: &mut F,
    ) -> Result<(), Refusal> {
        self.add_subscription(channel, subscribe, fx)
    }
    /// Ceases to subscribe: now, or once `after` messages were heard, counted from the beginning.
    pub fn unsubscribe<F: Effects>(
        &mut self,
        channel: ChannelId,
        name: &str,
        after: Option<u64>,
        fx: &mut F,
    ) {
        self.end_subscription(channel, name, after, fx);
    }
    /// The name of one of the channel's own subscribers, outside of groups, that hears `subject`.
    pub fn subscriber(&mut self, channel: ChannelId, subject: &str) -> Option<&str> {
        self.find_subscriber(channel, subject)
    }
    /// What a connection's user may do with subjects, as it was when the connection last asked for anything;
    /// none: they are not narrowed.
    #[must_use]
    pub fn subject_permissions(&self, connection: ConnectionId) -> Option<&SubjectPermissions> {
        let slot = self.connections.get(connection.0 as usize)?;
        slot.as_ref()?.grant.as_ref()?.subjects()
    }
    /// Messages that a subscriber was handed and that its client will not get after all: the next one
    /// that it hears says so. `tag` is that of its deliveries.
    pub fn missed(&mut self, channel: ChannelId, tag: u64, lost: Lost) {
        self.note_missed(channel, tag, lost);
    }
    /// A made-up text that nobody can guess, of letters that are safe in subjects and URLs, six random
    /// bits each.
    pub fn secret(&mut self, letters: usize) -> String {
        self.random.name(letters)
    }
    /// Everything else; answered by one [`Effects::reply`], at once or later.
    pub fn request<F: Effects>(
        &mut self,
        now: Time,
        channel: ChannelId,
        request: Request,
        fx: &mut F,
    ) {
        if self.is_away() {
            return self.request_at_home(channel, request, fx);
        }
        self.take_request(now, channel, request, fx);
    }
    /// Serves consumers that became able to take messages in this turn. The host calls it at the
    /// end of each turn: replies and deliveries of one turn thus keep their order.
    pub fn dispatch<F: Effects>(&mut self, now: Time, fx: &mut F) {
        self.serve(now, fx);
        self.tell_subscribers(fx);
    }
    /// Whether another [`Engine::dispatch`] would go on where the last one stopped for fairness: the
    /// host then comes back without sleeping.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.dirty.is_empty()
            || !self.starting.is_empty()
            || !self.settling.is_empty()
            || !self.departures.is_empty()
            || !self.arrivals.is_empty()
            || !self.unpaged.is_empty()
            || self.direct.has_work()
    }
    /// Whether [`Engine::dispatch`] still has to settle what clients have asked it to.
    #[must_use]
    pub fn is_settling(&self) -> bool {
        !self.settling.is_empty()
    }

    /// Whether dead letters are being read, which are their queues' until they are there.
    #[must_use]
    pub fn is_reading_dead_letters(&self) -> bool {
        self.loads.values().any(Loading::is_dead_letter)
    }

    /// The connection's output has room again.
    pub fn writable(&mut self, connection: ConnectionId) {
        self.connection_writable(connection);
    }

    // ---- other shards ----

    /// What a shard that begins now has to be told: users, virtual hosts, and what queues catch.
    #[must_use]
    pub fn introduction(&self) -> Vec<Vec<u8>> {
        self.introduce()
    }
    /// Takes in what another shard told. Errors say what is wrong with it.
    pub fn told<F: Effects>(
        &mut self,
        from: ShardId,
        news: &[u8],
        fx: &mut F,
    ) -> Result<(), String> {
        self.take_news(from, news, fx)
    }
    /// Whether a channel is the one that home knows by this opening ([`Call::Open`]), and not a later
    /// one of its number.
    #[must_use]
    pub fn is_opening(&self, channel: ChannelId, opening: u32) -> bool {
        let channel = self.channel_slot(channel).and_then(|slot| self.channels.get(slot));
        channel.is_some_and(|channel| channel.opening == opening)
    }

    /// The opening of the channel that home heard of last.
    #[must_use]
    pub fn openings(&self) -> u32 {
        self.openings
    }

    /// Hands a direct message of another shard to those who subscribe here, and at home to queues. `streak` is
    /// for messages of one [`Row`](crate::Row), as with [`Engine::emit_next`].
    pub fn forwarded<F: Effects>(
        &mut self,
        now: Time,
        forward: &Forward<'_>,
        streak: &mut Option<Streak>,
        fx: &mut F,
    ) -> Reached {
        self.take_forward(now, forward, streak, fx)
    }

    // ---- storage ----

    /// Every record before `position` is flushed: confirms and commits that waited for it go out.
    pub fn durable<F: Effects>(&mut self, position: Position, fx: &mut F) {
        self.flushed(position, fx);
    }
    /// The journal's state changed. On `Failed`, everything that waits for a flush is refused.
    pub fn storage<F: Effects>(&mut self, state: StorageState, fx: &mut F) {
        self.storage_changed(state, fx);
    }
    /// Answers a load.
    pub fn loaded<F: Effects>(&mut self, now: Time, id: LoadId, records: Loaded, fx: &mut F) {
        self.take_loaded(now, id, records, fx);
    }
    /// Appends anew whatever is still live in `segment`, so that it can be given back.
    pub fn relocate<F: Effects>(&mut self, segment: u32, fx: &mut F) {
        self.relocate_segment(segment, fx);
    }

    // ---- time ----

    /// When [`Engine::expire`] next has something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.timers.first()
    }
    /// Does what has become due: message, queue and session expiry, delays, settle timeouts.
    pub fn expire<F: Effects>(&mut self, now: Time, fx: &mut F) {
        self.run_timers(now, fx);
    }

    // ---- what all modules use ----

    /// The refusal for a channel that is not open: a host that breaks the contract.
    pub(crate) fn no_channel(id: ChannelId) -> Refusal {
        let ChannelId { connection, number } = id;
        let text = format!("channel {number} of connection {} is not open", connection.0);
        Refusal::new(RefusalKind::Internal, text)
    }

    /// The well-known names.
    #[inline]
    pub(crate) fn names(&self) -> &'static Names {
        &self.options.conventions.names
    }

    /// A made-up name that begins with `prefix`.
    pub(crate) fn make_up(&mut self, prefix: &str) -> String {
        format!("{prefix}{}", self.random.name(MADE_UP_LETTERS))
    }

    /// The slot of a channel.
    #[inline]
    pub(crate) fn channel_slot(&self, id: ChannelId) -> Option<u32> {
        let connection = self.connections.get(id.connection.0 as usize)?.as_ref()?;
        let channels = &connection.channels;
        if let Some((number, slot)) = channels.first()
            && *number == id.number
        {
            return Some(*slot);
        }
        let index = channels.binary_search_by_key(&id.number, |(number, _)| *number).ok()?;
        Some(channels[index].1)
    }

    /// The slot of a virtual host.
    pub(crate) fn vhost_slot(&self, name: &str) -> Result<u32, Refusal> {
        self.vhost_slots
            .get(name)
            .copied()
            .ok_or_else(|| Refusal::new(RefusalKind::NotFound, format!("no virtual host '{name}'")))
    }

    /// Has a queue served at the next dispatch.
    #[inline]
    pub(crate) fn mark_dirty(&mut self, slot: u32) {
        if let Some(queue) = self.queues.get_mut(slot)
            && !queue.is_dirty
            && queue.is_served()
        {
            queue.is_dirty = true;
            self.dirty.push(slot);
        }
    }
}
