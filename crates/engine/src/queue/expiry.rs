//! Time to live: of messages, looked at where they reach the head, and of queues without use.

use super::entry::NEVER;
use super::lane::Front;
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::{DeathReason, Effects, Time};
use std::time::Duration;

/// Messages of one queue that expire before others get their turn.
const EXPIRIES_MAX: usize = 256;
/// Steps of work that no client waits for before others get their turn: of what is settled, of what leaves,
/// and of what clients and timers cause in a turn.
const UNASKED_STEPS_MAX: u64 = 8_192;
/// Steps that a timer counts for, besides what follows.
const TIMER_STEPS: u64 = 8;
/// How long a queue's messages then wait.
const LETTERS_PAUSE: Duration = Duration::from_millis(1);

impl Engine {
    /// When [`Engine::expire`] is due next.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.timers.first()
    }

    /// Follows a message's arrival (or return): limits, timers, consumers, pages.
    pub(crate) fn after_push<F: Effects>(
        &mut self,
        now: Time,
        slot: u32,
        is_first: bool,
        expires: Time,
        fx: &mut F,
    ) {
        let queue = &self.queues[slot];
        if queue.wants_front() {
            self.mark_dirty(slot);
        }
        if !self.browsers.is_empty() {
            self.browsers.wake_all(|browser| browser.queue == slot);
        }
        if is_first && expires != NEVER {
            self.set_head_timer(slot, expires);
        } else if expires != NEVER {
            self.watch_head(slot);
        }
        if self.storage.in_group {
            self.agenda.overdue.push(slot);
            return;
        }
        self.enforce_limits(now, slot, fx);
        self.page_out(slot, fx);
    }

    /// Does for queues what had to wait until a group of records was complete.
    #[inline]
    pub(crate) fn run_overdue<F: Effects>(&mut self, now: Time, fx: &mut F) {
        while let Some(slot) = self.agenda.overdue.pop() {
            self.enforce_limits(now, slot, fx);
            self.page_out(slot, fx);
            if !self.agenda.refused.is_empty() {
                self.dead_letter_set_aside(now, fx);
            }
        }
    }

    /// Makes sure that the expiry of the queue's head is noticed.
    pub(crate) fn watch_head(&mut self, slot: u32) {
        let Some(queue) = self.queues.get(slot) else { return };
        if let Front::Entry(entry) = queue.front()
            && entry.expires != NEVER
            && !entry.is_unreadable()
        {
            let expires = entry.expires;
            self.set_head_timer(slot, expires);
        }
    }

    fn set_head_timer(&mut self, slot: u32, at: Time) {
        let current = &mut self.queues[slot].head_timer;
        self.timers.bring_forward(current, at, Timer::Head(slot));
    }

    /// The timer of a queue's head went off.
    pub(crate) fn expire_messages<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        if let Some(queue) = self.queues.get_mut(slot) {
            queue.head_timer = None;
        }
        for _ in 0..EXPIRIES_MAX {
            if self.letters_are_much() {
                break;
            }
            let Some(queue) = self.queues.get(slot) else { return };
            let Front::Entry(entry) = queue.front() else { break };
            if entry.expires > now || entry.is_unreadable() {
                break;
            }
            self.expire_head(now, slot, fx);
        }
        self.expire_some_barred(now, slot, fx);
        self.wake_replays_into(slot);
        self.refill(slot, fx);
        if self.letters_are_much() {
            return self.set_head_timer(slot, now.plus(LETTERS_PAUSE));
        }
        self.watch_head(slot);
    }

    /// Lets those expire of the first messages that some consumers do not get, and looks again when the next
    /// of them does.
    fn expire_some_barred<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let Some(queue) = self.queues.get(slot).filter(|queue| queue.notes.is_some()) else {
            return;
        };
        let first = queue.lanes.iter().flat_map(|lane| lane.barred().take(EXPIRIES_MAX));
        let (expired, others): (Vec<_>, Vec<_>) =
            first.map(|entry| (entry.seq, entry.expires)).partition(|(_, at)| *at <= now);
        for (seq, _) in expired {
            self.expire_barred(now, slot, seq, fx);
        }
        let next = others.into_iter().map(|(_, at)| at).min().filter(|at| *at != NEVER);
        if let Some(at) = next {
            self.set_head_timer(slot, at);
        }
    }

    /// Whether so much was done in this turn that no client waits for that others get their turn.
    #[inline]
    pub(crate) fn has_much_unasked(&self) -> bool {
        self.unasked_steps > UNASKED_STEPS_MAX
    }

    /// The same, or very many dead letters wait for the turn of theirs.
    #[inline]
    pub(crate) fn letters_are_much(&self) -> bool {
        self.has_much_unasked() || self.agenda.wide.has_many_letters()
    }

    /// The first message of the queue, which is in memory, has expired.
    pub(crate) fn expire_head<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let queue = &mut self.queues[slot];
        let entry = queue.pop().expect("its front is an entry");
        self.unasked_steps += 1;
        queue.counters.expired += 1;
        self.counters.expired += 1;
        self.dead_letter(now, slot, entry, DeathReason::Expired, fx);
    }

    /// The queue was used: its expiry begins anew, or stops while it has consumers.
    pub(crate) fn queue_used(&mut self, now: Time, slot: u32) {
        let Some(queue) = self.queues.get_mut(slot) else { return };
        let expires = queue.options.expires;
        if expires.is_none() && queue.expires_at.is_none() {
            return;
        }
        let at = expires.filter(|_| queue.consumers.is_empty()).map(|it| now.plus(it));
        self.timers.reset(&mut queue.expires_at, at, Timer::Queue(slot));
    }

    /// The timer of a queue's use went off.
    pub(crate) fn expire_queue<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let Some(queue) = self.queues.get_mut(slot) else { return };
        if queue.expires_at.is_some_and(|at| at <= now) {
            queue.expires_at = None;
            self.delete_queue(slot, fx);
        }
    }

    /// Runs due timers: message and queue expiry, delays, settle timeouts.
    pub fn expire<F: Effects>(&mut self, now: Time, fx: &mut F) {
        // With many other letters, it is queues' timers alone that are put off.
        while !self.has_much_unasked()
            && let Some(timer) = self.timers.pop(now)
        {
            self.unasked_steps += TIMER_STEPS;
            match timer {
                Timer::Head(slot) => self.expire_messages(now, slot, fx),
                Timer::Queue(slot) => self.expire_queue(now, slot, fx),
                Timer::Settle(slot) => self.time_out_settles(now, slot, fx),
                Timer::Transaction(slot) => self.time_out_transaction(now, slot, fx),
                Timer::Share(slot) => self.end_rest(now, slot),
                Timer::Pauses => self.end_pauses(now, fx),
                Timer::Delay => {
                    self.delays.timer = None;
                    self.release_delayed(now, fx);
                }
                Timer::Session(slot) => self.expire_session(now, slot, fx),
                Timer::Will(slot) => self.will_due(now, slot, fx),
                Timer::Retained => self.expire_retained(now, fx),
                Timer::Lifetime(slot) => self.review_lifetime(now, slot, fx),
            }
        }
        self.run_overdue(now, fx);
        self.record_settled(fx);
    }
}
