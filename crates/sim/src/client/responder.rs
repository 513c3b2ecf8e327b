//! Takes requests from a queue, sends each a reply to where it asks for one, and settles it.

use super::unconfirmed::Unconfirmed;
use super::wire::{Message, Way};
use super::{Asked, Behaviour, Scene};
use crate::history::{Delivery, Event, History, MessageId, Outcome, Publish, Subscription};
use crate::payload;
use crate::plan::Responder;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Properties, Table};
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
    /// This connection's numbers as a producer and as a consumer.
    producer: u32,
    consumer: u32,
    sequence: u32,
    requests: VecDeque<Request>,
    unconfirmed: Unconfirmed,
    is_finishing: bool,
}

impl Responding {
    pub(super) fn new(plan: Responder) -> Responding {
        Responding {
            plan,
            producer: 0,
            consumer: 0,
            sequence: 0,
            requests: VecDeque::new(),
            unconfirmed: Unconfirmed::default(),
            is_finishing: false,
        }
    }

    fn reply(&mut self, scene: &mut Scene<'_>, address: &str, requester: u32) {
        self.sequence += 1;
        let message = MessageId::new(self.producer, self.sequence);
        scene.note(Event::Publish(Publish {
            message,
            to: Vec::new(),
            persistent: false,
            priority: 0,
            transaction: None,
            expires: false,
            held_until: None,
        }));
        scene.note(Event::Reply { message, requester });
        let mandatory = scene.random.percent(self.plan.mandatory_percent);
        let length = scene.random.index(BODY_MAX);
        let body = payload::make(message, length);
        scene.wire.publish("", address, mandatory, &Properties::default(), &body);
        self.unconfirmed.sent(u64::from(self.sequence), message);
    }
}

impl Behaviour for Responding {
    fn begin(&mut self, scene: &mut Scene<'_>) {
        scene.numbers.producer += 1;
        scene.numbers.consumer += 1;
        self.producer = scene.numbers.producer;
        self.consumer = scene.numbers.consumer;
        self.sequence = 0;
        scene.ask(&Method::ConfirmSelect { no_wait: false }, Asked::Done);
        let prefetch_count = self.plan.prefetch;
        let qos = Method::BasicQos { prefetch_size: 0, prefetch_count, global: false };
        scene.ask(&qos, Asked::Done);
        scene.note(Event::Subscribe(Subscription {
            consumer: self.consumer,
            queue: self.plan.queue,
            messages_max: u64::from(prefetch_count),
            bytes_max: 0,
            presettled: false,
        }));
        let queue = scene.plan().queues[self.plan.queue].name.clone();
        let method = Method::BasicConsume {
            ticket: 0,
            queue: &queue,
            consumer_tag: &self.consumer.to_string(),
            no_local: false,
            no_ack: false,
            exclusive: false,
            no_wait: false,
            arguments: Table::default(),
        };
        scene.ask(&method, Asked::Done);
    }

    fn arrived(&mut self, scene: &mut Scene<'_>, message: &Message) {
        match (&message.way, message.id) {
            (Way::Returned, Some(message)) => scene.note(Event::Return { message }),
            (Way::Delivered { .. }, id) => {
                scene.note(Event::Deliver(Delivery {
                    consumer: self.consumer,
                    queue: self.plan.queue,
                    message: id,
                    redelivered: message.redelivered,
                    bytes: message.bytes,
                    requeues: message.requeues,
                }));
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
        self.unconfirmed.told(scene, tag, multiple, accepted);
    }

    fn woken(&mut self, scene: &mut Scene<'_>) {
        if self.is_finishing {
            return;
        }
        let Some(request) = self.requests.pop_front() else { return };
        if let Some((address, requester)) = request.reply_to {
            self.reply(scene, &address, requester);
        }
        scene.wire.send(&Method::BasicAck { delivery_tag: request.tag, multiple: false });
        scene.note(Event::Settle {
            consumer: self.consumer,
            queue: self.plan.queue,
            message: request.message,
            outcome: Outcome::Accept,
            transaction: None,
        });
        if !self.requests.is_empty() {
            scene.wake_within(self.plan.think_max);
        }
    }

    fn ended(&mut self, history: &mut History, now: Time, synced: bool) {
        if self.consumer != 0 {
            if synced {
                history.note(now, Event::Synced { consumer: self.consumer });
            }
            history.note(now, Event::Ended { consumer: self.consumer });
        }
        self.consumer = 0;
        self.requests.clear();
        self.unconfirmed.clear();
    }

    fn finish(&mut self) {
        self.is_finishing = true;
    }

    fn is_done(&self) -> bool {
        self.unconfirmed.is_empty()
    }
}
