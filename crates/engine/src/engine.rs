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
    ChannelId, ConnectionId, Conventions, LoadId, Names, Position, Refusal, RefusalKind, ShardId,
    Shards,
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

    /// A made-up text that nobody can guess, of letters that are safe in subjects and URLs, six random
    /// bits each.
    pub fn secret(&mut self, letters: usize) -> String {
        self.random.name(letters)
    }

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
