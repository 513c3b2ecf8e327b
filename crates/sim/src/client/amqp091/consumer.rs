//! The consumer role: takes messages and settles them as planned.

use super::context::{Asked, Behaviour, Context, Leave};
use super::deliveries;
use super::incoming::{Message, Way};
use crate::history::{Consume, Event, History, MessageId, Outcome};
use crate::plan::amqp091::{Acks, Consumer};
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::Method;
use std::time::Duration;

/// Percentage of settles followed by a request whose answer shows that they arrived.
const SYNC_PERCENT: u64 = 10;
/// Most messages that a client using basic.get holds.
const HELD_MAX: usize = 20;

/// A delivery that is not settled.
#[derive(Clone, Copy, Debug)]
struct Held {
    tag: u64,
    consumer: u32,
    message: MessageId,
}

/// The state of a consumer role.
#[derive(Debug)]
pub(super) struct Consuming {
    plan: Consumer,
    held: Vec<Held>,
    /// The consumers of this connection.
    numbers: Vec<u32>,
    /// A request is unanswered; settling waits, so that its answer covers every settle.
    is_syncing: bool,
    is_getting: bool,
    leaves_at: Option<Time>,
}

impl Consuming {
    pub(super) fn new(plan: Consumer) -> Consuming {
        Consuming {
            plan,
            held: Vec::new(),
            numbers: Vec::new(),
            is_syncing: false,
            is_getting: false,
            leaves_at: None,
        }
    }

    /// Starts a consumer, or takes a new number for basic.get.
    fn start_consumer(&mut self, context: &mut Context<'_>) {
        let consumer = context.new_consumer();
        self.numbers.push(consumer);
        let presettled = self.plan.acks == Acks::Auto;
        let is_limited = !self.plan.gets && !presettled;
        let consume = Consume {
            consumer,
            queue: self.plan.queue,
            messages_max: if is_limited { self.plan.prefetch } else { 0 },
            bytes_max: if is_limited { self.plan.prefetch_bytes } else { 0 },
            presettled,
        };
        if self.plan.gets {
            context.note(Event::Consume(consume));
        } else {
            context.start_consumer(consume);
        }
    }

    fn get(&mut self, context: &mut Context<'_>) {
        if self.is_getting || self.held.len() >= HELD_MAX {
            return;
        }
        self.is_getting = true;
        let queue = context.plan().queues[self.plan.queue].name.clone();
        let no_ack = self.plan.acks == Acks::Auto;
        context.ask(&Method::BasicGet { ticket: 0, queue: &queue, no_ack }, Asked::Get);
    }

    fn settle(&mut self, context: &mut Context<'_>) {
        if self.held.is_empty() {
            return;
        }
        match self.plan.acks {
            Acks::Auto => {}
            Acks::Multiple(count) => {
                let is_due = self.held.len() as u64 >= count || context.random.percent(20);
                if is_due {
                    let newest = self.held.iter().map(|held| held.tag).max().expect("not empty");
                    context.wire.send(&Method::BasicAck { delivery_tag: newest, multiple: true });
                    for held in std::mem::take(&mut self.held) {
                        self.note(context, held, Outcome::Accept);
                    }
                }
            }
            Acks::Single => {
                let at = if context.random.percent(70) {
                    0
                } else {
                    context.random.index(self.held.len())
                };
                let held = self.held.remove(at);
                self.settle_one(context, held);
            }
        }
    }

    fn settle_one(&self, context: &mut Context<'_>, held: Held) {
        let draw = context.random.below(100);
        let delivery_tag = held.tag;
        let outcome = if draw < self.plan.requeue_percent {
            context.wire.send(&Method::BasicNack { delivery_tag, multiple: false, requeue: true });
            Outcome::Requeue
        } else if draw < self.plan.requeue_percent + self.plan.discard_percent {
            context.wire.send(&Method::BasicReject { delivery_tag, requeue: false });
            Outcome::Discard
        } else {
            context.wire.send(&Method::BasicAck { delivery_tag, multiple: false });
            Outcome::Accept
        };
        self.note(context, held, outcome);
    }

