//! Messages of one producer come out of one queue in the order in which they went in.
//!
//! While clients come and go, only deliveries not marked as redelivered are judged. During the
//! drain at the end each queue has a single consumer, and all deliveries must be in order.

use crate::history::{Event, History, MessageId, Publish};
use std::collections::BTreeMap;

pub(super) fn check(history: &History) -> Result<(), String> {
    let plan = &history.plan;
    let mut publishes: BTreeMap<MessageId, &Publish> = BTreeMap::new();
    // The last message of each (consumer, producer, priority): one consumer has one queue.
    let mut newest: BTreeMap<(u32, u32, u8), MessageId> = BTreeMap::new();
    let mut is_draining = false;
    for (_, event) in &history.events {
        match event {
            Event::Publish(publish) => {
                publishes.insert(publish.message, publish);
            }
            Event::Draining => is_draining = true,
            Event::Deliver(delivery) => {
                let Some(message) = delivery.message else { continue };
                let Some(publish) = publishes.get(&message) else { continue };
                if publish.held_until.is_some() || plan.is_dead_letter_target(delivery.queue) {
                    continue;
                }
                if delivery.redelivered && !is_draining {
                    continue;
                }
                let queue = &plan.queues[delivery.queue];
                let priority = queue.priority_max.map_or(0, |max| max.min(publish.priority));
                let key = (delivery.consumer, message.producer(), priority);
                if let Some(before) = newest.insert(key, message).filter(|before| *before > message)
                {
                    let name = &queue.name;
                    return Err(format!("queue '{name}' delivered {before:?} before {message:?}"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
