//! What all consuming roles share: starting a consumer, and recording deliveries and settles.

use super::context::{Asked, Context};
use super::incoming::Message;
use crate::history::{Consume, Delivery, Event, History, MessageId, Outcome};
use crate::plan::QueueIndex;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::{Method, Table};

/// A delivery that its consumer has not settled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unsettled {
    pub(super) tag: u64,
    pub(super) message: MessageId,
}

impl Context<'_> {
    /// A number for a new consumer.
    pub(super) fn new_consumer(&mut self) -> u32 {
        self.numbers.consumer += 1;
        self.numbers.consumer
    }

    /// Sets the prefetch limits of later consumers.
    pub(super) fn ask_prefetch(&mut self, messages: u16, bytes: u32) {
        let qos =
            Method::BasicQos { prefetch_size: bytes, prefetch_count: messages, global: false };
        self.ask(&qos, Asked::Done);
    }

    /// Starts a consumer on a queue of the plan.
    pub(super) fn start_consumer(&mut self, consume: Consume) {
        let queue = self.plan().queues[consume.queue].name.clone();
        let Consume { consumer, presettled, .. } = consume;
        self.note(Event::Consume(consume));
        self.consume(&queue, &consumer.to_string(), presettled);
    }

    /// Starts a consumer on the queue of that name.
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

    /// Records a delivery.
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
        consumer: u32,
        queue: QueueIndex,
        delivered: Unsettled,
        transaction: Option<u32>,
    ) {
        let Unsettled { tag, message } = delivered;
        self.wire.send(&Method::BasicAck { delivery_tag: tag, multiple: false });
        let outcome = Outcome::Accept;
        self.note(Event::Settle { consumer, queue, message, outcome, transaction });
    }
}

/// Records that a consumer's connection has ended; `synced`: after the broker had processed
/// everything.
pub(super) fn note_end(history: &mut History, now: Time, consumer: u32, synced: bool) {
    if synced {
        history.note(now, Event::Synced { consumer });
    }
    history.note(now, Event::Ended { consumer });
}
