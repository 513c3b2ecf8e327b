//! How much of its backlog a queue hands out before others get their turn.
//!
//! A client that drains a long queue takes as much as there is, and would occupy the shard while
//! others wait. So a turn hands out one share of the backlog. While others are served, it is one
//! share in each interval: a rate (`Limits::backlog_bytes_per_second`), whatever the size of
//! messages, so that the drain always goes on.

use crate::Time;
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use std::ops::RangeInclusive;
use std::time::Duration;

/// What one queue hands out in a turn: more than one client can put into it in a turn, as otherwise a
/// queue that is not empty never becomes so.
const TURN_BYTES: u64 = 256 << 10;
/// The same while no other queue is served: a client that is alone is read from for twice as much.
const TURN_BYTES_ALONE: u64 = 512 << 10;
/// While others are served, a share is about this: with less, its client wakes more often (decision 0013);
/// more would delay the others noticeably.
const SHARE_BYTES: u64 = 64 << 10;
/// Microseconds in which a share has its time, whatever the rate.
const INTERVAL_MICROS: RangeInclusive<u64> = 500..=2_000;
/// How long after a delivery to them others are there.
const COMPANY: Duration = Duration::from_millis(1);
/// A queue that hands something out at least this often goes on doing so, and what comes in meanwhile is no
/// backlog: consumers that acknowledge in batches take in batches.
const GOES_ON: Duration = Duration::from_millis(100);

/// What a queue has handed out lately, what came in, and what others had meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Since when `messages`, of `bytes` in all, were handed out.
    begun: Time,
    messages: u64,
    bytes: u64,
    /// How many messages had ever come in then, and how many at the last look.
    come_before: u64,
    come: u64,
    /// Others were served when it last handed something out and had more.
    has_company: bool,
    /// It drains beside others.
    pub(crate) is_paced: bool,
    /// It hands nothing out.
    pub(crate) is_resting: bool,
    /// Until when at most: not for longer than others are there.
    until: Time,
    /// Messages that it handed out while more waited.
    drained: u64,
    /// How many messages others had had when that was last looked at, and when it was not the same.
    others: u64,
    others_at: Time,
}

impl Share {
    /// Bytes that the queue may hand out now; `per_second` bounds it while others are served.
    pub(crate) fn bytes_max(&self, per_second: u64) -> u64 {
        match (self.is_paced, self.has_company) {
            (true, _) => share_bytes(per_second).min(TURN_BYTES),
            (false, true) => TURN_BYTES,
            (false, false) => TURN_BYTES_ALONE,
        }
    }

    /// Until when a queue rests that has just handed out `messages`, which count for `bytes`, after
    /// `come` messages had ever come in: until what it handed out, less what came in, has had its
    /// time at `per_second` bytes a second.
    fn rest(
        &mut self,
        now: Time,
        messages: u64,
        bytes: u64,
        come: u64,
        per_second: u64,
    ) -> Option<Time> {
        let time = now.since(self.begun);
        if time >= Duration::from_micros(interval_micros(per_second)) {
            (self.begun, self.messages, self.bytes) = (now, 0, 0);
            // What came in since the last look counts, but not what came while nobody took anything.
            let goes_on = self.is_paced || time < GOES_ON;
            self.come_before = if goes_on { self.come } else { come };
        }
        self.come = come;
        self.messages += messages;
        self.bytes += bytes;
        let fewer = self.messages.saturating_sub(come - self.come_before);
        let drained = u128::from(self.bytes) * u128::from(fewer) / u128::from(self.messages.max(1));
        self.has_company = self.others_at != Time::default() && now.since(self.others_at) < COMPANY;
        self.is_paced = self.has_company && drained >= u128::from(share_bytes(per_second));
        let nanos = drained * 1_000_000_000 / u128::from(per_second.max(1));
        let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.is_paced.then(|| self.begun.plus(time))
    }
}

/// The interval of one share in microseconds, at `per_second` bytes a second.
fn interval_micros(per_second: u64) -> u64 {
    let micros = SHARE_BYTES * 1_000_000 / per_second.max(1);
    micros.clamp(*INTERVAL_MICROS.start(), *INTERVAL_MICROS.end())
}

/// Bytes of a share, at `per_second` bytes a second.
fn share_bytes(per_second: u64) -> u64 {
    (per_second.saturating_mul(interval_micros(per_second)) / 1_000_000).max(1)
}

impl Engine {
    /// Lets a queue rest that has just handed out messages, where it has more, drains, and
    /// others are served.
    pub(super) fn rest_after(&mut self, now: Time, slot: u32, messages: u64, bytes: u64) {
        let per_second = self.options.limits.backlog_bytes_per_second;
        let Some(queue) = self.queues.get_mut(slot) else { return };
        if messages == 0 || queue.ready == 0 {
            queue.share.is_paced &= queue.ready > 0;
            return;
        }
        self.agenda.drained += messages;
        queue.share.drained += messages;
        self.look_at_others(now, slot);
        let Some(queue) = self.queues.get_mut(slot) else { return };
        let come = queue.counters.published;
        if let Some(until) = queue.share.rest(now, messages, bytes, come, per_second)
            && !std::mem::replace(&mut queue.share.is_resting, true)
        {
            queue.share.until = until;
            self.timers.set(until.min(now.plus(COMPANY)), Timer::Share(slot));
        }
    }

    /// Whether others than this queue's had anything since the last look.
    fn look_at_others(&mut self, now: Time, slot: u32) -> bool {
        let Some(queue) = self.queues.get_mut(slot) else { return false };
        // Without what was drained: draining queues do not slow each other down.
        let own = queue.counters.delivered - queue.share.drained;
        let others =
            self.counters.delivered + self.counters.direct_delivered - self.agenda.drained - own;
        let had_some = std::mem::replace(&mut queue.share.others, others) != others;
        if had_some {
            queue.share.others_at = now;
        }
        had_some
    }

    /// Ends the rest of a queue, if its time is over or no others are served any more.
    pub(crate) fn end_rest(&mut self, now: Time, slot: u32) {
        let has_company = self.look_at_others(now, slot);
        let Some(queue) = self.queues.get_mut(slot) else { return };
        let until = queue.share.until;
        if has_company && now < until {
            self.timers.set(until.min(now.plus(COMPANY)), Timer::Share(slot));
            return;
        }
        queue.share.is_resting = false;
        self.mark_dirty(slot);
    }
}
