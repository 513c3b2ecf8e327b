//! The producer role: publishes, and records confirms.

use super::context::{Asked, Behaviour, Context};
use super::incoming::{Message, Way};
use super::publishes::Publishes;
use super::wire::with_table;
use crate::history::{DirectPublish, Ending, Event, History, MessageId, Publish};
use crate::payload;
use crate::plan::amqp091::{Mode, Producer};
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::table::TableWriter;
use angarium_protocol::amqp091::codec::{Method, Properties, Table};
use std::time::Duration;

/// Most messages published per wake-up.
const BURST_MAX: u64 = 16;
/// Unsent bytes above which it waits for its transport.
const OUTPUT_MAX: usize = 64 << 10;

/// The state of a producer role.
#[derive(Debug)]
pub(super) struct Producing {
    plan: Producer,
    publishes: Publishes,
    /// Messages sent on all connections.
    total: u32,
    /// The open transaction and how many messages it has.
    transaction: Option<(u32, u64)>,
    is_ending: bool,
}

impl Producing {
    pub(super) fn new(plan: Producer) -> Producing {
        Producing {
            plan,
            publishes: Publishes::default(),
            total: 0,
            transaction: None,
            is_ending: false,
        }
    }

    fn publish(&mut self, context: &mut Context<'_>) {
        let plan = &self.plan;
        self.total += 1;
        let message = self.publishes.next();
        let random = &mut *context.random;
        let key = random.pick(&plan.keys).clone();
        let persistent = random.percent(plan.persistent_percent);
        let priority = u8::try_from(random.below(u64::from(plan.priority_max) + 1)).unwrap_or(0);
        let length = usize::try_from(random.magnitude(plan.body_max)).expect("bodies are small");
        let expires = plan.expiration.filter(|expires| random.percent(expires.percent));
        let expiration = expires.map(|expires| random.between(1, expires.millis_max).to_string());
        let delay = plan.delay_max.map(|max| random.below(max + 1));
        let now = context.now.0 / 1_000;
        let delay = match plan.delay_step {
            Some(step) => delay.map(|delay| (now + delay).next_multiple_of(step) - now),
            None => delay,
        };
        let mut headers: Vec<(String, i64)> = Vec::new();
        for name in &plan.headers {
            if random.percent(60) {
                headers.push((name.clone(), i64::from(random.percent(50))));
            }
        }
        let mandatory = random.percent(plan.mandatory_percent);
        let exchange =
            plan.exchange.map(|index| context.history.plan.exchanges[index].name.clone());
        let to = context.history.plan.route(plan.exchange, &key, &headers);
        context.note(Event::Publish(Publish {
            message,
            to,
            persistent,
            priority,
            transaction: self.transaction.map(|(number, _)| number),
            expires: expiration.is_some(),
            held_until: delay.map(|delay| context.now.plus(Duration::from_millis(delay))),
        }));
        if context.plan().has_subjects(plan.exchange) {
            note_direct(context, message, &key);
        }
        let id = message.0.to_string();
        let wire = &mut context.wire;
        let fill = |table: &mut TableWriter<'_>| {
            if let Some(delay) = delay {
                table.int("x-delay", i64::try_from(delay).expect("delays are short"));
            }
            for (name, value) in &headers {
                table.int(name, *value);
            }
        };
        let send = |headers: Table<'_>| {
            let properties = Properties {
                headers: (!headers.is_empty()).then_some(headers),
                delivery_mode: Some(if persistent { 2 } else { 1 }),
                priority: (priority > 0).then_some(priority),
                expiration: expiration.as_deref(),
                message_id: Some(&id),
                ..Properties::default()
            };
            let exchange = exchange.as_deref().unwrap_or("");
            wire.publish(exchange, &key, mandatory, &properties, &payload::make(message, length));
        };
        with_table(fill, send);
        if plan.mode == Mode::Confirm {
            self.publishes.await_confirm(message);
        }
    }

    fn burst(&mut self, context: &mut Context<'_>) {
        for _ in 0..context.random.between(1, BURST_MAX) {
            let is_full = self.publishes.unconfirmed() >= self.plan.window as usize;
            if is_full || self.total >= self.plan.messages || context.wire.unsent() > OUTPUT_MAX {
                return;
            }
            if let Mode::Transactional(size) = self.plan.mode {
                if self.is_ending {
                    return;
                }
                if self.transaction.is_none() {
                    context.numbers.transaction += 1;
                    self.transaction = Some((context.numbers.transaction, 0));
                }
                self.publish(context);
                if let Some((_, count)) = &mut self.transaction {
                    *count += 1;
                    if *count >= size {
                        self.end_transaction(context);
                    }
                }
            } else {
                self.publish(context);
            }
        }
    }

    fn end_transaction(&mut self, context: &mut Context<'_>) {
        let Some((transaction, _)) = self.transaction else { return };
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

impl Behaviour for Producing {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.publishes = Publishes::begin(context);
        match self.plan.mode {
            Mode::Confirm => context.ask(&Method::ConfirmSelect { no_wait: false }, Asked::Done),
            Mode::Transactional(_) => context.ask(&Method::TxSelect {}, Asked::Done),
            Mode::Plain => {}
        }
        context.wake_within(self.plan.pause_max);
    }

    fn arrived(&mut self, context: &mut Context<'_>, message: &Message) {
        if let (Way::Returned, Some(message)) = (&message.way, message.id) {
            context.note(Event::Return { message });
        }
    }

    fn answered(&mut self, context: &mut Context<'_>, asked: Asked, _: u32) {
        if let Asked::Commit(transaction) = asked {
            context.note(Event::Transaction { transaction, ending: Ending::Committed });
        }
        if matches!(asked, Asked::Commit(_) | Asked::Rollback) {
            self.transaction = None;
            self.is_ending = false;
            context.wake_within(self.plan.pause_max);
        }
    }

    fn confirmed(&mut self, context: &mut Context<'_>, tag: u64, multiple: bool, accepted: bool) {
        self.publishes.record_confirm(context, tag, multiple, accepted);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        self.burst(context);
        if self.total < self.plan.messages {
            context.wake_within(self.plan.pause_max);
        }
    }

    fn ended(&mut self, history: &mut History, now: Time, _: bool) {
        if let Some((transaction, _)) = self.transaction.take().filter(|_| !self.is_ending) {
            history.note(now, Event::Transaction { transaction, ending: Ending::RolledBack });
        }
        self.is_ending = false;
        self.publishes.end();
    }

    fn is_done(&self) -> bool {
        self.publishes.are_confirmed() && !self.is_ending
    }
}

/// Records that subscribers of the subject `key` are to receive the message, too.
fn note_direct(context: &mut Context<'_>, message: MessageId, key: &str) {
    context.note(Event::DirectPublish(DirectPublish {
        message,
        subject: key.to_owned(),
        echo: true,
        has_headers: true,
        ..DirectPublish::default()
    }));
}
