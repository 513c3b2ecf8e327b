//! The engine's options, state and construction. Its rules, each with its public functions, are in
//! the other modules.

use crate::access::definitions::Definitions;
use crate::access::{Access, Grant};
use crate::channel::client_names::ClientNames;
use crate::channel::pauses::Pauses;
use crate::channel::places::Places;
use crate::channel::transaction::{ChannelPlace, Transaction};
use crate::channel::{Channel, Connection};
use crate::consumer::Consumer;
use crate::consumer::browsers::Browsers;
use crate::consumer::deferred_settle::Settlings;
use crate::control::underway::{Purges, VhostDeletion};
use crate::foundation::random::Random;
use crate::foundation::slab::Slab;
use crate::foundation::timers::Timers;
use crate::foundation::work_budget::WorkBudget;
use crate::interface::counters::{Counters, GivenUp, HandedOut};
use crate::interface::limits::Limits;
use crate::kept::Logs;
use crate::named_subscription::NamedSubscriptions;
use crate::policy::reviews::PolicyReviews;
use crate::publish::Placement;
use crate::publish::delay::Delays;
use crate::publish::fanouts::WideFanouts;
use crate::publish::taken::PublishNumber;
use crate::pubsub::Direct;
use crate::queue::dead_letter::Refused;
use crate::queue::page_in::Arrival;
use crate::queue::page_out::Loading;
use crate::queue::queues::Queues;
use crate::queue::reclaim::Departures;
use crate::retained::Retained;
use crate::routing::QueueKey;
use crate::routing::vhost::{Sender, Vhost};
use crate::session::Sessions;
use crate::storage::incremental_snapshot::IncrementalSnapshot;
use crate::storage::record::Requeued;
use crate::storage::rescued::Rescued;
use crate::{
    Bytes, ChannelId, ConnectionId, Conventions, LoadId, Names, Position, Refusal, RefusalKind,
    ShardId, Shards, StorageState,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

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
    /// The other shards; none where it is the only one.
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

/// One shard's messaging state.
#[derive(Debug)]
pub struct Engine {
    pub(crate) options: Options,
    pub(crate) access: Access,
    pub(crate) definitions: Definitions,
    pub(crate) topology: Topology,
    pub(crate) queues: Queues,
    pub(crate) clients: Clients,
    pub(crate) sessions: Sessions,
    pub(crate) logs: Logs,
    pub(crate) subscriptions: NamedSubscriptions,
    pub(crate) pubsub: Direct,
    pub(crate) delays: Delays,
    pub(crate) browsers: Browsers,
    pub(crate) retained: Retained,
    pub(crate) storage: Storage,
    pub(crate) agenda: Agenda,
    pub(crate) timers: Timers,
    pub(crate) work_budget: WorkBudget,
    /// Dead letters that led to dead letters, so far in this call.
    pub(crate) dead_letter_depth: u32,
    pub(crate) random: Random,
    pub(crate) counters: Counters,
    /// Nodes, bindings and exchanges that were looked at to find routes, and queues found, ever.
    pub(crate) route_steps: u64,
    /// Work that no client waits for, in this part of the turn: messages that leave their queues without a
    /// consumer, steps to find the queues of dead letters and delayed messages, timers, what is deleted.
    pub(crate) unasked_steps: u64,
    pub(crate) scratch: Scratch,
}

/// The virtual hosts, each with its routing and its subscribers.
#[derive(Debug, Default)]
pub(crate) struct Topology {
    pub(crate) vhosts: Slab<Vhost>,
    /// Slots of virtual hosts by name.
    pub(crate) vhost_slots: BTreeMap<String, u32>,
}

/// Connections, and what they have open.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    /// By number of the connection.
    pub(crate) connections: Vec<Option<Connection>>,
    /// Names that connections have to themselves.
    pub(crate) names: ClientNames,
    /// Places that clients have once, over all of their connections.
    pub(crate) places: Places,
    /// Connections that home has refused to count.
    pub(crate) not_admitted: BTreeSet<ConnectionId>,
    /// What home has answered connections that wanted to enter a virtual host: whether they may.
    pub(crate) entered: BTreeMap<ConnectionId, bool>,
    pub(crate) channels: Slab<Channel>,
    /// Transactions that are open.
    pub(crate) transactions: Slab<Transaction>,
    pub(crate) consumers: Slab<Consumer>,
    /// Tells channels, and consumers, in the same slot apart.
    pub(crate) next_incarnation: u32,
    /// Channels that this shard has announced to home.
    pub(crate) openings: u32,
}

