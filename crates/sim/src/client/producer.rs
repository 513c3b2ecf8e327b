//! Publishes, and keeps account of what was confirmed.

use super::publishes::Publishes;
use super::wire::{Message, Way, with_table};
use super::{Asked, Behaviour, Scene};
use crate::history::{Emit, Ending, Event, History, Publish};
use crate::payload;
use crate::plan::{Mode, Producer};
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Properties, Table};
use std::time::Duration;

/// Messages sent in one go.
const BURST_MAX: u64 = 16;
/// Unsent bytes beyond which it waits for its transport.
const OUTPUT_MAX: usize = 64 << 10;

/// A producer at work.
#[derive(Debug)]
pub(super) struct Producing {
    plan: Producer,
    publishes: Publishes,
    /// Messages sent on all connections.
    total: u32,
    /// The transaction that is open, how many messages it has, and whether its commit was asked for.
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

    fn publish(&mut self, scene: &mut Scene<'_>) {
        let plan = &self.plan;
        self.total += 1;
        let message = self.publishes.next();
        let random = &mut *scene.random;
        let key = random.pick(&plan.keys).clone();
        let persistent = random.percent(plan.persistent_percent);
        let priority = u8::try_from(random.below(u64::from(plan.priority_max) + 1)).unwrap_or(0);
        let length = usize::try_from(random.magnitude(plan.body_max)).expect("bodies are small");
        let ttl = plan.ttl.filter(|(percent, _)| random.percent(*percent));
        let expiration = ttl.map(|(_, max)| random.between(1, max).to_string());
        let delay = plan.delay_max.map(|max| random.below(max + 1));
        let now = scene.now.0 / 1_000;
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
        let exchange = plan.exchange.map(|index| scene.history.plan.exchanges[index].name.clone());
        let to = scene.history.plan.route(plan.exchange, &key, &headers);
        scene.note(Event::Publish(Publish {
            message,
            to,
            persistent,
            priority,
            transaction: self.transaction.map(|(number, _)| number),
            expires: expiration.is_some(),
            held_until: delay.map(|delay| scene.now.plus(Duration::from_millis(delay))),
        }));
        if scene.plan().has_subjects(plan.exchange) {
            let subject = key.clone();
            let emit = Emit { message, subject, echo: true, has_headers: true, ..Emit::default() };
            scene.note(Event::Emit(emit));
        }
        let id = message.0.to_string();
        let wire = &mut scene.wire;
        let fill = |table: &mut angarium_protocol::amqp091::codec::table::TableWriter<'_>| {
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

    fn burst(&mut self, scene: &mut Scene<'_>) {
        for _ in 0..scene.random.between(1, BURST_MAX) {
            let is_full = self.publishes.unconfirmed() >= self.plan.window as usize;
            if is_full || self.total >= self.plan.messages || scene.wire.unsent() > OUTPUT_MAX {
                return;
            }
            if let Mode::Transactional(size) = self.plan.mode {
                if self.is_ending {
                    return;
                }
                if self.transaction.is_none() {
                    scene.numbers.transaction += 1;
                    self.transaction = Some((scene.numbers.transaction, 0));
                }
                self.publish(scene);
                if let Some((_, count)) = &mut self.transaction {
                    *count += 1;
                    if *count >= size {
                        self.end_transaction(scene);
                    }
                }
            } else {
                self.publish(scene);
            }
        }
    }

    fn end_transaction(&mut self, scene: &mut Scene<'_>) {
        let Some((transaction, _)) = self.transaction else { return };
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

impl Behaviour for Producing {
    fn begin(&mut self, scene: &mut Scene<'_>) {
        self.publishes = Publishes::begin(scene);
        match self.plan.mode {
            Mode::Confirm => scene.ask(&Method::ConfirmSelect { no_wait: false }, Asked::Done),
            Mode::Transactional(_) => scene.ask(&Method::TxSelect {}, Asked::Done),
            Mode::Plain => {}
        }
        scene.wake_within(self.plan.pause_max);
    }

    fn arrived(&mut self, scene: &mut Scene<'_>, message: &Message) {
        if let (Way::Returned, Some(message)) = (&message.way, message.id) {
            scene.note(Event::Return { message });
        }
    }

    fn answered(&mut self, scene: &mut Scene<'_>, asked: Asked, _: u32) {
        if let Asked::Commit(transaction) = asked {
            scene.note(Event::Transaction { transaction, ending: Ending::Committed });
        }
        if matches!(asked, Asked::Commit(_) | Asked::Rollback) {
            self.transaction = None;
            self.is_ending = false;
            scene.wake_within(self.plan.pause_max);
        }
    }

    fn confirmed(&mut self, scene: &mut Scene<'_>, tag: u64, multiple: bool, accepted: bool) {
        self.publishes.told(scene, tag, multiple, accepted);
    }

    fn woken(&mut self, scene: &mut Scene<'_>) {
        self.burst(scene);
        if self.total < self.plan.messages {
            scene.wake_within(self.plan.pause_max);
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
