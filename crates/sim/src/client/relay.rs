//! Consumes from one queue and publishes to others; each batch is one transaction.

use super::publishes::Publishes;
use super::wire::{Message, Way};
use super::{Asked, Behaviour, Scene};
use crate::client::deliveries;
use crate::history::{Ending, Event, History, MessageId, Publish, Subscription};
use crate::payload;
use crate::plan::Relay;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Properties};

/// Longest time it waits for a batch to become full, in microseconds.
const PAUSE_MAX: u64 = 50_000;

/// A relay at work.
#[derive(Debug)]
pub(super) struct Relaying {
    plan: Relay,
    publishes: Publishes,
    /// This connection's number as a consumer.
    consumer: u32,
    held: Vec<(u64, MessageId)>,
    /// What is settled in the transaction whose end was asked for.
    ending: Vec<(u64, MessageId)>,
    is_ending: bool,
}

impl Relaying {
    pub(super) fn new(plan: Relay) -> Relaying {
        Relaying {
            plan,
            publishes: Publishes::default(),
            consumer: 0,
            held: Vec::new(),
            ending: Vec::new(),
            is_ending: false,
        }
    }

    fn transact(&mut self, scene: &mut Scene<'_>) {
        scene.numbers.transaction += 1;
        let transaction = scene.numbers.transaction;
        for queue in self.plan.to.clone() {
            let message = self.publishes.next();
            scene.note(Event::Publish(Publish {
                persistent: true,
                transaction: Some(transaction),
                ..Publish::new(message, vec![queue])
            }));
            let key = scene.plan().queues[queue].name.clone();
            let properties = Properties { delivery_mode: Some(2), ..Properties::default() };
            let length = scene.random.index(300);
            scene.wire.publish("", &key, false, &properties, &payload::make(message, length));
        }
        for (tag, message) in std::mem::take(&mut self.held) {
            scene.accept((self.consumer, self.plan.from), tag, message, Some(transaction));
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
        self.publishes = Publishes::begin(scene);
        self.consumer = scene.new_consumer();
        scene.ask(&Method::TxSelect {}, Asked::Done);
        let prefetch_count = u16::try_from(self.plan.batch).unwrap_or(u16::MAX);
        scene.ask_prefetch(prefetch_count, 0);
        scene.subscribe(Subscription {
            consumer: self.consumer,
            queue: self.plan.from,
            messages_max: self.plan.batch,
            bytes_max: 0,
            presettled: false,
        });
    }

    fn arrived(&mut self, scene: &mut Scene<'_>, message: &Message) {
        let Way::Delivered { .. } = message.way else { return };
        scene.note_delivery(self.consumer, self.plan.from, message);
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
        if !self.is_ending && !self.held.is_empty() {
            self.transact(scene);
        }
    }

    fn ended(&mut self, history: &mut History, now: Time, _: bool) {
        if self.consumer != 0 {
            deliveries::note_end(history, now, self.consumer, false);
        }
        self.consumer = 0;
        self.held.clear();
        self.ending.clear();
        self.is_ending = false;
    }

    fn is_done(&self) -> bool {
        !self.is_ending
    }
}
