//! How long a delivery may stay unsettled: a channel that holds one longer is closed, with a reason.
//!
//! So its client learns of it, all that the channel has goes back, and no more is out than its credit
//! allows.

use super::unsettled::Delivered;
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::queue::entry::NEVER;
use crate::{Effects, Refusal, RefusalKind, Time};
use std::time::Duration;

/// The interval in which settle timeouts are checked.
const TIMEOUT_STEP: Duration = Duration::from_secs(1);

impl Engine {
    /// How long a delivery of a queue, to this consumer if to any, may stay unsettled: as the consumer says,
    /// or else the queue, or else the limits; for any time where the consumer is granted its deliveries.
    #[inline]
    pub(crate) fn settle_timeout(&self, queue: u32, consumer: Option<u32>) -> Option<Duration> {
        let consumer = consumer.and_then(|slot| self.clients.consumers.get(slot));
        if consumer.is_some_and(|consumer| consumer.is_granted) {
            return None;
        }
        let queue = self.queues.get(queue);
        let own = consumer.and_then(|consumer| consumer.settle_timeout);
        let own = own.or_else(|| queue.and_then(|queue| queue.options.settle_timeout));
        Some(own.unwrap_or(self.options.limits.settle_timeout))
    }

    /// The timer of a channel's settles went off.
    pub(crate) fn time_out_settles<F: Effects>(&mut self, now: Time, slot: u32, fx: &mut F) {
        let Some(channel) = self.clients.channels.get_mut(slot) else { return };
        channel.settle_timer = None;
        let unsettled = channel.unsettled.iter().map(|(_, delivered)| delivered);
        let Some(first) = unsettled.min_by_key(|it| it.deadline) else { return };
        if first.deadline > now && first.deadline != NEVER {
            let at = Some(first.deadline.max(now.plus(TIMEOUT_STEP)));
            return self.timers.reset(&mut channel.settle_timer, at, Timer::Settle(slot));
        }
        if first.deadline == NEVER {
            return;
        }
        let Delivered { queue, queue_number, taker, .. } = *first;
        let id = channel.id;
        let consumer = taker.filter(|taker| {
            let consumer = self.clients.consumers.get(taker.slot);
            consumer.is_some_and(|it| it.incarnation == taker.incarnation)
        });
        let timeout = self.settle_timeout(queue, consumer.map(|taker| taker.slot));
        let timeout = timeout.unwrap_or_default();
        let queue = self.queues.get(queue).filter(|queue| queue.number == queue_number);
        let queue = queue.map_or("a deleted queue", |queue| &queue.name);
        // Clients look for the first sentence.
        let text = format!(
            "delivery acknowledgement on channel {} timed out. Timeout value used: {} ms \
             (consumer-timeout of the consumer or queue, or settle-timeout). Queue: {queue}",
            id.number,
            timeout.as_millis(),
        );
        self.counters.settle_timeouts += 1;
        self.close(now, id, fx);
        fx.channel_failed(id, Refusal::new(RefusalKind::PreconditionFailed, text));
    }
}
