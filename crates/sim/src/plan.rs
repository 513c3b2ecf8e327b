//! What a run is going to do, as data: topology, clients, sizes and faults. A workload makes one from
//! chance; checks read it to know what may be expected.

pub mod nats;
pub mod sessions;

use crate::history::QueueIndex;
use angarium_engine::SlowConsumerPolicy;
use angarium_engine::{ExchangeKind, Overflow};
use nats::Nats;

/// One run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The workload that made it.
    pub workload: &'static str,
    /// Exchanges beside those that always exist.
    pub exchanges: Vec<Exchange>,
    /// Queues.
    pub queues: Vec<Queue>,
    /// Bindings of queues, and exchanges, to exchanges.
    pub bindings: Vec<Binding>,
    /// Clients, a connection each.
    pub clients: Vec<Role>,
    /// In-process clients of named sessions.
    pub sessions: Vec<sessions::SessionClient>,
    /// Virtual microseconds for which clients work before everything is drained.
    pub duration: u64,
    /// The node's sizes.
    pub sizes: Sizes,
    /// The broker's shards.
    pub shards: Shards,
    /// What becomes of clients that are too far behind for direct messages.
    pub slow_consumer_policy: SlowConsumerPolicy,
    /// What goes wrong.
    pub faults: Faults,
    /// What becomes of direct messages that wait on a disk for slow clients.
    pub spool: Spool,
    /// Clients may be refused (a queue that another client deletes, say).
    pub may_refuse: bool,
}

/// An exchange.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Its name.
    pub name: String,
    /// How it routes.
    pub kind: ExchangeKind,
    /// Of type `x-delayed-message`.
    pub delaying: bool,
    /// Where messages go that none of its bindings takes: an index in [`Plan::exchanges`].
    pub alternate: Option<usize>,
}

/// A queue, and what it promises.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Survives a restart.
    pub durable: bool,
    /// Only its consumer's connection declares and sees it.
    pub exclusive: bool,
    /// Goes with its last consumer.
    pub auto_delete: bool,
    /// `x-message-ttl` in milliseconds.
    pub ttl: Option<u64>,
    /// `x-max-length`.
    pub length_max: Option<u64>,
    /// `x-overflow`.
    pub overflow: Overflow,
    /// The queue that dead letters go to, through the default exchange.
    pub dead_letters_to: Option<QueueIndex>,
    /// `x-max-priority`.
    pub priority_max: Option<u8>,
    /// `x-single-active-consumer`.
    pub single_active: bool,
    /// `x-delivery-limit`.
    pub delivery_limit: Option<u64>,
    /// `x-expires` in milliseconds. Only its lodger declares it.
    pub expires: Option<u64>,
    /// Clients purge or delete it, or it goes with its connection: it promises to keep nothing.
    pub lossy: bool,
}

/// A binding.
#[derive(Clone, Debug)]
pub struct Binding {
    /// An index in [`Plan::exchanges`].
    pub exchange: usize,
    /// What is bound to it.
    pub target: Target,
    /// Binding key or pattern.
    pub key: String,
    /// What a headers exchange asks of a message.
    pub headers: Wanted,
}

/// What a binding leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A queue.
    Queue(QueueIndex),
    /// An index in [`Plan::exchanges`].
    Exchange(usize),
}

/// What a binding to a headers exchange asks of a message's headers.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// One of them is enough (`any`), else all must be there.
    pub any: bool,
    /// Names that begin with `x-` are compared as well.
    pub with_x: bool,
    /// Names and values.
    pub headers: Vec<(String, i64)>,
}

/// What a client does.
#[derive(Clone, Debug)]
pub enum Role {
    /// Publishes.
    Producer(Producer),
    /// Consumes.
    Consumer(Consumer),
    /// Moves messages from one queue to others in transactions.
    Relay(Relay),
    /// Purges, deletes and declares again.
    Meddler(Meddler),
    /// Asks questions and waits for the answers at its own address.
    Requester(Requester),
    /// Answers them.
    Responder(Responder),
    /// Uses a queue now and then that expires without use.
    Lodger(Lodger),
    /// Speaks NATS.
    Nats(Nats),
    /// Several of them, each on a channel of its own of one connection.
    Several(Vec<Role>),
}

/// How a producer learns what became of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Publisher confirms.
    Confirm,
    /// Not at all.
    Plain,
    /// Transactions of so many messages.
    Transactional(u64),
}

