//! The requester and the responder role.

use super::channel::{Asked, Behaviour, Context, Unsettled};
use super::incoming::{INBOX_TAG, Message};
use crate::history::{Consume, Event, Outcome, Publish};
use crate::plan::amqp091::{Requester, Responder};
use angarium_protocol::amqp091::codec::Properties;
use angarium_protocol::amqp091::codec::content::PublishMethod;
use std::collections::VecDeque;

/// The pseudo-queue of direct reply-to.
const ADDRESS: &str = "amq.rabbitmq.reply-to";
/// Percentage of wake-ups with a request whose answer shows that all earlier replies have arrived.
const SYNC_PERCENT: u64 = 20;
/// Requests sent in one go.
const BURST_MAX: u64 = 8;
/// Longest body.
const BODY_MAX: usize = 300;

/// Publishes requests and consumes the replies by direct reply-to.
#[derive(Debug)]
pub(super) struct Requesting {
    pub(super) plan: Requester,
    /// This connection's number as one that gets replies.
    pub(super) consumer: u32,
    /// Requests sent on all connections.
    pub(super) total: u32,
    /// Requests less replies.
    pub(super) open: u32,
}

impl Requesting {
    fn request(&mut self, context: &mut Context<'_>) {
        self.total += 1;
        self.open += 1;
        let persistent = context.random.percent(self.plan.persistent_percent);
        let publish = Publish { persistent, ..Publish::default() };
        let correlation = self.consumer.to_string();
        let properties = Properties {
            correlation_id: Some(&correlation),
            reply_to: Some(ADDRESS),
            ..Properties::default()
        };
        let length = context.random.index(BODY_MAX);
        context.publish_to_queue(self.plan.queue, publish, properties, length);
    }
}

impl Behaviour for Requesting {
    fn begin(&mut self, context: &mut Context<'_>) {
        context.begin_confirmed();
        self.open = 0;
        self.consumer = context.new_consumer(None);
        context.note(Event::Inbox { consumer: self.consumer });
        context.consume(ADDRESS, &format!("{INBOX_TAG}{}", self.consumer), true);
        context.wake_within(self.plan.pause_max);
    }

    fn arrived(&mut self, context: &mut Context<'_>, message: &Message) {
        self.open = self.open.saturating_sub(1);
        context.note(Event::Replied { consumer: self.consumer, message: message.id });
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        for _ in 0..context.random.between(1, BURST_MAX) {
            if self.open < self.plan.window && self.total < self.plan.messages {
                self.request(context);
            }
        }
        // Requests that a restart lost get no replies.
        if context.random.percent(10) {
            self.open = self.open.saturating_sub(1);
        }
        if !context.link.open.is_syncing() && context.random.percent(SYNC_PERCENT) {
            context.sync(self.plan.queue);
        }
        context.wake_within(self.plan.pause_max);
    }
}

/// Consumes requests, publishes a reply to each, and settles it.
#[derive(Debug)]
pub(super) struct Responding {
    pub(super) plan: Responder,
    /// Requests without a reply yet: the reply's routing key and the requester's number.
    pub(super) requests: VecDeque<(Unsettled, Option<(String, u32)>)>,
}

impl Responding {
    fn reply(&self, context: &mut Context<'_>, address: &str, requester: u32) {
        let message = context.next_message();
        context.note(Event::Publish(Publish { message, ..Publish::default() }));
        context.note(Event::Reply { message, requester });
        let mandatory = context.random.percent(self.plan.mandatory_percent);
        let length = context.random.index(BODY_MAX);
        let (exchange, routing_key, immediate) = ("", address, false);
        let method = PublishMethod { exchange, routing_key, mandatory, immediate };
        context.send_message(&method, &Properties::default(), length);
    }
}

impl Behaviour for Responding {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.requests.clear();
        context.begin_confirmed();
        context.link.ask_prefetch(self.plan.prefetch, 0, Asked::Done);
        let messages_max = self.plan.prefetch.into();
        let queue = self.plan.queue;
        context.start_consumer(Consume { queue, messages_max, ..Consume::default() });
    }

    fn arrived(&mut self, context: &mut Context<'_>, message: &Message) {
        let unsettled = context.note_delivery(message);
        self.requests.extend(unsettled.map(|it| (it, message.reply_to.clone())));
        context.wake_within(self.plan.think_max);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        let Some((unsettled, reply_to)) = self.requests.pop_front() else { return };
        if let Some((address, requester)) = reply_to {
            self.reply(context, &address, requester);
        }
        context.settle(unsettled, Outcome::Accept, None);
        if !self.requests.is_empty() {
            context.wake_within(self.plan.think_max);
        }
    }
}