/// What is left to do at the end of the turn, or in later turns.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// Queues to be served. Each is here once, and says so itself.
    pub(crate) dirty: Vec<u32>,
    /// Messages that were handed out of queues which had more.
    pub(crate) drained: u64,
    /// Queues with settles that no record has yet.
    pub(crate) unrecorded: Vec<u32>,
    /// Requeues of durable messages that no record has yet.
    pub(crate) requeued: Vec<Requeued>,
    /// Durable messages, by the number of their queue and their own, to which consumers have added what no
    /// record has yet.
    pub(crate) annotated: Vec<(u64, u64)>,
    /// Queues of sessions with messages that are handed out once they are flushed.
    pub(crate) unflushed: Vec<u32>,
    /// Channels with confirms, answers or cancelled consumers to tell, or to wait for.
    pub(crate) confirming: Vec<u32>,
    /// Consumers that begin with the next dispatch.
    pub(crate) starting: Vec<u32>,
    /// Consumers that are to be told when there is nothing more to deliver, by slot and incarnation.
    pub(crate) draining: Vec<(u32, u32)>,
    /// Settles that are carried out over several turns.
    pub(crate) settling: Settlings,
    /// Virtual hosts that are being deleted.
    pub(crate) vhost_deletions: VecDeque<VhostDeletion>,
    /// Numbers what channels wait for.
    pub(crate) next_work: u64,
    /// Purges of which there is no record yet.
    pub(crate) purges: Purges,
    /// Purged and deleted messages whose records are not released yet.
    pub(crate) departures: Departures,
    /// Queues whose limits and pages are checked once the group of records is complete.
    pub(crate) overdue: Vec<u32>,
    /// Queues of which more is ready than their limits allow, until there is time to let it go.
    pub(crate) overlong: VecDeque<u32>,
    /// Consumers of channels that have closed, by slot and incarnation.
    pub(crate) ending: VecDeque<(u32, u32)>,
    /// Numbers of queues that connections had to themselves which have ended.
    pub(crate) ownerless: VecDeque<u64>,
    /// Virtual hosts with bindings of what was deleted.
    pub(crate) unbinding: VecDeque<u32>,
    /// Virtual hosts in which not all follow the policies yet.
    pub(crate) policy_reviews: PolicyReviews,
    /// Queues that have a page to be written in a further turn.
    pub(crate) unpaged: VecDeque<u32>,
    /// Messages that have not reached all of their very many recipients.
    pub(crate) wide: WideFanouts,
    /// Producers that pause because of queues that have more than their consumers keep up with.
    pub(crate) pauses: Pauses,
    /// Messages that full queues refused within the group; their queues are overdue.
    pub(crate) refused: Vec<Refused>,
}

/// Records: being written, being read back, and what they take up in memory.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    pub(crate) state: StorageState,
    /// A snapshot that is written over several turns.
    pub(crate) snapshot: Option<Box<IncrementalSnapshot>>,
    /// The mark of durable messages that the snapshot has, or that came since it began: of all of them,
    /// where no snapshot is being written.
    pub(crate) mark: bool,
    /// Records are being appended that are recovered all or none, with nothing in between.
    pub(crate) in_group: bool,
    /// Every record before this one is flushed, as far as is known.
    pub(crate) flushed: Position,
    /// The number of the message being published, which goes into its record or with its fan-out.
    pub(crate) publish_number: Option<PublishNumber>,
    /// The last record of the present request about what survives a restart.
    pub(crate) changed_at: Option<Position>,
    pub(crate) loads: BTreeMap<LoadId, Loading>,
    pub(crate) arrivals: VecDeque<Arrival>,
    pub(crate) next_load: u64,
    /// Bytes of memory that loads will take up once they are answered, of all queues.
    pub(crate) loading_bytes: u64,
    /// Bytes of memory that messages take up, of all queues.
    pub(crate) resident: u64,
    /// Live references to records that do not survive a restart, by segment.
    pub(crate) transient_references: BTreeMap<u32, u64>,
    /// Marks of queues that moved and that the host has not taken.
    pub(crate) handed_out: HandedOut,
    /// The marks up to the last process's end are known.
    pub(crate) knows_handed_out: bool,
    /// What was found gone because a repair gave it up, to be named.
    pub(crate) given_up: Vec<GivenUp>,
    /// `Some`: records may be missing before those that are replayed.
    pub(crate) rescued: Option<Rescued>,
}

/// Buffers that are kept between calls for their memory.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) targets: Vec<QueueKey>,
    pub(crate) placements: Vec<Placement>,
    /// Groups of consumers that would take a message.
    pub(crate) matched: Vec<u32>,
    pub(crate) record: Vec<u8>,
    pub(crate) blob: Vec<u8>,
}

impl Topology {
    /// All virtual hosts, by name.
    pub(crate) fn by_name(&self) -> impl Iterator<Item = &Vhost> {
        self.vhost_slots.values().filter_map(|slot| self.vhosts.get(*slot))
    }
}

impl Agenda {
    /// Whether anything ends over several turns.
    #[inline]
    pub(crate) fn has_leaving(&self) -> bool {
        !self.overlong.is_empty()
            || !self.ending.is_empty()
            || !self.ownerless.is_empty()
            || !self.unbinding.is_empty()
            || !self.vhost_deletions.is_empty()
    }
}

impl Scratch {
    /// Room for encoding a message that is kept for the next one.
    const BLOB_BYTES_MAX: usize = 64 << 10;