/// A publishing client.
#[derive(Clone, Debug)]
pub struct Producer {
    /// Index in [`Plan::exchanges`]; `None` for the default exchange.
    pub exchange: Option<usize>,
    /// Routing keys to choose from.
    pub keys: Vec<String>,
    /// Most messages.
    pub messages: u32,
    /// Most unconfirmed messages.
    pub window: u32,
    /// How it learns what became of them.
    pub mode: Mode,
    /// How many in a hundred are persistent.
    pub persistent_percent: u64,
    /// How many in a hundred are mandatory.
    pub mandatory_percent: u64,
    /// Longest body.
    pub body_max: u64,
    /// Highest priority.
    pub priority_max: u8,
    /// How many in a hundred have a time to live of their own, of up to so many milliseconds.
    pub ttl: Option<(u64, u64)>,
    /// Longest `x-delay` in milliseconds.
    pub delay_max: Option<u64>,
    /// Delays end at multiples of so many milliseconds: many messages come due together.
    pub delay_step: Option<u64>,
    /// Names of headers to choose from.
    pub headers: Vec<String>,
    /// Longest pause after a burst, in microseconds.
    pub pause_max: u64,
    /// Transactions: how many in a hundred are rolled back.
    pub rollback_percent: u64,
}

/// How a consumer acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Not at all: settled once sent.
    Auto,
    /// Each delivery by itself, in any order.
    Single,
    /// Up to the newest, after so many.
    Multiple(u64),
}

/// A consuming client.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// The queue.
    pub queue: QueueIndex,
    /// How it acknowledges.
    pub acks: Acks,
    /// Prefetch count; 0 for none.
    pub prefetch: u64,
    /// Prefetch bytes; 0 for none.
    pub prefetch_bytes: u64,
    /// How many in a hundred deliveries it requeues.
    pub requeue_percent: u64,
    /// How many in a hundred it discards.
    pub discard_percent: u64,
    /// Longest time it thinks about a delivery, in microseconds.
    pub think_max: u64,
    /// It takes messages one by one with basic.get instead of subscribing.
    pub gets: bool,
    /// It leaves and comes back after up to so many microseconds.
    pub life_max: Option<u64>,
}

/// A client that consumes, publishes what it took anew, and commits both at once.
#[derive(Clone, Debug)]
pub struct Relay {
    /// Where from.
    pub from: QueueIndex,
    /// Where to: a message into each.
    pub to: Vec<QueueIndex>,
    /// Deliveries in one transaction.
    pub batch: u64,
    /// How many in a hundred transactions are rolled back.
    pub rollback_percent: u64,
}

/// A client that disturbs others.
#[derive(Clone, Debug)]
pub struct Meddler {
    /// The queue it purges or deletes.
    pub queue: QueueIndex,
    /// How many in a hundred times it deletes instead of purging.
    pub delete_percent: u64,
    /// Longest pause, in microseconds.
    pub pause_max: u64,
}

/// A client that publishes requests and gets the replies without a queue: direct reply-to.
#[derive(Clone, Debug)]
pub struct Requester {
    /// The queue that the requests go to.
    pub queue: QueueIndex,
    /// Most requests.
    pub messages: u32,
    /// Most requests without a reply.
    pub window: u32,
    /// How many in a hundred are persistent.
    pub persistent_percent: u64,
    /// Longest pause, in microseconds.
    pub pause_max: u64,
}

/// A client that consumes requests and sends each a reply.
#[derive(Clone, Debug)]
pub struct Responder {
    /// The queue that the requests are in.
    pub queue: QueueIndex,
    /// Most requests at a time.
    pub prefetch: u16,
    /// How many in a hundred replies are mandatory.
    pub mandatory_percent: u64,
    /// Longest time it thinks, in microseconds.
    pub think_max: u64,
}

/// A client that declares its queue again and again and keeps a message there.
#[derive(Clone, Debug)]
pub struct Lodger {
    /// The queue, which expires without use.
    pub queue: QueueIndex,
    /// Longest time between two uses, in microseconds.
    pub away_max: u64,
}

/// The node's sizes, small so that every boundary is met within seconds.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// `Limits::resident_bytes_max`.
    pub resident_bytes_max: u64,
    /// `Limits::queue_resident_bytes_max`.
    pub queue_resident_bytes_max: u64,
    /// `journal::Options::segment_bytes`.
    pub segment_bytes: u32,
    /// `journal::Options::checkpoint_bytes`.
    pub checkpoint_bytes: u64,
    /// `journal::Options::backlog_bytes_max`.
    pub backlog_bytes_max: u64,
    /// `node::Options::outbox_bytes_max`.
    pub outbox_bytes_max: usize,
    /// Bytes of the disk.
    pub disk_bytes: u64,
}

