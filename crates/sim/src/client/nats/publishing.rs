//! Publishes, and asks now and then whether the broker has got everything.

use crate::client::nats::context::{Act, Scene};
use crate::history::MessageId;
use crate::plan::nats::Publishing;

/// Unsent bytes beyond which it waits for its transport.
const OUTPUT_MAX: usize = 64 << 10;
/// How many in a hundred bursts are followed by a question.
const PING_PERCENT: u64 = 30;

/// See the module.
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

    fn publish(&mut self, scene: &mut Scene<'_>, subject: &str) {
        self.sequence += 1;
        let message = MessageId::new(self.number, self.sequence);
        let has_headers = scene.random.percent(self.plan.headers_percent);
        let length = scene.random.magnitude(self.plan.body_max);
        let length = usize::try_from(length).expect("bodies are small");
        scene.publish(message, subject, None, has_headers, length);
    }
}

impl Act for Publisher {
    fn begin(&mut self, scene: &mut Scene<'_>) {
        self.number = scene.publisher();
        self.sequence = 0;
        scene.wake_within(self.plan.pause_max);
    }

    fn woken(&mut self, scene: &mut Scene<'_>) {
        if self.is_finishing || self.total >= self.plan.messages {
            return;
        }
        for _ in 0..scene.random.between(1, self.plan.burst_max) {
            if self.total >= self.plan.messages || scene.line.output.len() > OUTPUT_MAX {
                break;
            }
            self.total += 1;
            let subject = scene.random.pick(&self.plan.subjects).clone();
            self.publish(scene, &subject);
        }
        if scene.random.percent(PING_PERCENT) {
            scene.line.ping();
        }
        scene.wake_within(self.plan.pause_max);
    }

    fn last_words(&mut self, scene: &mut Scene<'_>) {
        for subject in self.plan.subjects.clone() {
            self.publish(scene, &subject);
        }
    }

    fn finish(&mut self) {
        self.is_finishing = true;
    }
}
