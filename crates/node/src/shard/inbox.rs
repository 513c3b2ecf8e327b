//! Shard batches of other shards: each is processed in one turn, or in several where its messages reach many
//! subscribers.

use crate::node::Node;
use crate::shard::Rows;
use crate::shard::message::{ShardBatch, ShardMessage, UNDERSTOOD};
use angarium_engine::{Forward, ShardId, Shards, Time};
use angarium_protocol::CONVENTIONS;
use std::collections::VecDeque;

/// A batch that is not taken whole yet.
#[derive(Debug)]
pub(crate) struct InboxBatch {
    from: ShardId,
    batch: ShardBatch,
    /// How many bytes of its messages are taken.
    taken: usize,
    /// Where in them the last row begins.
    row: Option<usize>,
    /// The message with that number has not reached all of its very many recipients: what comes behind it has
    /// to wait.
    behind_wide: Option<u64>,
}

impl InboxBatch {
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
        let incoming = InboxBatch { from, batch, taken: 0, row: None, behind_wide: None };
        let has_to_wait = self.inbox.iter().any(|earlier| earlier.from == from);
        if has_to_wait {
            return self.inbox.push_back(incoming);
        }
        self.engine.begin_work_budget();
        let left = self.take_inbox_batch(now, incoming);
        self.inbox.extend(left);
    }

    /// Goes on with batches that were not processed whole, within the work budget.
    pub(crate) fn take_inbox(&mut self, now: Time) {
        self.engine.begin_work_budget();
        // Batches of shards that wait, and what came behind them.
        let (mut waiting, mut shards) = (VecDeque::new(), Shards::NONE);
        while !self.engine.is_step_over()
            && let Some(incoming) = self.inbox.pop_front()
        {
            let is_behind =
                incoming.behind_wide.is_some_and(|number| !self.engine.is_wide_done(number));
            if is_behind || shards.contains(incoming.from) {
                shards = shards.and(Shards::one(incoming.from));
                waiting.push_back(incoming);
            } else if let Some(left) = self.take_inbox_batch(now, incoming) {
                shards = shards.and(Shards::one(left.from));
                waiting.push_back(left);
            }
        }
        waiting.append(&mut self.inbox);
        self.inbox = waiting;
    }

    /// Takes a batch, and returns it where the step ends before it does.
    fn take_inbox_batch(&mut self, now: Time, mut incoming: InboxBatch) -> Option<InboxBatch> {
        let (mut taken, mut row) = (incoming.taken, incoming.row);
        let mut behind_wide = None;
        let mut values = std::mem::take(&mut incoming.batch.values);
        let mut rows = incoming.rows();
        let messages = &incoming.batch.messages[..];
        while taken < messages.len() {
            let (message, bytes) = ShardMessage::read(&messages[taken..]).expect(UNDERSTOOD);
            if matches!(message, ShardMessage::BatchHead { .. }) {
                row = Some(taken);
            }
            taken += bytes;
            let from = incoming.from;
            let wide = self.engine.last_wide();
            self.take_shard_message(now, from, &message, bytes, &mut values, &mut rows);
            taken += self.take_batch_items(now, from, &messages[taken..], &mut rows);
            if self.engine.last_wide() > wide {
                behind_wide = Some(self.engine.last_wide());
            }
            if behind_wide.is_some() || self.engine.is_step_over() {
                break;
            }
        }
        self.end_remote_input(now);
        self.let_settled_go_on(now);
        let is_whole = taken == messages.len() && behind_wide.is_none();
        incoming.behind_wide = behind_wide;
        (incoming.taken, incoming.row, incoming.batch.values) = (taken, row, values);
        (!is_whole).then_some(incoming)
    }
}
