//! What a transaction holds back until it is committed.

use crate::consumer::unsettled::{Delivered, Unsettled};
use crate::foundation::deferred_drop::drop_elsewhere;
use crate::queue::blob::Blob;
use crate::queue::stored::Incoming;
use crate::{Bytes, Outcome, Publish, Refusal, Retain, Time, TransactionId};

/// Operations that are allocated together.
const CHUNK: usize = 1024;
/// Chunks that are dropped in one turn: some tenths of a millisecond.
const DROPPED_AT_ONCE: usize = 4;

/// A transaction that is open.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// The slot of the channel that began it, and with which it ends.
    pub(super) owner: u32,
    /// Its name within its connection; `None`: it is its channel's own.
    pub(super) id: Option<TransactionId>,
    /// Why it cannot be committed.
    pub(super) failed: Option<Refusal>,
    /// When the timer goes off for it.
    pub(super) timer: Option<Time>,
    pub(crate) held: Held,
}

/// Publishes and settles that wait, in order.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(super) operations: Operations,
    /// The deliveries of its settles: the first settle's is number 1.
    pub(crate) deliveries: Unsettled,
    /// How many settles it has.
    settles: u64,
    /// Bytes that its publishes hold, and its settles' annotations.
    pub(super) bytes: u64,
    /// As of which change of rights its publishes were allowed; none: it has none.
    pub(super) allowed_at: Option<u64>,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.operations.len() == 0
    }

    pub(super) fn add_settle(&mut self, settle: HeldSettle, delivered: Delivered) {
        self.settles += 1;
        self.bytes += settle.annotations.len() as u64;
        self.deliveries.push(self.settles, delivered);
        self.operations.push(Operation::Settle(settle));
    }

    /// Its settles, in the order of its deliveries.
    pub(crate) fn settles(&self) -> impl Iterator<Item = &HeldSettle> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Settle(settle) => Some(settle),
            Operation::Publish(_) => None,
        })
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let operations = self.operations.len() * (size_of::<Operation>() + NAMES_BYTES);
        self.bytes + (operations + self.deliveries.len() * size_of::<Delivered>()) as u64
    }
}

/// What the names of a publish that waits take, or less.
const NAMES_BYTES: usize = 96;

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

#[derive(Debug)]
pub(super) enum Operation {
    Publish(HeldPublish),
    Settle(HeldSettle),
}

impl Drop for Operations {
    fn drop(&mut self) {
        if self.0.len() > DROPPED_AT_ONCE {
            drop_elsewhere(std::mem::take(&mut self.0));
        }
    }
}

/// A channel, while it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelPlace {
    pub(crate) slot: u32,
    pub(crate) incarnation: u32,
}

/// The settle of one delivery.
#[derive(Clone, Debug)]
pub(crate) struct HeldSettle {
    /// The channel that the delivery came to.
    pub(crate) channel: ChannelPlace,
    /// The delivery's tag there.
    pub(super) tag: u64,
    pub(super) outcome: Outcome,
    /// What the message gets if it goes back.
    pub(super) annotations: Bytes,
}

/// A publish that outlives the connection's input.
#[derive(Debug)]
pub(super) struct HeldPublish {
    message: Blob,
    mandatory: bool,
    not_before: Option<Time>,
    /// When it was sent.
    pub(super) sent: Time,
}

impl HeldPublish {
    /// Copies one that is sent now; `room` is for encoding it.
    pub(super) fn of(now: Time, publish: &Publish<'_>, room: &mut Vec<u8>) -> HeldPublish {
        room.clear();
        let message = Incoming::of(publish).encode(room).to_blob();
        let Publish { mandatory, not_before, .. } = *publish;
        HeldPublish { message, mandatory, not_before, sent: now }
    }

    /// Lends it out as it came.
    pub(super) fn with<R>(&self, then: impl FnOnce(&Publish<'_>) -> R) -> R {
        let stored = self.message.stored();
        then(&Publish {
            exchange: stored.exchange,
            routing_key: stored.routing_key,
            also_to: &stored.also_to(),
            mandatory: self.mandatory,
            retain: Retain::No,
            not_before: self.not_before,
            transaction: None,
            content: stored.content,
        })
    }
}

/// What a publish costs of the transaction's bytes.
pub(super) fn cost(publish: &Publish<'_>) -> u64 {
    (publish.content.body.len() + publish.content.properties.len()) as u64
}