    /// Keeps the room that a message was encoded in, unless that is large.
    #[inline]
    pub(crate) fn keep_blob(&mut self, room: Vec<u8>) {
        if room.capacity() <= Scratch::BLOB_BYTES_MAX {
            self.blob = room;
        }
    }
}

impl Clients {
    #[inline]
    pub(crate) fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.connections.get(id.0 as usize)?.as_ref()
    }

    /// The slot of a channel.
    #[inline]
    pub(crate) fn channel_slot(&self, id: ChannelId) -> Option<u32> {
        let channels = &self.connection(id.connection)?.channels;
        if let Some((number, slot)) = channels.first()
            && *number == id.number
        {
            return Some(*slot);
        }
        let index = channels.binary_search_by_key(&id.number, |(number, _)| *number).ok()?;
        Some(channels[index].1)
    }

    /// The slot of a channel, if that is still there.
    #[inline]
    pub(crate) fn channel_at(&self, place: ChannelPlace) -> Option<u32> {
        let channel = self.channels.get(place.slot)?;
        (channel.incarnation == place.incarnation).then_some(place.slot)
    }

    pub(crate) fn channel(&self, id: ChannelId) -> Option<&Channel> {
        self.channels.get(self.channel_slot(id)?)
    }

    /// What the client of a connection calls itself.
    pub(crate) fn client_name(&self, id: ConnectionId) -> Option<&str> {
        self.connection(id)?.client.as_deref()
    }

    /// The name of the client that publishes something, if it has one.
    pub(crate) fn name_of<'a>(&'a self, sender: Sender<'a>) -> Option<&'a str> {
        match sender {
            Sender::Connection(id) => self.client_name(id),
            Sender::Client(name) => Some(name),
            Sender::Unknown => None,
        }
    }

    /// A connection's user; the host's own connections have none.
    pub(crate) fn user(&self, id: ConnectionId) -> Option<&Arc<str>> {
        Some(&self.connection(id)?.grant.as_ref()?.user)
    }

    #[inline]
    pub(crate) fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(id.0 as usize)?.as_mut()
    }

    /// What a connection may do; `None`: everything.
    #[inline]
    pub(crate) fn grant(&mut self, id: ConnectionId) -> Option<&mut Grant> {
        self.connection_mut(id)?.grant.as_mut()
    }
}

impl Engine {
    /// An engine with the virtual host `/` and nothing else.
    pub fn new(options: Options) -> Engine {
        let mut random = Random::new(options.seed);
        let mut engine = Engine {
            access: Access::new(&options.conventions.names),
            definitions: Definitions::default(),
            pubsub: Direct::new(random.next()),
            work_budget: WorkBudget::new(options.limits.handed_at_once),
            options,
            topology: Topology::default(),
            queues: Queues::default(),
            clients: Clients::default(),
            sessions: Sessions::new(),
            logs: Logs::new(),
            subscriptions: NamedSubscriptions::default(),
            delays: Delays::default(),
            browsers: Browsers::default(),
            retained: Retained::default(),
            storage: Storage::default(),
            agenda: Agenda::default(),
            timers: Timers::default(),
            dead_letter_depth: 0,
            random,
            counters: Counters::default(),
            route_steps: 0,
            unasked_steps: 0,
            scratch: Scratch::default(),
        };
        engine.add_vhost("/");
        engine
    }

    /// A secret text of letters that are safe in subjects and URLs, six random bits each.
    pub fn secret(&mut self, letters: usize) -> String {
        self.random.name(letters)
    }

    /// Bytes from which a body is large.
    #[inline]
    #[must_use]
    pub fn large_body_bytes(&self) -> usize {
        self.options.limits.large_body_bytes
    }

    /// One copy of a large body, which all receivers share; `None`: it is not large.
    #[inline]
    #[must_use]
    pub fn copy_of_large(&self, body: &[u8]) -> Option<Bytes> {
        (body.len() >= self.large_body_bytes()).then(|| Bytes::copy_from_slice(body))
    }

    /// Begins a turn of the host.
    #[inline]
    pub fn begin_work_budget(&mut self) {
        self.work_budget.begin();
    }

    /// Whether the turn has used up its work budget
    /// ([`crate::interface::limits::Limits::handed_at_once`]), so that others get their turn.
    #[inline]
    #[must_use]
    pub fn is_step_over(&self) -> bool {
        self.work_budget.left() == 0
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
        self.clients.channel_slot(id)
    }

    /// The slot of a virtual host.
    pub(crate) fn vhost_slot(&self, name: &str) -> Result<u32, Refusal> {
        let slot = self.topology.vhost_slots.get(name).copied();
        let slot = slot.filter(|slot| !self.topology.vhosts[*slot].is_leaving);
        slot.ok_or_else(|| Refusal::new(RefusalKind::NotFound, format!("no virtual host '{name}'")))
    }

    /// Has a queue served at the next dispatch.
    #[inline]
    pub(crate) fn mark_dirty(&mut self, slot: u32) {
        if let Some(queue) = self.queues.get_mut(slot)
            && !queue.is_dirty
            && queue.is_served()
        {
            queue.is_dirty = true;
            self.agenda.dirty.push(slot);
        }
    }
}
