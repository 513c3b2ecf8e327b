//! The plan of a run: topology, clients, sizes and faults. A workload draws it; checks read it to
//! know what to expect.

pub mod amqp091;
pub mod amqp10;
mod direct;
pub mod mqtt;
pub mod nats;
mod queue;

pub use queue::{Queue, QueueIndex};

use angarium_engine::{ExchangeKind, SlowConsumerPolicy};

/// The plan of one run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The workload that made it.
    pub workload: &'static str,
    /// Exchanges besides the predeclared ones.
    pub exchanges: Vec<Exchange>,
    /// Queues.
    pub queues: Vec<Queue>,
    /// Bindings of queues, and exchanges, to exchanges.
    pub bindings: Vec<Binding>,
    /// Clients, a connection each.
    pub clients: Vec<Client>,
    /// In-process clients of named sessions.
    pub sessions: Vec<SessionClient>,
    /// Virtual microseconds for which clients work before everything is drained.
    pub duration: u64,
    /// The node's sizes.
    pub sizes: Sizes,
    /// The broker's shards.
    pub shards: Shards,
    /// The slow-consumer policy.
    pub slow_consumer_policy: SlowConsumerPolicy,
    /// What goes wrong.
    pub faults: Faults,
    /// The spill disk and its faults.
    pub spill: Spill,
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
    /// The alternate exchange: an index in [`Plan::exchanges`].
    pub alternate: Option<usize>,
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
    /// The arguments of a binding to a headers exchange.
    pub headers: HeaderMatch,
}

/// The target of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A queue.
    Queue(QueueIndex),
    /// An index in [`Plan::exchanges`].
    Exchange(usize),
}

/// The arguments of a binding to a headers exchange.
#[derive(Clone, Debug, Default)]
pub struct HeaderMatch {
    /// One matching header is enough (`any`), else all must match.
    pub any: bool,
    /// Names that begin with `x-` are compared as well.
    pub with_x: bool,
    /// Names and values.
    pub headers: Vec<(String, i64)>,
}

/// A client: a connection, and what it does on it.
#[derive(Clone, Debug)]
pub enum Client {
    /// Speaks AMQP 0-9-1: a role on each channel.
    Amqp091(Vec<amqp091::Role>),
    /// Speaks AMQP 1.0.
    Amqp10(amqp10::Client),
    /// Speaks MQTT.
    Mqtt(mqtt::Client),
    /// Speaks NATS.
    Nats(nats::Client),
}

impl From<amqp091::Role> for Client {
    fn from(role: amqp091::Role) -> Client {
        Client::Amqp091(vec![role])
    }
}

impl From<amqp10::Client> for Client {
    fn from(client: amqp10::Client) -> Client {
        Client::Amqp10(client)
    }
}

impl From<nats::Client> for Client {
    fn from(client: nats::Client) -> Client {
        Client::Nats(client)
    }
}

/// A client that claims named sessions and gives them up. It is in-process: no protocol claims
/// sessions.
#[derive(Clone, Debug)]
pub struct SessionClient {
    /// Number of sessions to choose from; all such clients name them alike.
    pub sessions: usize,
    /// Longest expiry, in milliseconds.
    pub expiry_max: u64,
    /// Percentage of claims that are recorded.
    pub recorded_percent: u64,
    /// Percentage of claims of a fresh session.
    pub fresh_percent: u64,
    /// Longest pause between two requests, in microseconds.
    pub pause_max: u64,
}

/// The node's sizes, small enough that every limit is reached within seconds.
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

/// The broker's shards, and how their turns and batches are delayed until faults end.
#[derive(Clone, Debug)]
pub struct Shards {
    /// Number of shards.
    pub count: usize,
    /// Longest delay of a batch between two shards, in microseconds.
    pub delay_max: u64,
    /// Percentage of turns that are late, by up to [`Shards::late_max`].
    pub late_percent: u64,
    /// Longest delay of a turn, in microseconds.
    pub late_max: u64,
}

/// How often each fault happens.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Crashes of the node.
    pub crashes: u64,
    /// Orderly restarts of the node.
    pub closes: u64,
    /// Failing flushes, each followed by a crash.
    pub sync_errors: u64,
    /// Times the disk is full for a while.
    pub disk_fulls: u64,
    /// While the node is down, one bit in a segment that was flushed long ago is flipped.
    pub bit_flip: bool,
    /// Cut connections.
    pub cuts: u64,
    /// Times one direction of a connection stalls for a while.
    pub stalls: u64,
    /// Largest piece in which bytes arrive.
    pub fragment_max: usize,
    /// Longest delay of a piece, in microseconds.
    pub delay_max: u64,
    /// Longest disk job, in microseconds.
    pub disk_delay_max: u64,
    /// Bytes that each direction of a connection buffers.
    pub pipe_bytes: usize,
}

/// The spill disk and its faults.
#[derive(Clone, Debug, Default)]
pub struct Spill {
    /// Most chunks on each shard; `None` for no limit.
    pub chunks_max: Option<u64>,
    /// `SpillOptions::chunk_bytes`.
    pub chunk_bytes: usize,
    /// `SpillOptions::loaded_max`.
    pub loaded_max: usize,
    /// Times a change of the disk fails: once, or all for a while.
    pub failures: u64,
    /// Times it is full for a while.
    pub fulls: u64,
    /// Times files are damaged or truncated, before several jobs.
    pub corruptions: u64,
    /// Longest extra time of a job, in microseconds.
    pub slowness_max: u64,
}

