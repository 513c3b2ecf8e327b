//! Shard batches of other shards: each is processed in one turn, or in several where that is much work.
//! Behind a message that reaches very many over several turns, only what is of the same connection waits.

use crate::node::Node;
use crate::shard::Rows;
use crate::shard::links::UNDERWAY_BYTES_MAX;
use crate::shard::message::{ShardBatch, ShardMessage, ToHome, UNDERSTOOD, Value};
use angarium_engine::{ConnectionId, Forward, ShardId, Shards, Time, is_body_apart};
use angarium_protocol::CONVENTIONS;
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

/// A connection of another shard.
type Sender = (ShardId, ConnectionId);

/// What other shards have sent and what is not processed yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Oldest first.
    batches: VecDeque<InboxBatch>,
    /// Connections whose last message has not reached all of its recipients.
    held: BTreeMap<Sender, Held>,
    /// Of those, the one that went on last.
    last: Option<Sender>,
    /// Bytes of messages that wait there.
    held_bytes: u64,
}

/// What waits for a message of its connection.
#[derive(Debug)]
struct Held {
    /// The numbers of its fan-outs.
    behind: RangeInclusive<u64>,
    messages: InboxBatch,
    /// Bytes of these.
    bytes: u64,
}

/// A batch that is not taken whole yet.
#[derive(Debug)]
struct InboxBatch {
    from: ShardId,
    batch: ShardBatch,
    /// How many bytes of its messages are taken.
    taken: usize,
    /// Where in them the last row begins.
    row: Option<usize>,
}

/// What became of a batch.
enum Taken {
    Whole,
    /// The turn is over.
    InPart(InboxBatch),
    /// It has begun fan-outs, behind which the rest waits.
    Behind(RangeInclusive<u64>, InboxBatch),
}

impl Inbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.held.is_empty()
    }

    /// The next connection behind the last one whose message has reached all.
    fn next_ready(&self, is_done: impl Fn(&Held) -> bool) -> Option<Sender> {
        let after = self.last.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let behind = self.held.range((after, std::ops::Bound::Unbounded));
        let mut all = behind.chain(&self.held);
        all.find(|(_, held)| is_done(held)).map(|(sender, _)| *sender)
    }

    /// Has a message wait for its connection, with those of the batch's values that are its.
    fn set_aside(
        &mut self,
        sender: Sender,
        message: &ShardMessage<'_>,
        bytes: &[u8],
        row: Option<&Forward<'_>>,
        values: &mut VecDeque<Value>,
    ) -> u64 {
        let Some(held) = self.held.get_mut(&sender) else { return 0 };
        let into = &mut held.messages.batch;
        let before = into.messages.len();
        match (message, row) {
            (ShardMessage::BatchItem { properties, body }, Some(row)) => {
                let forward = row.with(properties.0, body);
                let message = ShardMessage::Forward { message: &[] };
                into.push_with(message, None, |out| forward.write(out));
            }
            _ => into.messages.extend_from_slice(bytes),
        }
        let mut count = (into.messages.len() - before) as u64;
        if has_value(message)
            && let Some(value) = values.pop_front()
        {
            count += body_bytes(&value);
            into.values.push_back(value);
        }
        held.bytes += count;
        self.held_bytes += count;
        count
    }

    /// Has further messages of a connection wait behind one.
    fn hold(&mut self, sender: Sender, behind: RangeInclusive<u64>, mut messages: InboxBatch) {
        let InboxBatch { batch, taken, .. } = &mut messages;
        batch.messages.drain(..std::mem::take(taken));
        let bodies: u64 = batch.values.iter().map(body_bytes).sum();
        let bytes = batch.messages.len() as u64 + bodies;
        messages.row = None;
        self.held_bytes += bytes;
        self.held.insert(sender, Held { behind, messages, bytes });
    }

    /// Takes out what waits for a connection.
    fn release(&mut self, sender: Sender) -> Option<Held> {
        let held = self.held.remove(&sender)?;
        self.held_bytes -= held.bytes;
        self.last = Some(sender);
        Some(held)
    }
}

