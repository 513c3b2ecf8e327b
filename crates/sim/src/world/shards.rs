//! The shards' turns, which may be late, and the batches between them, which are delayed but stay
//! in order.

use super::World;
use super::happening::{Happening, Route, Stage};
use crate::canary::{Canary, PERCENT};

/// Longest delay of a batch after faults have ended, in microseconds.
const CALM_BATCH_DELAY: u64 = 100;

impl World {
    // ---- turns ----

    /// Schedules the end of a shard's turn; what happens until then is part of it.
    pub(super) fn want_turn(&mut self, shard: usize) {
        if self.broker.is_some() && self.turns_due.insert(shard) {
            let pause = self.random.below(60) + self.lateness();
            self.schedule(pause, Happening::Turn(shard));
        }
    }

    pub(super) fn want_turns(&mut self) {
        for shard in 0..self.plan.shards.count {
            self.want_turn(shard);
        }
    }

    fn lateness(&mut self) -> u64 {
        let shards = &self.plan.shards;
        if shards.count == 1 || self.stage != Stage::Working {
            return 0;
        }
        let is_late = self.shard_random.percent(shards.late_percent);
        if is_late { self.shard_random.below(shards.late_max) } else { 0 }
    }

    pub(super) fn turn(&mut self, shard: usize) {
        self.turns_due.remove(&shard);
        let Some(broker) = self.broker.as_mut() else { return };
        broker.nodes[shard].end_turn(self.now);
        let has_work = broker.nodes[shard].has_work();
        self.take_work(shard);
        self.send_dirty(shard);
        self.send_batches(shard);
        self.read_on();
        self.measure();
        self.schedule_deadline(shard);
        if has_work {
            self.want_turn(shard);
        }
    }

    fn schedule_deadline(&mut self, shard: usize) {
        let due = self.broker.as_ref().and_then(|broker| broker.nodes[shard].deadline());
        let Some(due) = due else { return };
        let at = self.deadlines_at.get(&shard);
        let is_covered = at.is_some_and(|at| *at <= due && *at >= self.now);
        if !is_covered {
            let at = due.max(self.now);
            self.deadlines_at.insert(shard, at);
            self.schedule(at.0 - self.now.0, Happening::Deadline(shard));
        }
    }

    pub(super) fn deadline(&mut self, shard: usize) {
        if self.deadlines_at.get(&shard).is_some_and(|at| *at <= self.now) {
            self.deadlines_at.remove(&shard);
        }
        if let Some(broker) = self.broker.as_mut() {
            broker.nodes[shard].expire(self.now);
            self.want_turn(shard);
        }
    }

    // ---- batches ----

    fn send_batches(&mut self, from: usize) {
        let Some(broker) = self.broker.as_mut() else { return };
        for to in broker.take_batches(from) {
            let route = Route { from, to };
            if self.routes_due.insert(route) {
                self.schedule_batches(route);
            }
        }
    }

    fn schedule_batches(&mut self, route: Route) {
        let delay_max = match self.stage {
            Stage::Working => self.plan.shards.delay_max,
            _ => CALM_BATCH_DELAY,
        };
        let pause = self.shard_random.below(delay_max);
        self.schedule(pause, Happening::Batches(route));
    }

    /// Some of the oldest batches of a pair of shards arrive.
    pub(super) fn batches(&mut self, route: Route) {
        self.routes_due.remove(&route);
        let Some(broker) = self.broker.as_mut() else { return };
        let waiting = broker.batches(route).len() as u64;
        for _ in 0..self.shard_random.between(1, waiting.max(1)) {
            match self.canary {
                Some(Canary::BatchesLost) if self.shard_random.percent(PERCENT) => {
                    broker.batches(route).pop_front();
                }
                Some(Canary::BatchesSwapped) if broker.batches(route).len() > 1 => {
                    broker.batches(route).swap(0, 1);
                }
                _ => {}
            }
            broker.batch_arrives(self.now, route);
        }
        if !broker.batches(route).is_empty() {
            self.routes_due.insert(route);
            self.schedule_batches(route);
        }
        self.want_turn(route.to);
    }
}
