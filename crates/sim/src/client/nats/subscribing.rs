//! A subscriber: subscribes without end, up to a number of messages, or for a time, and then again.

use super::context::{Behaviour, Context};
use super::incoming::Arrived;
use crate::plan::nats::Subscribing;
use angarium_engine::Time;
use std::time::Duration;

/// Longest pause between two subscriptions, in microseconds.
const PAUSE_MAX: u64 = 150_000;

/// The state of a subscriber.
#[derive(Debug)]
pub(super) struct Subscriber {
    plan: Subscribing,
    now: Option<Subscription>,
    is_finishing: bool,
}

#[derive(Debug)]
struct Subscription {
    sid: u32,
    received: u64,
    /// UNSUB with a limit was sent.
    is_limited: bool,
    ends_at: Option<Time>,
}

impl Subscriber {
    pub(super) fn new(plan: Subscribing) -> Subscriber {
        Subscriber { plan, now: None, is_finishing: false }
    }

    fn subscribe(&mut self, context: &mut Context<'_>) {
        let sid = context.subscribe(&self.plan.pattern, self.plan.group.as_deref(), false);
        let is_limited = self.plan.until.is_some() && !self.plan.until_later;
        if is_limited {
            context.unsubscribe(sid, self.plan.until);
        }
        context.connection.ping();
        let ends_at = self.plan.life_max.map(|max| {
            context.wake_within(max);
            context.now.plus(Duration::from_micros(context.random.below(max)))
        });
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
            context.connection.ping();
        }
        if now.received >= until {
            self.now = None;
            context.wake_within(PAUSE_MAX);
        }
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        if self.is_finishing {
            return;
        }
        let Some(now) = &self.now else { return self.subscribe(context) };
        match now.ends_at {
            Some(due) if due <= context.now => {
                context.unsubscribe(now.sid, None);
                context.connection.ping();
                self.now = None;
                context.wake_within(PAUSE_MAX);
            }
            Some(due) => *context.wake_at = Some(due),
            None => {}
        }
    }

    fn ended(&mut self) {
        self.now = None;
    }

    fn finish(&mut self) {
        self.is_finishing = true;
    }
}