/// Bytes of a body that goes along as a value.
fn body_bytes(value: &Value) -> u64 {
    match value {
        Value::Body(body) => body.len() as u64,
        _ => 0,
    }
}

/// Whether what a message takes up is acknowledged to its shard.
fn is_counted(message: &ShardMessage<'_>) -> bool {
    matches!(
        message,
        ShardMessage::BatchItem { .. }
            | ShardMessage::Forward { .. }
            | ShardMessage::ToHome { request: ToHome::Publish { .. } | ToHome::PublishOnce { .. } }
    )
}

/// Whether a message of a connection has one of the batch's values.
fn has_value(message: &ShardMessage<'_>) -> bool {
    match message {
        ShardMessage::Forward { message } => is_body_apart(message),
        ShardMessage::ToHome {
            request: ToHome::Publish { message, .. } | ToHome::PublishOnce { message, .. },
        } => is_body_apart(message),
        ShardMessage::ToHome { request: ToHome::Request { .. } } => true,
        _ => false,
    }
}

/// The connection of another shard that a message is of, and that waits for it.
fn sender_of(
    from: ShardId,
    message: &ShardMessage<'_>,
    row: Option<&Forward<'_>>,
) -> Option<Sender> {
    match *message {
        ShardMessage::BatchItem { .. } => row?.order(),
        ShardMessage::Forward { message } => Forward::order_of(message).expect(UNDERSTOOD),
        ShardMessage::ToHome { request } => {
            let connection = match request {
                ToHome::Publish { channel, .. }
                | ToHome::PublishOnce { channel, .. }
                | ToHome::Settle { channel, .. }
                | ToHome::Grant { channel, .. }
                | ToHome::Request { channel }
                | ToHome::Close { channel } => channel.connection,
                ToHome::Open { name } => name.id.connection,
                ToHome::Connect { connection, .. } | ToHome::Disconnect { connection } => {
                    connection
                }
                ToHome::Drained { .. }
                | ToHome::Admit { .. }
                | ToHome::Enter { .. }
                | ToHome::Left { .. }
                | ToHome::Ended => return None,
            };
            Some((from, connection))
        }
        _ => None,
    }
}

impl InboxBatch {
    fn new(from: ShardId, batch: ShardBatch) -> InboxBatch {
        InboxBatch { from, batch, taken: 0, row: None }
    }

    fn is_whole(&self) -> bool {
        self.taken == self.batch.messages.len()
    }

    /// What the messages that come next have in common, where they are in a row.
    fn rows(&self) -> Rows<'_> {
        let row = match self.row.and_then(|at| ShardMessage::read(&self.batch.messages[at..])) {
            Some((ShardMessage::BatchHead { head }, _)) => {
                Some(Forward::parse_header(head, &CONVENTIONS.names).expect(UNDERSTOOD))
            }
            _ => None,
        };
        Rows { row, cached_route: None }
    }
}

impl Node {
    /// A batch came from another shard.
    pub fn arrived(&mut self, now: Time, from: ShardId, batch: ShardBatch) {
        let incoming = InboxBatch::new(from, batch);
        if self.inbox.batches.iter().any(|earlier| earlier.from == from) {
            return self.inbox.batches.push_back(incoming);
        }
        self.engine.begin_work_budget();
        if let Taken::InPart(left) = self.take_inbox_batch(now, incoming, None) {
            self.inbox.batches.push_back(left);
        }
    }

    /// Goes on with batches that were not processed whole, within the work budget.
    pub(crate) fn take_inbox(&mut self, now: Time) {
        self.engine.begin_work_budget();
        self.take_held(now);
        // Batches of shards that wait, and what came behind them.
        let (mut waiting, mut shards) = (VecDeque::new(), Shards::NONE);
        while !self.engine.is_step_over()
            && let Some(incoming) = self.inbox.batches.pop_front()
        {
            if shards.contains(incoming.from) {
                waiting.push_back(incoming);
            } else if let Taken::InPart(left) = self.take_inbox_batch(now, incoming, None) {
                shards = shards.and(Shards::one(left.from));
                waiting.push_back(left);
            }
        }
        waiting.append(&mut self.inbox.batches);
        self.inbox.batches = waiting;
    }

