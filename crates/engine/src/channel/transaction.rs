//! What a transaction holds back until it is committed.

use crate::foundation::deferred_drop::drop_elsewhere;
use crate::{Content, Format, Outcome, Publish, Settle};
use bytes::Bytes;
use std::time::Duration;

/// Operations that are allocated together.
const CHUNK: usize = 1024;
/// Chunks that are dropped in one turn: some tenths of a millisecond.
const DROPPED_AT_ONCE: usize = 4;

/// Publishes and settles that wait, in order.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) operations: Operations,
    /// Bytes that its publishes hold.
    pub(crate) bytes: u64,
}

/// Operations in order. However many come, those that are there are not moved for it.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    /// All but the last are full.
    chunks: Vec<Vec<Operation>>,
}

/// One of them.
#[derive(Debug)]
pub(crate) enum Operation {
    Publish(OwnedPublish),
    Settle(Settle),
}

impl Operations {
    pub(crate) fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    pub(crate) fn push(&mut self, operation: Operation) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(operation),
            // Most transactions have few.
            None => self.chunks.push(vec![operation]),
            Some(_) => {
                let mut next = Vec::with_capacity(CHUNK);
                next.push(operation);
                self.chunks.push(next);
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Operation> {
        self.chunks.iter().flatten()
    }
}

impl Drop for Operations {
    fn drop(&mut self) {
        if self.chunks.len() > DROPPED_AT_ONCE {
            drop_elsewhere(std::mem::take(&mut self.chunks));
        }
    }
}

/// A publish that outlives the connection's input.
#[derive(Debug)]
pub(crate) struct OwnedPublish {
    /// Exchange, routing key, properties and a body that is not large, in one piece.
    bytes: Box<[u8]>,
    exchange_end: usize,
    routing_key_end: usize,
    properties_end: usize,
    large_body: Option<Bytes>,
    also_to: Vec<String>,
    mandatory: bool,
    delay: Option<Duration>,
    format: Format,
    persistent: bool,
    priority: u8,
    ttl: Option<Duration>,
}

impl OwnedPublish {
    pub(crate) fn of(publish: &Publish<'_>) -> OwnedPublish {
        let Publish { exchange, routing_key, content, .. } = publish;
        let body = if content.shared.is_some() { &[] } else { content.body };
        let parts = [exchange.as_bytes(), routing_key.as_bytes(), content.properties, body];
        let exchange_end = exchange.len();
        let routing_key_end = exchange_end + routing_key.len();
        OwnedPublish {
            bytes: parts.concat().into(),
            exchange_end,
            routing_key_end,
            properties_end: routing_key_end + content.properties.len(),
            large_body: content.shared.cloned(),
            also_to: publish.also_to.iter().map(|key| (*key).to_owned()).collect(),
            mandatory: publish.mandatory,
            delay: publish.delay,
            format: content.format,
            persistent: content.persistent,
            priority: content.priority,
            ttl: content.ttl,
        }
    }

    /// Lends it out as it came.
    pub(crate) fn with<R>(&self, then: impl FnOnce(&Publish<'_>) -> R) -> R {
        let also_to: Vec<&str> = self.also_to.iter().map(String::as_str).collect();
        let text = |bytes| std::str::from_utf8(bytes).expect("it came as text");
        then(&Publish {
            exchange: text(&self.bytes[..self.exchange_end]),
            routing_key: text(&self.bytes[self.exchange_end..self.routing_key_end]),
            also_to: &also_to,
            mandatory: self.mandatory,
            delay: self.delay,
            content: Content {
                format: self.format,
                properties: &self.bytes[self.routing_key_end..self.properties_end],
                body: match &self.large_body {
                    Some(body) => body,
                    None => &self.bytes[self.properties_end..],
                },
                shared: self.large_body.as_ref(),
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
