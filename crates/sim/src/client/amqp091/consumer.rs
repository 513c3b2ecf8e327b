//! The consumer role: takes messages and settles them as planned.

use super::channel::{Asked, Behaviour, Context, Leave, Unsettled};
use super::incoming::Message;
use crate::history::{Consume, Event, Outcome};
use crate::plan::QueueIndex;
use crate::plan::amqp091::{Acks, Consumer};
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::Method;

/// Percentage of settles followed by a request whose answer shows that they arrived.
const SYNC_PERCENT: u64 = 10;
/// Most messages that a client using basic.get holds.
const HELD_MAX: usize = 20;

/// The state of a consumer role.
#[derive(Debug)]
pub(super) struct Consuming {
    pub(super) plan: Consumer,
    pub(super) held: Vec<Unsettled>,
    pub(super) leaves_at: Option<Time>,
}

impl Consuming {
    /// Starts a consumer, or takes a new number for basic.get.
    fn start_consumer(&mut self, context: &mut Context<'_>) {
        let Consumer { queue, acks, prefetch, prefetch_bytes, gets, life_max, .. } = self.plan;
        let presettled = acks == Acks::Auto;
        let mut consume = Consume { queue, presettled, ..Consume::default() };
        if gets {
            consume.consumer = context.new_consumer(Some(queue));
            context.note(Event::Consume(consume));
        } else {
            if !presettled {
                (consume.messages_max, consume.bytes_max) = (prefetch, prefetch_bytes);
            }
            context.start_consumer(consume);
        }
        self.leaves_at = context.draw_end(life_max);
    }

    fn get(&mut self, context: &mut Context<'_>) {
        let is_getting = context.link.open.asked.contains(&Asked::Get);
        if is_getting || self.held.len() >= HELD_MAX {
            return;
        }
        let queue = &context.history.plan.queues[self.plan.queue].name;
        let no_ack = self.plan.acks == Acks::Auto;
        context.link.ask(&Method::BasicGet { ticket: 0, queue, no_ack }, Asked::Get);
    }

    fn settle(&mut self, context: &mut Context<'_>) {
        let Some(newest) = self.held.iter().map(|held| held.tag).max() else { return };
        match self.plan.acks {
            Acks::Auto => {}
            Acks::Multiple(count) => {
                if self.held.len() as u64 >= count || context.random.percent(20) {
                    context.link.send(&Method::BasicAck { delivery_tag: newest, multiple: true });
                    for held in self.held.drain(..) {
                        context.note_settle(held, Outcome::Accept, None);
                    }
                }
            }
            Acks::Single => {
                let is_oldest = context.random.percent(70);
                let at = if is_oldest { 0 } else { context.random.index(self.held.len()) };
                let held = self.held.remove(at);
                let draw = context.random.below(100);
                let Consumer { requeue_percent, discard_percent, .. } = self.plan;
                let outcome = if draw < requeue_percent {
                    Outcome::Requeue
                } else if draw < requeue_percent + discard_percent {
                    Outcome::Discard
                } else {
                    Outcome::Accept
                };
                context.settle(held, outcome, None);
            }
        }
    }

    /// Ends this consumer and starts another one, on this connection or the next.
    fn leave(&mut self, context: &mut Context<'_>) {
        self.leaves_at = None;
        let open = &mut context.link.open;
        match context.random.below(3) {
            0 if !self.plan.gets => {
                let consumer = open.consumers.last().map(|(number, _)| number.to_string());
                let consumer_tag = &consumer.unwrap_or_default();
                let method = Method::BasicCancel { consumer_tag, no_wait: false };
                context.link.ask(&method, Asked::Cancel);
            }
            1 => open.leave = Some(Leave::Abruptly),
            _ => open.leave = Some(Leave::Politely),
        }
    }
}

impl Behaviour for Consuming {
    fn own_queue(&self) -> Option<QueueIndex> {
        Some(self.plan.queue)
    }

    fn begin(&mut self, context: &mut Context<'_>) {
        self.held.clear();
        let messages = u16::try_from(self.plan.prefetch).unwrap_or(u16::MAX);
        let bytes = u32::try_from(self.plan.prefetch_bytes).unwrap_or(u32::MAX);
        context.link.ask_prefetch(messages, bytes, Asked::Done);
        self.start_consumer(context);
        context.wake_within(self.plan.think_max);
    }

    fn arrived(&mut self, context: &mut Context<'_>, message: &Message) {
        let unsettled = context.note_delivery(message);
        self.held.extend(unsettled.filter(|_| self.plan.acks != Acks::Auto));
        context.wake_within(self.plan.think_max);
    }

    fn answered(&mut self, context: &mut Context<'_>, asked: Asked, _: u32) {
        if asked == Asked::Cancel {
            self.start_consumer(context);
        }
        context.wake_within(self.plan.think_max);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        if context.link.open.is_syncing() {
            return;
        }
        if self.leaves_at.is_some_and(|due| due <= context.now) {
            self.leave(context);
            if context.link.open.leave.is_some() {
                return;
            }
        }
        self.settle(context);
        if self.plan.gets {
            self.get(context);
        }
        if context.random.percent(SYNC_PERCENT) {
            // Settling waits, so that the answer covers every settle.
            context.sync(self.plan.queue);
        }
        if self.plan.gets || !self.held.is_empty() {
            context.wake_within(self.plan.think_max);
        }
    }
}
