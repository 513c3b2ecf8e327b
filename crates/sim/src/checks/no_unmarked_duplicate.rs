//! Of all deliveries of one message from one queue, at most one is not marked as redelivered.
//!
//! The unmarked one need not arrive first: it may have been under way on a connection that stalled.

use crate::history::{Event, History};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut unmarked = BTreeSet::new();
    let mut crashes = 0;
    let mut epochs = BTreeMap::new();
    for (_, event) in &history.events {
        match event {
            Event::Crashed => crashes += 1,
            Event::Consume(consume) => {
                epochs.insert(consume.consumer, crashes);
            }
            Event::Deliver(delivery) if !delivery.redelivered => {
                // A crash undoes a move into a dead-letter queue that was not flushed; repeated,
                // it enqueues a new message.
                let is_target = history.plan.is_dead_letter_target(delivery.queue);
                let epoch = epochs.get(&delivery.consumer).copied().filter(|_| is_target);
                if !unmarked.insert((delivery.queue, delivery.message, epoch)) {
                    let name = &history.plan.queues[delivery.queue].name;
                    let message = delivery.message;
                    return Err(format!("{message:?} came twice from '{name}', unmarked"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
