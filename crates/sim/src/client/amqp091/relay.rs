//! The relay role: consumes from one queue and publishes to others, in transactions.

use super::context::{Asked, Behaviour, Context};
use super::deliveries::{self, Unsettled};
use super::incoming::{Message, Way};
use super::publishes::Publishes;
use crate::history::{Consume, Ending, Event, History, Publish};
use crate::payload;
use crate::plan::amqp091::Relay;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Properties};

/// Longest wait for more deliveries of a transaction, in microseconds.
const PAUSE_MAX: u64 = 50_000;

/// The state of a relay role.
#[derive(Debug)]
pub(super) struct Relaying {
    plan: Relay,
    publishes: Publishes,
    /// This connection's number as a consumer.
    consumer: u32,
    held: Vec<Unsettled>,
    /// Deliveries settled in the transaction that is being committed or rolled back.
    ending: Vec<Unsettled>,
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

    fn transact(&mut self, context: &mut Context<'_>) {
        context.numbers.transaction += 1;
        let transaction = context.numbers.transaction;
        for queue in self.plan.to.clone() {
            let message = self.publishes.next();
            context.note(Event::Publish(Publish {
                persistent: true,
                transaction: Some(transaction),
                ..Publish::new(message, vec![queue])
            }));
            let key = context.plan().queues[queue].name.clone();
            let properties = Properties { delivery_mode: Some(2), ..Properties::default() };
            let length = context.random.index(300);
            context.wire.publish("", &key, false, &properties, &payload::make(message, length));
        }
        for unsettled in std::mem::take(&mut self.held) {
            context.accept(self.consumer, self.plan.from, unsettled, Some(transaction));
            self.ending.push(unsettled);
        }
        self.is_ending = true;
        if context.random.percent(self.plan.rollback_percent) {
            context.note(Event::Transaction { transaction, ending: Ending::RolledBack });
            context.ask(&Method::TxRollback {}, Asked::Rollback);
        } else {
            context.note(Event::Committing { transaction });
            context.ask(&Method::TxCommit {}, Asked::Commit(transaction));
        }
    }
}

impl Behaviour for Relaying {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.publishes = Publishes::begin(context);
        self.consumer = context.new_consumer();
        context.ask(&Method::TxSelect {}, Asked::Done);
        let prefetch_count = u16::try_from(self.plan.batch).unwrap_or(u16::MAX);
        context.ask_prefetch(prefetch_count, 0);
        context.start_consumer(Consume {
            consumer: self.consumer,
            queue: self.plan.from,
            messages_max: self.plan.batch,
            bytes_max: 0,
            presettled: false,
        });
    }

    fn arrived(&mut self, context: &mut Context<'_>, message: &Message) {
        let Way::Delivered { .. } = message.way else { return };
        context.note_delivery(self.consumer, self.plan.from, message);
        if let Some(id) = message.id {
            self.held.push(Unsettled { tag: message.tag, message: id });
        }
        context.wake_within(PAUSE_MAX);
    }

    fn answered(&mut self, context: &mut Context<'_>, asked: Asked, _: u32) {
        match asked {
            Asked::Commit(transaction) => {
                context.note(Event::Transaction { transaction, ending: Ending::Committed });
                self.ending.clear();
            }
            // Rolled back: the deliveries are unsettled as before.
            Asked::Rollback => self.held.splice(0..0, self.ending.drain(..)).for_each(drop),
            _ => return,
        }
        self.is_ending = false;
        context.wake_within(PAUSE_MAX);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        if !self.is_ending && !self.held.is_empty() {
            self.transact(context);
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
