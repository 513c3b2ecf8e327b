//! Takes requests from a queue, sends each a reply to where it asks for one, and settles it.

use super::publishes::Publishes;
use super::wire::{Message, Way};
use super::{Asked, Behaviour, Scene};
use crate::client::deliveries;
use crate::history::{Event, History, MessageId, Publish, Subscription};
use crate::payload;
use crate::plan::Responder;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Properties};
use std::collections::VecDeque;

/// Longest body.
const BODY_MAX: usize = 300;

/// A request that waits for its reply.
#[derive(Debug)]
struct Request {
    tag: u64,
    message: MessageId,
    /// Where the reply goes, and the number by which its requester goes there.
    reply_to: Option<(String, u32)>,
}

/// A responder at work.
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

    fn reply(&mut self, scene: &mut Scene<'_>, address: &str, requester: u32) {
        let message = self.publishes.next();
        scene.note(Event::Publish(Publish::new(message, Vec::new())));
        scene.note(Event::Reply { message, requester });
        let mandatory = scene.random.percent(self.plan.mandatory_percent);
        let length = scene.random.index(BODY_MAX);
        let body = payload::make(message, length);
        scene.wire.publish("", address, mandatory, &Properties::default(), &body);
        self.publishes.await_confirm(message);
    }
}

impl Behaviour for Responding {
    fn begin(&mut self, scene: &mut Scene<'_>) {
        self.publishes = Publishes::begin(scene);
        self.consumer = scene.new_consumer();
        scene.ask(&Method::ConfirmSelect { no_wait: false }, Asked::Done);
        let prefetch_count = self.plan.prefetch;
        scene.ask_prefetch(prefetch_count, 0);
        scene.subscribe(Subscription {
            consumer: self.consumer,
            queue: self.plan.queue,
            messages_max: u64::from(prefetch_count),
            bytes_max: 0,
            presettled: false,
        });
    }

    fn arrived(&mut self, scene: &mut Scene<'_>, message: &Message) {
        match (&message.way, message.id) {
            (Way::Returned, Some(message)) => scene.note(Event::Return { message }),
            (Way::Delivered { .. }, id) => {
                scene.note_delivery(self.consumer, self.plan.queue, message);
                if let Some(id) = id {
                    let (tag, reply_to) = (message.tag, message.reply_to.clone());
                    self.requests.push_back(Request { tag, message: id, reply_to });
                }
                scene.wake_within(self.plan.think_max);
            }
            _ => {}
        }
    }

    fn answered(&mut self, _: &mut Scene<'_>, _: Asked, _: u32) {}

    fn confirmed(&mut self, scene: &mut Scene<'_>, tag: u64, multiple: bool, accepted: bool) {
        self.publishes.told(scene, tag, multiple, accepted);
    }

    fn woken(&mut self, scene: &mut Scene<'_>) {
        let Some(request) = self.requests.pop_front() else { return };
        if let Some((address, requester)) = request.reply_to {
            self.reply(scene, &address, requester);
        }
        scene.accept((self.consumer, self.plan.queue), request.tag, request.message, None);
        if !self.requests.is_empty() {
            scene.wake_within(self.plan.think_max);
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
