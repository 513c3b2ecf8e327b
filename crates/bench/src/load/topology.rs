//! What the messages of a run go through: exchanges and queues, or subjects and groups.

use super::plan::Plan;
use crate::client::{Acks, Error, Labels, Link, Protocol, Route, Session, Source};
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// The names that one run uses. Declared objects are deleted when it ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Topology {
    protocol: Protocol,
    /// The exchange or subject that feeds all queues, if there is one.
    exchange: String,
    /// The queues, or their subjects.
    pub(super) queues: Vec<String>,
    groups: Vec<String>,
    /// Per queue, the session that stores its messages (MQTT, persistent), the durable subscription (AMQP
    /// 1.0, persistent messages of a topic), the group that reads its stream (RESP, stored), or the stream's
    /// consumer (JetStream, stored).
    sessions: Vec<String>,
    unmatched: Option<String>,
    /// Per queue, what is published to and what is subscribed to: the queue, or the first of the subjects
    /// that its messages are spread over and the pattern of all of them. With AMQP 1.0 the digits are the
    /// label of a message.
    keys: Vec<String>,
    sources: Vec<String>,
}

/// The end of the first subject that messages are spread over; the others have other digits.
pub(super) const FIRST_DIGITS: &str = ".0000000";

impl Topology {
    /// Unique names for a run of this plan.
    pub(super) fn of(plan: &Plan) -> Topology {
        let protocol = plan.target.protocol();
        let mut names = Names::new(protocol);
        let patterns = protocol == Protocol::Amqp091 && (plan.topic || plan.bystanders > 0);
        if patterns {
            // Topic patterns match words between dots.
            names.separator = '.';
        }
        let queues: Vec<String> =
            (0..plan.queues).map(|index| names.queue(&index.to_string())).collect();
        let [first, pattern] = match protocol {
            _ if plan.spread == 0 => ["", ""],
            // Consumers choose messages of the queue by labels.
            Protocol::Amqp10 => [FIRST_DIGITS, ""],
            _ => [FIRST_DIGITS, ".*"],
        };
        let exchange = match (plan.fan_out, patterns) {
            (true, _) => names.fan_out("fanout"),
            (false, true) => names.fan_out("topic"),
            (false, false) => String::new(),
        };
        let groups: Vec<String> = (0..plan.queues).map(|index| format!("group-{index}")).collect();
        let sessions = match protocol {
            Protocol::Mqtt if plan.persistent => {
                queues.iter().map(|queue| queue.replace('/', "-")).collect()
            }
            // The durable subscriptions of a topic.
            Protocol::Amqp10 if plan.fan_out && plan.persistent && plan.durable_queues => {
                queues.iter().map(|queue| queue.replace("queue://", "")).collect()
            }
            Protocol::Resp if plan.is_kept() => queues.clone(),
            // A consumer's name is local to its stream.
            Protocol::JetStream if plan.is_kept() => groups.clone(),
            _ => Vec::new(),
        };
        Topology {
            protocol,
            exchange,
            sessions,
            unmatched: patterns.then(|| names.queue("unmatched")),
            keys: queues.iter().map(|queue| format!("{queue}{first}")).collect(),
            sources: queues.iter().map(|queue| format!("{queue}{pattern}")).collect(),
            queues,
            groups,
        }
    }

    /// Whether the names match `plan`; both may come from another machine.
    pub(super) fn fits(&self, plan: &Plan) -> bool {
        let names = [&self.queues, &self.groups, &self.keys, &self.sources, &self.sessions];
        let sessions = if self.sessions.is_empty() { 0 } else { plan.queues };
        let counts = [plan.queues, plan.queues, plan.queues, plan.queues, sessions];
        self.protocol == plan.target.protocol()
            && (self.keys == self.queues) == (plan.spread == 0)
            && names.map(Vec::len) == counts
    }

    /// Declares everything, where the protocol needs that.
    pub(super) fn declare(&self, link: &mut Link, plan: &Plan) -> Result<(), Error> {
        let durable = plan.persistent && plan.durable_queues;
        for queue in self.queues(plan) {
            link.declare_queue(queue, durable, &plan.queue_arguments)?;
        }
        let acks = match plan.ack_every {
            0 => Acks::None,
            // A cumulative acknowledgement would also cover deliveries of other consumers.
            every if every > 1 && plan.consumers <= plan.queues => Acks::UpTo,
            _ => Acks::Each,
        };
        for (name, filter) in self.sessions_with_filters() {
            let fan_out = plan.fan_out;
            link.declare_session(&Session { name, filter, durable, fan_out, acks })?;
        }
        if plan.fan_out {
            link.declare_fan_out(&self.exchange, &self.queues)?;
        }
        let Some(unmatched) = &self.unmatched else { return Ok(()) };
        link.declare_topic(&self.exchange)?;
        for queue in &self.queues {
            link.bind(queue, &self.exchange, [queue.clone()])?;
        }
        link.declare_queue(unmatched, false, &[])?;
        link.bind(unmatched, &self.exchange, self.bystanders(plan))
    }

    /// The sessions, each with the filter of what it stores.
    fn sessions_with_filters(&self) -> impl Iterator<Item = (&String, &String)> {
        let filter = |queue| if self.exchange.is_empty() { queue } else { &self.exchange };
        self.sessions.iter().zip(self.queues.iter().map(filter))
    }

