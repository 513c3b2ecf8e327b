//! ShardBatch of other shards as they come: each is taken in one step, unless what is in it reaches so many that
//! others are to get their turn meanwhile.

use crate::node::Node;
use crate::shard::message::{ShardBatch, ShardMessage, Words};
use crate::shard::{BatchState, Rows, UNDERSTOOD};
use angarium_engine::{Row, ShardId, Time};

/// A batch that is not taken whole yet.
#[derive(Debug)]
pub(crate) struct Arrival {
    from: ShardId,
    batch: ShardBatch,
    /// How many bytes of its words are taken.
    taken: usize,
    /// Where in them the last row begins.
    row: Option<usize>,
}

impl Arrival {
    /// What the messages that come next have in common, where they are in a row.
    fn rows(&self) -> Rows<'_> {
        let word = self.row.and_then(|at| Words(&self.batch.words[at..]).next());
        let row = match word {
            Some(Ok((ShardMessage::Row(head), _))) => Some(Row::parse(head).expect(UNDERSTOOD)),
            _ => None,
        };
        Rows { row, streak: None }
    }
}

impl Node {
    /// A batch came from another shard.
    pub fn arrived(&mut self, now: Time, from: ShardId, batch: ShardBatch) {
        let arrival = Arrival { from, batch, taken: 0, row: None };
        let has_to_wait = self.arrivals.iter().any(|earlier| earlier.from == from);
        if has_to_wait {
            return self.arrivals.push_back(arrival);
        }
        self.engine.begin_work_budget();
        let left = self.take_arrival(now, arrival);
        self.arrivals.extend(left);
    }

    /// Goes on with batches that were not taken whole, for one step.
    pub(crate) fn take_arrivals(&mut self, now: Time) {
        self.engine.begin_work_budget();
        while !self.engine.is_step_over()
            && let Some(arrival) = self.arrivals.pop_front()
        {
            if let Some(left) = self.take_arrival(now, arrival) {
                self.arrivals.push_front(left);
            }
        }
    }

    /// Takes a batch, and returns it where the step ends before it does.
    fn take_arrival(&mut self, now: Time, mut arrival: Arrival) -> Option<Arrival> {
        let (mut taken, mut row) = (arrival.taken, arrival.row);
        let mut values = std::mem::take(&mut arrival.batch.values);
        let mut rows = arrival.rows();
        while let Some(word) = Words(&arrival.batch.words[taken..]).next() {
            let (word, bytes) = word.expect(UNDERSTOOD);
            if matches!(word, ShardMessage::Row(_)) {
                row = Some(taken);
            }
            taken += bytes;
            let state = BatchState { values: &mut values, rows: &mut rows };
            self.take_word(now, arrival.from, &word, bytes, state);
            let next = Words(&arrival.batch.words[taken..]);
            taken += self.take_burst(now, arrival.from, next, &mut rows);
            if self.engine.is_step_over() {
                break;
            }
        }
        self.end_visit(now);
        self.let_settled_go_on(now);
        let is_whole = taken == arrival.batch.words.len();
        (arrival.taken, arrival.row, arrival.batch.values) = (taken, row, values);
        (!is_whole).then_some(arrival)
    }
}
