//! A workload as a value: who publishes what to whom, and for how long.

use super::stamp::{IDENTITY_BYTES, TIMED_BYTES};
use crate::client::amqp091::Argument;
use crate::client::{Error, Link, Protocol, Target};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most connections of one kind; each has a thread.
const WORKERS_MAX: usize = 1_000;
/// The largest body; the default limit of RabbitMQ and Angarium.
const SIZE_BYTES_MAX: usize = 128 << 20;
/// The largest confirm window.
const WINDOW_MAX: usize = 1 << 20;
/// The most subscriptions that match nothing.
const BYSTANDERS_MAX: usize = 10_000_000;
/// The largest confirm window of MQTT: packet identifiers have 16 bits.
const MQTT_WINDOW_MAX: usize = 20_000;
/// The most subjects per queue.
const SPREAD_MAX: u64 = 10_000_000;

/// By default, messages are lost once nothing arrives for this long.
pub const DRAIN: Duration = Duration::from_secs(10);

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// After an unmeasured warm-up and a measured span.
    After {
        /// Not measured.
        warm_up: Duration,
        /// Measured.
        measured: Duration,
    },
    /// When this many messages are published and delivered.
    Count(u64),
}

/// One workload against one broker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// The broker.
    pub target: Target,
    /// Connections that publish.
    pub producers: usize,
    /// Connections that consume; consumer `i` reads queue `i % queues`. With NATS, a queue is a subject,
    /// and consumers of the same one are a queue group.
    pub consumers: usize,
    /// Queues; without fan-out, producer `i` publishes to queue `i % queues`.
    pub queues: usize,
    /// Every message goes to every queue, by a fanout exchange or by one subject.
    pub fan_out: bool,
    /// Bytes of a body.
    pub size_bytes: usize,
    /// Delivery mode 2 (QoS 1 with MQTT) and durable queues, or streams that survive a restart.
    pub persistent: bool,
    /// Whether what is confirmed and acknowledged comes exactly once (QoS 2 of MQTT).
    pub exactly_once: bool,
    /// Whether the queues of persistent messages survive a restart, too.
    pub durable_queues: bool,
    /// Whether messages go through a topic exchange (AMQP).
    pub topic: bool,
    /// Deliveries per acknowledgement; 0 is automatic acknowledgement.
    pub ack_every: u32,
    /// Limit on unacknowledged deliveries per consumer; 0 is none.
    pub prefetch: u16,
    /// Limit on unconfirmed messages per producer; 0 is no confirms.
    pub window: usize,
    /// Limit on published and undelivered messages over all producers; 0 is none.
    pub ahead: u64,
    /// Messages per second over all producers; 0 is as fast as possible.
    pub rate: u64,
    /// When it ends.
    pub end: End,
    /// Messages are lost once nothing arrives for this long.
    pub drain: Duration,
    /// Whether bodies carry a checksum.
    pub checksum: bool,
    /// Whether latencies are taken.
    pub latency: bool,
    /// Subscriptions of another connection that match nothing.
    pub bystanders: usize,
    /// Subjects per queue that its messages take in turn; 0 is the queue's own. With AMQP 1.0, labels of
    /// messages, each of which has a selective subscription.
    pub spread: u64,
    /// Whether to count the broker's instructions, where possible.
    pub instructions: bool,
    /// Deliveries per group with a mean travel time; 0 keeps none.
    pub travel_group: u32,
    /// Messages per commit of a producer (transactions of AMQP and RESP); 0 is no transactions.
    pub commit_publishes: u32,
    /// Whether consumers acknowledge in transactions, and commit each acknowledgement.
    pub commit_acks: bool,
    /// Arguments of every queue.
    pub queue_arguments: Vec<(String, Argument)>,
}

/// Refuses a plan for the first reason that applies.
macro_rules! refuse {
    ($($applies:expr => $why:expr,)+) => { $(if $applies { return Err($why.into()); })+ };
}

impl Plan {
    /// The simplest plan: one producer, one consumer, 100 bytes, as fast as possible for ten seconds.
    pub fn new(target: Target) -> Plan {
        Plan {
            target,
            producers: 1,
            consumers: 1,
            queues: 1,
            fan_out: false,
            size_bytes: 100,
            persistent: false,
            exactly_once: false,
            durable_queues: true,
            topic: false,
            ack_every: 0,
            prefetch: 0,
            window: 0,
            ahead: 0,
            rate: 0,
            end: End::After { warm_up: Duration::from_secs(1), measured: Duration::from_secs(10) },
            drain: DRAIN,
            checksum: false,
            latency: false,
            bystanders: 0,
            spread: 0,
            instructions: false,
            travel_group: 0,
            commit_publishes: 0,
            commit_acks: false,
            queue_arguments: Vec::new(),
        }
    }

