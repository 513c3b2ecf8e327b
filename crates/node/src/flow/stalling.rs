//! Publishers that are faster than all subscribers of theirs, here or on another shard: whom they wait for.

use super::publisher_stall::{Pace, Publisher};
use crate::effects::NodeEffects;
use angarium_engine::{ConnectionId, ShardId, Time};

impl NodeEffects {
    /// Stalls a publisher here, whose last message reached slow subscribers only.
    #[cold]
    pub(crate) fn stall_here(&mut self, now: Time, publisher: ConnectionId) {
        let shards = self.stalls.slow_shards;
        self.links.wait_for(shards, publisher);
        let waits_here = self.wait_for_slow(Publisher::Here(publisher));
        if waits_here || !shards.is_empty() {
            self.stalls.begin(now, publisher);
        }
        self.stalls.clear_slow();
    }

    /// Tells another shard that all subscribers here of its publisher's last message are slow.
    pub(crate) fn stall_elsewhere(&mut self, now: Time, shard: ShardId, publisher: ConnectionId) {
        let waits = self.wait_for_slow(Publisher::There(shard, publisher));
        let pace = if waits { Pace::Slow } else { Pace::TooSlow };
        self.links.tell_slow(now, shard, publisher, pace);
    }

    /// Has a publisher wait for the slow subscribers of its last message; says whether there are any.
    fn wait_for_slow(&mut self, publisher: Publisher) -> bool {
        let mut waits = false;
        for &subscriber in &self.stalls.slow_here {
            let waiting = &mut self.outbox[subscriber.0 as usize].waiting;
            if publisher != Publisher::Here(subscriber) && !waiting.is_silent() {
                waits = true;
                waiting.add(publisher);
            }
        }
        waits
    }
}
