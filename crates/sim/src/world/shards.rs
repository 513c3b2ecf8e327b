//! The shards' turns, and the batches between them: in order for each pair of shards, and with any
//! delay; a shard may not get its turn for a while.

use super::stages::Stage;
use super::{Happening, World};
use crate::canary::{Canary, PERCENT};

/// Longest way of a batch once nothing is wrong any more, in microseconds.
const CALM_PARCEL_DELAY: u64 = 100;

/// A way of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Route {
    pub(super) from: usize,
    pub(super) to: usize,
}

impl World {
    // ---- turns ----

    /// A shard is to end its turn soon; what happens until then is part of it.
    pub(super) fn want_turn(&mut self, shard: usize) {
        if self.broker.is_some() && self.turns_due.insert(shard) {
            let pause = self.random.below(60) + self.nap();
            self.schedule(pause, Happening::Turn(shard));
        }
    }

    /// All shards are to end their turns soon.
    pub(super) fn want_turns(&mut self) {
        for shard in 0..self.plan.shards.count {
            self.want_turn(shard);
        }
    }

    /// For how long a shard does not get its turn.
    fn nap(&mut self) -> u64 {
        let shards = &self.plan.shards;
        if shards.count == 1 || self.stage != Stage::Working {
            return 0;
        }
        let is_late = self.shard_random.percent(shards.nap_percent);
        if is_late { self.shard_random.below(shards.nap_max) } else { 0 }
    }

    pub(super) fn turn(&mut self, shard: usize) {
        self.turns_due.remove(&shard);
        let Some(broker) = self.broker.as_mut() else { return };
        let has_work = broker.end_turn(self.now, shard);
        self.take_work(shard);
        self.send_dirty(shard);
        self.send_batchs(shard);
        self.read_on();
        self.measure();
        self.schedule_deadline(shard);
        if has_work {
            self.want_turn(shard);
        }
    }

    fn schedule_deadline(&mut self, shard: usize) {
        let due = self.broker.as_ref().and_then(|broker| broker.deadline(shard));
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
            broker.expire(self.now, shard);
            self.want_turn(shard);
        }
    }

    // ---- batches ----

    /// Sends what a shard has for others on its way.
    fn send_batchs(&mut self, from: usize) {
        let Some(broker) = self.broker.as_mut() else { return };
        for to in broker.take_batchs(from) {
            let route = Route { from, to };
            if self.routes_due.insert(route) {
                self.schedule_batchs(route);
            }
        }
    }

    fn schedule_batchs(&mut self, route: Route) {
        let delay_max = match self.stage {
            Stage::Working => self.plan.shards.delay_max,
            _ => CALM_PARCEL_DELAY,
        };
        let pause = self.shard_random.below(delay_max);
        self.schedule(pause, Happening::Batches(route));
    }

    /// The oldest batches of a pair of shards arrive, or the oldest alone.
    pub(super) fn batches(&mut self, route: Route) {
        self.routes_due.remove(&route);
        let Some(broker) = self.broker.as_mut() else { return };
        let waiting = broker.batches(route) as u64;
        for _ in 0..self.shard_random.between(1, waiting.max(1)) {
            match self.canary {
                Some(Canary::ParcelsLost) if self.shard_random.percent(PERCENT) => {
                    broker.take_batch(route);
                }
                Some(Canary::ParcelsSwapped) => broker.swap_batchs(route),
                _ => {}
            }
            broker.batch_arrives(self.now, route);
        }
        if broker.batches(route) > 0 {
            self.routes_due.insert(route);
            self.schedule_batchs(route);
        }
        self.want_turn(route.to);
    }
}
