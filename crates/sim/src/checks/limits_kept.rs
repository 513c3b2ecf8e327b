//! Queues keep their limits: length, time to live, delay and number of requeues.

use crate::history::{Event, History, Publish};
use angarium_engine::{Overflow, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Longest time that a delivery is under way while nothing is stalled.
const UNDER_WAY: Duration = Duration::from_secs(5);

pub(super) fn check(history: &History) -> Result<(), String> {
    let mut publishes: BTreeMap<_, &Publish> = BTreeMap::new();
    let mut draining: Option<Time> = None;
    let mut consumers = BTreeMap::new();
    let mut has_returned = BTreeSet::new();
    for (now, event) in &history.events {
        match event {
            Event::Publish(publish) => {
                publishes.insert(publish.message, publish);
            }
            Event::Consume(consume) => {
                consumers.insert(consume.consumer, consume.queue);
            }
            Event::Settle { queue, outcome, .. } if outcome.returns() => {
                has_returned.insert(*queue);
            }
            Event::Ended { consumer } => has_returned.extend(consumers.get(consumer)),
            Event::Crashed | Event::Closed => has_returned.extend(consumers.values()),
            Event::Draining => draining = Some(*now),
            Event::Depth { queue, messages } => {
                let has_grown = has_returned.contains(queue);
                let queue = &history.plan.queues[*queue];
                // A queue that refuses new messages may exceed its limit by requeued ones.
                if has_grown && queue.overflow != Overflow::DropHead {
                    continue;
                }
                if let Some(limit) = queue.length_max.filter(|limit| messages > limit) {
                    let name = &queue.name;
                    return Err(format!("queue '{name}' has {messages} of {limit} messages"));
                }
            }
            Event::Deliver(delivery) => {
                let queue = &history.plan.queues[delivery.queue];
                let (name, message, requeues) = (&queue.name, delivery.message, delivery.requeues);
                if queue.delivery_limit.is_some_and(|limit| requeues > limit) {
                    return Err(format!(
                        "queue '{name}' delivered again after {requeues} requeues"
                    ));
                }
                let publish = message.and_then(|message| publishes.get(&message));
                if publish.and_then(|it| it.held_until).is_some_and(|until| *now < until) {
                    return Err(format!("queue '{name}' delivered {message:?} before its time"));
                }
                // Only dead letters are enqueued after the drain began.
                let is_direct = !history.plan.is_dead_letter_target(delivery.queue);
                let due = draining
                    .zip(queue.ttl)
                    .map(|(start, ttl)| start.plus(Duration::from_millis(ttl) + UNDER_WAY));
                if is_direct && due.is_some_and(|due| *now > due) {
                    return Err(format!("queue '{name}' delivered {message:?} after its time"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
