//! The last client of a run: empties every queue.

use super::context::{Asked, Behaviour, Context};
use super::deliveries::Unsettled;
use super::incoming::{Message, Way};
use crate::history::{Consume, History};
use crate::plan::QueueIndex;
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::Method;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time without deliveries after which the queues are empty: longer than any delay, time to live
/// or disk job.
const QUIET: Duration = Duration::from_secs(12);
/// Time between two requests for the queues' depths.
const PAUSE: Duration = Duration::from_secs(4);
/// Unsettled deliveries per queue.
const PREFETCH: u16 = 100;

/// The state of the drain.
#[derive(Debug, Default)]
pub(super) struct Drain {
    queues: BTreeMap<u32, QueueIndex>,
    /// Unanswered requests for a depth, and the sum of the answers.
    asking: usize,
    messages: u64,
    last: Time,
    has_begun: bool,
    is_done: bool,
}

impl Drain {
    fn ask(&mut self, context: &mut Context<'_>) {
        self.messages = 0;
        let plan = context.plan();
        let lasting = |index: &usize| !plan.queues[*index].is_private();
        let indices: Vec<usize> = (0..plan.queues.len()).filter(lasting).collect();
        self.asking = indices.len();
        for index in indices {
            context.ask_depth(index);
        }
    }

    fn start_consumer(&mut self, context: &mut Context<'_>) {
        self.has_begun = true;
        let plan = context.plan().clone();
        context.ask_prefetch(PREFETCH, 0);
        for (index, queue) in plan.queues.iter().enumerate() {
            if queue.is_private() {
                continue;
            }
            let consumer = context.new_consumer();
            self.queues.insert(consumer, index);
            context.start_consumer(Consume {
                consumer,
                queue: index,
                messages_max: u64::from(PREFETCH),
                bytes_max: 0,
                presettled: false,
            });
        }
    }
}

impl Behaviour for Drain {
    fn begin(&mut self, context: &mut Context<'_>) {
        self.last = context.now;
        self.ask(context);
    }

    fn arrived(&mut self, context: &mut Context<'_>, message: &Message) {
        let Way::Delivered { consumer } = &message.way else { return };
        let consumer: u32 = consumer.parse().unwrap_or(0);
        let Some(queue) = self.queues.get(&consumer).copied() else { return };
        self.last = context.now;
        context.note_delivery(consumer, queue, message);
        match message.id {
            Some(id) => {
                let delivered = Unsettled { tag: message.tag, message: id };
                context.accept(consumer, queue, delivered, None);
            }
            // No producer made it, which the recorded delivery says already.
            None => {
                context.wire.send(&Method::BasicAck { delivery_tag: message.tag, multiple: false });
            }
        }
    }

    fn answered(&mut self, context: &mut Context<'_>, asked: Asked, messages: u32) {
        let Asked::Depth(_) = asked else { return };
        self.messages += u64::from(messages);
        self.asking -= 1;
        if self.asking > 0 {
            return;
        }
        if !self.has_begun {
            self.start_consumer(context);
        } else if self.messages == 0 && context.now.since(self.last) >= QUIET {
            self.is_done = true;
            return;
        }
        *context.wake_at = Some(context.now.plus(PAUSE));
    }

    fn woken(&mut self, context: &mut Context<'_>) {
        self.ask(context);
    }

    fn ended(&mut self, _: &mut History, _: Time, _: bool) {}

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn waits_for(&self) -> String {
        format!("{} messages are left", self.messages)
    }
}
