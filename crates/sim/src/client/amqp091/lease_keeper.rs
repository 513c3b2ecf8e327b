//! The lease keeper role: declares a queue with `x-expires` again before or after it expires.
//!
//! A message in the queue shows whether it is still the same queue.

use super::context::{Asked, Behaviour, Context};
use super::incoming::Message;
use super::publishes::Publishes;
use super::topology;
use crate::history::{Event, History, Publish};
use crate::payload;
use crate::plan::amqp091::LeaseKeeper;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Properties};

/// The state of a lease keeper role.
#[derive(Debug)]
pub(super) struct LeaseKeeping {
    plan: LeaseKeeper,
    publishes: Publishes,
    /// When it declared its queue, while there is no answer.
    asked: Option<Time>,
}

impl LeaseKeeping {
    pub(super) fn new(plan: LeaseKeeper) -> LeaseKeeping {
        LeaseKeeping { plan, publishes: Publishes::default(), asked: None }
    }

    fn visit(&mut self, context: &mut Context<'_>) {
        self.asked = Some(context.now);
        let plan = context.plan().clone();
        topology::declare_queue(&plan, self.plan.queue, &mut context.wire);
        context.asked.push_back(Asked::Declared);
    }

    fn leave_message(&mut self, context: &mut Context<'_>) {
        let message = self.publishes.next();
        let publish = Publish { persistent: true, ..Publish::new(message, vec![self.plan.queue]) };
        context.note(Event::Publish(publish));
        let key = context.plan().queues[self.plan.queue].name.clone();
        let properties = Properties { delivery_mode: Some(2), ..Properties::default() };
        context.wire.publish("", &key, false, &properties, &payload::make(message, 20));
        self.publishes.await_confirm(message);
    }
}

impl Behaviour for LeaseKeeping {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.publishes = Publishes::begin(context);
        context.ask(&Method::ConfirmSelect { no_wait: false }, Asked::Done);
        context.wake_within(self.plan.away_max);
    }

    fn arrived(&mut self, _: &mut Context<'_>, _: &Message) {}

    fn answered(&mut self, context: &mut Context<'_>, asked: Asked, messages: u32) {
        if asked != Asked::Declared {
            return;
        }
        let Some(asked) = self.asked.take() else { return };
        let (queue, messages) = (self.plan.queue, u64::from(messages));
        context.note(Event::LeaseRenewed { queue, asked, messages });
        if messages == 0 {
            self.leave_message(context);
        }
        context.wake_within(self.plan.away_max);
    }

    fn confirmed(&mut self, context: &mut Context<'_>, tag: u64, multiple: bool, accepted: bool) {
        self.publishes.record_confirm(context, tag, multiple, accepted);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        if self.publishes.are_confirmed() && self.asked.is_none() {
            self.visit(context);
        } else {
            context.wake_within(self.plan.away_max);
        }
    }

    fn ended(&mut self, history: &mut History, now: Time, _: bool) {
        self.publishes.end();
        if self.asked.take().is_some() {
            history.note(now, Event::LeaseUnanswered { queue: self.plan.queue });
        }
    }

    fn is_done(&self) -> bool {
        self.publishes.are_confirmed() && self.asked.is_none()
    }
}