    /// Goes on with connections whose messages have reached all, each in turn.
    fn take_held(&mut self, now: Time) {
        for _ in 0..self.inbox.held.len() {
            let engine = &self.engine;
            let is_done = |held: &Held| engine.are_wide_done(held.behind.clone());
            let Some(sender) = self.inbox.next_ready(is_done) else { return };
            let Some(Held { behind, messages, .. }) = self.inbox.release(sender) else { return };
            // It was acknowledged when it was set aside.
            let from = messages.from;
            let acknowledged = self.effects.links.taken_from(from);
            let taken = self.take_inbox_batch(now, messages, Some(sender));
            self.effects.links.set_taken_from(from, acknowledged);
            match taken {
                Taken::Whole => self.tell_fanned_out(sender, true),
                Taken::InPart(messages) => self.inbox.hold(sender, behind, messages),
                Taken::Behind(behind, messages) => self.inbox.hold(sender, behind, messages),
            }
            if self.engine.is_step_over() {
                return;
            }
        }
    }

    /// Tells a connection's shard that its message has begun to reach very many here, or has reached all: its
    /// input waits meanwhile.
    fn tell_fanned_out(&mut self, sender: Sender, is_over: bool) {
        let (shard, publisher) = sender;
        if shard != self.options.shard {
            self.effects.links.say(shard, ShardMessage::WideFanout { publisher, is_over });
        }
    }

    /// Takes a batch, and returns it where the turn ends before it does. `own`: the connection that it is of,
    /// if of one.
    fn take_inbox_batch(
        &mut self,
        now: Time,
        mut incoming: InboxBatch,
        own: Option<Sender>,
    ) -> Taken {
        let (mut taken, mut row, from) = (incoming.taken, incoming.row, incoming.from);
        let mut behind = None;
        let mut values = std::mem::take(&mut incoming.batch.values);
        let mut rows = incoming.rows();
        let messages = &incoming.batch.messages[..];
        while taken < messages.len() {
            let (message, bytes) = ShardMessage::read(&messages[taken..]).expect(UNDERSTOOD);
            if !self.inbox.held.is_empty()
                && let Some(sender) = sender_of(from, &message, rows.row.as_ref())
                && self.inbox.held.contains_key(&sender)
            {
                if self.inbox.held_bytes > UNDERWAY_BYTES_MAX {
                    break;
                }
                let raw = &messages[taken..taken + bytes];
                let row = rows.row.as_ref();
                let bytes_held = self.inbox.set_aside(sender, &message, raw, row, &mut values);
                if is_counted(&message) {
                    self.effects.links.took(from, bytes_held as usize);
                }
                rows.cached_route = None;
                taken += bytes;
                continue;
            }
            if matches!(message, ShardMessage::BatchHead { .. }) {
                row = Some(taken);
            }
            taken += bytes;
            let begun = self.engine.wide_begun();
            self.take_shard_message(now, from, &message, bytes, &mut values, &mut rows);
            taken += self.take_batch_items(now, from, &messages[taken..], &mut rows);
            if self.engine.wide_begun() > begun
                && let Some(sender) = sender_of(from, &message, rows.row.as_ref())
            {
                let fanouts = begun + 1..=self.engine.wide_begun();
                self.engine.let_others_go_on();
                if own == Some(sender) {
                    behind = Some(fanouts);
                    break;
                }
                self.tell_fanned_out(sender, false);
                let messages = InboxBatch::new(from, ShardBatch::default());
                self.inbox.hold(sender, fanouts, messages);
            }
            if self.engine.is_step_over() {
                break;
            }
        }
        self.end_remote_input(now);
        self.let_settled_go_on(now);
        (incoming.taken, incoming.row, incoming.batch.values) = (taken, row, values);
        match behind {
            Some(behind) => Taken::Behind(behind, incoming),
            None if incoming.is_whole() => Taken::Whole,
            None => Taken::InPart(incoming),
        }
    }
}
