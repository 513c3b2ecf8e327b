//! The requester role: publishes requests and consumes the replies by direct reply-to.

use super::context::{Asked, Behaviour, Context};
use super::deliveries;
use super::incoming::INBOX_TAG;
use super::incoming::{Message, Way};
use super::publishes::Publishes;
use crate::history::{Event, History, Publish};
use crate::payload;
use crate::plan::amqp091::Requester;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Properties};

/// The pseudo-queue of direct reply-to.
const ADDRESS: &str = "amq.rabbitmq.reply-to";
/// Percentage of wake-ups with a request whose answer shows that all earlier replies have arrived.
const SYNC_PERCENT: u64 = 20;
/// Requests sent in one go.
const BURST_MAX: u64 = 8;
/// Longest body.
const BODY_MAX: usize = 300;

/// The state of a requester role.
#[derive(Debug)]
pub(super) struct Requesting {
    plan: Requester,
    publishes: Publishes,
    /// This connection's number as one that gets replies.
    consumer: u32,
    /// Requests sent on all connections.
    total: u32,
    /// Requests less replies.
    open: u32,
    is_syncing: bool,
}

impl Requesting {
    pub(super) fn new(plan: Requester) -> Requesting {
        Requesting {
            plan,
            publishes: Publishes::default(),
            consumer: 0,
            total: 0,
            open: 0,
            is_syncing: false,
        }
    }

    fn request(&mut self, context: &mut Context<'_>) {
        self.total += 1;
        self.open += 1;
        let message = self.publishes.next();
        let persistent = context.random.percent(self.plan.persistent_percent);
        let publish = Publish { persistent, ..Publish::new(message, vec![self.plan.queue]) };
        context.note(Event::Publish(publish));
        let key = context.plan().queues[self.plan.queue].name.clone();
        let correlation = self.consumer.to_string();
        let properties = Properties {
            delivery_mode: Some(if persistent { 2 } else { 1 }),
            correlation_id: Some(&correlation),
            reply_to: Some(ADDRESS),
            ..Properties::default()
        };
        let length = context.random.index(BODY_MAX);
        context.wire.publish("", &key, false, &properties, &payload::make(message, length));
        self.publishes.await_confirm(message);
    }
}

impl Behaviour for Requesting {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.publishes = Publishes::begin(context);
        self.consumer = context.new_consumer();
        self.open = 0;
        context.ask(&Method::ConfirmSelect { no_wait: false }, Asked::Done);
        context.note(Event::Inbox { consumer: self.consumer });
        context.consume(ADDRESS, &format!("{INBOX_TAG}{}", self.consumer), true);
        context.wake_within(self.plan.pause_max);
    }

    fn arrived(&mut self, context: &mut Context<'_>, message: &Message) {
        let Way::Delivered { .. } = message.way else { return };
        self.open = self.open.saturating_sub(1);
        context.note(Event::Replied { consumer: self.consumer, message: message.id });
    }

    fn answered(&mut self, context: &mut Context<'_>, asked: Asked, _: u32) {
        if let Asked::Depth(_) = asked {
            self.is_syncing = false;
            context.note(Event::Synced { consumer: self.consumer });
        }
    }

    fn confirmed(&mut self, context: &mut Context<'_>, tag: u64, multiple: bool, accepted: bool) {
        self.publishes.record_confirm(context, tag, multiple, accepted);
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
        if !self.is_syncing && context.random.percent(SYNC_PERCENT) {
            self.is_syncing = true;
            context.note(Event::Asking { consumer: self.consumer });
            context.ask_depth(self.plan.queue);
        }
        context.wake_within(self.plan.pause_max);
    }

    fn ended(&mut self, history: &mut History, now: Time, synced: bool) {
        if self.consumer != 0 {
            deliveries::note_end(history, now, self.consumer, synced);
        }
        self.consumer = 0;
        self.is_syncing = false;
        self.publishes.end();
    }

    fn is_done(&self) -> bool {
        self.publishes.are_confirmed() && !self.is_syncing
    }
}
