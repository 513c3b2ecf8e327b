//! Answers the requests that it hears, each after some thought.

use crate::client::nats::connection::Arrived;
use crate::client::nats::context::{Act, Scene};
use crate::history::MessageId;
use crate::plan::nats::Responding;

/// Longest answer.
const BODY_MAX: u64 = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct Responder {
    plan: Responding,
    number: u32,
    sequence: u32,
    /// Where answers go that were not sent yet.
    owed: Vec<String>,
}

impl Responder {
    pub(super) fn new(plan: Responding) -> Responder {
        Responder { plan, number: 0, sequence: 0, owed: Vec::new() }
    }
}

impl Act for Responder {
    fn begin(&mut self, scene: &mut Scene<'_>) {
        self.number = scene.publisher();
        self.sequence = 0;
        scene.listen(&self.plan.pattern, self.plan.group.as_deref(), true);
        scene.line.ping();
    }

    fn heard(&mut self, scene: &mut Scene<'_>, message: &Arrived) {
        self.owed.extend(message.reply.clone());
        scene.wake_within(self.plan.think_max);
    }

    fn woken(&mut self, scene: &mut Scene<'_>) {
        if self.owed.is_empty() {
            return;
        }
        let at = if scene.random.percent(70) { 0 } else { scene.random.index(self.owed.len()) };
        let inbox = self.owed.remove(at);
        self.sequence += 1;
        let message = MessageId::new(self.number, self.sequence);
        let length = usize::try_from(scene.random.below(BODY_MAX)).expect("small");
        let has_headers = scene.random.percent(30);
        scene.publish(message, &inbox, None, has_headers, length);
        if !self.owed.is_empty() {
            scene.wake_within(self.plan.think_max);
        }
    }

    fn ended(&mut self) {
        self.owed.clear();
    }

    fn is_done(&self) -> bool {
        self.owed.is_empty()
    }
}
