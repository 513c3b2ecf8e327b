//! A service: answers requests, each after a pause.

use super::context::{Behaviour, Context};
use super::incoming::Arrived;
use crate::history::MessageId;
use crate::plan::nats::Responding;

/// Longest answer.
const BODY_MAX: u64 = 64;

/// The state of a service.
#[derive(Debug)]
pub(super) struct Responder {
    plan: Responding,
    number: u32,
    sequence: u32,
    /// Reply subjects of requests that are not answered yet.
    owed: Vec<String>,
}

impl Responder {
    pub(super) fn new(plan: Responding) -> Responder {
        Responder { plan, number: 0, sequence: 0, owed: Vec::new() }
    }
}

impl Behaviour for Responder {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.number = context.publisher();
        self.sequence = 0;
        context.subscribe(&self.plan.pattern, self.plan.group.as_deref(), true);
        context.connection.ping();
    }

    fn received(&mut self, context: &mut Context<'_>, message: &Arrived) {
        self.owed.extend(message.reply.clone());
        context.wake_within(self.plan.think_max);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        if self.owed.is_empty() {
            return;
        }
        let at = if context.random.percent(70) { 0 } else { context.random.index(self.owed.len()) };
        let inbox = self.owed.remove(at);
        self.sequence += 1;
        let message = MessageId::new(self.number, self.sequence);
        let length = usize::try_from(context.random.below(BODY_MAX)).expect("small");
        let has_headers = context.random.percent(30);
        context.publish(message, &inbox, None, has_headers, length);
        if !self.owed.is_empty() {
            context.wake_within(self.plan.think_max);
        }
    }

    fn ended(&mut self) {
        self.owed.clear();
    }

    fn is_done(&self) -> bool {
        self.owed.is_empty()
    }
}
