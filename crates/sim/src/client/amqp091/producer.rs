//! The producer role: publishes, and records confirms.

use super::channel::{Asked, Behaviour, Context, delivery_mode};
use super::wire::with_table;
use crate::client::Surroundings;
use crate::client::context::next;
use crate::history::{DirectPublish, Ending, Event, Publish};
use crate::plan::amqp091::{Mode, Producer};
use angarium_protocol::amqp091::codec::content::PublishMethod;
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
    pub(super) plan: Producer,
    /// Messages sent on all connections.
    pub(super) total: u32,
    /// The open transaction and how many messages it has.
    pub(super) transaction: Option<(u32, u64)>,
}

impl Producing {
    fn publish(&mut self, context: &mut Context<'_>) {
        let plan = &self.plan;
        self.total += 1;
        let message = context.next_message();
        let random = &mut *context.random;
        let key = random.pick(&plan.keys);
        let persistent = random.percent(plan.persistent_percent);
        let priority = random.below(u64::from(plan.priority_max) + 1) as u8;
        let length = random.magnitude(plan.body_max) as usize;
        let expires = plan.expiration.filter(|expires| random.percent(expires.percent));
        let expiration = expires.map(|expires| random.between(1, expires.millis_max).to_string());
        let now = context.now.0 / 1_000;
        let delay = plan.delay_max.map(|max| {
            let delay = random.below(max + 1);
            plan.delay_step.map_or(delay, |step| (now + delay).next_multiple_of(step) - now)
        });
        let mut headers: Vec<(String, i64)> = Vec::new();
        for name in &plan.headers {
            if random.percent(60) {
                headers.push((name.clone(), i64::from(random.percent(50))));
            }
        }
        let mandatory = random.percent(plan.mandatory_percent);
        let whole = &context.history.plan;
        let exchange = plan.exchange.map(|index| whole.exchanges[index].name.clone());
        let is_direct = whole.has_subjects(plan.exchange);
        context.note(Event::Publish(Publish {
            message,
            to: context.history.plan.route(plan.exchange, key, &headers),
            persistent,
            priority,
            transaction: self.transaction.map(|(number, _)| number),
            expires: expiration.is_some(),
            held_until: delay.map(|delay| context.now.plus(Duration::from_millis(delay))),
        }));
        if is_direct {
            // Subscribers of the subject receive it, too.
            context.note(Event::DirectPublish(DirectPublish {
                message,
                subject: key.clone(),
                echo: true,
                has_headers: true,
                ..DirectPublish::default()
            }));
        }
        let id = message.0.to_string();
        let fill = |table: &mut TableWriter<'_>| {
            if let Some(delay) = delay {
                table.int("x-delay", delay.cast_signed());
            }
            for (name, value) in &headers {
                table.int(name, *value);
            }
        };
        let send = |headers: Table<'_>| {
            let properties = Properties {
                headers: (!headers.is_empty()).then_some(headers),
                delivery_mode: Some(delivery_mode(persistent)),
                priority: (priority > 0).then_some(priority),
                expiration: expiration.as_deref(),
                message_id: Some(&id),
                ..Properties::default()
            };
            let exchange = exchange.as_deref().unwrap_or("");
            let (routing_key, immediate) = (key.as_str(), false);
            let method = PublishMethod { exchange, routing_key, mandatory, immediate };
            context.send_message(&method, &properties, length);
        };
        with_table(fill, send);
    }

    fn burst(&mut self, context: &mut Context<'_>) {
        for _ in 0..context.random.between(1, BURST_MAX) {
            let open = &context.link.open;
            let is_full = open.unconfirmed.len() >= self.plan.window as usize || open.is_ending();
            let unsent = context.link.wire.output.len();
            if is_full || self.total >= self.plan.messages || unsent > OUTPUT_MAX {
                return;
            }
            if let Mode::Transactional(size) = self.plan.mode {
                let (transaction, count) =
                    self.transaction.unwrap_or_else(|| (next(&mut context.numbers.transaction), 0));
                self.transaction = Some((transaction, count + 1));
                self.publish(context);
                if count + 1 >= size {
                    self.transaction = None;
                    context.end_transaction(transaction, self.plan.rollback_percent);
                }
            } else {
                self.publish(context);
            }
        }
    }
}

impl Behaviour for Producing {
    fn begin(&mut self, context: &mut Context<'_>) {
        match self.plan.mode {
            Mode::Confirm => context.begin_confirmed(),
            Mode::Transactional(_) => {
                context.begin_publishing();
                context.link.ask(&Method::TxSelect {}, Asked::Done);
            }
            Mode::Plain => {
                context.begin_publishing();
            }
        }
        context.wake_within(self.plan.pause_max);
    }

    fn answered(&mut self, context: &mut Context<'_>, _: Asked, _: u32) {
        // A transaction has ended.
        context.wake_within(self.plan.pause_max);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        self.burst(context);
        if self.total < self.plan.messages {
            context.wake_within(self.plan.pause_max);
        }
    }

    fn ended(&mut self, at: &mut Surroundings<'_>) {
        if let Some((transaction, _)) = self.transaction.take() {
            at.note(Event::Transaction { transaction, ending: Ending::RolledBack });
        }
    }
}