    fn note(&self, context: &mut Context<'_>, held: Held, outcome: Outcome) {
        context.note(Event::Settle {
            consumer: held.consumer,
            queue: self.plan.queue,
            message: held.message,
            outcome,
            transaction: None,
        });
    }

    fn set_life(&mut self, context: &mut Context<'_>) {
        self.leaves_at = self.plan.life_max.map(|max| {
            context.wake_within(max);
            context.now.plus(Duration::from_micros(context.random.below(max)))
        });
    }

    /// Ends this consumer and starts another one, on this connection or the next.
    fn leave(&mut self, context: &mut Context<'_>) {
        self.leaves_at = None;
        match context.random.below(3) {
            0 if !self.plan.gets => {
                let consumer = self.numbers.last().map(u32::to_string).unwrap_or_default();
                let method = Method::BasicCancel { consumer_tag: &consumer, no_wait: false };
                context.ask(&method, Asked::Cancel);
            }
            1 => *context.wants_to_leave = Leave::Abruptly,
            _ => *context.wants_to_leave = Leave::Politely,
        }
    }
}

impl Behaviour for Consuming {
    fn begin(&mut self, context: &mut Context<'_>) {
        let messages = u16::try_from(self.plan.prefetch).unwrap_or(u16::MAX);
        let bytes = u32::try_from(self.plan.prefetch_bytes).unwrap_or(u32::MAX);
        context.ask_prefetch(messages, bytes);
        self.start_consumer(context);
        self.set_life(context);
        context.wake_within(self.plan.think_max);
    }

    fn arrived(&mut self, context: &mut Context<'_>, message: &Message) {
        let consumer = match &message.way {
            Way::Delivered { consumer } => consumer.parse().unwrap_or(0),
            Way::Got => {
                self.is_getting = false;
                self.numbers.last().copied().unwrap_or(0)
            }
            Way::Returned => return,
        };
        context.note_delivery(consumer, self.plan.queue, message);
        if let (Some(id), true) = (message.id, self.plan.acks != Acks::Auto) {
            self.held.push(Held { tag: message.tag, consumer, message: id });
        }
        context.wake_within(self.plan.think_max);
    }

    fn answered(&mut self, context: &mut Context<'_>, asked: Asked, _: u32) {
        match asked {
            Asked::Depth(_) => {
                self.is_syncing = false;
                for consumer in self.numbers.clone() {
                    context.note(Event::Synced { consumer });
                }
            }
            Asked::Get => self.is_getting = false,
            Asked::Cancel => {
                self.start_consumer(context);
                self.set_life(context);
            }
            _ => {}
        }
        context.wake_within(self.plan.think_max);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        if self.is_syncing {
            return;
        }
        if self.leaves_at.is_some_and(|due| due <= context.now) {
            self.leave(context);
            if *context.wants_to_leave != Leave::No {
                return;
            }
        }
        self.settle(context);
        if self.plan.gets {
            self.get(context);
        }
        if context.random.percent(SYNC_PERCENT) {
            self.is_syncing = true;
            for consumer in &self.numbers {
                context.note(Event::Asking { consumer: *consumer });
            }
            context.ask_depth(self.plan.queue);
        }
        if self.plan.gets || !self.held.is_empty() {
            context.wake_within(self.plan.think_max);
        }
    }

    fn ended(&mut self, history: &mut History, now: Time, synced: bool) {
        for consumer in self.numbers.drain(..) {
            deliveries::note_end(history, now, consumer, synced);
        }
        self.held.clear();
        self.is_syncing = false;
        self.is_getting = false;
        self.leaves_at = None;
    }

    fn is_done(&self) -> bool {
        !self.is_syncing && !self.is_getting
    }
}
