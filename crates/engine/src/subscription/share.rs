//! What a queue hands out of what has waited in it, before others get their turn.
//!
//! Who drains a long queue takes as much as there is, and so would have all of the shard's time, and of the
//! machine's, while others wait. A turn hands out one share of it. While others are served meanwhile, it is
//! one share in each interval: a rate, whatever the size of messages, so that the drain always goes on.

use crate::Time;
use crate::engine::Engine;
use crate::timers::Timer;
use std::time::Duration;

/// What one queue hands out before others get their turn: as much as a client is read of at once.
pub(super) const SHARE_BYTES: u64 = 64 << 10;
/// What a message counts for besides its body.
pub(super) const MESSAGE_BYTES: u64 = 256;
/// The time for a share while others are served.
const INTERVAL: Duration = Duration::from_micros(500);
/// How long after a delivery to them others are there.
const COMPANY: Duration = Duration::from_millis(1);

/// What a queue has handed out lately, and what others had meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Since when `bytes` were handed out.
    begun: Time,
    bytes: u64,
    /// It hands nothing out until its timer goes off.
    pub(crate) is_resting: bool,
    /// Messages that it handed out while more waited.
    drained: u64,
    /// How many messages others had had when that was last looked at, and when it was not the same.
    others: u64,
    others_at: Time,
}

impl Share {
    /// How long a queue rests that has just handed out `bytes`, if others are there.
    fn rest(&mut self, now: Time, bytes: u64) -> Option<Time> {
        if now.since(self.begun) >= INTERVAL {
            (self.begun, self.bytes) = (now, 0);
        }
        self.bytes += bytes;
        let has_company = self.others_at != Time::default() && now.since(self.others_at) < COMPANY;
        if !has_company || self.bytes < SHARE_BYTES {
            return None;
        }
        let nanos = u128::from(self.bytes) * INTERVAL.as_nanos() / u128::from(SHARE_BYTES);
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        Some(self.begun.plus(Duration::from_nanos(nanos)))
    }
}

impl Engine {
    /// A queue has handed out so many messages, of so many bytes: lets it rest where it has more, and others
    /// are there.
    pub(super) fn rest_after(&mut self, now: Time, slot: u32, messages: u64, bytes: u64) {
        let Some(queue) = self.queues.get_mut(slot) else { return };
        if messages == 0 || queue.ready == 0 {
            return;
        }
        self.drained += messages;
        queue.share.drained += messages;
        // What others had, but for what they drained: of those who drain none is in the others' way.
        let own = queue.counters.delivered - queue.share.drained;
        let others = self.counters.delivered + self.counters.heard - self.drained - own;
        let share = &mut queue.share;
        if std::mem::replace(&mut share.others, others) != others {
            share.others_at = now;
        }
        if let Some(until) = share.rest(now, bytes)
            && !std::mem::replace(&mut share.is_resting, true)
        {
            self.timers.set(until, Timer::Share(slot));
        }
    }

    /// A queue has rested.
    pub(crate) fn end_rest(&mut self, slot: u32) {
        if let Some(queue) = self.queues.get_mut(slot) {
            queue.share.is_resting = false;
            self.mark_dirty(slot);
        }
    }
}
