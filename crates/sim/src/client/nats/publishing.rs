//! A publisher: publishes, and pings now and then.

use super::context::{Behaviour, Context};
use crate::history::MessageId;
use crate::plan::nats::Publishing;

/// Unsent bytes above which it waits for its transport.
const OUTPUT_MAX: usize = 64 << 10;
/// Percentage of wake-ups that end with a PING.
const PING_PERCENT: u64 = 30;

/// The state of a publisher.
#[derive(Debug)]
pub(super) struct Publisher {
    plan: Publishing,
    /// This connection's number as a publisher.
    number: u32,
    sequence: u32,
    /// Messages sent on all connections.
    total: u32,
    is_finishing: bool,
}

impl Publisher {
    pub(super) fn new(plan: Publishing) -> Publisher {
        Publisher { plan, number: 0, sequence: 0, total: 0, is_finishing: false }
    }

    fn publish(&mut self, context: &mut Context<'_>, subject: &str) {
        self.sequence += 1;
        let message = MessageId::new(self.number, self.sequence);
        let has_headers = context.random.percent(self.plan.headers_percent);
        let length = context.random.magnitude(self.plan.body_max);
        let length = usize::try_from(length).expect("bodies are small");
        context.publish(message, subject, None, has_headers, length);
    }
}

impl Behaviour for Publisher {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.number = context.publisher();
        self.sequence = 0;
        context.wake_within(self.plan.pause_max);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        if self.is_finishing || self.total >= self.plan.messages {
            return;
        }
        for _ in 0..context.random.between(1, self.plan.burst_max) {
            if self.total >= self.plan.messages || context.connection.output.len() > OUTPUT_MAX {
                break;
            }
            self.total += 1;
            let subject = context.random.pick(&self.plan.subjects).clone();
            self.publish(context, &subject);
        }
        if context.random.percent(PING_PERCENT) {
            context.connection.ping();
        }
        context.wake_within(self.plan.pause_max);
    }

    fn final_messages(&mut self, context: &mut Context<'_>) {
        for subject in self.plan.subjects.clone() {
            self.publish(context, &subject);
        }
    }

    fn finish(&mut self) {
        self.is_finishing = true;
    }
}
