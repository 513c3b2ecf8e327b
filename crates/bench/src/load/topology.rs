//! What the messages of a run go through: exchanges and queues, or subjects and groups. Knows no
//! workers.

use super::plan::Plan;
use crate::client::{Error, Link, Protocol, Route, Source};
use std::time::SystemTime;

/// The names that one run uses. What it declares is deleted when it ends.
#[derive(Debug)]
pub(super) struct Topology {
    protocol: Protocol,
    exchange: String,
    queues: Vec<String>,
    groups: Vec<String>,
    /// A queue for patterns that match nothing.
    unheard: Option<String>,
    /// What producers publish to and consumers listen to where messages are spread over subjects.
    spread: Option<Spread>,
}

/// Of each queue, the first of its subjects, and the pattern of all of them.
#[derive(Debug)]
struct Spread {
    firsts: Vec<String>,
    patterns: Vec<String>,
}

/// What the first of the subjects that messages are spread over ends with; the others have other
/// digits there.
pub(super) const FIRST_DIGITS: &str = ".0000000";

impl Topology {
    /// Names of their own for this run.
    pub(super) fn of(plan: &Plan) -> Topology {
        let protocol = plan.target.protocol();
        let prefix = prefix(protocol);
        let dash = match protocol {
            // Patterns match words, and these are at dots.
            Protocol::Amqp091 if plan.bystanders > 0 => '.',
            Protocol::Amqp091 => '-',
            Protocol::Nats => '.',
        };
        let queues: Vec<String> =
            (0..plan.queues).map(|index| format!("{prefix}{dash}{index}")).collect();
        let spread = (plan.spread > 0).then(|| Spread {
            firsts: queues.iter().map(|queue| format!("{queue}{FIRST_DIGITS}")).collect(),
            patterns: queues.iter().map(|queue| format!("{queue}.*")).collect(),
        });
        let patterns = protocol == Protocol::Amqp091 && plan.bystanders > 0;
        let exchange = match (plan.fan_out, patterns) {
            (true, _) => format!("{prefix}{dash}fanout"),
            (false, true) => format!("{prefix}{dash}topic"),
            (false, false) => String::new(),
        };
        Topology {
            protocol,
            exchange,
            unheard: patterns.then(|| format!("{prefix}{dash}unheard")),
            queues,
            spread,
            groups: (0..plan.queues).map(|index| format!("group-{index}")).collect(),
        }
    }

    /// Declares it where the protocol wants that.
    pub(super) fn declare(&self, link: &mut Link, plan: &Plan) -> Result<(), Error> {
        for queue in &self.queues {
            link.declare_queue(queue, plan.persistent, &plan.queue_arguments)?;
        }
        if plan.fan_out {
            link.declare_fan_out(&self.exchange, &self.queues)?;
        }
        let Some(unheard) = &self.unheard else { return Ok(()) };
        link.declare_topic(&self.exchange)?;
        for queue in &self.queues {
            link.bind(queue, &self.exchange, [queue.clone()])?;
        }
        link.declare_queue(unheard, false, &[])?;
        let above = self.queues[0].rsplit_once('.').map_or("", |(above, _)| above);
        // Every tenth has a wildcard, so that literal look-ups alone do not settle it.
        let pattern = |index: usize| match index % 10 {
            0 => format!("*.by-{index}"),
            _ => format!("{above}.by-{index}"),
        };
        link.bind(unheard, &self.exchange, (0..plan.bystanders).map(pattern))
    }

    /// The queues, or their subjects.
    pub(super) fn names(&self) -> &[String] {
        &self.queues
    }

    /// Where a producer publishes to. With NATS, fan-out is one subject that all subscribe to.
    pub(super) fn route(&self, plan: &Plan, producer: usize) -> Route<'_> {
        let subjects = self.spread.as_ref().map_or(&self.queues, |spread| &spread.firsts);
        let queue = subjects[producer % plan.queues].as_str();
        let (exchange, key) = match (self.protocol, plan.fan_out) {
            (Protocol::Amqp091, true) => (self.exchange.as_str(), ""),
            (Protocol::Nats, true) => ("", self.exchange.as_str()),
            (_, false) => (self.exchange.as_str(), queue),
        };
        Route { exchange, key, persistent: plan.persistent }
    }

    /// Where a consumer's deliveries come from. Consumers that share a subject's messages, as they
    /// would a queue's, are a group.
    pub(super) fn source(&self, plan: &Plan, consumer: usize) -> Source<'_> {
        let queue = consumer % plan.queues;
        let shared = self.protocol == Protocol::Nats && plan.consumers > plan.queues;
        let name = match self.protocol {
            Protocol::Nats if plan.fan_out => &self.exchange,
            _ => &self.spread.as_ref().map_or(&self.queues, |spread| &spread.patterns)[queue],
        };
        let group = shared.then(|| self.groups[queue].as_str());
        Source { name, group, auto_ack: plan.ack_every == 0 }
    }

    /// Subscriptions beside those of the run, as deep as they are, that match none of its messages:
    /// every tenth of them with a wildcard, so that literal look-ups alone do not settle it.
    pub(super) fn bystanders(&self, plan: &Plan) -> impl Iterator<Item = String> {
        let name = &self.queues[0];
        let above = name.rsplit_once('.').map_or("", |(above, _)| above).to_owned();
        let top = name.split_once('.').map_or("", |(top, _)| top).to_owned();
        (0..plan.bystanders).map(move |index| match index % 10 {
            0 => format!("{top}.*.by-{index}"),
            _ => format!("{above}.by-{index}"),
        })
    }

    /// Deletes what was declared.
    pub(super) fn delete(&self, link: &mut Link) -> Result<(), Error> {
        for queue in self.queues.iter().chain(&self.unheard) {
            link.delete_queue(queue)?;
        }
        if !self.exchange.is_empty() {
            link.delete_exchange(&self.exchange)?;
        }
        Ok(())
    }
}

/// A name that no other run uses at the same time.
pub(super) fn prefix(protocol: Protocol) -> String {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let instance = since_epoch.map_or(0, |elapsed| elapsed.as_nanos() % 1_000_000_000);
    match protocol {
        Protocol::Amqp091 => format!("angarium-bench-{}-{instance}", std::process::id()),
        // Short, as subjects are: their octets are parsed with each message.
        Protocol::Nats => format!("bench.{}", instance % 1_000_000),
    }
}
