//! A requester: sends requests, each with an inbox, and waits for answers for a limited time.

use super::context::{Behaviour, Context};
use super::incoming::Arrived;
use crate::history::MessageId;
use crate::plan::nats::Requesting;
use angarium_engine::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long it waits for an answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Longest request.
const BODY_MAX: u64 = 64;

/// The state of a requester.
#[derive(Debug)]
pub(super) struct Requester {
    plan: Requesting,
    number: u32,
    sequence: u32,
    total: u32,
    /// By inbox: when it gives up, and the subscription of this inbox alone.
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

    fn request(&mut self, context: &mut Context<'_>, subject: &str) {
        self.sequence += 1;
        let inbox = format!("{}.{}", self.prefix(), self.sequence);
        let own = self.plan.own_inboxes.then(|| {
            let sid = context.subscribe(&inbox, None, false);
            context.unsubscribe(sid, Some(1));
            sid
        });
        let message = MessageId::new(self.number, self.sequence);
        let length = usize::try_from(context.random.below(BODY_MAX)).expect("small");
        let has_headers = context.random.percent(30);
        context.publish(message, subject, Some(&inbox), has_headers, length);
        self.waiting.insert(inbox, (context.now.plus(PATIENCE), own));
    }

    fn request_any(&mut self, context: &mut Context<'_>) {
        let subject = context.random.pick(&self.plan.subjects).clone();
        self.total += 1;
        self.request(context, &subject);
    }
}

impl Behaviour for Requester {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.number = context.publisher();
        self.sequence = 0;
        if !self.plan.own_inboxes {
            context.subscribe(&format!("{}.*", self.prefix()), None, false);
        }
        context.wake_within(self.plan.pause_max);
    }

    fn received(&mut self, context: &mut Context<'_>, message: &Arrived) {
        if let Some((_, own)) = self.waiting.remove(&message.subject)
            && message.no_responders.is_some()
            && let Some(sid) = own
        {
            // The broker's 503 does not count towards the subscription's limit.
            context.unsubscribe(sid, None);
        }
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        // Gives up requests that were not answered in time; their subscriptions stay.
        self.waiting.retain(|_, (due, _)| *due > context.now);
        let has_more = !self.is_finishing && self.total < self.plan.messages;
        if has_more && self.waiting.len() < self.plan.window as usize {
            self.request_any(context);
            if context.random.percent(30) {
                context.connection.ping();
            }
        }
        if has_more || !self.waiting.is_empty() {
            context.wake_within(self.plan.pause_max);
        }
    }

    fn final_messages(&mut self, context: &mut Context<'_>) {
        for subject in self.plan.subjects.clone() {
            self.request(context, &subject);
        }
        context.wake_within(self.plan.pause_max);
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
