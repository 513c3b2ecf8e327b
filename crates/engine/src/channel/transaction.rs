//! What a transaction holds back until it is committed.

use crate::foundation::deferred_drop::drop_elsewhere;
use crate::queue::blob::Blob;
use crate::queue::stored::Incoming;
use crate::{Publish, Settle};
use std::collections::BTreeSet;
use std::time::Duration;

/// Operations that are allocated together.
const CHUNK: usize = 1024;
/// Chunks that are dropped in one turn: some tenths of a millisecond.
const DROPPED_AT_ONCE: usize = 4;

/// Publishes and settles that wait, in order.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(super) operations: Operations,
    /// Bytes that its publishes hold.
    pub(super) bytes: u64,
    /// As of which change of rights its publishes were allowed; none: it has none.
    pub(super) allowed_at: Option<u64>,
    /// Tags that it settles, up to this one all.
    settled_up_to: u64,
    settled: BTreeSet<u64>,
}

impl Transaction {
    /// Whether it settles already what has to be there for a settle.
    pub(super) fn settles(&self, settle: Settle) -> bool {
        match settle.first == settle.last {
            true => self.settles_tag(settle.last),
            false => settle.must_exist && settle.last <= self.settled_up_to,
        }
    }

    /// Whether it settles this tag already.
    pub(crate) fn settles_tag(&self, tag: u64) -> bool {
        tag <= self.settled_up_to || self.settled.contains(&tag)
    }

    pub(crate) fn has_settles(&self) -> bool {
        self.settled_up_to > 0 || !self.settled.is_empty()
    }

    /// Adds a settle; `last_tag` is the last that was delivered.
    pub(super) fn add_settle(&mut self, settle: Settle, last_tag: u64) {
        // What is delivered later has greater tags.
        let last = settle.last.min(last_tag);
        if settle.first <= 1 && settle.first != settle.last {
            self.settled_up_to = last.max(self.settled_up_to);
            self.settled = self.settled.split_off(&last);
        } else {
            self.settled.extend(settle.first..=last);
        }
        self.operations.push(Operation::Settle(settle));
    }
}

/// Operations in order, in chunks of which all but the last are full: those that are there are not moved for
/// further ones, however many come.
#[derive(Debug, Default)]
pub(super) struct Operations(Vec<Vec<Operation>>);

impl Operations {
    pub(super) fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * CHUNK + last.len())
    }

    pub(super) fn push(&mut self, operation: Operation) {
        match self.0.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(operation),
            // Most transactions have few.
            None => self.0.push(vec![operation]),
            Some(_) => {
                self.0.push(Vec::with_capacity(CHUNK));
                self.push(operation);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Operation> {
        self.0.iter().flatten()
    }
}

impl Transaction {
    /// About how much memory it takes.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.bytes + (self.operations.len() * (size_of::<Operation>() + NAMES_BYTES)) as u64
    }
}

/// What the names of a publish that waits take, or less.
const NAMES_BYTES: usize = 96;

#[derive(Debug)]
pub(super) enum Operation {
    Publish(HeldPublish),
    Settle(Settle),
}

impl Drop for Operations {
    fn drop(&mut self) {
        if self.0.len() > DROPPED_AT_ONCE {
            drop_elsewhere(std::mem::take(&mut self.0));
        }
    }
}

/// A publish that outlives the connection's input.
#[derive(Debug)]
pub(super) struct HeldPublish {
    message: Blob,
    mandatory: bool,
    delay: Option<Duration>,
}

impl HeldPublish {
    /// Copies it; `room` is for encoding it.
    pub(super) fn of(publish: &Publish<'_>, room: &mut Vec<u8>) -> HeldPublish {
        room.clear();
        let message = Incoming::of(publish).encode(room).to_blob();
        HeldPublish { message, mandatory: publish.mandatory, delay: publish.delay }
    }

    /// Lends it out as it came.
    pub(super) fn with<R>(&self, then: impl FnOnce(&Publish<'_>) -> R) -> R {
        let stored = self.message.stored();
        then(&Publish {
            exchange: stored.exchange,
            routing_key: stored.routing_key,
            also_to: &stored.also_to(),
            mandatory: self.mandatory,
            delay: self.delay,
            content: stored.content,
        })
    }
}

/// What a publish costs of the transaction's bytes.
pub(super) fn cost(publish: &Publish<'_>) -> u64 {
    (publish.content.body.len() + publish.content.properties.len()) as u64
}
