//! The responder role: consumes requests, publishes a reply to each, and settles it.

use super::context::{Asked, Behaviour, Context};
use super::deliveries::{self, Unsettled};
use super::incoming::{Message, Way};
use super::publishes::Publishes;
use crate::history::{Consume, Event, History, Publish};
use crate::payload;
use crate::plan::amqp091::Responder;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Properties};
use std::collections::VecDeque;

/// Longest body.
const BODY_MAX: usize = 300;

/// A request without a reply yet.
#[derive(Debug)]
struct Request {
    unsettled: Unsettled,
    /// The reply's routing key, and the requester's number.
    reply_to: Option<(String, u32)>,
}

/// The state of a responder role.
#[derive(Debug)]
pub(super) struct Responding {
    plan: Responder,
    publishes: Publishes,
    /// This connection's number as a consumer.
    consumer: u32,
    requests: VecDeque<Request>,
}

impl Responding {
    pub(super) fn new(plan: Responder) -> Responding {
        Responding { plan, publishes: Publishes::default(), consumer: 0, requests: VecDeque::new() }
    }

    fn reply(&mut self, context: &mut Context<'_>, address: &str, requester: u32) {
        let message = self.publishes.next();
        context.note(Event::Publish(Publish::new(message, Vec::new())));
        context.note(Event::Reply { message, requester });
        let mandatory = context.random.percent(self.plan.mandatory_percent);
        let length = context.random.index(BODY_MAX);
        let body = payload::make(message, length);
        context.wire.publish("", address, mandatory, &Properties::default(), &body);
        self.publishes.await_confirm(message);
    }
}

impl Behaviour for Responding {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.publishes = Publishes::begin(context);
        self.consumer = context.new_consumer();
        context.ask(&Method::ConfirmSelect { no_wait: false }, Asked::Done);
        let prefetch_count = self.plan.prefetch;
        context.ask_prefetch(prefetch_count, 0);
        context.start_consumer(Consume {
            consumer: self.consumer,
            queue: self.plan.queue,
            messages_max: u64::from(prefetch_count),
            bytes_max: 0,
            presettled: false,
        });
    }

    fn arrived(&mut self, context: &mut Context<'_>, message: &Message) {
        match (&message.way, message.id) {
            (Way::Returned, Some(message)) => context.note(Event::Return { message }),
            (Way::Delivered { .. }, id) => {
                context.note_delivery(self.consumer, self.plan.queue, message);
                if let Some(id) = id {
                    let unsettled = Unsettled { tag: message.tag, message: id };
                    let reply_to = message.reply_to.clone();
                    self.requests.push_back(Request { unsettled, reply_to });
                }
                context.wake_within(self.plan.think_max);
            }
            _ => {}
        }
    }

    fn answered(&mut self, _: &mut Context<'_>, _: Asked, _: u32) {}

    fn confirmed(&mut self, context: &mut Context<'_>, tag: u64, multiple: bool, accepted: bool) {
        self.publishes.record_confirm(context, tag, multiple, accepted);
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        let Some(request) = self.requests.pop_front() else { return };
        if let Some((address, requester)) = request.reply_to {
            self.reply(context, &address, requester);
        }
        context.accept(self.consumer, self.plan.queue, request.unsettled, None);
        if !self.requests.is_empty() {
            context.wake_within(self.plan.think_max);
        }
    }

    fn ended(&mut self, history: &mut History, now: Time, synced: bool) {
        if self.consumer != 0 {
            deliveries::note_end(history, now, self.consumer, synced);
        }
        self.consumer = 0;
        self.requests.clear();
        self.publishes.end();
    }

    fn is_done(&self) -> bool {
        self.publishes.are_confirmed()
    }
}