    /// Connects to the broker.
    pub(super) fn connect(&self) -> Result<Link, Error> {
        let mut link = Link::open(&self.target)?;
        if self.exactly_once {
            link.select_exactly_once()?;
        }
        Ok(link)
    }

    /// Whether messages of this size can carry a checksum.
    pub fn has_room_for_checksums(size_bytes: usize) -> bool {
        size_bytes >= IDENTITY_BYTES
    }

    /// Says what is wrong with the plan, if anything.
    pub fn check(&self) -> Result<(), String> {
        let Plan { producers, consumers, queues, size_bytes, window, ack_every, .. } = *self;
        let (workers, mqtt) = (1..=WORKERS_MAX, self.target.protocol() == Protocol::Mqtt);
        let window_max = if mqtt { MQTT_WINDOW_MAX } else { WINDOW_MAX };
        let has_room = Plan::has_room_for_checksums(size_bytes);
        refuse! {
            !workers.contains(&producers) => format!("producers must be 1 to {WORKERS_MAX}"),
            !workers.contains(&queues) => format!("queues, or subjects, must be 1 to {WORKERS_MAX}"),
            consumers > WORKERS_MAX => format!("consumers must be at most {WORKERS_MAX}"),
            size_bytes > SIZE_BYTES_MAX => format!("a message may have at most {SIZE_BYTES_MAX} octets"),
            window > window_max => format!("a confirm window may be at most {window_max}"),
            self.checksum && !has_room
                => format!("a checksum needs messages of at least {IDENTITY_BYTES} octets"),
            self.latency && size_bytes < TIMED_BYTES
                => format!("latencies need messages of at least {TIMED_BYTES} octets"),
            self.bystanders > BYSTANDERS_MAX
                => format!("at most {BYSTANDERS_MAX} subscriptions that match nothing"),
            self.spread > SPREAD_MAX
                => format!("messages may be spread over at most {SPREAD_MAX} subjects"),
            consumers > 0 && consumers < queues => "every queue needs a consumer, or none has one",
            self.prefetch > 0 && ack_every > u32::from(self.prefetch)
                => "acknowledging less often than the prefetch allows would stall",
            self.travel_group > 0 && !self.latency => "travel times need latencies",
            self.ahead > 0 && consumers == 0 => "a limit on undelivered messages needs consumers",
        }
        self.check_features()?;
        self.check_protocol()
    }

    /// Refuses features that the protocol lacks.
    fn check_features(&self) -> Result<(), String> {
        use Protocol::{Amqp10, Amqp091, JetStream, Mqtt, Nats, Resp, Stomp};
        const NOT_MQTT: &[Protocol] = &[Amqp091, Amqp10, Nats, JetStream, Stomp, Resp];
        let transactions = self.commit_publishes > 0 || self.commit_acks;
        let arguments = !self.queue_arguments.is_empty();
        let features: [(bool, &str, &[Protocol]); 9] = [
            (self.persistent, "persistent messages", &[Nats]),
            (self.window > 0, "confirms", &[Nats]),
            (self.exactly_once, "messages that come exactly once", NOT_MQTT),
            (self.ack_every > 0, "acknowledgements", &[Nats]),
            (self.prefetch > 0, "prefetch limit", &[Nats]),
            (arguments, "queue arguments", &[Nats, JetStream, Mqtt, Stomp, Resp]),
            (transactions, "transactions", &[Nats, JetStream, Mqtt, Stomp]),
            (self.spread > 0, "spread subjects", &[Amqp091, Mqtt, Stomp]),
            (self.bystanders > 0, "patterns", &[Amqp10, Stomp]),
        ];
        let protocol = self.target.protocol();
        for (used, what, lacking) in features {
            if used && lacking.contains(&protocol) {
                return Err(format!("{} has no {what} here", protocol.name()));
            }
        }
        Ok(())
    }