    /// The route of a producer. Without exchanges, fan-out is one subject that all subscribe to.
    pub(super) fn route(&self, plan: &Plan, producer: usize) -> Route<'_> {
        let (exchange, key) = match (self.protocol.has_exchanges(), plan.fan_out) {
            (true, true) => (self.exchange.as_str(), ""),
            (false, true) => ("", self.exchange.as_str()),
            (_, false) => (self.exchange.as_str(), self.keys[producer % plan.queues].as_str()),
        };
        Route { exchange, key, persistent: plan.persistent }
    }

    /// The source of a consumer. Consumers that share a subject's messages form a group.
    pub(super) fn source(&self, plan: &Plan, consumer: usize) -> Source<'_> {
        let queue = consumer % plan.queues;
        let has_groups = match self.protocol {
            Protocol::Nats | Protocol::JetStream | Protocol::Mqtt => true,
            Protocol::Amqp10 => plan.fan_out,
            _ => false,
        };
        let shared = has_groups && plan.consumers > plan.queues;
        let is_common = plan.fan_out && !self.protocol.has_exchanges();
        let name = if is_common { &self.exchange } else { &self.sources[queue] };
        Source {
            name,
            group: shared.then(|| self.groups[queue].as_str()),
            auto_ack: plan.ack_every == 0,
            session: self.sessions.get(queue).map(String::as_str),
            labels: self.labels(plan, consumer),
        }
    }

    /// The labels that a consumer chooses: consumers of one queue divide them up.
    fn labels(&self, plan: &Plan, consumer: usize) -> Option<Labels> {
        if self.protocol != Protocol::Amqp10 || plan.spread == 0 {
            return None;
        }
        let (part, parts) = (consumer / plan.queues, plan.consumers.div_ceil(plan.queues));
        let from = |part: usize| plan.spread * part as u64 / parts as u64;
        Some(Labels { first: from(part), count: from(part + 1) - from(part) })
    }

    /// Subscriptions or bindings as deep as those of the run that match none of its messages: every
    /// tenth has a wildcard, so that exact look-ups alone are not enough.
    pub(super) fn bystanders(&self, plan: &Plan) -> impl Iterator<Item = String> + use<> {
        let (dot, any) = if self.protocol == Protocol::Mqtt { ('/', '+') } else { ('.', '*') };
        let name = &self.queues[0];
        let above = name.rsplit_once(dot).map_or("", |(above, _)| above).to_owned();
        let top = above.rsplit_once(dot).map_or(String::new(), |(top, _)| format!("{top}{dot}"));
        (0..plan.bystanders).map(move |index| match index % 10 {
            0 => format!("{top}{any}{dot}by-{index}"),
            _ => format!("{above}{dot}by-{index}"),
        })
    }

    /// Declares everything, calls `run`, and deletes everything whatever its result.
    pub(super) fn declared_for<T>(
        &self,
        plan: &Plan,
        run: impl FnOnce(&mut Link) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut link = plan.connect()?;
        self.declare(&mut link, plan)?;
        let outcome = run(&mut link);
        let deleted = self.delete(&mut link, plan).and_then(|()| link.close());
        outcome.and_then(|outcome| deleted.map(|()| outcome))
    }

    /// The queues that are declared. A topic's subscriptions have their own (AMQP 1.0).
    fn queues(&self, plan: &Plan) -> &[String] {
        match (self.protocol, plan.fan_out) {
            (Protocol::Amqp10, true) => &[],
            _ => &self.queues,
        }
    }

    pub(super) fn delete(&self, link: &mut Link, plan: &Plan) -> Result<(), Error> {
        for queue in self.queues(plan).iter().chain(&self.unmatched) {
            link.delete_queue(queue)?;
        }
        for (name, filter) in self.sessions_with_filters() {
            link.delete_session(name, filter)?;
        }
        if !self.exchange.is_empty() {
            link.delete_exchange(&self.exchange)?;
        }
        Ok(())
    }
}

/// Names that no other run uses at the same time.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    protocol: Protocol,
    prefix: String,
    separator: char,
}

impl Names {
    pub(crate) fn new(protocol: Protocol) -> Names {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let instance = since_epoch.map_or(0, |elapsed| elapsed.as_nanos() % 1_000_000_000);
        let prefix = match protocol {
            Protocol::Amqp091 | Protocol::Amqp10 | Protocol::Stomp => {
                format!("angarium-bench-{}-{instance}", std::process::id())
            }
            // Short, as subjects usually are: they are parsed with each message.
            Protocol::Nats | Protocol::JetStream | Protocol::Resp => {
                format!("bench.{}", instance % 1_000_000)
            }
            Protocol::Mqtt => format!("bench/{}", instance % 1_000_000),
        };
        Names { protocol, prefix, separator: protocol.separator() }
    }

    /// The name of a queue or a subject.
    pub(crate) fn queue(&self, what: &str) -> String {
        self.name(["/queue/", "queue://"], what)
    }

    /// The name of a fanout exchange, or of a subject that all subscribe to.
    pub(crate) fn fan_out(&self, what: &str) -> String {
        self.name(["/topic/", "topic://"], what)
    }

    fn name(&self, [stomp, amqp10]: [&str; 2], what: &str) -> String {
        let folder = match self.protocol {
            Protocol::Stomp => stomp,
            Protocol::Amqp10 => amqp10,
            _ => "",
        };
        format!("{folder}{}{}{what}", self.prefix, self.separator)
    }
}
