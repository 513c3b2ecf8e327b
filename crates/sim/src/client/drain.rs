//! The last client: alone, it empties every queue and leaves when nothing comes any more.

use super::wire::{Message, Way};
use super::{Asked, Behaviour, Scene};
use crate::history::{History, QueueIndex, Subscription};
use angarium_engine::Time;
use angarium_protocol::amqp091::codec::Method;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long nothing must have come; longer than any delay, time to live or disk job that is left.
const QUIET: Duration = Duration::from_secs(12);
/// How often it asks whether the queues are empty.
const PAUSE: Duration = Duration::from_secs(4);
/// Unsettled deliveries per queue.
const PREFETCH: u16 = 100;

/// The drain at work.
#[derive(Debug, Default)]
pub struct Drain {
    queues: BTreeMap<u32, QueueIndex>,
    /// Answers that are out, and the messages that they count.
    asking: usize,
    messages: u64,
    last: Time,
    has_begun: bool,
    is_done: bool,
}

impl Drain {
    fn ask(&mut self, scene: &mut Scene<'_>) {
        self.messages = 0;
        let plan = scene.plan();
        let lasting = |index: &usize| !plan.queues[*index].is_private();
        let indices: Vec<usize> = (0..plan.queues.len()).filter(lasting).collect();
        self.asking = indices.len();
        for index in indices {
            scene.ask_depth(index);
        }
    }

    fn subscribe(&mut self, scene: &mut Scene<'_>) {
        self.has_begun = true;
        let plan = scene.plan().clone();
        scene.ask_prefetch(PREFETCH, 0);
        for (index, queue) in plan.queues.iter().enumerate() {
            if queue.is_private() {
                continue;
            }
            let consumer = scene.new_consumer();
            self.queues.insert(consumer, index);
            scene.subscribe(Subscription {
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
    fn begin(&mut self, scene: &mut Scene<'_>) {
        self.last = scene.now;
        self.ask(scene);
    }

    fn arrived(&mut self, scene: &mut Scene<'_>, message: &Message) {
        let Way::Delivered { consumer } = &message.way else { return };
        let consumer: u32 = consumer.parse().unwrap_or(0);
        let Some(queue) = self.queues.get(&consumer).copied() else { return };
        self.last = scene.now;
        scene.note_delivery(consumer, queue, message);
        match message.id {
            Some(id) => scene.accept((consumer, queue), message.tag, id, None),
            // It is none of ours, which its delivery tells already.
            None => {
                scene.wire.send(&Method::BasicAck { delivery_tag: message.tag, multiple: false });
            }
        }
    }

    fn answered(&mut self, scene: &mut Scene<'_>, asked: Asked, messages: u32) {
        let Asked::Depth(_) = asked else { return };
        self.messages += u64::from(messages);
        self.asking -= 1;
        if self.asking > 0 {
            return;
        }
        if !self.has_begun {
            self.subscribe(scene);
        } else if self.messages == 0 && scene.now.since(self.last) >= QUIET {
            self.is_done = true;
            return;
        }
        *scene.wake_at = Some(scene.now.plus(PAUSE));
    }

    fn woken(&mut self, scene: &mut Scene<'_>) {
        self.ask(scene);
    }

    fn ended(&mut self, _: &mut History, _: Time, _: bool) {}

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn waits_for(&self) -> String {
        format!("{} messages are left", self.messages)
    }
}
