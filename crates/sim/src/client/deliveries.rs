//! What all roles that take messages do alike: subscribe, and note what comes and what becomes of it.

use super::wire::Message;
use super::{Asked, Scene};
use crate::history::{Delivery, Event, History, MessageId, Outcome, QueueIndex, Subscription};
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Table};

impl Scene<'_> {
    /// A number for a new consumer.
    pub(super) fn new_consumer(&mut self) -> u32 {
        self.numbers.consumer += 1;
        self.numbers.consumer
    }

    /// Limits what may be unsettled of each subscription to come.
    pub(super) fn ask_prefetch(&mut self, messages: u16, bytes: u32) {
        let qos =
            Method::BasicQos { prefetch_size: bytes, prefetch_count: messages, global: false };
        self.ask(&qos, Asked::Done);
    }

    /// Subscribes to a queue of the plan.
    pub(super) fn subscribe(&mut self, subscription: Subscription) {
        let queue = self.plan().queues[subscription.queue].name.clone();
        let Subscription { consumer, presettled, .. } = subscription;
        self.note(Event::Subscribe(subscription));
        self.consume(&queue, &consumer.to_string(), presettled);
    }

    /// Subscribes to what has that name.
    pub(super) fn consume(&mut self, queue: &str, consumer_tag: &str, no_ack: bool) {
        let method = Method::BasicConsume {
            ticket: 0,
            queue,
            consumer_tag,
            no_local: false,
            no_ack,
            exclusive: false,
            no_wait: false,
            arguments: Table::default(),
        };
        self.ask(&method, Asked::Done);
    }

    /// Notes that a message came.
    pub(super) fn note_delivery(&mut self, consumer: u32, queue: QueueIndex, message: &Message) {
        self.note(Event::Deliver(Delivery {
            consumer,
            queue,
            message: message.id,
            redelivered: message.redelivered,
            bytes: message.bytes,
            requeues: message.requeues,
        }));
    }

    /// Accepts one delivery.
    pub(super) fn accept(
        &mut self,
        (consumer, queue): (u32, QueueIndex),
        tag: u64,
        message: MessageId,
        transaction: Option<u32>,
    ) {
        self.wire.send(&Method::BasicAck { delivery_tag: tag, multiple: false });
        let outcome = Outcome::Accept;
        self.note(Event::Settle { consumer, queue, message, outcome, transaction });
    }
}

/// Notes that a consumer's connection has ended; `synced`: after the broker had processed everything.
pub(super) fn note_end(history: &mut History, now: Time, consumer: u32, synced: bool) {
    if synced {
        history.note(now, Event::Synced { consumer });
    }
    history.note(now, Event::Ended { consumer });
}
