//! Messages on their way to consumers: sent, and remembered until they are settled.

use crate::consumer::Consumer;
use crate::consumer::unsettled::{Delivered, Taker};
use crate::engine::Engine;
use crate::foundation::timers::Timer;
use crate::queue::entry::{Entry, NEVER};
use crate::{Annotations, Delivery, Effects, MessageView, Time};

impl Engine {
    /// Sends a message; returns its tag, and whether it counts as settled with that.
    #[inline]
    pub(crate) fn send<F: Effects>(
        &mut self,
        taker: u32,
        place: u64,
        redelivered: bool,
        message: &MessageView<'_>,
        fx: &mut F,
    ) -> (u64, bool) {
        let consumer = &mut self.clients.consumers[taker];
        consumer.delivered += 1;
        let slot = consumer.queue;
        let has_shared = self.queues[slot].own.as_ref().is_some_and(|own| own.has_shared);
        let group = if has_shared { self.group_of_handed(slot, place) } else { None };
        let consumer = &self.clients.consumers[taker];
        let channel = &mut self.clients.channels[consumer.channel];
        let queue = &mut self.queues[consumer.queue];
        queue.counters.delivered += 1;
        self.counters.delivered += 1;
        let tag = channel.take_tag();
        let (id, name) = (channel.id, &*consumer.name);
        let group = group.as_deref();
        let delivery =
            Delivery { channel: id, consumer: name, tag, place, redelivered, group, message };
        if queue.dropped > 0 {
            deliver_after_dropped(&delivery, std::mem::take(&mut queue.dropped), fx);
        } else {
            fx.deliver(&delivery);
        }
        (tag, consumer.presettled)
    }

    /// Lets an entry go that was sent, or remembers it until it is settled.
    #[inline]
    pub(crate) fn after_sending<F: Effects>(
        &mut self,
        now: Time,
        taker: u32,
        entry: Entry,
        tag: u64,
        fx: &mut F,
    ) {
        let slot = self.clients.consumers[taker].queue;
        self.note_handed_out(slot, &entry);
        let consumer = &mut self.clients.consumers[taker];
        if consumer.presettled {
            self.queues[slot].counters.accepted += 1;
            self.counters.accepted += 1;
            self.forget(slot, entry, fx);
            return;
        }
        consumer.account.take(entry.bytes);
        let Consumer { channel, incarnation, on_close, on_loss, .. } = *consumer;
        let taker = Some(Taker { slot: taker, incarnation, on_close, on_loss });
        self.keep_unsettled(now, channel, slot, taker, tag, entry);
    }

    /// Remembers a delivery until it is settled.
    #[inline]
    pub(super) fn keep_unsettled(
        &mut self,
        now: Time,
        channel_slot: u32,
        slot: u32,
        taker: Option<Taker>,
        tag: u64,
        entry: Entry,
    ) {
        let timeout = self.settle_timeout(slot, taker.map(|taker| taker.slot));
        let channel = &mut self.clients.channels[channel_slot];
        let queue = &mut self.queues[slot];
        queue.went_out(entry.bytes);
        if taker.is_some() {
            channel.account.take(entry.bytes);
        }
        let (deadline, queue_number) = (timeout.map_or(NEVER, |it| now.plus(it)), queue.number);
        let delivered = Delivered { entry, queue: slot, queue_number, taker, deadline };
        channel.unsettled.push(tag, delivered);
        if deadline != NEVER {
            let timer = Timer::Settle(channel_slot);
            self.timers.bring_forward(&mut channel.settle_timer, deadline, timer);
        }
    }
}

/// Delivers the first message after `dropped` others, which tells of them.
#[cold]
fn deliver_after_dropped<F: Effects>(delivery: &Delivery<'_>, dropped: u64, fx: &mut F) {
    let annotations = Annotations { dropped, ..delivery.message.annotations.clone() };
    let message = &MessageView { annotations: &annotations, ..*delivery.message };
    fx.deliver(&Delivery { message, ..*delivery });
}
