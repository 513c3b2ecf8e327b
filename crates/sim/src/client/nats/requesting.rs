//! Sends requests, each with an inbox, and waits for their answers for a while.

use crate::client::nats::connection::Arrived;
use crate::client::nats::context::{Act, Scene};
use crate::history::MessageId;
use crate::plan::nats::Requesting;
use angarium_engine::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long it waits for an answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Longest request.
const BODY_MAX: u64 = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct Requester {
    plan: Requesting,
    number: u32,
    sequence: u32,
    total: u32,
    /// By inbox: when patience is over, and the subscription that is for this inbox alone.
    waiting: BTreeMap<String, (Time, Option<u32>)>,
    is_finishing: bool,
}

impl Requester {
    pub(super) fn new(plan: Requesting) -> Requester {
        let waiting = BTreeMap::new();
        Requester { plan, number: 0, sequence: 0, total: 0, waiting, is_finishing: false }
    }

    fn prefix(&self) -> String {
        format!("_INBOX.{}", self.number)
    }

    fn request(&mut self, scene: &mut Scene<'_>, subject: &str) {
        self.sequence += 1;
        let inbox = format!("{}.{}", self.prefix(), self.sequence);
        let own = self.plan.own_inboxes.then(|| {
            let sid = scene.listen(&inbox, None, false);
            scene.unlisten(sid, Some(1));
            sid
        });
        let message = MessageId::new(self.number, self.sequence);
        let length = usize::try_from(scene.random.below(BODY_MAX)).expect("small");
        let has_headers = scene.random.percent(30);
        scene.publish(message, subject, Some(&inbox), has_headers, length);
        self.waiting.insert(inbox, (scene.now.plus(PATIENCE), own));
    }

    fn request_any(&mut self, scene: &mut Scene<'_>) {
        let subject = scene.random.pick(&self.plan.subjects).clone();
        self.total += 1;
        self.request(scene, &subject);
    }
}

impl Act for Requester {
    fn begin(&mut self, scene: &mut Scene<'_>) {
        self.number = scene.publisher();
        self.sequence = 0;
        if !self.plan.own_inboxes {
            scene.listen(&format!("{}.*", self.prefix()), None, false);
        }
        scene.wake_within(self.plan.pause_max);
    }

    fn heard(&mut self, scene: &mut Scene<'_>, message: &Arrived) {
        if let Some((_, own)) = self.waiting.remove(&message.subject)
            && message.unheard.is_some()
            && let Some(sid) = own
        {
            // What the broker itself says is not one of the messages that end it.
            scene.unlisten(sid, None);
        }
    }

    fn woken(&mut self, scene: &mut Scene<'_>) {
        // What was not answered in time is given up; its subscription stays.
        self.waiting.retain(|_, (due, _)| *due > scene.now);
        let has_more = !self.is_finishing && self.total < self.plan.messages;
        if has_more && self.waiting.len() < self.plan.window as usize {
            self.request_any(scene);
            if scene.random.percent(30) {
                scene.line.ping();
            }
        }
        if has_more || !self.waiting.is_empty() {
            scene.wake_within(self.plan.pause_max);
        }
    }

    fn last_words(&mut self, scene: &mut Scene<'_>) {
        for subject in self.plan.subjects.clone() {
            self.request(scene, &subject);
        }
        scene.wake_within(self.plan.pause_max);
    }

    fn ended(&mut self) {
        self.waiting.clear();
    }

    fn finish(&mut self) {
        self.is_finishing = true;
    }

    fn is_done(&self) -> bool {
        self.waiting.is_empty()
    }
}
