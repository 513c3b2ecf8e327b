//! Consumes from one queue and publishes to others; each batch is one transaction.

use super::wire::{Message, Way};
use super::{Asked, Behaviour, Scene};
use crate::history::{Delivery, Ending, Event, History, MessageId, Outcome, Publish, Subscription};
use crate::payload;
use crate::plan::Relay;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Properties, Table};

/// Longest time it waits for a batch to become full, in microseconds.
const PAUSE_MAX: u64 = 50_000;

/// A relay at work.
#[derive(Debug)]
pub(super) struct Relaying {
    plan: Relay,
    /// This connection's numbers as a producer and as a consumer.
    producer: u32,
    consumer: u32,
    sequence: u32,
    held: Vec<(u64, MessageId)>,
    /// What is settled in the transaction whose end was asked for.
    ending: Vec<(u64, MessageId)>,
    is_ending: bool,
    is_finishing: bool,
}

impl Relaying {
    pub(super) fn new(plan: Relay) -> Relaying {
        Relaying {
            plan,
            producer: 0,
            consumer: 0,
            sequence: 0,
            held: Vec::new(),
            ending: Vec::new(),
            is_ending: false,
            is_finishing: false,
        }
    }

    fn transact(&mut self, scene: &mut Scene<'_>) {
        scene.numbers.transaction += 1;
        let transaction = scene.numbers.transaction;
        for queue in self.plan.to.clone() {
            self.sequence += 1;
            let message = MessageId::new(self.producer, self.sequence);
            scene.note(Event::Publish(Publish {
                message,
                to: vec![queue],
                persistent: true,
                priority: 0,
                transaction: Some(transaction),
                expires: false,
                held_until: None,
            }));
            let key = scene.plan().queues[queue].name.clone();
            let properties = Properties { delivery_mode: Some(2), ..Properties::default() };
            let length = scene.random.index(300);
            scene.wire.publish("", &key, false, &properties, &payload::make(message, length));
        }
        for (tag, message) in std::mem::take(&mut self.held) {
            scene.wire.send(&Method::BasicAck { delivery_tag: tag, multiple: false });
            scene.note(Event::Settle {
                consumer: self.consumer,
                queue: self.plan.from,
                message,
                outcome: Outcome::Accept,
                transaction: Some(transaction),
            });
            self.ending.push((tag, message));
        }
        self.is_ending = true;
        if scene.random.percent(self.plan.rollback_percent) {
            scene.note(Event::Transaction { transaction, ending: Ending::RolledBack });
            scene.ask(&Method::TxRollback {}, Asked::Rollback);
        } else {
            scene.note(Event::Committing { transaction });
            scene.ask(&Method::TxCommit {}, Asked::Commit(transaction));
        }
    }
}

impl Behaviour for Relaying {
    fn begin(&mut self, scene: &mut Scene<'_>) {
        scene.numbers.producer += 1;
        scene.numbers.consumer += 1;
        self.producer = scene.numbers.producer;
        self.consumer = scene.numbers.consumer;
        self.sequence = 0;
        scene.ask(&Method::TxSelect {}, Asked::Done);
        let prefetch_count = u16::try_from(self.plan.batch).unwrap_or(u16::MAX);
        let qos = Method::BasicQos { prefetch_size: 0, prefetch_count, global: false };
        scene.ask(&qos, Asked::Done);
        scene.note(Event::Subscribe(Subscription {
            consumer: self.consumer,
            queue: self.plan.from,
            messages_max: self.plan.batch,
            bytes_max: 0,
            presettled: false,
        }));
        let queue = scene.plan().queues[self.plan.from].name.clone();
        let method = Method::BasicConsume {
            ticket: 0,
            queue: &queue,
            consumer_tag: &self.consumer.to_string(),
            no_local: false,
            no_ack: false,
            exclusive: false,
            no_wait: false,
            arguments: Table::default(),
        };
        scene.ask(&method, Asked::Done);
    }

    fn arrived(&mut self, scene: &mut Scene<'_>, message: &Message) {
        let Way::Delivered { .. } = message.way else { return };
        scene.note(Event::Deliver(Delivery {
            consumer: self.consumer,
            queue: self.plan.from,
            message: message.id,
            redelivered: message.redelivered,
            bytes: message.bytes,
            requeues: message.requeues,
        }));
        if let Some(id) = message.id {
            self.held.push((message.tag, id));
        }
        scene.wake_within(PAUSE_MAX);
    }

    fn answered(&mut self, scene: &mut Scene<'_>, asked: Asked, _: u32) {
        match asked {
            Asked::Commit(transaction) => {
                scene.note(Event::Transaction { transaction, ending: Ending::Committed });
                self.ending.clear();
            }
            // Undone: the deliveries are unsettled as before.
            Asked::Rollback => self.held.splice(0..0, self.ending.drain(..)).for_each(drop),
            _ => return,
        }
        self.is_ending = false;
        scene.wake_within(PAUSE_MAX);
    }

    fn woken(&mut self, scene: &mut Scene<'_>) {
        if !self.is_finishing && !self.is_ending && !self.held.is_empty() {
            self.transact(scene);
        }
    }

    fn ended(&mut self, history: &mut History, now: Time, _: bool) {
        if self.consumer != 0 {
            history.note(now, Event::Ended { consumer: self.consumer });
        }
        self.consumer = 0;
        self.held.clear();
        self.ending.clear();
        self.is_ending = false;
    }

    fn finish(&mut self) {
        self.is_finishing = true;
    }

    fn is_done(&self) -> bool {
        !self.is_ending
    }
}