/// Of how many shards the broker consists, and how they take turns. That ends with the faults.
#[derive(Clone, Debug)]
pub struct Shards {
    /// How many.
    pub count: usize,
    /// Longest way of a batch between two of them, in microseconds.
    pub delay_max: u64,
    /// How many in a hundred turns are late, by up to [`Shards::nap_max`].
    pub nap_percent: u64,
    /// Longest time for which a shard does not get its turn, in microseconds.
    pub nap_max: u64,
}

/// How often what goes wrong.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Times the node is dropped in the middle of everything.
    pub crashes: u64,
    /// Times it is closed in order and started again.
    pub closes: u64,
    /// Times a flush fails; the node is crashed some time after.
    pub sync_errors: u64,
    /// Times the disk has no space left for a while.
    pub disk_fulls: u64,
    /// One bit of what was flushed long ago is flipped while the node is down.
    pub bit_flip: bool,
    /// Times a connection is cut.
    pub cuts: u64,
    /// Times a client stops reading, or its bytes stop arriving, for a while.
    pub stalls: u64,
    /// Largest piece in which bytes arrive.
    pub fragment_max: usize,
    /// Longest way of a piece, in microseconds.
    pub delay_max: u64,
    /// Longest disk job, in microseconds.
    pub disk_delay_max: u64,
    /// What each direction of a connection buffers.
    pub pipe_bytes: usize,
}

/// The disk on which direct messages wait for slow clients, and what goes wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Spool {
    /// Chunks that may wait on each shard; `None`: as many as there are.
    pub chunks_max: Option<u64>,
    /// `SpillOptions::chunk_bytes`.
    pub chunk_bytes: usize,
    /// `SpillOptions::loaded_max`.
    pub loaded_max: usize,
    /// Times something fails that changes the disk: once, or everything for a while.
    pub failures: u64,
    /// Times it has no space left for a while.
    pub fulls: u64,
    /// Times files are damaged or cut short, before several jobs.
    pub rots: u64,
    /// Longest time that a job takes besides, in microseconds.
    pub slowness_max: u64,
}

impl Spool {
    /// Whether a client may miss what has waited there.
    #[must_use]
    pub fn loses(&self) -> bool {
        self.chunks_max.is_some() || self.has_faults()
    }

    /// Whether it ever fails.
    #[must_use]
    pub fn has_faults(&self) -> bool {
        self.failures + self.fulls + self.rots > 0
    }
}

impl Plan {
    /// The queues in which a message for `queue` may lie, by dead-lettering.
    #[must_use]
    pub fn reach(&self, queue: QueueIndex) -> Vec<QueueIndex> {
        let mut reached = vec![queue];
        while let Some(next) = self.queues[*reached.last().expect("never empty")].dead_letters_to {
            if reached.contains(&next) {
                break;
            }
            reached.push(next);
        }
        reached
    }

    /// Whether dead letters of another queue come into this one.
    #[must_use]
    pub fn is_dead_letter_target(&self, queue: QueueIndex) -> bool {
        self.queues.iter().any(|other| other.dead_letters_to == Some(queue))
    }

    /// Whether a confirmed message for `queue` may go without a consumer having settled it.
    #[must_use]
    pub fn loses(&self, queue: QueueIndex) -> bool {
        self.reach(queue).into_iter().any(|at| self.queues[at].drops())
    }

    /// Whether every persistent message for `queue` is stored before it is confirmed: the queue is
    /// always there, and nobody takes messages from it as settled, which need no storing.
    #[must_use]
    pub fn stores(&self, queue: QueueIndex) -> bool {
        let Queue { durable, lossy, .. } = self.queues[queue];
        let is_presettling = |role: &Role| match role {
            Role::Consumer(consumer) => consumer.queue == queue && consumer.acks == Acks::Auto,
            _ => false,
        };
        let is_safe = durable && !lossy && !self.queues[queue].is_private();
        is_safe && !self.roles().any(is_presettling)
    }

    /// What all clients do, on whichever channel.
    pub fn roles(&self) -> impl Iterator<Item = &Role> {
        self.clients.iter().flat_map(|client| match client {
            Role::Several(roles) => roles.as_slice(),
            role => std::slice::from_ref(role),
        })
    }