    /// Refuses combinations that the protocol does not have.
    fn check_protocol(&self) -> Result<(), String> {
        let (protocol, kept, confirms) = (self.target.protocol(), self.is_kept(), self.window > 0);
        let (mqtt, resp) = (protocol == Protocol::Mqtt, protocol == Protocol::Resp);
        let (acks, is_shared) = (self.ack_every > 0, self.consumers > self.queues);
        let patterns = self.bystanders > 0 || self.spread > 0;
        // Streams store messages; channels and subjects do not.
        let streams = resp || protocol == Protocol::JetStream;
        refuse! {
            protocol == Protocol::Amqp091 && self.fan_out && patterns
                => "what goes to all queues has no patterns beside it",
            protocol == Protocol::Amqp10 && self.spread > 0 && (acks || self.fan_out)
                => "selective subscriptions of AMQP 1.0 are of queues here, without acknowledgements",
            protocol == Protocol::Amqp10 && self.spread > 0 && self.consumers > self.queues
                && !self.consumers.is_multiple_of(self.queues)
                => "with selective subscriptions every queue needs as many consumers",
            self.commit_publishes > 0 && confirms => "a publisher has confirms or transactions, not both",
            self.commit_acks && !acks => "transacted acknowledgements need acknowledgements",
            mqtt && self.persistent && !confirms => "MQTT has persistent messages with confirms only",
            mqtt && acks && !confirms => "MQTT has acknowledgements of confirmed messages only",
            self.exactly_once && !confirms => "what comes exactly once is confirmed",
            self.exactly_once && self.consumers > 0 && !acks => "what comes exactly once is acknowledged",
            mqtt && self.persistent && is_shared => "MQTT has one consumer for each session",
            streams && kept && patterns => "streams have no patterns here; channels and subjects do",
            streams && !kept && acks
                => "acknowledgements are in streams only: of messages that are persistent or confirmed here",
            resp && !kept && is_shared
                => "every subscriber of a channel of Redis gets each message: there are no groups that \
                    share them",
            streams && !resp && self.persistent && !confirms
                => "JetStream drops what comes faster than it stores it: persistent messages are \
                    confirmed ones here",
        }
        Ok(())
    }

    /// Whether messages are stored until consumed, where a protocol distinguishes that.
    pub fn is_kept(&self) -> bool {
        self.persistent || self.window > 0
    }

    /// With this many pairs of a producer and a consumer, each with its own queue.
    pub fn in_pairs(self, pairs: usize) -> Plan {
        Plan { producers: pairs, consumers: pairs, queues: pairs, ..self }
    }

    /// With this many consumers that each get every message.
    pub fn fanned_out(self, consumers: usize) -> Plan {
        Plan { consumers, queues: consumers, fan_out: true, ..self }
    }

    /// Whether every message is consumed by the partner of its producer: pairs can be distributed.
    pub(super) fn is_in_pairs(&self) -> bool {
        !self.fan_out && self.producers == self.consumers && self.producers == self.queues
    }

    /// Number of queues that a message goes to.
    pub fn copies(&self) -> u64 {
        if self.fan_out { self.queues as u64 } else { 1 }
    }

    /// Whether this producer's messages go to this queue.
    pub fn routes(&self, producer: usize, queue: usize) -> bool {
        self.fan_out || producer % self.queues == queue
    }

    /// Number of messages that this producer publishes at most.
    pub fn share_of(&self, producer: usize) -> u64 {
        let End::Count(total) = self.end else { return u64::MAX };
        let (producer, producers) = (producer as u64, self.producers as u64);
        total / producers + u64::from(producer < total % producers)
    }

    /// The plan in one line.
    pub fn describe(&self) -> String {
        let route = if self.fan_out { "fan-out to" } else { "over" };
        let (producers, consumers, size) = (self.producers, self.consumers, self.size_bytes);
        let ends = format!("{producers} producers, {consumers} consumers");
        let streams_only = self.target.protocol() == Protocol::JetStream;
        if self.target.protocol() == Protocol::Nats || streams_only && !self.is_kept() {
            let what = if self.consumers > self.queues { "queue groups" } else { "subjects" };
            return format!("{ends}, {route} {} {what}, {size} B, at most once", self.queues);
        }
        let mode = if self.persistent { "persistent" } else { "transient" };
        let acks = match self.ack_every {
            0 => "auto-ack".to_owned(),
            every => format!("ack every {every}"),
        };
        let acks = if self.exactly_once { format!("{acks}, exactly once") } else { acks };
        let confirms = match (self.commit_publishes, self.window) {
            (0, 0) => "no confirms".to_owned(),
            (0, window) => format!("confirm window {window}"),
            (count, _) => format!("{count} messages a commit"),
        };
        let acks = if self.commit_acks { format!("{acks} and commit") } else { acks };
        format!("{ends}, {route} {} queues, {size} B {mode}, {acks}, {confirms}", self.queues)
    }
}