impl Spill {
    /// Whether spilled messages may get lost.
    pub fn loses(&self) -> bool {
        self.chunks_max.is_some() || self.has_faults()
    }

    /// Whether it has faults.
    pub fn has_faults(&self) -> bool {
        self.failures + self.fulls + self.corruptions > 0
    }
}

impl Plan {
    /// The queues that a message for `queue` may be in, by dead-lettering.
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

    /// Whether dead letters of another queue go to this one.
    pub fn is_dead_letter_target(&self, queue: QueueIndex) -> bool {
        self.queues.iter().any(|other| other.dead_letters_to == Some(queue))
    }

    /// Whether a confirmed message for `queue` may be lost without a consumer having settled it.
    pub fn loses(&self, queue: QueueIndex) -> bool {
        self.reach(queue).into_iter().any(|at| self.queues[at].drops())
    }

    /// Whether every persistent message for `queue` is stored before it is confirmed: the queue
    /// always exists, and no consumer takes presettled messages, which are not stored.
    pub fn stores(&self, queue: QueueIndex) -> bool {
        let it = &self.queues[queue];
        let takes_presettled = |role: &amqp091::Role| {
            matches!(role, amqp091::Role::Consumer(consumer)
                if consumer.queue == queue && consumer.acks == amqp091::Acks::Auto)
        };
        it.durable && !it.lossy && !it.is_private() && !self.roles().any(takes_presettled)
    }

    /// The roles of all AMQP 0-9-1 clients.
    pub fn roles(&self) -> impl Iterator<Item = &amqp091::Role> {
        self.clients.iter().flat_map(|client| match client {
            Client::Amqp091(roles) => roles.as_slice(),
            Client::Amqp10(_) | Client::Mqtt(_) | Client::Nats(_) => &[],
        })
    }

    /// The AMQP 1.0 clients.
    pub fn amqp10_clients(&self) -> impl Iterator<Item = &amqp10::Client> {
        self.clients.iter().filter_map(|client| match client {
            Client::Amqp091(_) | Client::Mqtt(_) | Client::Nats(_) => None,
            Client::Amqp10(client) => Some(client),
        })
    }

    /// Whether some client consumes from the queue while clients work.
    pub fn has_consumer(&self, queue: QueueIndex) -> bool {
        let takes = |role: &amqp091::Role| match role {
            amqp091::Role::Consumer(consumer) => consumer.queue == queue,
            amqp091::Role::Relay(relay) => relay.from == queue,
            _ => false,
        };
        let mut taken = self.amqp10_clients().filter_map(amqp10::Client::takes_from);
        self.roles().any(takes) || taken.any(|it| it == queue)
    }

    /// Whether there are clients that speak MQTT.
    pub fn has_mqtt(&self) -> bool {
        self.clients.iter().any(|client| matches!(client, Client::Mqtt(_)))
    }

    /// The NATS clients.
    pub fn nats_clients(&self) -> impl Iterator<Item = &nats::Client> {
        self.clients.iter().filter_map(|client| match client {
            Client::Amqp091(_) | Client::Amqp10(_) | Client::Mqtt(_) => None,
            Client::Nats(client) => Some(client),
        })
    }

    /// The roles of all AMQP 0-9-1 clients.
    pub fn roles_mut(&mut self) -> impl Iterator<Item = &mut amqp091::Role> {
        self.clients.iter_mut().flat_map(|client| match client {
            Client::Amqp091(roles) => roles.as_mut_slice(),
            Client::Amqp10(_) | Client::Mqtt(_) | Client::Nats(_) => &mut [],
        })
    }

    /// Bytes of the longest message.
    pub fn body_max(&self) -> u64 {
        let of_roles = self.roles().map(|role| match role {
            amqp091::Role::Producer(producer) => producer.body_max,
            _ => 0,
        });
        let parts = self.nats_clients().flat_map(|client| &client.parts);
        let of_parts = parts.map(|part| match part {
            nats::Part::Publish(publishing) => publishing.body_max,
            _ => 0,
        });
        let of_transactors = self.amqp10_clients().map(|client| match client {
            amqp10::Client::Transactor(_) => amqp10::TRANSACTOR_BODY_MAX as u64,
            amqp10::Client::Taker(_) | amqp10::Client::Browser(_) => 0,
        });
        of_roles.chain(of_parts).chain(of_transactors).max().unwrap_or(0)
    }

    /// The queues that a message published to `exchange` with `key` and these headers goes to.
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
            ExchangeKind::Filtered => false,
        }
    }
}

impl Shards {
    /// A broker of one shard.
    pub const ONE: Shards = Shards { count: 1, delay_max: 0, late_percent: 0, late_max: 0 };
}

impl Sizes {
    /// Unsent bytes above which a client is a slow consumer.
    pub fn direct_bytes_max(&self) -> usize {
        4 * self.outbox_bytes_max
    }
}

impl Binding {
    /// A binding of a queue by a key.
    pub fn of_queue(exchange: usize, queue: QueueIndex, key: impl Into<String>) -> Binding {
        let target = Target::Queue(queue);
        Binding { exchange, target, key: key.into(), headers: HeaderMatch::default() }
    }
}

impl HeaderMatch {
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
    pub fn mode(&self) -> &'static str {
        match (self.any, self.with_x) {
            (false, false) => "all",
            (false, true) => "all-with-x",
            (true, false) => "any",
            (true, true) => "any-with-x",
        }
    }
}

/// Topic matching by its definition: `*` is one word, `#` any number.
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
