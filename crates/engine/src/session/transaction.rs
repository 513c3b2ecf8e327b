//! What a transaction holds back until it is committed.

use crate::{Content, Format, Outcome, Publish, Settle};
use bytes::Bytes;
use std::time::Duration;

/// Publishes and settles that wait, in order.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) operations: Vec<Operation>,
    /// Bytes that its publishes hold.
    pub(crate) bytes: u64,
}

/// One of them.
#[derive(Debug)]
pub(crate) enum Operation {
    Publish(OwnedPublish),
    Settle(Settle),
}

/// The payload of one.
#[derive(Debug)]
enum Body {
    Small(Box<[u8]>),
    Large(Bytes),
}

/// A publish that outlives the connection's input.
#[derive(Debug)]
pub(crate) struct OwnedPublish {
    exchange: String,
    routing_key: String,
    also_to: Vec<String>,
    mandatory: bool,
    delay: Option<Duration>,
    format: Format,
    properties: Vec<u8>,
    body: Body,
    persistent: bool,
    priority: u8,
    ttl: Option<Duration>,
}

impl OwnedPublish {
    pub(crate) fn of(publish: &Publish<'_>) -> OwnedPublish {
        OwnedPublish {
            exchange: publish.exchange.to_owned(),
            routing_key: publish.routing_key.to_owned(),
            also_to: publish.also_to.iter().map(|key| (*key).to_owned()).collect(),
            mandatory: publish.mandatory,
            delay: publish.delay,
            format: publish.content.format,
            properties: publish.content.properties.to_owned(),
            body: match publish.content.shared {
                Some(body) => Body::Large(body.clone()),
                None => Body::Small(publish.content.body.into()),
            },
            persistent: publish.content.persistent,
            priority: publish.content.priority,
            ttl: publish.content.ttl,
        }
    }

    /// Lends it out as it came.
    pub(crate) fn with<R>(&self, then: impl FnOnce(&Publish<'_>) -> R) -> R {
        let also_to: Vec<&str> = self.also_to.iter().map(String::as_str).collect();
        let (body, shared) = match &self.body {
            Body::Small(body) => (&body[..], None),
            Body::Large(body) => (&body[..], Some(body)),
        };
        then(&Publish {
            exchange: &self.exchange,
            routing_key: &self.routing_key,
            also_to: &also_to,
            mandatory: self.mandatory,
            delay: self.delay,
            content: Content {
                format: self.format,
                properties: &self.properties,
                body,
                shared,
                persistent: self.persistent,
                priority: self.priority,
                ttl: self.ttl,
            },
        })
    }
}

/// What a publish or settle costs of the transaction's bytes.
pub(crate) fn cost(publish: &Publish<'_>) -> u64 {
    (publish.content.body.len() + publish.content.properties.len()) as u64
}

/// Whether that outcome may lead to a dead letter, which is a record of its own.
pub(crate) fn may_dead_letter(outcome: Outcome) -> bool {
    outcome != Outcome::Accept
}
