//! The parts of a NATS client: a subscriber, a publisher, a requester, a service.

use super::context::{Behaviour, Context};
use super::incoming::Arrived;
use crate::plan::nats::{Publishing, Requesting, Responding, Subscribing};
use angarium_engine::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest pause between two subscriptions, in microseconds.
const PAUSE_MAX: u64 = 150_000;
/// Unsent bytes above which it waits for its transport.
const OUTPUT_MAX: usize = 64 << 10;
/// Percentage of wake-ups that end with a PING.
const PING_PERCENT: u64 = 30;
/// How long it waits for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Subscribes without end, up to a number of messages, or for a time, and then again.
#[derive(Debug)]
pub(super) struct Subscriber {
    pub(super) plan: Subscribing,
    pub(super) now: Option<Subscription>,
}

/// The subscription that it has.
#[derive(Debug)]
pub(super) struct Subscription {
    sid: u32,
    received: u64,
    /// UNSUB with a limit was sent.
    is_limited: bool,
    ends_at: Option<Time>,
}

impl Subscriber {
    fn subscribe(&mut self, context: &mut Context<'_>) {
        let sid = context.subscribe(&self.plan.pattern, self.plan.group.as_deref(), false);
        let is_limited = self.plan.until.is_some() && !self.plan.until_later;
        if is_limited {
            context.unsubscribe(sid, self.plan.until);
        }
        context.link.ping();
        let ends_at = context.draw_end(self.plan.life_max);
        self.now = Some(Subscription { sid, received: 0, is_limited, ends_at });
    }
}

impl Behaviour for Subscriber {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.subscribe(context);
    }

    fn received(&mut self, context: &mut Context<'_>, message: &Arrived) {
        let Some(now) = self.now.as_mut().filter(|now| now.sid == message.sid) else { return };
        now.received += 1;
        let Some(until) = self.plan.until else { return };
        if !now.is_limited && now.received >= until / 2 {
            now.is_limited = true;
            context.unsubscribe(message.sid, Some(until));
            context.link.ping();
        }
        if now.received >= until {
            self.now = None;
            context.wake_within(PAUSE_MAX);
        }
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        if context.is_finishing {
            return;
        }
        let Some(now) = &self.now else { return self.subscribe(context) };
        match now.ends_at {
            Some(due) if due <= context.now => {
                context.unsubscribe(now.sid, None);
                context.link.ping();
                self.now = None;
                context.wake_within(PAUSE_MAX);
            }
            Some(due) => *context.wake_at = Some(due),
            None => {}
        }
    }
}

/// Publishes, and pings now and then.
#[derive(Debug)]
pub(super) struct Publisher {
    pub(super) plan: Publishing,
    /// Messages sent on all connections.
    pub(super) total: u32,
}

impl Publisher {
    fn publish(&self, context: &mut Context<'_>, subject: &str) {
        let has_headers = context.random.percent(self.plan.headers_percent);
        let length = context.random.magnitude(self.plan.body_max) as usize;
        context.publish(subject, None, has_headers, length);
    }
}

impl Behaviour for Publisher {
    fn begin(&mut self, context: &mut Context<'_>) {
        context.begin_publishing();
        context.wake_within(self.plan.pause_max);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        if context.is_finishing || self.total >= self.plan.messages {
            return;
        }
        for _ in 0..context.random.between(1, self.plan.burst_max) {
            if self.total >= self.plan.messages || context.link.output.len() > OUTPUT_MAX {
                break;
            }
            self.total += 1;
            let subject = context.random.pick(&self.plan.subjects);
            self.publish(context, subject);
        }
        if context.random.percent(PING_PERCENT) {
            context.link.ping();
        }
        context.wake_within(self.plan.pause_max);
    }

    fn final_messages(&mut self, context: &mut Context<'_>) {
        for subject in &self.plan.subjects {
            self.publish(context, subject);
        }
    }
}

/// Sends requests, each with an inbox, and waits for answers for a limited time.
#[derive(Debug)]
pub(super) struct Requester {
    pub(super) plan: Requesting,
    pub(super) total: u32,
    /// By inbox: when it gives up, and the subscription of this inbox alone.
    pub(super) waiting: BTreeMap<String, (Time, Option<u32>)>,
}

impl Requester {
    fn request(&mut self, context: &mut Context<'_>, subject: &str) {
        let last = *context.last_message;
        let inbox = format!("_INBOX.{}.{}", last.producer(), last.0 as u32 + 1);
        let own = self.plan.own_inboxes.then(|| {
            let sid = context.subscribe(&inbox, None, false);
            context.unsubscribe(sid, Some(1));
            sid
        });
        context.publish_short(subject, Some(&inbox));
        self.waiting.insert(inbox, (context.now.plus(PATIENCE), own));
    }
}

impl Behaviour for Requester {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.waiting.clear();
        let number = context.begin_publishing();
        if !self.plan.own_inboxes {
            context.subscribe(&format!("_INBOX.{number}.*"), None, false);
        }
        context.wake_within(self.plan.pause_max);
    }

    fn received(&mut self, context: &mut Context<'_>, message: &Arrived) {
        if let Some((_, Some(sid))) = self.waiting.remove(&message.subject)
            && message.no_responders.is_some()
        {
            // The broker's 503 does not count towards the subscription's limit.
            context.unsubscribe(sid, None);
        }
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        // Gives up requests that were not answered in time; their subscriptions stay.
        self.waiting.retain(|_, (due, _)| *due > context.now);
        let has_more = !context.is_finishing && self.total < self.plan.messages;
        if has_more && self.waiting.len() < self.plan.window as usize {
            let subject = context.random.pick(&self.plan.subjects).clone();
            self.total += 1;
            self.request(context, &subject);
            if context.random.percent(30) {
                context.link.ping();
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

    fn is_done(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Answers requests, each after a pause.
#[derive(Debug)]
pub(super) struct Responder {
    pub(super) plan: Responding,
    /// Reply subjects of requests that are not answered yet.
    pub(super) owed: Vec<String>,
}

impl Behaviour for Responder {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.owed.clear();
        context.begin_publishing();
        context.subscribe(&self.plan.pattern, self.plan.group.as_deref(), true);
        context.link.ping();
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
        context.publish_short(&inbox, None);
        if !self.owed.is_empty() {
            context.wake_within(self.plan.think_max);
        }
    }

    fn is_done(&self) -> bool {
        self.owed.is_empty()
    }
}