    /// Bytes of the longest message.
    #[must_use]
    pub fn body_max(&self) -> u64 {
        let bodies = self.roles().map(|role| match role {
            Role::Producer(producer) => producer.body_max,
            _ => 0,
        });
        bodies.max().unwrap_or(0).max(self.direct_body_max())
    }

    /// The queues that a message published to `exchange` with `key` and these headers goes to.
    #[must_use]
    pub fn route(
        &self,
        exchange: Option<usize>,
        key: &str,
        headers: &[(String, i64)],
    ) -> Vec<QueueIndex> {
        let Some(exchange) = exchange else {
            return self.queues.iter().position(|queue| queue.name == key).into_iter().collect();
        };
        let mut queues = Vec::new();
        let mut exchanges = vec![exchange];
        let mut at = 0;
        while let Some(exchange) = exchanges.get(at).copied() {
            at += 1;
            let takes = |binding: &&Binding| {
                binding.exchange == exchange && self.takes(binding, key, headers)
            };
            let mut targets: Vec<Target> =
                self.bindings.iter().filter(takes).map(|binding| binding.target).collect();
            if targets.is_empty() {
                targets.extend(self.exchanges[exchange].alternate.map(Target::Exchange));
            }
            for target in targets {
                match target {
                    Target::Queue(queue) => queues.push(queue),
                    Target::Exchange(next) if exchanges.contains(&next) => {}
                    Target::Exchange(next) => exchanges.push(next),
                }
            }
        }
        queues.sort_unstable();
        queues.dedup();
        queues
    }

    /// Whether a binding takes a message.
    fn takes(&self, binding: &Binding, key: &str, headers: &[(String, i64)]) -> bool {
        match self.exchanges[binding.exchange].kind {
            ExchangeKind::Fanout => true,
            ExchangeKind::Topic => {
                let pattern: Vec<&str> = binding.key.split('.').collect();
                let words: Vec<&str> = key.split('.').collect();
                words_match(&pattern, &words)
            }
            ExchangeKind::Direct => binding.key == key,
            ExchangeKind::Headers => binding.headers.matches(headers),
        }
    }
}

impl Shards {
    /// One, alone.
    pub const ONE: Shards = Shards { count: 1, delay_max: 0, nap_percent: 0, nap_max: 0 };
}

impl Sizes {
    /// Bytes unsent to a client beyond which it is too far behind for direct messages.
    #[must_use]
    pub fn direct_bytes_max(&self) -> usize {
        4 * self.outbox_bytes_max
    }
}

impl Binding {
    /// Of a queue, by a key.
    #[must_use]
    pub fn of_queue(exchange: usize, queue: QueueIndex, key: impl Into<String>) -> Binding {
        let target = Target::Queue(queue);
        Binding { exchange, target, key: key.into(), headers: Wanted::default() }
    }
}

impl Wanted {
    fn matches(&self, headers: &[(String, i64)]) -> bool {
        let mut compared =
            self.headers.iter().filter(|(name, _)| self.with_x || !name.starts_with("x-"));
        if self.any {
            compared.any(|wanted| headers.contains(wanted))
        } else {
            compared.all(|wanted| headers.contains(wanted))
        }
    }

    /// The value of `x-match`.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        match (self.any, self.with_x) {
            (false, false) => "all",
            (false, true) => "all-with-x",
            (true, false) => "any",
            (true, true) => "any-with-x",
        }
    }
}

impl Queue {
    /// Whether only one client declares and uses it; it may be gone at any time.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.exclusive || self.auto_delete || self.expires.is_some()
    }

    /// Whether it drops messages of its own accord.
    fn drops(&self) -> bool {
        let by_rule = self.ttl.is_some()
            || self.delivery_limit.is_some()
            || (self.length_max.is_some() && self.overflow == Overflow::DropHead);
        self.lossy || (by_rule && self.dead_letters_to.is_none())
    }
}

/// Topic matching straight from its definition: `*` is one word, `#` any number.
fn words_match(pattern: &[&str], words: &[&str]) -> bool {
    match (pattern.split_first(), words.split_first()) {
        (None, None) => true,
        (Some((&"#", rest)), _) => {
            words_match(rest, words) || (!words.is_empty() && words_match(pattern, &words[1..]))
        }
        (Some((&"*", rest)), Some((_, words))) => words_match(rest, words),
        (Some((want, rest)), Some((word, words))) => want == word && words_match(rest, words),
        _ => false,
    }
}
