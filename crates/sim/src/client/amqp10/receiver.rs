//! A link on which a client takes messages from a queue: its credit, its drains, and what it holds.

use super::connection::Context;
use super::wire::{At, Message};
use crate::canary::Canary;
use crate::client::Surroundings;
use crate::client::context::next;
use crate::history::{Consume, Delivery, Event, MessageId, Outcome};
use crate::plan::QueueIndex;

/// A delivery that is not settled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) delivery_id: u32,
    pub(super) message: MessageId,
}

/// The link, as its client knows it.
#[derive(Debug)]
pub(super) struct Receiver {
    at: At,
    queue: QueueIndex,
    /// The number of the consumer.
    pub(super) consumer: u32,
    /// Deliveries so far, and what drains counted as such.
    delivery_count: u32,
    /// The delivery-count up to which credit was given, and the highest that it ever was.
    limit: u32,
    highest: u32,
    pub(super) held: Vec<Held>,
    pub(super) is_draining: bool,
    /// Answers to drains that a canary has anticipated.
    anticipated: u32,
}

impl Receiver {
    /// The link is attached.
    pub(super) fn begin(around: &mut Surroundings<'_>, at: At, queue: QueueIndex) -> Receiver {
        let consumer = next(&mut around.numbers.consumer);
        around.note(Event::Consume(Consume { consumer, queue, ..Consume::default() }));
        Receiver {
            at,
            queue,
            consumer,
            delivery_count: 0,
            limit: 0,
            highest: 0,
            held: Vec::new(),
            is_draining: false,
            anticipated: 0,
        }
    }

    /// Whether all credit is used up.
    pub(super) fn is_used_up(&self) -> bool {
        self.delivery_count >= self.limit
    }

    /// Gives credit, which may be less than before.
    pub(super) fn give_credit(&mut self, context: &mut Context<'_, '_>, credit: u32, drain: bool) {
        let credit = credit.max(drain.into());
        self.limit = self.delivery_count.wrapping_add(credit);
        self.highest = self.highest.max(self.limit);
        context.wire.flow(self.at, self.delivery_count, credit, drain);
        if !drain {
            return;
        }
        self.is_draining = true;
        context.note(Event::Asking { consumer: self.consumer });
        if context.broken.breaks(Canary::DrainsEarly) {
            self.drained(context.around, self.limit);
            self.anticipated += 1;
        }
    }

    /// The broker has no more to deliver, or has used the credit up; it has processed all that was sent
    /// before the drain.
    pub(super) fn drained(&mut self, around: &mut Surroundings<'_>, delivery_count: u32) {
        if self.anticipated > 0 {
            self.anticipated -= 1;
            return;
        }
        if !std::mem::take(&mut self.is_draining) {
            return;
        }
        let consumer = self.consumer;
        let is_empty = delivery_count > self.delivery_count;
        self.delivery_count = delivery_count;
        around.note(Event::Synced { consumer });
        if is_empty {
            around.note(Event::NothingLeft { consumer });
        }
    }

    /// A message came. Fails if there was no credit for it, unless a rule is broken.
    pub(super) fn arrived(
        &mut self,
        context: &mut Context<'_, '_>,
        message: Message,
    ) -> Result<(), String> {
        self.delivery_count = self.delivery_count.wrapping_add(1);
        let is_beyond = self.delivery_count > self.highest && self.anticipated == 0;
        if is_beyond && context.broken.0.is_none() {
            return Err(format!("credit respected: more than {} deliveries came", self.highest));
        }
        let Message { delivery_id, id, is_first, failures, bytes, .. } = message;
        let (consumer, queue) = (self.consumer, self.queue);
        self.held.extend(id.map(|message| Held { delivery_id, message }));
        let is_uncounted = context.broken.is(Canary::CountsLost);
        context.note(Event::Deliver(Delivery {
            consumer,
            queue,
            message: id,
            redelivered: !is_first,
            bytes,
            requeues: if is_uncounted { 0 } else { failures.into() },
        }));
        Ok(())
    }

    /// Records that a delivery is settled.
    pub(super) fn note_settle(
        &self,
        context: &mut Context<'_, '_>,
        held: Held,
        outcome: Outcome,
        transaction: Option<u32>,
    ) {
        let (consumer, queue, message) = (self.consumer, self.queue, held.message);
        context.note(Event::Settle { consumer, queue, message, outcome, transaction });
    }
}
