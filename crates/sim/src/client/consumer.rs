//! Takes messages and settles them as its plan says.

use super::wire::{Message, Way};
use super::{Asked, Behaviour, Leave, Scene};
use crate::client::deliveries;
use crate::history::{Event, History, MessageId, Outcome, Subscription};
use crate::plan::{Acks, Consumer};
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::Method;
use std::time::Duration;

/// How many in a hundred settles are followed by a question whose answer shows that they arrived.
const SYNC_PERCENT: u64 = 10;
/// Most messages that a getter holds.
const HELD_MAX: usize = 20;

/// A delivery that is not settled.
#[derive(Clone, Copy, Debug)]
struct Held {
    tag: u64,
    consumer: u32,
    message: MessageId,
}

/// A consumer at work.
#[derive(Debug)]
pub(super) struct Consuming {
    plan: Consumer,
    held: Vec<Held>,
    /// The subscriptions of this connection.
    numbers: Vec<u32>,
    /// A question is out; settling waits, so that its answer covers every settle.
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

    /// A new subscription, or a new number for what is got.
    fn subscribe(&mut self, scene: &mut Scene<'_>) {
        let consumer = scene.new_consumer();
        self.numbers.push(consumer);
        let presettled = self.plan.acks == Acks::Auto;
        let is_limited = !self.plan.gets && !presettled;
        let subscription = Subscription {
            consumer,
            queue: self.plan.queue,
            messages_max: if is_limited { self.plan.prefetch } else { 0 },
            bytes_max: if is_limited { self.plan.prefetch_bytes } else { 0 },
            presettled,
        };
        if self.plan.gets {
            scene.note(Event::Subscribe(subscription));
        } else {
            scene.subscribe(subscription);
        }
    }

    fn get(&mut self, scene: &mut Scene<'_>) {
        if self.is_getting || self.held.len() >= HELD_MAX {
            return;
        }
        self.is_getting = true;
        let queue = scene.plan().queues[self.plan.queue].name.clone();
        let no_ack = self.plan.acks == Acks::Auto;
        scene.ask(&Method::BasicGet { ticket: 0, queue: &queue, no_ack }, Asked::Get);
    }

    fn settle(&mut self, scene: &mut Scene<'_>) {
        if self.held.is_empty() {
            return;
        }
        match self.plan.acks {
            Acks::Auto => {}
            Acks::Multiple(count) => {
                let is_due = self.held.len() as u64 >= count || scene.random.percent(20);
                if is_due {
                    let newest = self.held.iter().map(|held| held.tag).max().expect("not empty");
                    scene.wire.send(&Method::BasicAck { delivery_tag: newest, multiple: true });
                    for held in std::mem::take(&mut self.held) {
                        self.note(scene, held, Outcome::Accept);
                    }
                }
            }
            Acks::Single => {
                let at =
                    if scene.random.percent(70) { 0 } else { scene.random.index(self.held.len()) };
                let held = self.held.remove(at);
                self.settle_one(scene, held);
            }
        }
    }

    fn settle_one(&self, scene: &mut Scene<'_>, held: Held) {
        let draw = scene.random.below(100);
        let delivery_tag = held.tag;
        let outcome = if draw < self.plan.requeue_percent {
            scene.wire.send(&Method::BasicNack { delivery_tag, multiple: false, requeue: true });
            Outcome::Requeue
        } else if draw < self.plan.requeue_percent + self.plan.discard_percent {
            scene.wire.send(&Method::BasicReject { delivery_tag, requeue: false });
            Outcome::Discard
        } else {
            scene.wire.send(&Method::BasicAck { delivery_tag, multiple: false });
            Outcome::Accept
        };
        self.note(scene, held, outcome);
    }

    fn note(&self, scene: &mut Scene<'_>, held: Held, outcome: Outcome) {
        scene.note(Event::Settle {
            consumer: held.consumer,
            queue: self.plan.queue,
            message: held.message,
            outcome,
            transaction: None,
        });
    }

    fn set_life(&mut self, scene: &mut Scene<'_>) {
        self.leaves_at = self.plan.life_max.map(|max| {
            scene.wake_within(max);
            scene.now.plus(Duration::from_micros(scene.random.below(max)))
        });
    }

    /// Its life is over: it begins another one, in this connection or the next.
    fn leave(&mut self, scene: &mut Scene<'_>) {
        self.leaves_at = None;
        match scene.random.below(3) {
            0 if !self.plan.gets => {
                let consumer = self.numbers.last().map(u32::to_string).unwrap_or_default();
                let method = Method::BasicCancel { consumer_tag: &consumer, no_wait: false };
                scene.ask(&method, Asked::Cancel);
            }
            1 => *scene.wants_to_leave = Leave::Abruptly,
            _ => *scene.wants_to_leave = Leave::Politely,
        }
    }
}

impl Behaviour for Consuming {
    fn begin(&mut self, scene: &mut Scene<'_>) {
        let messages = u16::try_from(self.plan.prefetch).unwrap_or(u16::MAX);
        let bytes = u32::try_from(self.plan.prefetch_bytes).unwrap_or(u32::MAX);
        scene.ask_prefetch(messages, bytes);
        self.subscribe(scene);
        self.set_life(scene);
        scene.wake_within(self.plan.think_max);
    }

    fn arrived(&mut self, scene: &mut Scene<'_>, message: &Message) {
        let consumer = match &message.way {
            Way::Delivered { consumer } => consumer.parse().unwrap_or(0),
            Way::Got => {
                self.is_getting = false;
                self.numbers.last().copied().unwrap_or(0)
            }
            Way::Returned => return,
        };
        scene.note_delivery(consumer, self.plan.queue, message);
        if let (Some(id), true) = (message.id, self.plan.acks != Acks::Auto) {
            self.held.push(Held { tag: message.tag, consumer, message: id });
        }
        scene.wake_within(self.plan.think_max);
    }

    fn answered(&mut self, scene: &mut Scene<'_>, asked: Asked, _: u32) {
        match asked {
            Asked::Depth(_) => {
                self.is_syncing = false;
                for consumer in self.numbers.clone() {
                    scene.note(Event::Synced { consumer });
                }
            }
            Asked::Get => self.is_getting = false,
            Asked::Cancel => {
                self.subscribe(scene);
                self.set_life(scene);
            }
            _ => {}
        }
        scene.wake_within(self.plan.think_max);
    }

    fn woken(&mut self, scene: &mut Scene<'_>) {
        if self.is_syncing {
            return;
        }
        if self.leaves_at.is_some_and(|due| due <= scene.now) {
            self.leave(scene);
            if *scene.wants_to_leave != Leave::No {
                return;
            }
        }
        self.settle(scene);
        if self.plan.gets {
            self.get(scene);
        }
        if scene.random.percent(SYNC_PERCENT) {
            self.is_syncing = true;
            for consumer in &self.numbers {
                scene.note(Event::Asking { consumer: *consumer });
            }
            scene.ask_depth(self.plan.queue);
        }
        if self.plan.gets || !self.held.is_empty() {
            scene.wake_within(self.plan.think_max);
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
