//! Limits on what is ready in a queue.

use super::lane::Front;
use crate::engine::Engine;
use crate::{DeathReason, Effects, Overflow, Time};

impl Engine {
    /// Drops from the head while more is ready than the queue's limits allow. What is next in a page
    /// goes once the page was read.
    pub(crate) fn enforce_limits<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        loop {
            let Some(queue) = self.queues.get_mut(slot) else { return };
            // Where the new ones are refused, what was taken stays: a requeue may exceed the limit.
            if queue.options.overflow != Overflow::DropHead || !queue.is_over_limit() {
                return;
            }
            if let Front::Page(page) = queue.front() {
                if !page.is_unreadable() {
                    return self.refill(slot, fx);
                }
                // Nobody knows its messages one by one: they go together once all of them must.
                let page = page.clone();
                if !queue.is_over_limit_without(&page) {
                    return;
                }
                self.counters.dropped += u64::from(page.count);
                let lane = queue.first_lane().expect("its front is in a lane");
                self.drop_page_at(slot, lane, page.position, fx);
                continue;
            }
            let Some(entry) = queue.pop() else { return };
            self.counters.dropped += 1;
            self.dead_letter(now, slot, entry, DeathReason::MaxLength, fx);
        }
    }
}
